//! What a server counts. All but the gauges only grow.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// One count.
#[derive(Debug, Default)]
pub struct Count(AtomicU64);

impl Count {
    pub fn one(&self) {
        self.add(1);
    }

    pub fn add(&self, more: u64) {
        self.0.fetch_add(more, Relaxed);
    }

    pub fn less(&self) {
        self.0.fetch_sub(1, Relaxed);
    }

    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        #[derive(Debug, Default)]
        pub struct Counters { $($(#[$doc])* pub $name: Count,)* }

        impl Counters {
            /// Names and values, in the order of their declaration.
            pub fn read(&self) -> Reading {
                vec![$((stringify!($name), self.$name.get()),)*]
            }
        }
    };
}

/// Names and values of counters.
pub type Reading = Vec<(&'static str, u64)>;

counters! {
    /// Requests whose headers arrived.
    calls,
    /// Answered with a message.
    answered,
    /// Answered with a status of the taker's.
    failed,
    /// Answered with a status for what is wrong with the request: unknown method, bad frame, too large, ...
    refused,
    /// Answered `RESOURCE_EXHAUSTED` for too many in flight.
    shed,
    /// Answered `DEADLINE_EXCEEDED`.
    expired,
    /// Given up by the caller.
    cancelled,
    /// Answered `UNAVAILABLE`, for whoever took it let it fall.
    abandoned,
    /// Requests reset before they were calls: their `:authority`, path or scheme is none.
    malformed,
    /// Streaming calls begun; they are none of `calls`.
    streams,
    /// Of them, those answered `RESOURCE_EXHAUSTED` for too many at once.
    streams_refused,
    /// Gauge: open streaming calls.
    streams_open,
    /// Turns taken that had calls in them.
    turns,
    /// Calls taken.
    taken,
    /// Bytes read from sockets, without TLS.
    bytes_received,
    /// Bytes written to sockets, without TLS.
    bytes_sent,
    /// Gauge: open connections.
    connections,
    /// Connections accepted.
    connections_accepted,
    /// Connections closed at once for there were too many.
    connections_refused,
    /// Connections that ended in TLS's handshake, or never spoke HTTP/2.
    handshakes_failed,
    /// Connections ended by an error, the caller's or the network's.
    connections_failed,
    /// Connections asked to go for their age, or for being idle.
    connections_retired,
    /// Errors of accept, such as too many open files.
    accept_errors,
    /// Tasks that a bug ended.
    panics,
}
