//! What callers may ask of a server.

use std::time::Duration;

/// Limits of one server. A duration of None is no limit.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Calls between their headers and their answer; one more is answered `RESOURCE_EXHAUSTED`.
    pub in_flight: usize,
    /// Streaming calls at once; one more is answered `RESOURCE_EXHAUSTED`.
    pub streaming: usize,
    /// Bytes of a request's message, inflated.
    pub message_bytes: usize,
    /// Connections at once; one more is closed.
    pub connections: usize,
    /// Calls at once on one connection.
    pub streams: u32,
    /// Bytes of a request's headers, as HTTP/2 counts them.
    pub header_bytes: u32,
    /// Calls that a connection may reset before they have been looked at; one more ends it (CVE-2023-44487).
    pub pending_resets: usize,
    /// For the TLS handshake, and then for HTTP/2's first words.
    pub handshake: Duration,
    /// From a request's headers to its message's end; of a stream's message, from its first byte.
    pub receive: Duration,
    /// A connection without a call for so long is closed, at the latest after half as much more.
    pub idle: Option<Duration>,
    /// A connection of this age is asked to go (GOAWAY); up to a tenth more or less, so that not all go at once.
    pub age: Option<Duration>,
    /// What it then has to finish its calls.
    pub age_grace: Duration,
    /// Silence after which a ping asks whether the caller is still there.
    pub keepalive: Option<Duration>,
    /// And how long its answer may take.
    pub keepalive_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            in_flight: 10_000,
            streaming: 1_000,
            message_bytes: 4 << 20,
            connections: 10_000,
            streams: 1_000,
            header_bytes: 16 << 10,
            pending_resets: 200,
            handshake: Duration::from_secs(10),
            receive: Duration::from_secs(10),
            idle: None,
            age: None,
            age_grace: Duration::from_secs(30),
            keepalive: Some(Duration::from_secs(60)),
            keepalive_timeout: Duration::from_secs(20),
        }
    }
}
