//! A gRPC server for hosts whose real work is done elsewhere, in batches.
//!
//! One thread with one tokio runtime carries HTTP/2 (hyper), TLS (rustls), gRPC's framing, deadlines and limits. A call
//! whose request has arrived in full is pushed into an [`Inbox`], with the way to answer it. [`Queue`] is the inbox that
//! another thread takes whole turns from; a socket pair wakes it. Answers come back in batches, one wake for each.
//!
//! ```text
//! listeners -> connection tasks -> one task a call -> Queue -> take() ┐
//!                                       ^                             │ the other thread
//!                                       └── replies ── Answers <──────┘
//! ```
//!
//! A streaming call is the same once for each of its messages, until who takes it keeps it open to say more.
//!
//! Nothing here knows what the messages mean.

mod body;
mod call;
mod caller;
mod connection;
mod counters;
mod gate;
mod headers;
mod limits;
mod listen;
mod malformed;
mod message;
mod peer;
mod queue;
mod server;
mod service;
mod status;
mod stream;
mod timeout;
mod tls;
mod wire;

pub use call::{Answers, Call, Deadline, OpenCall, Pending, Piece, Reply, Said};
pub use counters::{Counters, Reading};
pub use limits::Limits;
pub use malformed::Malformed;
pub use message::framed;
pub use peer::Peer;
pub use queue::{Inbox, Queue};
pub use server::{Config, Error, Server};
pub use status::{Code, Failure};
pub use tls::{ClientCertificates, Tls};
