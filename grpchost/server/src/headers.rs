//! What a request's headers say.

use crate::status::{Code, Failure};
use crate::timeout;
use http::header::{CONTENT_TYPE, TE};
use http::{HeaderMap, Method, StatusCode, request::Parts};
use std::time::{Duration, Instant};

/// A longer timeout is none.
const LONGEST: Duration = Duration::from_secs(366 * 24 * 3600);

/// How a message with the compressed flag set is to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    Identity,
    Gzip,
    Unknown,
}

/// Why a request is none that can be answered.
#[derive(Debug)]
pub enum Refusal {
    /// It is not gRPC, so it is answered as HTTP.
    Http(StatusCode),
    Grpc(Failure),
}

/// What is left to know of a request that may be a call.
#[derive(Debug)]
pub struct Head {
    pub deadline: Option<Instant>,
    pub encoding: Encoding,
}

/// Reads the headers of a request that arrived at `now` ("Requests" of the specification of gRPC over HTTP/2).
pub fn read(parts: &Parts, now: Instant) -> Result<Head, Refusal> {
    if parts.method != Method::POST {
        return Err(Refusal::Http(StatusCode::METHOD_NOT_ALLOWED));
    }
    if !is_grpc(&parts.headers) {
        return Err(Refusal::Http(StatusCode::UNSUPPORTED_MEDIA_TYPE));
    }
    if parts.headers.get(TE).is_none_or(|te| te.as_bytes() != b"trailers") {
        let message = "there is no \"te: trailers\": a proxy in between may not carry trailers";
        return Err(Refusal::Grpc(Failure::new(Code::Internal, message)));
    }
    let encoding = match parts.headers.get("grpc-encoding").map(http::HeaderValue::as_bytes) {
        None | Some(b"identity") => Encoding::Identity,
        Some(b"gzip") => Encoding::Gzip,
        Some(_) => Encoding::Unknown,
    };
    let deadline = match parts.headers.get("grpc-timeout") {
        None => None,
        Some(value) => match timeout::parse(value.as_bytes()) {
            Some(wait) if wait <= LONGEST => now.checked_add(wait),
            Some(_) => None,
            None => return Err(Refusal::Grpc(Failure::new(Code::Internal, "grpc-timeout is malformed"))),
        },
    };
    Ok(Head { deadline, encoding })
}

/// `application/grpc`, alone or with `+proto` or parameters behind it.
fn is_grpc(headers: &HeaderMap) -> bool {
    let Some(content_type) = headers.get(CONTENT_TYPE) else { return false };
    let Some(rest) = content_type.as_bytes().strip_prefix(b"application/grpc") else { return false };
    matches!(rest.first(), None | Some(b'+' | b';'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Request;

    fn parts(method: &str, headers: &[(&str, &str)]) -> Parts {
        let mut request = Request::builder().method(method).uri("/a.B/C");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap().into_parts().0
    }

    const GOOD: [(&str, &str); 2] = [("content-type", "application/grpc"), ("te", "trailers")];

    #[test]
    fn a_plain_call_is_taken() {
        let head = read(&parts("POST", &GOOD), Instant::now()).unwrap();
        assert_eq!((head.deadline, head.encoding), (None, Encoding::Identity));
    }

    #[test]
    fn the_timeout_counts_from_the_arrival() {
        let now = Instant::now();
        let head = read(&parts("POST", &[GOOD[0], GOOD[1], ("grpc-timeout", "20m")]), now).unwrap();
        assert_eq!(head.deadline, Some(now + Duration::from_millis(20)));
        let head = read(&parts("POST", &[GOOD[0], GOOD[1], ("grpc-timeout", "99999999H")]), now).unwrap();
        assert_eq!(head.deadline, None);
    }

    #[test]
    fn what_is_not_grpc_is_answered_as_http() {
        let now = Instant::now();
        assert!(matches!(read(&parts("GET", &GOOD), now), Err(Refusal::Http(StatusCode::METHOD_NOT_ALLOWED))));
        for other in ["application/json", "application/grpcx", "application/grpc-web", "text/application/grpc", ""] {
            let refusal = read(&parts("POST", &[("content-type", other), GOOD[1]]), now).unwrap_err();
            assert!(matches!(refusal, Refusal::Http(StatusCode::UNSUPPORTED_MEDIA_TYPE)), "{other}");
        }
        for grpc in ["application/grpc+proto", "application/grpc;charset=utf-8"] {
            assert!(read(&parts("POST", &[("content-type", grpc), GOOD[1]]), now).is_ok(), "{grpc}");
        }
    }

    #[test]
    fn a_call_that_can_get_no_trailers_or_has_a_broken_timeout_fails() {
        let now = Instant::now();
        for headers in [&GOOD[..1], &[GOOD[0], ("te", "gzip")], &[GOOD[0], GOOD[1], ("grpc-timeout", "soon")]] {
            let refusal = read(&parts("POST", headers), now).unwrap_err();
            assert!(matches!(refusal, Refusal::Grpc(Failure { code: Code::Internal, .. })));
        }
    }
}
