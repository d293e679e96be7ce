//! Any bytes at the port: the server goes on, and forgets the connection.
//!
//! The same cases every time. `GRPCHOST_FUZZ=n` tries n times as many, others with `GRPCHOST_FUZZ_SEED`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod common;

use common::{Host, METHODS, STREAM, until};
use grpchost_server::{Limits, framed};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const SETTINGS: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0];

/// xorshift*: the same numbers everywhere.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let number = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33;
        usize::try_from(number).unwrap() % bound
    }

    fn byte(&mut self) -> u8 {
        u8::try_from(self.below(256)).unwrap()
    }

    fn bytes(&mut self, most: usize) -> Vec<u8> {
        (0..self.below(most + 1)).map(|_| self.byte()).collect()
    }

    fn one_of<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.below(choices.len())]
    }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// Literal headers, not indexed (RFC 7541, 6.2.2).
fn headers(pairs: &[(&str, &str)]) -> Vec<u8> {
    let mut block = vec![];
    for (name, value) in pairs {
        block.push(0);
        for text in [name, value] {
            block.push(u8::try_from(text.len()).unwrap());
            block.extend_from_slice(text.as_bytes());
        }
    }
    block
}

/// A call as it should be.
fn call(stream: u32) -> Vec<u8> {
    let block = headers(&[
        (":method", "POST"),
        (":scheme", "http"),
        (":path", METHODS[0]),
        (":authority", "host"),
        ("content-type", "application/grpc"),
        ("te", "trailers"),
        ("grpc-timeout", "1S"),
    ]);
    [frame(1, 4, stream, &block), frame(0, 1, stream, &framed(b"hello"))].concat()
}

fn good_session() -> Vec<u8> {
    let calls: Vec<_> = (0..3).flat_map(|index| call(2 * index + 1)).collect();
    [PREFACE, SETTINGS, &frame(6, 0, 0, &[7; 8]), &calls].concat()
}

/// A call whose headers, frame and message are each made up of what is plausible and what is not.
fn odd_call(random: &mut Random, stream: u32) -> Vec<u8> {
    let long = "x".repeat(120);
    let mut pairs = vec![
        (":method", "POST"),
        (":scheme", "http"),
        (":path", *random.one_of(&[METHODS[0], METHODS[0], STREAM])),
        ("content-type", "application/grpc"),
        ("te", "trailers"),
    ];
    let odd = [
        (":method", *random.one_of(&["GET", "", "CONNECT"])),
        (":scheme", *random.one_of(&["https", "x"])),
        (":path", *random.one_of(&[METHODS[1], "/", "*", "", "/a.B/\u{e9}", &long])),
        ("content-type", *random.one_of(&["application/grpc+proto", "text/html", ""])),
        ("te", *random.one_of(&["gzip", ""])),
        ("grpc-timeout", *random.one_of(&["1S", "0n", "99999999H", "x", ""])),
        ("grpc-encoding", *random.one_of(&["identity", "gzip", "zstd"])),
        ("content-length", *random.one_of(&["0", "10", "99999999999999999999", "-1"])),
    ];
    for _ in 0..random.below(3) {
        let change = odd[random.below(odd.len())];
        match pairs.iter().position(|(name, _)| *name == change.0) {
            Some(at) if random.below(4) == 0 => drop(pairs.remove(at)),
            Some(at) => pairs[at] = change,
            None => pairs.push(change),
        }
    }
    let mut body = match random.below(4) {
        0 => random.bytes(40),
        1 => framed(&random.bytes(300)).to_vec(),
        2 => [&[1][..], &framed(&random.bytes(300))[1..]].concat(),
        _ => [framed(b"twice"), framed(b"twice")].concat(),
    };
    if random.below(3) == 0 {
        body.truncate(random.below(body.len() + 1));
    }
    let mut bytes = frame(1, *random.one_of(&[4, 4, 4, 4, 4, 5]), stream, &headers(&pairs));
    for piece in body.chunks(random.below(100) + 1) {
        bytes.extend(frame(0, 0, stream, piece));
    }
    bytes.extend(frame(0, *random.one_of(&[0, 1, 1, 1]), stream, b""));
    if random.below(4) == 0 {
        bytes.extend(frame(3, 0, stream, &[0, 0, 0, random.byte()]));
    }
    bytes
}

