//! A server whose turns the test takes, and callers that see HTTP/2 as it is.
#![allow(dead_code, reason = "each test file is a program of its own, and uses a part of this")]

use bytes::Bytes;
use grpchost_server::{Call, Config, Counters, Failure, Limits, Queue, Server, Tls, framed};
use h2::client::{Connection, SendRequest};
use h2::{SendStream, client};
use http::Request;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::future::Future;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

pub const METHODS: [&str; 2] = ["/a.B/First", "/a.B/Second"];
/// Its index is 2.
pub const STREAM: &str = "/a.B/Stream";

/// How long anything may take that has to happen.
pub const PATIENCE: Duration = Duration::from_secs(20);

pub async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    timeout(PATIENCE, future).await.unwrap_or_else(|_| panic!("waited {PATIENCE:?} for {what}"))
}

pub async fn until(what: &str, mut condition: impl FnMut() -> bool) {
    within(what, async {
        while !condition() {
            sleep(Duration::from_millis(2)).await;
        }
    })
    .await;
}

pub fn config(limits: Limits, tls: Option<Tls>) -> Config {
    let methods = METHODS.map(String::from).to_vec();
    let streams = vec![STREAM.into()];
    Config { listen: vec!["127.0.0.1:0".into()], reuse_port: false, methods, streams, tls, limits }
}

pub struct Host {
    pub server: Server,
    pub queue: Arc<Queue>,
    pub counters: Arc<Counters>,
}

impl Host {
    pub fn start(config: Config) -> Self {
        let counters = Arc::new(Counters::default());
        let queue = Queue::new(Arc::clone(&counters)).unwrap();
        let server = Server::start(config, queue.clone(), Arc::clone(&counters)).unwrap();
        Self { server, queue, counters }
    }

    pub fn with(limits: Limits) -> Self {
        Self::start(config(limits, None))
    }

    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.server.ports()[0])
    }

    pub fn count(&self, name: &str) -> u64 {
        self.counters.read().into_iter().find(|(known, _)| *known == name).expect(name).1
    }

    pub async fn counts(&self, name: &str, value: u64) {
        until(&format!("{name} {value}"), || self.count(name) == value).await;
    }

    pub fn is_readable(&self) -> bool {
        let mut polled = [PollFd::from_borrowed_fd(self.queue.as_fd(), PollFlags::IN)];
        poll(&mut polled, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).unwrap() == 1
    }

    /// The queue's file descriptor is readable.
    pub async fn readable(&self) {
        until("a wake", || self.is_readable()).await;
    }

    /// Calls, once there are any.
    pub async fn turn(&self) -> Vec<Call> {
        let mut calls = vec![];
        until("a turn", || {
            if self.is_readable() {
                calls = self.queue.take(1_000);
            }
            !calls.is_empty()
        })
        .await;
        calls
    }

    /// So many calls, in as many turns as they come.
    pub async fn calls(&self, count: usize) -> Vec<Call> {
        let mut calls = vec![];
        while calls.len() < count {
            calls.extend(self.turn().await);
        }
        calls
    }

    pub fn echo(&self, calls: Vec<Call>) {
        let reply = |call: Call| {
            let message = framed(&call.message);
            (call.pending, Ok(message))
        };
        self.server.answers().send(calls.into_iter().map(reply).collect());
    }

    pub fn fail(&self, call: Call, failure: Failure) {
        self.server.answers().send(vec![(call.pending, Err(failure))]);
    }

    /// A call of a new caller is answered: the server is well.
    pub async fn is_well(&self) {
        let mut caller = Caller::connect(&self.address()).await;
        let answer = caller.call(b"are you well?").await;
        self.echo(self.turn().await);
        assert_eq!(answer.end().await, Ended::ok(b"are you well?"));
    }
}

/// How a call ended, as its caller sees it.
#[derive(Debug, PartialEq, Eq)]
pub struct Ended {
    pub http: u16,
    /// `grpc-status` and `grpc-message`.
    pub status: Option<u8>,
    pub text: String,
    /// With its frame.
    pub body: Vec<u8>,
}

