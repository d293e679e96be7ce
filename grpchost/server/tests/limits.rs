//! What callers may not do.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod common;

use common::{Caller, Ended, Host, METHODS, closes_after, request, until};
use grpchost_server::{Code, Failure, Limits};
use std::time::Duration;
use tokio::net::TcpStream;

#[tokio::test]
async fn one_call_too_many_in_flight_is_shed() {
    let host = Host::with(Limits { in_flight: 2, ..Limits::default() });
    let mut caller = Caller::connect(&host.address()).await;
    let answers = [caller.call(b"1").await, caller.call(b"2").await];
    until("both calls", || host.queue.len() == 2).await;
    let ended = caller.call(b"3").await.end().await;
    assert_eq!((ended.status, ended.text.as_str()), (Some(8), "too many calls in flight"));
    let calls = host.turn().await;
    assert_eq!(caller.call(b"4").await.end().await.status, Some(8), "taken calls are in flight");
    host.echo(calls);
    for (answer, message) in answers.into_iter().zip([b"1", b"2"]) {
        assert_eq!(answer.end().await, Ended::ok(message));
    }
    assert_eq!(host.count("shed"), 2);
    host.is_well().await;
}

#[tokio::test]
async fn calls_that_are_over_make_room_though_nobody_takes_any() {
    let host = Host::with(Limits { in_flight: 2, ..Limits::default() });
    let mut caller = Caller::connect(&host.address()).await;
    let answers = [caller.call(b"1").await, caller.call(b"2").await];
    until("both calls", || host.queue.len() == 2).await;
    for answer in answers {
        answer.cancel();
    }
    host.counts("cancelled", 2).await;
    let answer = caller.call(b"3").await;
    host.echo(host.turn().await);
    assert_eq!(answer.end().await, Ended::ok(b"3"));
    assert_eq!((host.count("shed"), host.server.in_flight()), (0, 0));
}

#[tokio::test]
async fn ten_thousand_calls_that_were_cancelled_or_have_expired_refuse_nobody() {
    const MOST: usize = 10_000;
    let host = Host::with(Limits { in_flight: MOST, streams: 20_000, ..Limits::default() });
    let mut caller = Caller::connect(&host.address()).await;
    let mut answers = vec![];
    for _ in 0..MOST / 2 {
        answers.push(caller.call(b"cancelled").await);
        answers.push(caller.call_within(b"expired", "1S").await);
    }
    until("all calls", || host.count("calls") == MOST as u64).await;
    for answer in answers.into_iter().step_by(2) {
        answer.cancel();
    }
    until("all to be over", || host.count("cancelled") + host.count("expired") == MOST as u64).await;
    let mut more = vec![];
    for _ in 0..MOST {
        more.push(caller.call(b"more").await);
    }
    let calls = host.calls(MOST).await;
    assert!(calls.iter().all(|call| call.message == "more"));
    // Statuses alone: h2's client ends a connection with so many small messages that nobody has read yet.
    for call in calls {
        host.fail(call, Failure::new(Code::NotFound, ""));
    }
    for answer in more {
        assert_eq!(answer.end().await.status, Some(5));
    }
    assert_eq!((host.count("shed"), host.server.in_flight()), (0, 0));
}

#[tokio::test]
async fn one_in_sixteen_places_is_enough_to_look_for_calls_that_are_over() {
    let host = Host::with(Limits { in_flight: 160, ..Limits::default() });
    let mut caller = Caller::connect(&host.address()).await;
    let mut answers = vec![];
    for _ in 0..160 {
        answers.push(caller.call(b"waits").await);
    }
    until("all calls", || host.queue.len() == 160).await;
    for round in 1..=3 {
        for answer in answers.drain(..10) {
            answer.cancel();
        }
        host.counts("cancelled", round * 10).await;
        for _ in 0..10 {
            answers.push(caller.call(b"next").await);
        }
        until("ten more", || host.count("calls") == 160 + round * 10).await;
    }
    assert_eq!((host.count("shed"), host.queue.len(), host.server.in_flight()), (0, 160, 160));
}

