//! Calls whose callers no longer wait.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod common;

use common::{Caller, Ended, Host, METHODS, request, until};
use grpchost_server::{Limits, framed};
use std::time::{Duration, Instant};

#[tokio::test]
async fn a_call_that_expires_before_it_is_taken_never_is() {
    let host = Host::with(Limits::default());
    let mut caller = Caller::connect(&host.address()).await;
    let expiring = caller.call_within(b"late", "10m").await;
    assert_eq!(expiring.end().await.status, Some(4));
    let waiting = caller.call_within(b"in time", "1H").await;
    let calls = host.turn().await;
    assert_eq!(calls.len(), 1);
    let left = calls[0].deadline.unwrap() - Instant::now();
    assert!(left > Duration::from_secs(3_500) && left <= Duration::from_secs(3_600));
    host.echo(calls);
    assert_eq!(waiting.end().await, Ended::ok(b"in time"));
    assert_eq!((host.count("expired"), host.count("taken"), host.server.in_flight()), (1, 1, 0));
}

#[tokio::test]
async fn a_call_that_expires_after_it_was_taken_is_told_so_and_its_answer_dropped() {
    let host = Host::with(Limits::default());
    let mut caller = Caller::connect(&host.address()).await;
    let answer = caller.call_within(b"slow", "200m").await;
    let calls = host.turn().await;
    assert_eq!(answer.end().await.status, Some(4));
    assert!(calls[0].pending.is_over());
    assert_eq!(host.server.in_flight(), 1, "work on it goes on, so it has its place still");
    host.echo(calls);
    until("its place is free", || host.server.in_flight() == 0).await;
    assert_eq!((host.count("expired"), host.count("answered")), (1, 0));
    host.is_well().await;
}

#[tokio::test]
async fn a_timeout_of_nothing_expires_at_once() {
    let host = Host::with(Limits::default());
    let mut caller = Caller::connect(&host.address()).await;
    assert_eq!(caller.call_within(b"", "0n").await.end().await.status, Some(4));
}

#[tokio::test]
async fn a_request_that_does_not_come_in_full_is_ended() {
    let host = Host::with(Limits { receive: Duration::from_millis(50), ..Limits::default() });
    let mut caller = Caller::connect(&host.address()).await;
    let mut answer = caller.begin(request(METHODS[0])).await;
    answer.request.send_data(framed(b"hello").slice(..7), false).unwrap();
    let ended = answer.end().await;
    assert_eq!((ended.status, ended.text.as_str()), (Some(10), "the request did not arrive in full within 0.05 s"));
    let mut hurried = request(METHODS[0]);
    hurried.headers_mut().insert("grpc-timeout", "10m".parse().unwrap());
    assert_eq!(caller.begin(hurried).await.end().await.status, Some(4));
    assert_eq!(host.server.in_flight(), 0);
}

#[tokio::test]
async fn a_call_that_is_reset_before_it_is_taken_never_is() {
    let host = Host::with(Limits::default());
    let mut caller = Caller::connect(&host.address()).await;
    let (gone, stays) = (caller.call(b"gone").await, caller.call(b"stays").await);
    until("both calls", || host.queue.len() == 2).await;
    gone.cancel();
    host.counts("cancelled", 1).await;
    let calls = host.turn().await;
    assert_eq!(calls.len(), 1);
    host.echo(calls);
    assert_eq!(stays.end().await, Ended::ok(b"stays"));
    assert_eq!(host.server.in_flight(), 0);
}

#[tokio::test]
async fn calls_of_a_connection_that_is_gone_are_never_taken() {
    let host = Host::with(Limits::default());
    let mut caller = Caller::connect(&host.address()).await;
    let answers = [caller.call(b"1").await, caller.call(b"2").await];
    until("both calls", || host.queue.len() == 2).await;
    caller.connection.abort();
    drop((caller, answers));
    host.counts("cancelled", 2).await;
    assert!(host.queue.take(10).is_empty());
    assert_eq!(host.server.in_flight(), 0);
    host.counts("connections", 0).await;
}
