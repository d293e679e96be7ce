//! Streaming calls.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod common;

use bytes::Bytes;
use common::{Answer, Caller, Ended, Host, PATIENCE, STREAM, request, until, within};
use grpchost_server::{Call, Code, Failure, Limits, OpenCall, framed};
use h2::RecvStream;
use std::time::Duration;

/// An open stream, as its caller has it.
struct Talk {
    answer: h2::SendStream<Bytes>,
    body: RecvStream,
}

impl Talk {
    async fn begin(caller: &mut Caller) -> Self {
        let Answer { response, request } = caller.begin(request(STREAM)).await;
        let (head, body) = within("headers", response).await.unwrap().into_parts();
        assert_eq!(head.headers["content-type"], "application/grpc");
        Self { answer: request, body }
    }

    fn say(&mut self, message: &[u8]) {
        self.answer.send_data(framed(message), false).unwrap();
    }

    /// One message; its frame is one of HTTP/2's, too.
    async fn hear(&mut self) -> Bytes {
        let data = within("a message", self.body.data()).await.unwrap().unwrap();
        let _ = self.body.flow_control().release_capacity(data.len());
        data.slice(5..)
    }

    async fn status(mut self) -> (u8, String) {
        assert!(within("the end", self.body.data()).await.is_none());
        let trailers = within("trailers", self.body.trailers()).await.unwrap().unwrap();
        let text = trailers.get("grpc-message").map_or("", |value| value.to_str().unwrap()).to_owned();
        (trailers["grpc-status"].to_str().unwrap().parse().unwrap(), text)
    }
}

async fn open(host: &Host, talk: &mut Talk) -> OpenCall {
    talk.say(b"watch");
    host.turn().await.pop().unwrap().pending.open()
}

#[tokio::test]
async fn each_message_is_a_call_and_each_answer_a_message() {
    let host = Host::with(Limits::default());
    let mut caller = Caller::connect(&host.address()).await;
    let mut talk = Talk::begin(&mut caller).await;
    for message in [&b"one"[..], b"", b"three"] {
        talk.say(message);
        let calls = host.turn().await;
        let found: Vec<_> = calls.iter().map(|call: &Call| (call.method, &call.message[..])).collect();
        assert_eq!(found, [(2, message)]);
        host.echo(calls);
        assert_eq!(talk.hear().await, message);
    }
    assert_eq!((host.count("streams_open"), host.server.in_flight()), (1, 0));
    talk.answer.send_data(Bytes::new(), true).unwrap();
    assert_eq!(talk.status().await, (0, String::new()));
    host.counts("streams_open", 0).await;
    assert_eq!((host.count("streams"), host.count("calls"), host.count("answered")), (1, 0, 0));
    host.is_well().await;
}

#[tokio::test]
async fn messages_said_at_once_are_answered_one_after_the_other_though_the_caller_has_said_all() {
    let host = Host::with(Limits::default());
    let mut caller = Caller::connect(&host.address()).await;
    let mut answer = caller.begin(request(STREAM)).await;
    let both = [framed(b"one"), framed(b"two")].concat();
    answer.request.send_data(both.clone().into(), true).unwrap();
    for _ in 0..2 {
        let calls = host.turn().await;
        assert_eq!(calls.len(), 1);
        host.echo(calls);
    }
    let ended = answer.end().await;
    assert_eq!((ended.status, ended.body), (Some(0), both));
}

#[tokio::test]
async fn a_failure_ends_the_stream() {
    let host = Host::with(Limits { message_bytes: 5, ..Limits::default() });
    let mut caller = Caller::connect(&host.address()).await;
    let mut talk = Talk::begin(&mut caller).await;
    talk.say(b"odd");
    host.fail(host.turn().await.pop().unwrap(), Failure::new(Code::InvalidArgument, "odd"));
    assert_eq!(talk.status().await, (3, "odd".into()));
    let mut talk = Talk::begin(&mut caller).await;
    talk.say(b"larger");
    assert_eq!(talk.status().await.0, 8);
    let mut talk = Talk::begin(&mut caller).await;
    talk.say(b"fall");
    drop(host.turn().await);
    assert_eq!(talk.status().await.0, 14);
    host.counts("streams_open", 0).await;
}

#[tokio::test]
async fn on_an_open_call_there_is_more_to_say_until_its_end() {
    let host = Host::with(Limits::default());
    let mut caller = Caller::connect(&host.address()).await;
    let mut talk = Talk::begin(&mut caller).await;
    let open = open(&host, &mut talk).await;
    assert_eq!(host.server.in_flight(), 0);
    for message in [b"first", b"later"] {
        assert!(open.send(framed(message)));
        assert_eq!(talk.hear().await, &message[..]);
    }
    assert!(open.send(framed(b"last")));
    open.end(Err(Failure::new(Code::Unavailable, "over")));
    assert_eq!(talk.hear().await, "last");
    assert_eq!(talk.status().await, (14, "over".into()));
    let mut talk = Talk::begin(&mut caller).await;
    drop(self::open(&host, &mut talk).await);
    assert_eq!(talk.status().await, (14, "the call was let fall unanswered".into()));
}

