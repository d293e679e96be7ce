//! How connections and servers end.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod common;

use common::{Caller, Ended, Host, closes_after, config, until, within};
use grpchost_server::{Config, Counters, Limits, Queue, Server};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::net::{TcpStream, UnixStream};

#[tokio::test]
async fn draining_lets_calls_end_and_takes_no_new_connection() {
    let host = Host::with(Limits::default());
    let mut caller = Caller::connect(&host.address()).await;
    let idle = Caller::connect(&host.address()).await;
    let answer = caller.call(b"last").await;
    let calls = host.turn().await;
    host.server.drain(Duration::from_secs(60));
    assert!(idle.ended().await.is_ok(), "GOAWAY without an error");
    within("a refused connection", async { while TcpStream::connect(host.address()).await.is_ok() {} }).await;
    assert!(!host.queue.is_closed());
    host.echo(calls);
    assert_eq!(answer.end().await, Ended::ok(b"last"));
    assert!(caller.ended().await.is_ok());
    until("the server's end", || host.queue.is_closed()).await;
    host.readable().await;
    assert_eq!(host.count("connections"), 0);
}

#[tokio::test]
async fn draining_ends_at_its_grace() {
    let host = Host::with(Limits::default());
    let mut caller = Caller::connect(&host.address()).await;
    let answer = caller.call(b"never answered").await;
    let calls = host.turn().await;
    host.server.drain(Duration::from_millis(50));
    until("the server's end", || host.queue.is_closed()).await;
    assert!(answer.result().await.is_err());
    // Too late for an answer; nothing else happens.
    host.echo(calls);
    assert_eq!(host.server.in_flight(), 0);
}

#[tokio::test]
async fn closing_ends_all_at_once_also_while_it_drains() {
    let mut host = Host::with(Limits::default());
    let mut caller = Caller::connect(&host.address()).await;
    let answer = caller.call(b"never answered").await;
    let _calls = host.turn().await;
    host.server.drain(Duration::from_secs(3_600));
    host.server.close();
    assert!(host.queue.is_closed());
    assert!(answer.result().await.is_err());
    host.server.close();
}

#[tokio::test]
async fn an_old_connection_is_asked_to_go_and_may_finish() {
    let host = Host::with(Limits { age: Some(Duration::from_millis(50)), ..Limits::default() });
    let mut caller = Caller::connect(&host.address()).await;
    let answer = caller.call(b"finish").await;
    let calls = host.turn().await;
    host.counts("connections_retired", 1).await;
    host.echo(calls);
    assert_eq!(answer.end().await, Ended::ok(b"finish"));
    assert!(caller.ended().await.is_ok());
}

#[tokio::test]
async fn an_old_connection_ends_at_its_grace() {
    let age = Some(Duration::from_millis(20));
    let host = Host::with(Limits { age, age_grace: Duration::from_millis(20), ..Limits::default() });
    let mut caller = Caller::connect(&host.address()).await;
    let answer = caller.call(b"never answered").await;
    assert!(answer.result().await.is_err());
    host.counts("connections", 0).await;
}

#[tokio::test]
async fn an_idle_connection_is_asked_to_go_but_none_with_a_call() {
    let host = Host::with(Limits { idle: Some(Duration::from_millis(100)), ..Limits::default() });
    let mut caller = Caller::connect(&host.address()).await;
    let answer = caller.call(b"slow").await;
    let calls = host.turn().await;
    let idle = Caller::connect(&host.address()).await;
    let begin = Instant::now();
    assert!(idle.ended().await.is_ok());
    assert!(begin.elapsed() >= Duration::from_millis(90));
    host.echo(calls);
    assert_eq!(answer.end().await, Ended::ok(b"slow"));
    assert!(caller.ended().await.is_ok());
}

#[tokio::test]
async fn unix_sockets_are_served_and_left_behind_ones_replaced() {
    let path = std::env::temp_dir().join(format!("grpchost-{}.sock", std::process::id()));
    // As a process that was killed leaves it.
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    let listen = vec!["127.0.0.1:0".into(), format!("unix:{}", path.display())];
    let host = Host::start(Config { listen: listen.clone(), ..config(Limits::default(), None) });
    assert_eq!(host.server.ports()[1], 0);
    let mut caller = Caller::over(UnixStream::connect(&path).await.unwrap()).await;
    let answer = caller.call(b"by file").await;
    let calls = host.turn().await;
    assert_eq!(calls[0].peer.address, listen[1]);
    host.echo(calls);
    assert_eq!(answer.end().await, Ended::ok(b"by file"));
    host.is_well().await;

    let counters = Arc::new(Counters::default());
    let inbox = Queue::new(Arc::clone(&counters)).unwrap();
    let second = Server::start(Config { listen, ..config(Limits::default(), None) }, inbox, counters);
    assert!(second.is_err(), "where somebody listens, nobody else does");
    drop(host);
    assert!(!path.exists());
}

#[tokio::test]
async fn an_address_that_cant_be_had_is_named() {
    let host = Host::with(Limits::default());
    for address in [host.address(), "nobody.invalid:1".into(), "127.0.0.1".into(), "unix:/nowhere/at/all".into()] {
        let counters = Arc::new(Counters::default());
        let inbox = Queue::new(Arc::clone(&counters)).unwrap();
        let listen = vec![address.clone()];
        let error = Server::start(Config { listen, ..config(Limits::default(), None) }, inbox, counters).unwrap_err();
        assert!(format!("{error:?}").contains(&format!("can't listen on {address}: ")), "{error:?}");
    }
}

#[tokio::test]
async fn several_processes_share_a_port_where_they_are_told_to() {
    let first = Host::start(Config { reuse_port: true, ..config(Limits::default(), None) });
    let listen = vec![first.address()];
    let second = Host::start(Config { listen, reuse_port: true, ..config(Limits::default(), None) });
    assert_eq!(first.server.ports(), second.server.ports());
    let mut callers = vec![];
    within("a connection to each", async {
        while first.count("connections_accepted") == 0 || second.count("connections_accepted") == 0 {
            callers.push(Caller::connect(&first.address()).await);
        }
    })
    .await;
}

#[tokio::test]
async fn bytes_are_counted() {
    let host = Host::with(Limits::default());
    closes_after(&host.address(), b"GET / HTTP/1.1\r\nhost: example.org\r\n\r\n").await;
    host.counts("connections", 0).await;
    // HTTP/2's preface has so many, and these are not it.
    assert_eq!(host.count("bytes_received"), 24);
}
