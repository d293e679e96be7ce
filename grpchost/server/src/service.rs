//! One request, from its headers to its answer.

use crate::body::{Answer, answered, failed, not_grpc};
use crate::call::{Call, Pending, Reply};
use crate::counters::Counters;
use crate::gate::{Gate, Pass};
use crate::headers::{self, Head, Refusal};
use crate::limits::Limits;
use crate::message::receive;
use crate::peer::Peer;
use crate::queue::Inbox;
use crate::status::{Code, Failure};
use bytes::Bytes;
use http::{Request, Response};
use hyper::body::Incoming;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::Instant;
use tokio::sync::{Notify, oneshot};
use tokio::time::timeout_at;

/// What all connections of a server share.
pub struct Shared {
    /// Paths (`/package.Service/Method`) and their indices.
    pub methods: HashMap<String, u32>,
    pub limits: Limits,
    pub inbox: Arc<dyn Inbox>,
    /// Something was pushed: the inbox is to be told once all that came with it has been.
    pub pushed: Notify,
    pub gate: Arc<Gate>,
    pub counters: Arc<Counters>,
}

/// What the calls of one connection share.
pub struct Caller {
    pub shared: Arc<Shared>,
    pub peer: Arc<Peer>,
    /// Calls begun.
    pub begun: AtomicU64,
    /// Calls not yet over.
    pub open: AtomicU32,
}

/// A call that is being worked on. Dropped before its end, its caller has given it up.
struct Open<'a> {
    caller: &'a Caller,
    ended: bool,
}

impl<'a> Open<'a> {
    fn new(caller: &'a Caller) -> Self {
        caller.shared.counters.calls.one();
        caller.begun.fetch_add(1, Relaxed);
        caller.open.fetch_add(1, Relaxed);
        Self { caller, ended: false }
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.caller.open.fetch_sub(1, Relaxed);
        let counters = &self.caller.shared.counters;
        if std::thread::panicking() {
            counters.panics.one();
        } else if !self.ended {
            counters.cancelled.one();
        }
    }
}

/// Answers one request.
pub async fn serve(request: Request<Incoming>, caller: Arc<Caller>) -> Response<Answer> {
    let mut open = Open::new(&caller);
    let response = respond(request, &caller).await;
    open.ended = true;
    response
}

async fn respond(request: Request<Incoming>, caller: &Caller) -> Response<Answer> {
    let Shared { limits, gate, counters, inbox, .. } = &*caller.shared;
    let now = Instant::now();
    let (parts, body) = request.into_parts();
    let head = match headers::read(&parts, now) {
        Ok(head) => head,
        Err(Refusal::Http(status)) => {
            counters.refused.one();
            return not_grpc(status);
        }
        Err(Refusal::Grpc(failure)) => return refused(counters, &failure),
    };
    let path = parts.uri.path();
    let Some(&method) = caller.shared.methods.get(path) else {
        return refused(counters, &Failure::new(Code::Unimplemented, format!("unknown method {path}")));
    };
    // Its memory is not needed while the call waits.
    drop(parts);
    let Some(pass) = gate.enter() else {
        inbox.sweep();
        counters.shed.one();
        return failed(&Failure::new(Code::ResourceExhausted, "too many calls in flight"));
    };
    let message = match arrive(body, &head, now, limits).await {
        Arrived::Message(message) => message,
        Arrived::Expired => return expired(counters),
        Arrived::Refused(failure) => return refused(counters, &failure),
    };
    let answer = push(method, message, &head, pass, caller);
    conclude(wait(answer, &head).await, counters)
}

enum Arrived {
    Message(Bytes),
    Expired,
    Refused(Failure),
}

async fn arrive(body: Incoming, head: &Head, now: Instant, limits: &Limits) -> Arrived {
    let slow = now + limits.receive;
    let until = head.deadline.map_or(slow, |deadline| deadline.min(slow));
    match timeout_at(until.into(), receive(body, head.encoding, limits.message_bytes)).await {
        Ok(Ok(message)) => Arrived::Message(message),
        Ok(Err(failure)) => Arrived::Refused(failure),
        Err(_) if head.deadline == Some(until) => Arrived::Expired,
        Err(_) => {
            let seconds = limits.receive.as_secs_f64();
            let message = format!("the request did not arrive in full within {seconds} s");
            Arrived::Refused(Failure::new(Code::Aborted, message))
        }
    }
}

fn push(method: u32, message: Bytes, head: &Head, pass: Pass, caller: &Caller) -> oneshot::Receiver<Reply> {
    let (pending, answer) = Pending::new(pass);
    let peer = Arc::clone(&caller.peer);
    caller.shared.inbox.push(Call { method, message, deadline: head.deadline, peer, pending });
    caller.shared.pushed.notify_one();
    answer
}

/// The reply; None at the deadline.
async fn wait(answer: oneshot::Receiver<Reply>, head: &Head) -> Option<Reply> {
    let reply = match head.deadline {
        Some(deadline) => timeout_at(deadline.into(), answer).await.ok()?,
        None => answer.await,
    };
    match reply {
        Ok(reply) => Some(reply),
        // The inbox let it go, which it does with what is over.
        Err(_) if head.deadline.is_some_and(|deadline| deadline <= Instant::now()) => None,
        Err(_) => Some(Err(Failure::new(Code::Unavailable, "the call was let fall unanswered"))),
    }
}

fn conclude(reply: Option<Reply>, counters: &Counters) -> Response<Answer> {
    match reply {
        Some(Ok(message)) => {
            counters.answered.one();
            answered(message)
        }
        Some(Err(failure)) => {
            counters.failed.one();
            failed(&failure)
        }
        None => expired(counters),
    }
}

fn refused(counters: &Counters, failure: &Failure) -> Response<Answer> {
    counters.refused.one();
    failed(failure)
}

fn expired(counters: &Counters) -> Response<Answer> {
    counters.expired.one();
    failed(&Failure::new(Code::DeadlineExceeded, "the call's deadline has passed"))
}
