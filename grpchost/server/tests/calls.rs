//! What a call is, and how it is answered.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod common;

use common::{Caller, Ended, Host, METHODS, request};
use grpchost_server::{Code, Failure, Limits, framed};

#[tokio::test]
async fn calls_are_taken_in_the_order_of_their_arrival_and_answered_in_any() {
    let host = Host::with(Limits::default());
    let mut caller = Caller::connect(&host.address()).await;
    let first = caller.call(b"1").await;
    let second = caller.send(request(METHODS[1]), &framed(b"2")).await;
    let third = caller.call(b"").await;
    let mut calls = host.calls(3).await;
    let messages: Vec<_> = calls.iter().map(|call| (call.method, &call.message[..])).collect();
    assert_eq!(messages, [(0, &b"1"[..]), (1, b"2"), (0, b"")]);
    assert!(calls.iter().all(|call| call.deadline.is_none() && call.peer.identity.is_none()));
    assert!(calls[0].peer.address.starts_with("127.0.0.1:"));
    calls.reverse();
    host.echo(calls);
    assert_eq!(third.end().await, Ended::ok(b""));
    assert_eq!(second.end().await, Ended::ok(b"2"));
    assert_eq!(first.end().await, Ended::ok(b"1"));
    assert_eq!((host.count("calls"), host.count("answered"), host.count("taken")), (3, 3, 3));
    assert_eq!(host.server.in_flight(), 0);
}

#[tokio::test]
async fn a_take_is_bounded_and_the_rest_goes_on_waking() {
    let host = Host::with(Limits::default());
    let mut caller = Caller::connect(&host.address()).await;
    let mut answers = vec![];
    for number in 0..5u8 {
        answers.push(caller.call(&[number]).await);
    }
    common::until("five calls", || host.queue.len() == 5).await;
    let mut taken = vec![];
    while taken.len() < 5 {
        host.readable().await;
        let calls = host.queue.take(2);
        assert!((1..=2).contains(&calls.len()));
        taken.extend(calls);
    }
    assert!(!host.is_readable());
    host.echo(taken);
    for (number, answer) in (0..5u8).zip(answers) {
        assert_eq!(answer.end().await, Ended::ok(&[number]));
    }
}

#[tokio::test]
async fn a_failure_is_a_status_alone() {
    let host = Host::with(Limits::default());
    let mut caller = Caller::connect(&host.address()).await;
    let answer = caller.call(b"").await;
    let call = host.turn().await.pop().unwrap();
    host.fail(call, Failure::new(Code::Unavailable, "the store is down: 50%"));
    let ended = answer.end().await;
    assert_eq!((ended.http, ended.status, ended.text.as_str()), (200, Some(14), "the store is down: 50%25"));
    assert_eq!(ended.body, b"");
}

#[tokio::test]
async fn what_is_let_fall_is_unavailable() {
    let host = Host::with(Limits::default());
    let mut caller = Caller::connect(&host.address()).await;
    let (first, second) = (caller.call(b"1").await, caller.call(b"2").await);
    let mut calls = host.calls(2).await;
    drop(calls.pop());
    host.server.answers().abandon(calls.into_iter().map(|call| call.pending));
    assert_eq!(first.end().await.status, Some(14));
    assert_eq!(second.end().await.status, Some(14));
    assert_eq!((host.count("abandoned"), host.server.in_flight()), (1, 0));
}

#[tokio::test]
async fn what_is_no_call_of_ours_is_refused_and_never_taken() {
    let host = Host::with(Limits { message_bytes: 100, ..Limits::default() });
    let mut caller = Caller::connect(&host.address()).await;
    let good = framed(b"hello");

    let ended = caller.send(request("/a.B/Third"), &good).await.end().await;
    assert_eq!((ended.status, ended.text.as_str()), (Some(12), "unknown method /a.B/Third"));
    let mut json = request(METHODS[0]);
    json.headers_mut().insert("content-type", "application/json".parse().unwrap());
    let ended = caller.send(json, &good).await.end().await;
    assert_eq!((ended.http, ended.status), (415, Some(3)));
    let mut get = request(METHODS[0]);
    *get.method_mut() = http::Method::GET;
    let ended = caller.send(get, b"").await.end().await;
    assert_eq!((ended.http, ended.status), (405, Some(13)));

    let bodies: [(&[u8], u8); 6] = [
        (b"", 12),
        (&good[..7], 13),
        (&[good.as_ref(), &good].concat(), 12),
        (&[0, 0, 0, 0, 101], 8),
        (&[1, 0, 0, 0, 0], 13),
        (&[7, 0, 0, 0, 0], 13),
    ];
    for (body, status) in bodies {
        assert_eq!(caller.send(request(METHODS[0]), body).await.end().await.status, Some(status), "{body:?}");
    }
    assert_eq!((host.count("refused"), host.count("taken"), host.server.in_flight()), (9, 0, 0));
    host.is_well().await;
}

#[tokio::test]
async fn an_unknown_compression_names_those_that_are_known() {
    let host = Host::with(Limits::default());
    let mut caller = Caller::connect(&host.address()).await;
    let mut request = request(METHODS[0]);
    request.headers_mut().insert("grpc-encoding", "snappy".parse().unwrap());
    let answer = caller.send(request, &[1, 0, 0, 0, 1, 9]).await;
    let headers = answer.response.await.unwrap().into_parts().0.headers;
    assert_eq!(
        (&headers["grpc-status"], &headers["grpc-accept-encoding"]),
        (&"12".parse().unwrap(), &"identity,gzip".parse().unwrap())
    );
}
