//! A streaming call: each of its messages is handed over as a call is, and each answer is a message of the stream.
//!
//! One message at a time, so a stream holds no more than one place among the calls in flight, and HTTP/2's flow control
//! bounds what its caller may have said beyond it. Whoever takes a message may keep the call open instead of answering
//! it: then all further messages are the taker's.

use crate::call::{Call, Pending, Piece, Said, let_fall};
use crate::caller::Caller;
use crate::gate::Pass;
use crate::headers::Head;
use crate::message::Messages;
use crate::status::{Code, Failure, trailers};
use bytes::Bytes;
use http_body::Frame;
use hyper::body::Incoming;
use std::future::{Future, pending};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll, ready};
use std::time::Instant;
use tokio::sync::mpsc;
use tokio::time::sleep_until;

/// The answer to a streaming call.
pub fn begin(method: u32, head: &Head, body: Incoming, caller: &Arc<Caller>) -> Result<Streaming, Failure> {
    let shared = &caller.shared;
    shared.counters.streams.one();
    let Some(pass) = shared.stream_gate.enter() else {
        shared.counters.streams_refused.one();
        return Err(Failure::new(Code::ResourceExhausted, "too many streaming calls"));
    };
    let limits = &shared.limits;
    let stream = Stream {
        messages: Messages::new(body, head.encoding, limits.message_bytes, limits.receive),
        method,
        deadline: head.deadline,
        taker: None,
        open: Open::new(Arc::clone(caller), pass),
    };
    Ok(Streaming { step: Some(Box::pin(stream.step())) })
}

/// An open stream, in the counters.
struct Open {
    caller: Arc<Caller>,
    _pass: Pass,
}

impl Open {
    fn new(caller: Arc<Caller>, pass: Pass) -> Self {
        caller.shared.counters.streams_open.one();
        caller.open.fetch_add(1, Relaxed);
        Self { caller, _pass: pass }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let counters = &self.caller.shared.counters;
        counters.streams_open.less();
        self.caller.open.fetch_sub(1, Relaxed);
        if std::thread::panicking() {
            counters.panics.one();
        }
    }
}

type Step = Pin<Box<dyn Future<Output = (Frame<Bytes>, Option<Stream>)> + Send>>;

/// A stream's frames. Dropped with its HTTP/2 stream, it ends what it does.
pub struct Streaming {
    step: Option<Step>,
}

impl Streaming {
    /// None after the trailers.
    pub fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Frame<Bytes>>> {
        let Some(step) = &mut self.step else { return Poll::Ready(None) };
        let (frame, stream) = ready!(step.as_mut().poll(cx));
        self.step = stream.map(|stream| Box::pin(stream.step()) as Step);
        Poll::Ready(Some(frame))
    }
}

struct Stream {
    messages: Messages<Incoming>,
    method: u32,
    deadline: Option<Instant>,
    /// Who keeps it open.
    taker: Option<mpsc::Receiver<Piece>>,
    open: Open,
}

impl Stream {
    /// One frame; with the last, the stream is gone.
    async fn step(mut self) -> (Frame<Bytes>, Option<Self>) {
        match self.piece().await {
            Piece::Message(framed) => (Frame::data(framed), Some(self)),
            Piece::End(status) => (Frame::trailers(trailers(&status)), None),
        }
    }

    async fn piece(&mut self) -> Piece {
        let deadline = self.deadline;
        let passed = async {
            match deadline {
                Some(deadline) => sleep_until(deadline.into()).await,
                None => pending().await,
            }
        };
        tokio::select! {
            piece = self.said() => piece,
            () = passed => ended(Code::DeadlineExceeded, "the call's deadline has passed"),
        }
    }

    async fn said(&mut self) -> Piece {
        if self.taker.is_none() {
            let mut draining = self.open.caller.draining.clone();
            let message = tokio::select! {
                message = self.messages.next() => message,
                _ = draining.wait_for(|draining| *draining) => {
                    return ended(Code::Unavailable, "the server is shutting down");
                }
            };
            match message {
                Ok(Some(message)) => match self.ask(message).await {
                    Ok(Said::Reply(Ok(framed))) => return Piece::Message(framed),
                    Ok(Said::Open(taker)) => self.taker = Some(taker),
                    Ok(Said::Reply(Err(failure))) | Err(failure) => return Piece::End(Err(failure)),
                },
                Ok(None) => return Piece::End(Ok(())),
                Err(failure) => return Piece::End(Err(failure)),
            }
        }
        let piece = match &mut self.taker {
            Some(taker) => taker.recv().await,
            None => None,
        };
        piece.unwrap_or_else(|| Piece::End(Err(let_fall())))
    }

    /// What becomes of one message.
    async fn ask(&self, message: Bytes) -> Result<Said, Failure> {
        let Open { caller, .. } = &self.open;
        let Some(pass) = caller.shared.enter() else {
            return Err(Failure::new(Code::ResourceExhausted, "too many calls in flight"));
        };
        let (pending, answer) = Pending::new(pass);
        let peer = Arc::clone(&caller.peer);
        caller.shared.push(Call { method: self.method, message, deadline: self.deadline, peer, pending });
        answer.await.map_err(|_| let_fall())
    }
}

fn ended(code: Code, message: &'static str) -> Piece {
    Piece::End(Err(Failure::new(code, message)))
}
