//! A bug in what one call runs through ends that call, or its connection; nothing else.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod common;

use common::{Caller, Ended, METHODS, config, request, until};
use grpchost_server::{Call, Counters, Inbox, Limits, Queue, Server, framed};
use std::sync::Arc;

/// Panics at a call of the second method.
struct Buggy(Arc<Queue>);

impl Inbox for Buggy {
    fn push(&self, call: Call) {
        assert_eq!(call.method, 0, "a bug");
        self.0.push(call);
    }
    fn signal(&self) {
        self.0.signal();
    }
    fn sweep(&self) {
        self.0.sweep();
    }
    fn close(&self) {
        self.0.close();
    }
}

#[tokio::test]
async fn a_panic_ends_its_own_call_only() {
    let counters = Arc::new(Counters::default());
    let queue = Queue::new(Arc::clone(&counters)).unwrap();
    let inbox = Arc::new(Buggy(Arc::clone(&queue)));
    let server = Server::start(config(Limits::default(), None), inbox, Arc::clone(&counters)).unwrap();
    let address = format!("127.0.0.1:{}", server.ports()[0]);
    let (mut one, mut other) = (Caller::connect(&address).await, Caller::connect(&address).await);
    assert!(one.send(request(METHODS[1]), &framed(b"")).await.result().await.is_err());
    for caller in [&mut one, &mut other] {
        let answer = caller.call(b"as ever").await;
        until("the call", || !queue.is_empty()).await;
        let answered = queue.take(1).into_iter().map(|call| (call.pending, Ok(framed(&call.message))));
        server.answers().send(answered.collect());
        assert_eq!(answer.end().await, Ended::ok(b"as ever"));
    }
    assert_eq!((counters.panics.get(), server.in_flight()), (1, 0));
}