impl Ended {
    pub fn ok(message: &[u8]) -> Self {
        Self { http: 200, status: Some(0), text: String::new(), body: framed(message).to_vec() }
    }
}

/// An answer that is on its way.
pub struct Answer {
    pub response: client::ResponseFuture,
    pub request: SendStream<Bytes>,
}

impl Answer {
    pub async fn end(self) -> Ended {
        self.result().await.unwrap()
    }

    pub async fn result(self) -> Result<Ended, h2::Error> {
        within("an answer", async {
            let (head, mut body) = self.response.await?.into_parts();
            assert!(!head.headers.contains_key("content-length"));
            let mut data = vec![];
            while let Some(chunk) = body.data().await {
                let chunk = chunk?;
                let _ = body.flow_control().release_capacity(chunk.len());
                data.extend_from_slice(&chunk);
            }
            let trailers = body.trailers().await?.unwrap_or(head.headers);
            let status = trailers.get("grpc-status").map(|value| value.to_str().unwrap().parse().unwrap());
            let text = trailers.get("grpc-message").map_or("", |value| value.to_str().unwrap()).to_owned();
            Ok(Ended { http: head.status.as_u16(), status, text, body: data })
        })
        .await
    }

    /// The caller gives up.
    pub fn cancel(mut self) {
        self.request.send_reset(h2::Reason::CANCEL);
    }
}

pub struct Caller {
    pub requests: SendRequest<Bytes>,
    pub connection: JoinHandle<Result<(), h2::Error>>,
}

pub fn request(path: &str) -> Request<()> {
    let request = Request::post(format!("http://host{path}"));
    request.header("content-type", "application/grpc").header("te", "trailers").body(()).unwrap()
}

impl Caller {
    pub async fn connect(address: &str) -> Self {
        Self::over(TcpStream::connect(address).await.unwrap()).await
    }

    pub async fn over<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(stream: S) -> Self {
        Self::try_over(stream).await.unwrap()
    }

    pub async fn try_over<S>(stream: S) -> Result<Self, h2::Error>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (requests, connection): (_, Connection<S>) = within("a connection", client::handshake(stream)).await?;
        Ok(Self { requests, connection: tokio::spawn(connection) })
    }

    pub async fn call(&mut self, message: &[u8]) -> Answer {
        self.send(request(METHODS[0]), &framed(message)).await
    }

    /// With a timeout of the wire.
    pub async fn call_within(&mut self, message: &[u8], wait: &str) -> Answer {
        let mut request = request(METHODS[0]);
        request.headers_mut().insert("grpc-timeout", wait.parse().unwrap());
        self.send(request, &framed(message)).await
    }

    pub async fn send(&mut self, request: Request<()>, body: &[u8]) -> Answer {
        let mut answer = self.begin(request).await;
        answer.request.send_data(Bytes::copy_from_slice(body), true).unwrap();
        answer
    }

    /// Headers alone.
    pub async fn begin(&mut self, request: Request<()>) -> Answer {
        let mut ready = within("room for a call", self.requests.clone().ready()).await.unwrap();
        let (response, request) = ready.send_request(request, false).unwrap();
        Answer { response, request }
    }

    /// The connection has ended, well or not.
    pub async fn ended(self) -> Result<(), h2::Error> {
        let ended = within("the connection's end", self.connection).await.unwrap();
        // Not before, for without it the caller would be the one to end it.
        drop(self.requests);
        ended
    }
}

/// Sends these bytes, and reads until the server has closed the connection.
pub async fn closes_after(address: &str, bytes: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let _ = stream.write_all(bytes).await;
    let mut answer = vec![];
    // Where the server has closed with bytes unread, the kernel says so with a reset.
    let _ = within("the connection's end", stream.read_to_end(&mut answer)).await;
    answer
}
