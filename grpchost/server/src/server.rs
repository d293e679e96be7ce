//! The server's thread: listens, accepts, drains, stops.

use crate::call::{Answers, Replies};
use crate::caller::Shared;
use crate::connection::{Counted, carry};
use crate::counters::Counters;
use crate::gate::Gate;
use crate::limits::Limits;
use crate::listen::Listener;
use crate::malformed::{Listener as MalformedListener, Malformed};
use crate::queue::Inbox;
use crate::tls::Tls;
use rustls::ServerConfig;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Notify, mpsc, watch};
use tokio::time::{sleep, timeout};
use tracing_core::dispatcher::{Dispatch, set_default};

/// After an error of accept, most often for want of file descriptors.
const ACCEPT_AGAIN: Duration = Duration::from_millis(50);

/// What a server serves, and where.
#[derive(Debug)]
pub struct Config {
    /// `HOST:PORT` or `unix:PATH`.
    pub listen: Vec<String>,
    /// Several processes may listen on the same ports, and share their connections.
    pub reuse_port: bool,
    /// `/package.Service/Method`; calls name them by index.
    pub methods: Vec<String>,
    /// Those whose calls are streams; their indices come after those of `methods`.
    pub streams: Vec<String>,
    pub tls: Option<Tls>,
    pub limits: Limits,
}

/// Why a server can't be started, or be given other certificates.
#[derive(Debug)]
pub enum Error {
    /// Where it can't listen, the address is in the text.
    Io(io::Error),
    /// What is wrong with the certificates or the key.
    Tls(String),
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

enum Command {
    Drain(Duration),
    Close,
}

/// What connections that come from now on are secured with.
type CurrentTls = Arc<Mutex<Option<Arc<ServerConfig>>>>;

/// A running server. Dropping it closes it.
#[derive(Debug)]
pub struct Server {
    ports: Vec<u16>,
    commands: mpsc::UnboundedSender<Command>,
    answers: Answers,
    gate: Arc<Gate>,
    malformed: Arc<Malformed>,
    tls: CurrentTls,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Listens, and serves from a thread of its own. `inbox` is given the calls; `counters` are the server's own.
    pub fn start(config: Config, inbox: Arc<dyn Inbox>, counters: Arc<Counters>) -> Result<Self, Error> {
        let tls = config.tls.as_ref().map(Tls::config).transpose().map_err(Error::Tls)?;
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let bound = {
            let _entered = runtime.enter();
            let bind = |address: &String| Listener::bind(address, config.reuse_port);
            config.listen.iter().map(bind).collect::<io::Result<Vec<_>>>()
        };
        let listeners = match bound {
            Ok(listeners) => listeners,
            Err(error) => {
                // Dropping it would wait, which callers that run on tokio too may not.
                runtime.shutdown_background();
                return Err(error.into());
            }
        };
        let ports = listeners.iter().map(Listener::port).collect();
        let (answers, replies) = Replies::new(Arc::clone(&counters));
        let (commands, orders) = mpsc::unbounded_channel();
        let gate = Gate::new(config.limits.in_flight);
        let tls = Arc::new(Mutex::new(tls));
        let shared = Arc::new(Shared {
            unary: u32::try_from(config.methods.len()).unwrap_or(u32::MAX),
            methods: (0..)
                .zip(config.methods.into_iter().chain(config.streams))
                .map(|(index, path)| (path, index))
                .collect(),
            stream_gate: Gate::new(config.limits.streaming),
            limits: config.limits,
            inbox,
            pushed: Notify::new(),
            gate: Arc::clone(&gate),
            counters,
        });
        let malformed = Arc::default();
        let serving = Serving { listeners, tls: Arc::clone(&tls), malformed: Arc::clone(&malformed), shared };
        let thread = std::thread::Builder::new()
            .name("grpchost".into())
            .spawn(move || serving.run(runtime, replies, orders))?;
        Ok(Self { ports, commands, answers, gate, malformed, tls, thread: Some(thread) })
    }

    /// Of each address listened on; 0 for a unix socket.
    pub fn ports(&self) -> &[u16] {
        &self.ports
    }

