//! Requests that HTTP/2's library resets before anything else here sees them.
//!
//! h2 answers a request whose `:authority` (or path, or scheme) is none with a reset, and tells nobody but tracing. So
//! the server's thread has a subscriber that wants these events and no others: to every other place in h2 and hyper that
//! might tell something it says "never", which tracing remembers.

use crate::counters::Counters;
use std::fmt::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};
use tracing_core::field::{Field, Visit};
use tracing_core::span::{Attributes, Id, Record};
use tracing_core::{Event, Interest, Level, LevelFilter, Metadata, Subscriber};

/// What such an event's text begins with.
const BEGINS: &str = "malformed headers: ";
/// Bytes that are kept of the rest, which its caller has chosen.
const KEPT: usize = 200;

/// What was wrong with the last one.
#[derive(Debug, Default)]
pub struct Malformed(Mutex<Option<String>>);

impl Malformed {
    pub fn last(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, text: String) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(text);
    }
}

/// Counts them; for the server's thread.
pub struct Listener {
    counters: Arc<Counters>,
    malformed: Arc<Malformed>,
}

impl Listener {
    pub fn new(counters: Arc<Counters>, malformed: Arc<Malformed>) -> Self {
        Self { counters, malformed }
    }
}

impl Subscriber for Listener {
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        if self.enabled(metadata) { Interest::always() } else { Interest::never() }
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && *metadata.level() == Level::DEBUG && metadata.target() == "h2::server"
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(LevelFilter::DEBUG)
    }

    fn event(&self, event: &Event<'_>) {
        let mut text = Text::default();
        event.record(&mut text);
        if let Some(what) = text.0.strip_prefix(BEGINS) {
            self.counters.malformed.one();
            self.malformed.set(what.to_owned());
        }
    }

    // There are no spans: none is enabled.
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

/// An event's message, cut off where it gets too long.
#[derive(Default)]
struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            // An error is that it was cut off.
            let _ = write!(self, "{value:?}");
        }
    }
}

impl Write for Text {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for character in text.chars() {
            if self.0.len() >= BEGINS.len() + KEPT {
                return Err(fmt::Error);
            }
            self.0.push(character);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
    use tokio::runtime::Builder;
    use tracing_core::dispatcher::{Dispatch, with_default};

    /// What of the listener is asked while a connection is carried.
    struct Asked {
        listener: Listener,
        enabled: Arc<AtomicUsize>,
        events: Arc<AtomicUsize>,
    }

    impl Subscriber for Asked {
        fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
            self.listener.register_callsite(metadata)
        }
        fn enabled(&self, metadata: &Metadata<'_>) -> bool {
            self.enabled.fetch_add(1, Relaxed);
            self.listener.enabled(metadata)
        }
        fn max_level_hint(&self) -> Option<LevelFilter> {
            self.listener.max_level_hint()
        }
        fn event(&self, event: &Event<'_>) {
            self.events.fetch_add(1, Relaxed);
            self.listener.event(event);
        }
        fn new_span(&self, span: &Attributes<'_>) -> Id {
            self.events.fetch_add(1, Relaxed);
            self.listener.new_span(span)
        }
        fn record(&self, _: &Id, _: &Record<'_>) {}
        fn record_follows_from(&self, _: &Id, _: &Id) {}
        fn enter(&self, _: &Id) {}
        fn exit(&self, _: &Id) {}
    }

    /// A connection on which ten requests are answered.
    async fn talk() {
        let (here, there) = tokio::io::duplex(65_536);
        let serve = async {
            let mut connection = h2::server::handshake(there).await.unwrap();
            while let Some(request) = connection.accept().await {
                let (_, mut respond) = request.unwrap();
                let mut stream = respond.send_response(http::Response::new(()), false).unwrap();
                stream.send_data(Bytes::from_static(b"answer"), true).unwrap();
            }
        };
        let ask = async {
            let (requests, connection) = h2::client::handshake(here).await.unwrap();
            let ask = async move {
                let mut requests = requests.ready().await.unwrap();
                for _ in 0..10 {
                    let request = http::Request::post("http://host/").body(()).unwrap();
                    let (response, _) = requests.send_request(request, true).unwrap();
                    let mut body = response.await.unwrap().into_body();
                    while body.data().await.is_some() {}
                }
            };
            let (ended, ()) = tokio::join!(connection, ask);
            ended.unwrap();
        };
        tokio::join!(serve, ask);
    }

    #[test]
    fn nothing_else_in_the_library_is_asked_for() {
        let (counters, malformed) = (Arc::default(), Arc::default());
        let (enabled, events) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
        let listener = Listener::new(Arc::clone(&counters), malformed);
        let asked = Asked { listener, enabled: Arc::clone(&enabled), events: Arc::clone(&events) };
        with_default(&Dispatch::new(asked), || {
            Builder::new_current_thread().enable_all().build().unwrap().block_on(talk());
        });
        assert_eq!((enabled.load(Relaxed), events.load(Relaxed), counters.malformed.get()), (0, 0, 0));
    }
}