#[tokio::test]
async fn who_takes_no_messages_makes_none_wait_beyond_the_bound() {
    let host = Host::with(Limits::default());
    let mut caller = Caller::connect(&host.address()).await;
    let mut talk = Talk::begin(&mut caller).await;
    let open = open(&host, &mut talk).await;
    // HTTP/2's window of a stream is 64 KiB until the caller takes something.
    let large = framed(&vec![7; 60_000]);
    let mut sent = 0;
    while sent <= 4 * OpenCall::WAITING && open.send(large.clone()) {
        sent += 1;
        tokio::task::yield_now().await;
    }
    assert!(sent <= 3 + OpenCall::WAITING, "{sent}");
    assert!(!open.send(large.clone()));
    assert!(!open.is_over());
    open.end(Ok(()));
    let mut taken = 0;
    while let Some(data) = within("data", talk.body.data()).await {
        let data = data.unwrap();
        let _ = talk.body.flow_control().release_capacity(data.len());
        taken += data.len();
    }
    assert_eq!(taken, sent * large.len());
    assert_eq!(talk.status().await, (0, String::new()));
}

#[tokio::test]
async fn callers_that_vanish_leave_nothing() {
    let host = Host::with(Limits { streaming: 30, ..Limits::default() });
    let mut opened = vec![];
    for round in 0..3 {
        let mut caller = Caller::connect(&host.address()).await;
        let mut talks = vec![];
        for _ in 0..30 {
            let mut talk = Talk::begin(&mut caller).await;
            opened.push(open(&host, &mut talk).await);
            talks.push(talk);
        }
        let refused = caller.begin(request(STREAM)).await.end().await;
        assert_eq!((refused.status, refused.text.as_str()), (Some(8), "too many streaming calls"));
        match round {
            0 => talks.iter_mut().for_each(|talk| talk.answer.send_reset(h2::Reason::CANCEL)),
            1 => drop(talks),
            _ => caller.connection.abort(),
        }
        host.counts("streams_open", 0).await;
    }
    assert!(opened.iter().all(|open| open.is_over() && !open.send(framed(b"nobody"))));
    assert_eq!((host.count("streams"), host.count("streams_refused")), (93, 3));
    host.is_well().await;
}

#[tokio::test]
async fn a_stream_has_a_deadline_too() {
    let host = Host::with(Limits::default());
    let mut caller = Caller::connect(&host.address()).await;
    let mut hasty = request(STREAM);
    hasty.headers_mut().insert("grpc-timeout", "50m".parse().unwrap());
    let ended = caller.begin(hasty).await.end().await;
    assert_eq!((ended.status, ended.body.len()), (Some(4), 0));
}

#[tokio::test]
async fn a_message_that_never_ends_is_not_waited_for() {
    let host = Host::with(Limits { receive: Duration::from_millis(50), ..Limits::default() });
    let mut caller = Caller::connect(&host.address()).await;
    let mut talk = Talk::begin(&mut caller).await;
    tokio::time::sleep(Duration::from_millis(150)).await;
    talk.say(b"patient");
    host.echo(host.turn().await);
    talk.hear().await;
    talk.answer.send_data(Bytes::from_static(&[0, 0]), false).unwrap();
    assert_eq!(talk.status().await.0, 10);
}

#[tokio::test]
async fn a_drain_ends_streams_that_wait_and_leaves_open_ones_to_their_taker() {
    let mut host = Host::with(Limits::default());
    let mut caller = Caller::connect(&host.address()).await;
    let (mut waits, mut watched) = (Talk::begin(&mut caller).await, Talk::begin(&mut caller).await);
    let open = open(&host, &mut watched).await;
    let mut asks = Talk::begin(&mut caller).await;
    asks.say(b"last");
    let question = host.turn().await;
    host.server.drain(PATIENCE);
    waits.answer.reserve_capacity(0);
    assert_eq!(waits.status().await, (14, "the server is shutting down".into()));
    host.echo(question);
    assert_eq!(asks.hear().await, "last");
    assert_eq!(asks.status().await.0, 14);
    assert!(open.send(framed(b"bye")));
    open.end(Err(Failure::new(Code::Unavailable, "bye")));
    assert_eq!(watched.hear().await, "bye");
    assert_eq!(watched.status().await.0, 14);
    until("the end of the drain", || host.queue.is_closed()).await;
    host.server.close();
}

#[tokio::test]
async fn a_unary_call_that_is_kept_open_is_let_fall() {
    let host = Host::with(Limits::default());
    let mut caller = Caller::connect(&host.address()).await;
    let answer = caller.call(b"unary").await;
    let open = host.turn().await.pop().unwrap().pending.open();
    assert_eq!(
        answer.end().await,
        Ended { http: 200, status: Some(14), text: "the call was let fall unanswered".into(), body: vec![] }
    );
    assert!(open.is_over());
}