    /// The way back for the calls that `inbox` was given.
    pub fn answers(&self) -> Answers {
        self.answers.clone()
    }

    /// Calls in flight.
    pub fn in_flight(&self) -> usize {
        self.gate.inside()
    }

    /// What was wrong with the last request that was reset before it was a call.
    pub fn malformed(&self) -> Option<String> {
        self.malformed.last()
    }

    /// Stops listening, asks callers to go, and stops when their calls are answered, or when `grace` is over.
    pub fn drain(&self, grace: Duration) {
        let _ = self.commands.send(Command::Drain(grace));
    }

    /// Secures new connections with `tls`. On an error, all stays as it was.
    pub fn reload(&self, tls: &Tls) -> Result<(), Error> {
        let mut current = self.tls.lock().unwrap_or_else(PoisonError::into_inner);
        if current.is_none() {
            return Err(Error::Tls("this server was started without TLS".into()));
        }
        *current = Some(tls.config().map_err(Error::Tls)?);
        Ok(())
    }

    /// Ends all connections at once, and returns when the thread has ended.
    pub fn close(&mut self) {
        let _ = self.commands.send(Command::Close);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.close();
    }
}

/// What the server's thread works with.
struct Serving {
    listeners: Vec<Listener>,
    tls: CurrentTls,
    malformed: Arc<Malformed>,
    shared: Arc<Shared>,
}

impl Serving {
    /// The thread's whole life.
    fn run(self, runtime: Runtime, replies: Replies, orders: mpsc::UnboundedReceiver<Command>) {
        let inbox = Arc::clone(&self.shared.inbox);
        let listener = MalformedListener::new(Arc::clone(&self.shared.counters), Arc::clone(&self.malformed));
        let _hears = set_default(&Dispatch::new(listener));
        runtime.block_on(async {
            tokio::spawn(replies.deliver());
            self.serve(orders).await;
        });
        // Ends what is still open.
        drop(runtime);
        inbox.close();
    }

    async fn serve(self, mut orders: mpsc::UnboundedReceiver<Command>) {
        tokio::spawn(signal(Arc::clone(&self.shared)));
        let (drain, draining) = watch::channel(false);
        let accepting: Vec<_> = self
            .listeners
            .into_iter()
            .map(|listener| {
                let (tls, shared) = (Arc::clone(&self.tls), Arc::clone(&self.shared));
                tokio::spawn(accept(listener, tls, shared, draining.clone()))
            })
            .collect();
        drop(draining);
        let Some(Command::Drain(grace)) = orders.recv().await else { return };
        for task in accepting {
            task.abort();
        }
        drain.send_replace(true);
        tokio::select! {
            // All connections have ended once nobody holds a receiver.
            _ = timeout(grace, drain.closed()) => {}
            () = closed(orders) => {}
        }
    }
}

async fn closed(mut orders: mpsc::UnboundedReceiver<Command>) {
    while let Some(Command::Drain(_)) = orders.recv().await {}
}

/// Tells the inbox of what was pushed. A task of its own: it runs after the calls that arrived together.
async fn signal(shared: Arc<Shared>) {
    loop {
        shared.pushed.notified().await;
        shared.inbox.signal();
    }
}

async fn accept(listener: Listener, tls: CurrentTls, shared: Arc<Shared>, draining: watch::Receiver<bool>) {
    let counters = &shared.counters;
    loop {
        let (socket, address) = match listener.accept().await {
            Ok(accepted) => accepted,
            // It was gone before it was taken.
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => continue,
            Err(_) => {
                counters.accept_errors.one();
                sleep(ACCEPT_AGAIN).await;
                continue;
            }
        };
        counters.connections_accepted.one();
        if counters.connections.get() >= shared.limits.connections as u64 {
            counters.connections_refused.one();
            continue;
        }
        let tls = tls.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let counted = Counted::new(Arc::clone(counters));
        tokio::spawn(carry(socket, address, tls, Arc::clone(&shared), draining.clone(), counted));
    }
}
