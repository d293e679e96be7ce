//! Requests that are reset before they are calls.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod common;

use common::{Host, closes_after};
use grpchost_server::Limits;

/// Headers of a call with this `:authority`, whatever it is.
fn bytes(authority: &[u8]) -> Vec<u8> {
    let mut block = vec![0x83, 0x86, 0x84, 0x41, u8::try_from(authority.len()).unwrap()];
    block.extend_from_slice(authority);
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0".to_vec();
    bytes.extend([0, 0, u8::try_from(block.len()).unwrap(), 1, 5, 0, 0, 0, 1]);
    bytes.extend(block);
    // GOAWAY, so that the server ends the connection.
    bytes.extend([0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    bytes
}

#[tokio::test]
async fn an_authority_that_is_none_is_counted_by_its_own_server_and_told() {
    let (host, other) = (Host::with(Limits::default()), Host::with(Limits::default()));
    assert_eq!(host.server.malformed(), None);
    for (count, authority) in (1..).zip(["outbound|8081||x", "ratelimit//service", "rate limit"]) {
        closes_after(&host.address(), &bytes(authority.as_bytes())).await;
        host.counts("malformed", count).await;
        let text = host.server.malformed().unwrap();
        assert_eq!(text, format!("malformed authority (b{authority:?}): invalid uri character"));
    }
    assert_eq!((host.count("calls"), other.count("malformed"), other.server.malformed()), (0, 0, None));
    host.is_well().await;
}

#[tokio::test]
async fn what_is_kept_of_it_is_bounded() {
    let host = Host::with(Limits::default());
    closes_after(&host.address(), &bytes(&[b'|'; 120])).await;
    host.counts("malformed", 1).await;
    assert!(host.server.malformed().unwrap().len() <= 200);
}

#[tokio::test]
async fn a_good_authority_is_none_of_them() {
    let host = Host::with(Limits::default());
    closes_after(&host.address(), &bytes(b"ratelimit")).await;
    host.counts("calls", 1).await;
    assert_eq!((host.count("malformed"), host.server.malformed()), (0, None));
    host.is_well().await;
}
