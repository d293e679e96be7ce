//! One connection, from its first byte to its end.

use crate::caller::{Caller, Shared};
use crate::counters::Counters;
use crate::limits::Limits;
use crate::listen::Socket;
use crate::peer::{Peer, identity};
use crate::service::serve;
use crate::wire::{Heard, Wire};
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustls::ServerConfig;
use std::collections::hash_map::RandomState;
use std::convert::Infallible;
use std::future::pending;
use std::hash::{BuildHasher, Hasher};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_rustls::TlsAcceptor;

/// Bytes of requests that may be on their way on one connection before the first is read.
const CONNECTION_WINDOW: u32 = 1 << 20;

/// Carries the connection until it ends. `draining` turns true when it is to end soon.
pub async fn carry(
    socket: Socket,
    address: String,
    tls: Option<Arc<ServerConfig>>,
    shared: Arc<Shared>,
    draining: watch::Receiver<bool>,
    _counted: Counted,
) {
    match socket {
        Socket::Tcp(socket) => secure(socket, address, tls, shared, draining).await,
        Socket::Unix(socket) => secure(socket, address, tls, shared, draining).await,
    }
}

/// An open connection, in the counters.
pub struct Counted(Arc<Counters>);

impl Counted {
    pub fn new(counters: Arc<Counters>) -> Self {
        counters.connections.one();
        Self(counters)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.connections.less();
        if std::thread::panicking() {
            self.0.panics.one();
        }
    }
}

async fn secure<S>(
    socket: S,
    address: String,
    tls: Option<Arc<ServerConfig>>,
    shared: Arc<Shared>,
    draining: watch::Receiver<bool>,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let heard = Heard::default();
    let Some(tls) = tls else {
        let socket = Wire::new(socket, heard.clone(), Arc::clone(&shared.counters));
        return speak(socket, heard, Peer { address, identity: None }, shared, draining).await;
    };
    let Ok(Ok(stream)) = timeout(shared.limits.handshake, TlsAcceptor::from(tls).accept(socket)).await else {
        shared.counters.handshakes_failed.one();
        return;
    };
    let certificate = stream.get_ref().1.peer_certificates().and_then(<[_]>::first);
    let identity = certificate.and_then(identity);
    let stream = Wire::new(stream, heard.clone(), Arc::clone(&shared.counters));
    speak(stream, heard, Peer { address, identity }, shared, draining).await;
}

async fn speak<S>(stream: S, heard: Heard, peer: Peer, shared: Arc<Shared>, draining: watch::Receiver<bool>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let caller = Arc::new(Caller {
        shared: Arc::clone(&shared),
        peer: Arc::new(peer),
        begun: AtomicU64::new(0),
        open: AtomicU32::new(0),
        draining: draining.clone(),
    });
    let service = service_fn({
        let caller = Arc::clone(&caller);
        move |request| {
            // Boxed, for the task that it becomes is moved several times before it runs.
            let response = Box::pin(serve(request, Arc::clone(&caller)));
            async { Ok::<_, Infallible>(response.await) }
        }
    });
    let connection = builder(&shared.limits).serve_connection(TokioIo::new(stream), service);
    let mut connection = pin!(connection);
    // Ours lasts as long as the connection: that is how the server knows of it while it drains.
    let mut ending = pin!(retire(&caller, &heard, draining));
    let ended = tokio::select! {
        ended = connection.as_mut() => Some(ended),
        end = ending.as_mut() => match end {
            End::Now => None,
            End::Within(grace) => {
                connection.as_mut().graceful_shutdown();
                timeout(grace, connection).await.ok()
            }
        },
    };
    match ended {
        Some(Ok(())) => {}
        _ if !heard.preface() => shared.counters.handshakes_failed.one(),
        Some(Err(_)) => shared.counters.connections_failed.one(),
        None => {}
    }
}

fn builder(limits: &Limits) -> http2::Builder<TokioExecutor> {
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .auto_date_header(false)
        .max_concurrent_streams(limits.streams)
        .max_header_list_size(limits.header_bytes)
        .max_pending_accept_reset_streams(limits.pending_resets)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .keep_alive_interval(limits.keepalive)
        .keep_alive_timeout(limits.keepalive_timeout);
    builder
}

/// How a connection is to end that does not end by itself.
enum End {
    Now,
    /// As soon as its calls are answered, and within this time.
    Within(Duration),
}

/// Returns when the connection has to end: too old, idle, never spoke, or the server drains.
async fn retire(caller: &Caller, heard: &Heard, mut draining: watch::Receiver<bool>) -> End {
    let limits = &caller.shared.limits;
    let mut old = pin!(after(limits.age.map(jittered)));
    let mut mute = pin!(sleep(limits.handshake));
    let mut idle = pin!(idle(caller, limits.idle));
    let mut spoke = false;
    loop {
        tokio::select! {
            () = old.as_mut() => break,
            () = idle.as_mut() => break,
            // The whole server's grace ends all at once.
            _ = draining.wait_for(|draining| *draining) => return End::Within(Duration::from_secs(u64::from(u32::MAX))),
            () = mute.as_mut(), if !spoke => {
                if !heard.preface() {
                    return End::Now;
                }
                spoke = true;
            }
        }
    }
    caller.shared.counters.connections_retired.one();
    End::Within(limits.age_grace)
}

async fn after(time: Option<Duration>) {
    match time.and_then(|time| Instant::now().checked_add(time)) {
        Some(at) => sleep_until(at).await,
        None => pending().await,
    }
}

/// Returns when there has been no call for `time`. It looks twice in that time, so that calls pay only a count.
async fn idle(caller: &Caller, time: Option<Duration>) {
    let Some(time) = time else { return pending().await };
    let (mut seen, mut quiet) = (0, 0);
    while quiet < 2 {
        sleep(time / 2).await;
        let begun = caller.begun.load(Relaxed);
        quiet = if begun == seen && caller.open.load(Relaxed) == 0 { quiet + 1 } else { 0 };
        seen = begun;
    }
}

/// Up to a tenth more or less. The standard library's hasher is seeded at random, which is random enough for this.
fn jittered(time: Duration) -> Duration {
    let random = u32::try_from(RandomState::new().build_hasher().finish() >> 32).unwrap_or(0);
    time.mul_f64(0.9 + 0.2 * f64::from(random) / f64::from(u32::MAX))
}