#[tokio::test]
async fn a_connection_has_so_many_calls_at_once() {
    let host = Host::with(Limits { streams: 3, ..Limits::default() });
    let mut caller = Caller::connect(&host.address()).await;
    let answer = caller.call(b"the server's settings have come with the answer").await;
    host.echo(host.turn().await);
    answer.end().await;
    assert_eq!(caller.requests.current_max_send_streams(), 3);
}

#[tokio::test]
async fn headers_too_large_hurt_only_their_own_call() {
    let host = Host::with(Limits { header_bytes: 4_096, ..Limits::default() });
    let mut caller = Caller::connect(&host.address()).await;
    let mut large = request(METHODS[0]);
    large.headers_mut().insert("x-large", "x".repeat(8_000).parse().unwrap());
    let result = caller.send(large, b"").await.result().await;
    assert!(result.is_err() || result.is_ok_and(|ended| ended.http == 431));
    let answer = caller.call(b"small").await;
    host.echo(host.turn().await);
    assert_eq!(answer.end().await, Ended::ok(b"small"));
}

#[tokio::test]
async fn resets_by_the_thousand_end_their_connection_and_hurt_nobody_else() {
    let host = Host::with(Limits { pending_resets: 20, ..Limits::default() });
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0".to_vec();
    for stream in (1..4_000u32).step_by(2) {
        // POST, http and a path by their indices in HPACK's static table; then CANCEL.
        bytes.extend([0, 0, 3, 1, 5]);
        bytes.extend(stream.to_be_bytes());
        bytes.extend([0x83, 0x86, 0x84]);
        bytes.extend([0, 0, 4, 3, 0]);
        bytes.extend(stream.to_be_bytes());
        bytes.extend(8u32.to_be_bytes());
    }
    let answer = closes_after(&host.address(), &bytes).await;
    // GOAWAY with ENHANCE_YOUR_CALM, unless the kernel threw it away for what was still unread.
    let goaway = answer.windows(4).any(|four| four == [0, 0, 0, 0x0b]);
    assert!(goaway || answer.len() < 200, "{answer:?}");
    host.counts("connections", 0).await;
    assert_eq!(host.queue.len(), 0);
    host.is_well().await;
}

#[tokio::test]
async fn one_connection_too_many_is_closed() {
    let host = Host::with(Limits { connections: 1, ..Limits::default() });
    let caller = Caller::connect(&host.address()).await;
    host.counts("connections", 1).await;
    closes_after(&host.address(), b"").await;
    host.counts("connections_refused", 1).await;
    caller.connection.abort();
    drop(caller);
    host.counts("connections", 0).await;
    host.is_well().await;
}

#[tokio::test]
async fn a_connection_that_says_nothing_is_closed() {
    let host = Host::with(Limits { handshake: Duration::from_millis(50), ..Limits::default() });
    closes_after(&host.address(), b"").await;
    closes_after(&host.address(), b"PRI * HTTP/2.0\r\n").await;
    host.counts("handshakes_failed", 2).await;
    closes_after(&host.address(), b"GET / HTTP/1.1\r\nhost: example.org\r\n\r\n").await;
    host.counts("connections", 0).await;
    host.is_well().await;
}

#[tokio::test]
async fn one_that_never_answers_a_ping_is_gone() {
    let keepalive = Some(Duration::from_millis(30));
    let host = Host::with(Limits { keepalive, keepalive_timeout: Duration::from_millis(30), ..Limits::default() });
    let opening = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0\0\0\0\x04\x01\0\0\0\0";
    closes_after(&host.address(), opening).await;
    host.counts("connections", 0).await;
    let stream = TcpStream::connect(host.address()).await.unwrap();
    let mut caller = Caller::over(stream).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    let answer = caller.call(b"pings are answered").await;
    host.echo(host.turn().await);
    assert_eq!(answer.end().await, Ended::ok(b"pings are answered"));
}
