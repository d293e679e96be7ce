//! One request, from its headers to its answer.

use crate::body::{Answer, answered, failed, refused_as, streaming};
use crate::call::{Call, Pending, Reply, Said, let_fall};
use crate::caller::{Caller, Shared};
use crate::counters::Counters;
use crate::gate::Pass;
use crate::headers::{self, Head};
use crate::limits::Limits;
use crate::message::{receive, too_slow};
use crate::status::{Code, Failure};
use crate::stream;
use bytes::Bytes;
use http::{Request, Response, request::Parts};
use hyper::body::Incoming;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;
use tokio::sync::oneshot;
use tokio::time::timeout_at;

/// A call that is being worked on. Dropped before its end, its caller has given it up.
struct Open<'a> {
    caller: &'a Caller,
    ended: bool,
}

impl<'a> Open<'a> {
    fn new(caller: &'a Caller) -> Self {
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

async fn respond(request: Request<Incoming>, caller: &Arc<Caller>) -> Response<Answer> {
    let Shared { limits, counters, .. } = &*caller.shared;
    let now = Instant::now();
    let (parts, body) = request.into_parts();
    let (head, method) = match known(&parts, now, &caller.shared) {
        Ok(known) => known,
        Err(response) => {
            counters.calls.one();
            counters.refused.one();
            return *response;
        }
    };
    // Its memory is not needed while the call waits.
    drop(parts);
    if method >= caller.shared.unary {
        return stream::begin(method, &head, body, caller).map_or_else(|failure| failed(&failure), streaming);
    }
    counters.calls.one();
    let Some(pass) = caller.shared.enter() else {
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

/// What the request asks for; or the answer to one that can't be answered.
fn known(parts: &Parts, now: Instant, shared: &Shared) -> Result<(Head, u32), Box<Response<Answer>>> {
    let head = headers::read(parts, now).map_err(|refusal| Box::new(refused_as(&refusal)))?;
    let path = parts.uri.path();
    let method = shared.methods.get(path).copied();
    method.map(|method| (head, method)).ok_or_else(|| {
        let failure = Failure::new(Code::Unimplemented, format!("unknown method {path}"));
        Box::new(failed(&failure))
    })
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
        Err(_) => Arrived::Refused(too_slow(limits.receive)),
    }
}

fn push(method: u32, message: Bytes, head: &Head, pass: Pass, caller: &Caller) -> oneshot::Receiver<Said> {
    let (pending, answer) = Pending::new(pass);
    let peer = Arc::clone(&caller.peer);
    caller.shared.push(Call { method, message, deadline: head.deadline, peer, pending });
    answer
}

/// The reply; None at the deadline.
async fn wait(answer: oneshot::Receiver<Said>, head: &Head) -> Option<Reply> {
    let said = match head.deadline {
        Some(deadline) => timeout_at(deadline.into(), answer).await.ok()?,
        None => answer.await,
    };
    match said {
        Ok(Said::Reply(reply)) => Some(reply),
        // The inbox let it go, which it does with what is over.
        Err(_) if head.deadline.is_some_and(|deadline| deadline <= Instant::now()) => None,
        Ok(Said::Open(_)) | Err(_) => Some(Err(let_fall())),
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
