//! gRPC's status codes, and how a status is written into headers.

use http::{HeaderMap, HeaderName, HeaderValue};
use std::borrow::Cow;

const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");
const GRPC_MESSAGE: HeaderName = HeaderName::from_static("grpc-message");

/// A code of the gRPC specification ("Status codes and their use in gRPC").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Code {
    Ok = 0,
    Cancelled = 1,
    Unknown = 2,
    InvalidArgument = 3,
    DeadlineExceeded = 4,
    NotFound = 5,
    AlreadyExists = 6,
    PermissionDenied = 7,
    ResourceExhausted = 8,
    FailedPrecondition = 9,
    Aborted = 10,
    OutOfRange = 11,
    Unimplemented = 12,
    Internal = 13,
    Unavailable = 14,
    DataLoss = 15,
    Unauthenticated = 16,
}

const ALL: [(Code, &str); 17] = [
    (Code::Ok, "0"),
    (Code::Cancelled, "1"),
    (Code::Unknown, "2"),
    (Code::InvalidArgument, "3"),
    (Code::DeadlineExceeded, "4"),
    (Code::NotFound, "5"),
    (Code::AlreadyExists, "6"),
    (Code::PermissionDenied, "7"),
    (Code::ResourceExhausted, "8"),
    (Code::FailedPrecondition, "9"),
    (Code::Aborted, "10"),
    (Code::OutOfRange, "11"),
    (Code::Unimplemented, "12"),
    (Code::Internal, "13"),
    (Code::Unavailable, "14"),
    (Code::DataLoss, "15"),
    (Code::Unauthenticated, "16"),
];

impl Code {
    /// None for a number that is no code.
    pub fn from_number(number: u8) -> Option<Self> {
        ALL.get(usize::from(number)).map(|(code, _)| *code)
    }

    /// The value of `grpc-status`.
    pub fn header(self) -> HeaderValue {
        HeaderValue::from_static(ALL[self as usize].1)
    }
}

/// What a call ends with when it has no answer. `message` is for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    pub code: Code,
    pub message: Cow<'static, str>,
}

impl Failure {
    pub fn new(code: Code, message: impl Into<Cow<'static, str>>) -> Self {
        Self { code, message: message.into() }
    }
}

/// How a call ended that had an answer, or a stream.
pub fn trailers(status: &Result<(), Failure>) -> HeaderMap {
    let mut trailers = HeaderMap::with_capacity(1);
    match status {
        Ok(()) => {
            trailers.insert(GRPC_STATUS, Code::Ok.header());
        }
        Err(failure) => write_failure(&mut trailers, failure),
    }
    trailers
}

/// A status alone.
pub fn write_failure(headers: &mut HeaderMap, failure: &Failure) {
    headers.insert(GRPC_STATUS, failure.code.header());
    if !failure.message.is_empty() {
        headers.insert(GRPC_MESSAGE, percent_encoded(&failure.message));
    }
}

/// The value of `grpc-message`: percent-encoded as the specification asks ("Status-Message").
fn percent_encoded(message: &str) -> HeaderValue {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    let mut encoded = Vec::with_capacity(message.len());
    for byte in message.bytes() {
        if (0x20..=0x7e).contains(&byte) && byte != b'%' {
            encoded.push(byte);
        } else {
            encoded.extend([b'%', HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
        }
    }
    // Printable ASCII always is a header's value.
    HeaderValue::from_bytes(&encoded).unwrap_or(HeaderValue::from_static(""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_headers_cannot_carry_is_percent_encoded() {
        assert_eq!(percent_encoded("50% of caf\u{e9}\n"), "50%25 of caf%C3%A9%0A");
    }

    #[test]
    fn numbers_of_codes_go_both_ways() {
        for number in 0..=16 {
            assert_eq!(Code::from_number(number).map(Code::header), Some(HeaderValue::from(u16::from(number))));
        }
        assert_eq!(Code::from_number(17), None);
    }
}
