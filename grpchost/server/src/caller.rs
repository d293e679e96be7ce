//! Whom requests come from, and what they share.

use crate::call::Call;
use crate::counters::Counters;
use crate::gate::{Gate, Pass};
use crate::limits::Limits;
use crate::peer::Peer;
use crate::queue::Inbox;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64};
use tokio::sync::{Notify, watch};

/// What all connections of a server share.
pub struct Shared {
    /// Paths (`/package.Service/Method`) and their indices.
    pub methods: HashMap<String, u32>,
    /// Indices from here on are those of streaming methods.
    pub unary: u32,
    pub limits: Limits,
    pub inbox: Arc<dyn Inbox>,
    /// Something was pushed: the inbox is to be told once all that came with it has been.
    pub pushed: Notify,
    pub gate: Arc<Gate>,
    /// Streaming calls'.
    pub stream_gate: Arc<Gate>,
    pub counters: Arc<Counters>,
}

impl Shared {
    /// A place among the calls in flight. None if there is none, though calls that are over make room.
    pub fn enter(&self) -> Option<Pass> {
        self.gate.enter().or_else(|| {
            self.inbox.sweep();
            self.gate.enter()
        })
    }

    /// Hands a call over.
    pub fn push(&self, call: Call) {
        self.inbox.push(call);
        self.pushed.notify_one();
    }
}

/// What the calls of one connection share.
pub struct Caller {
    pub shared: Arc<Shared>,
    pub peer: Arc<Peer>,
    /// Calls begun.
    pub begun: AtomicU64,
    /// Calls not yet over.
    pub open: AtomicU32,
    /// Turns true when the server is to end.
    pub draining: watch::Receiver<bool>,
}
