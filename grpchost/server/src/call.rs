//! One call, on its way to whoever answers it and back.

use crate::counters::Counters;
use crate::gate::Pass;
use crate::peer::Peer;
use crate::status::{Code, Failure};
use bytes::Bytes;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::{mpsc, oneshot};

/// A message with its frame (see [`crate::framed`]), or a status.
pub type Reply = Result<Bytes, Failure>;

/// When a caller stops waiting; None: never.
pub type Deadline = Option<Instant>;

/// A call whose request has arrived in full.
#[derive(Debug)]
pub struct Call {
    /// Index into the server's methods.
    pub method: u32,
    /// Without frame, inflated.
    pub message: Bytes,
    pub deadline: Deadline,
    pub peer: Arc<Peer>,
    pub pending: Pending,
}

/// What becomes of a call that was handed over.
#[derive(Debug)]
pub enum Said {
    Reply(Reply),
    /// Its stream stays open for these, in its own order.
    Open(mpsc::Receiver<Piece>),
}

/// What is said on an open call.
#[derive(Debug)]
pub enum Piece {
    /// With its frame.
    Message(Bytes),
    /// The last.
    End(Result<(), Failure>),
}

/// The way to answer a call. Holds its place among the calls in flight.
#[derive(Debug)]
pub struct Pending {
    reply: oneshot::Sender<Said>,
    _pass: Pass,
}

impl Pending {
    pub(crate) fn new(pass: Pass) -> (Self, oneshot::Receiver<Said>) {
        let (reply, answer) = oneshot::channel();
        (Self { reply, _pass: pass }, answer)
    }

    /// Nobody waits any more: the caller is gone, or has been told that its time is over.
    pub fn is_over(&self) -> bool {
        self.reply.is_closed()
    }

    fn send(self, reply: Reply) {
        // Fails if the call is over, which needs no answer then.
        let _ = self.reply.send(Said::Reply(reply));
    }

    /// Keeps a streaming call open, out of the calls in flight; a unary one is let fall by this.
    pub fn open(self) -> OpenCall {
        // One place more, which is the end's.
        let (pieces, said) = mpsc::channel(OpenCall::WAITING + 1);
        let _ = self.reply.send(Said::Open(said));
        OpenCall(pieces)
    }
}

/// A streaming call on which its taker says what there is to say, when there is something. Dropped, it is let fall.
#[derive(Debug)]
pub struct OpenCall(mpsc::Sender<Piece>);

impl OpenCall {
    /// How many messages may wait for a caller that is slow to take them.
    pub const WAITING: usize = 8;

    /// One more message, with its frame. False where too many wait, or the call is over: it is not sent, nor kept.
    pub fn send(&self, framed: Bytes) -> bool {
        self.0.capacity() > 1 && self.0.try_send(Piece::Message(framed)).is_ok()
    }

    /// The end, after all that was sent.
    pub fn end(self, status: Result<(), Failure>) {
        let _ = self.0.try_send(Piece::End(status));
    }

    /// The caller is gone, or has been told that its time is over.
    pub fn is_over(&self) -> bool {
        self.0.is_closed()
    }
}

/// What a call gets that whoever took it does not answer.
pub(crate) fn let_fall() -> Failure {
    Failure::new(Code::Unavailable, "the call was let fall unanswered")
}

/// The way back for batches of replies; each batch is one wake of the server's thread.
#[derive(Clone, Debug)]
pub struct Answers {
    batches: mpsc::UnboundedSender<Vec<(Pending, Reply)>>,
    counters: Arc<Counters>,
}

impl Answers {
    /// Never more than the calls in flight, so it needs no bound of its own. Nothing happens if the server has stopped.
    pub fn send(&self, batch: Vec<(Pending, Reply)>) {
        let _ = self.batches.send(batch);
    }

    /// Calls that were taken and will not be answered.
    pub fn abandon(&self, calls: impl Iterator<Item = Pending>) {
        let batch: Vec<_> = calls.map(|pending| (pending, Err(let_fall()))).collect();
        if !batch.is_empty() {
            self.counters.abandoned.add(batch.len() as u64);
            self.send(batch);
        }
    }
}

/// The server's end of [`Answers`].
pub(crate) struct Replies(mpsc::UnboundedReceiver<Vec<(Pending, Reply)>>);

impl Replies {
    pub fn new(counters: Arc<Counters>) -> (Answers, Self) {
        let (batches, replies) = mpsc::unbounded_channel();
        (Answers { batches, counters }, Self(replies))
    }

    /// Wakes each call's task with its reply, until all [`Answers`] are gone.
    pub async fn deliver(mut self) {
        while let Some(batch) = self.0.recv().await {
            for (pending, reply) in batch {
                pending.send(reply);
            }
        }
    }
}