fn case(random: &mut Random) -> Vec<u8> {
    match random.below(4) {
        0 => random.bytes(200),
        // Frames of any kind, with any flags, on any stream, of any contents.
        1 => {
            let mut bytes = [PREFACE, SETTINGS].concat();
            for _ in 0..random.below(20) {
                let (kind, flags, stream) = (random.byte() % 12, random.byte(), random.below(9));
                bytes.extend(frame(kind, flags, u32::try_from(stream).unwrap(), &random.bytes(40)));
            }
            bytes
        }
        // What is right, with some bytes changed, left out or put in.
        2 => {
            let mut bytes = good_session();
            for _ in 0..=random.below(6) {
                let at = random.below(bytes.len());
                match random.below(3) {
                    0 => bytes[at] = random.byte(),
                    1 => drop(bytes.remove(at)),
                    _ => bytes.insert(at, random.byte()),
                }
            }
            bytes
        }
        _ => {
            let mut bytes = [PREFACE, SETTINGS].concat();
            for index in 0..u32::try_from(random.below(8)).unwrap() {
                bytes.extend(odd_call(random, 2 * index + 1));
            }
            bytes
        }
    }
}

/// Sends, answers what calls come of it, keeps some streams open for a while, and hangs up once nothing more comes for a moment. (Hanging up at once would
/// have the server forget calls that it has not looked at.)
async fn send(host: &Host, bytes: &[u8]) {
    let mut stream = TcpStream::connect(host.address()).await.unwrap();
    let _ = stream.write_all(bytes).await;
    let mut answer = [0; 4096];
    let mut quiet = 0;
    let mut opened = vec![];
    while quiet < 3 {
        let (keep, reply): (Vec<_>, Vec<_>) =
            host.queue.take(100).into_iter().partition(|call| call.method == 2 && call.message.len() % 2 == 1);
        host.echo(reply);
        opened.extend(keep.into_iter().map(|call| call.pending.open()));
        opened.retain(|open| open.send(framed(b"more")));
        match timeout(Duration::from_millis(3), stream.read(&mut answer)).await {
            Ok(Ok(1..)) => quiet = 0,
            Ok(_) => return,
            Err(_) => quiet += 1,
        }
    }
}

#[tokio::test]
async fn no_bytes_hurt_the_server() {
    let receive = Duration::from_millis(100);
    let host = Host::with(Limits { message_bytes: 256, receive, age_grace: receive, ..Limits::default() });
    let seed = number("GRPCHOST_FUZZ_SEED").unwrap_or(1);
    for round in 0..40 * number("GRPCHOST_FUZZ").unwrap_or(1) {
        let mut random = Random(0x9e37_79b9_7f4a_7c15 ^ (seed << 32) ^ (round + 1));
        let cases: Vec<_> = (0..10).map(|_| case(&mut random)).collect();
        for bytes in &cases {
            send(&host, bytes).await;
        }
        until("all connections' end", || host.count("connections") == 0).await;
        until("all calls' end", || host.server.in_flight() == 0 && host.count("streams_open") == 0).await;
        assert_eq!(host.count("panics"), 0, "round {round}: {cases:?}");
        host.is_well().await;
    }
    let ended = ["answered", "failed", "refused", "shed", "expired", "cancelled"].map(|name| host.count(name));
    assert_eq!(ended.iter().sum::<u64>(), host.count("calls"), "{:?}", host.counters.read());
    assert!(host.count("streams") > 20 && host.count("malformed") > 20, "{:?}", host.counters.read());
    assert!(host.count("refused") > 40 && host.count("calls") > 100, "{:?}", host.counters.read());
}
