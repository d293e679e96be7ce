//! What a request's headers say.

use crate::status::{Code, Failure};
use crate::timeout;
use http::header::CONTENT_TYPE;
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

/// Why a request is none that can be answered. What is not gRPC at all has an HTTP status for those who ask so, too.
#[derive(Debug)]
pub struct Refusal {
    pub http: StatusCode,
    pub failure: Failure,
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
        return refused(StatusCode::METHOD_NOT_ALLOWED, Code::Internal, "the HTTP method is not POST");
    }
    if !is_grpc(&parts.headers) {
        let message = "the content-type is not application/grpc";
        return refused(StatusCode::UNSUPPORTED_MEDIA_TYPE, Code::InvalidArgument, message);
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
            None => return refused(StatusCode::OK, Code::Internal, "grpc-timeout is malformed"),
        },
    };
    Ok(Head { deadline, encoding })
}

fn refused(http: StatusCode, code: Code, message: &'static str) -> Result<Head, Refusal> {
    Err(Refusal { http, failure: Failure::new(code, message) })
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
        let refusal = read(&parts("GET", &GOOD), now).unwrap_err();
        assert_eq!((refusal.http, refusal.failure.code), (StatusCode::METHOD_NOT_ALLOWED, Code::Internal));
        for other in ["application/json", "application/grpcx", "application/grpc-web", "text/application/grpc", ""] {
            let refusal = read(&parts("POST", &[("content-type", other), GOOD[1]]), now).unwrap_err();
            let found = (refusal.http, refusal.failure.code);
            assert_eq!(found, (StatusCode::UNSUPPORTED_MEDIA_TYPE, Code::InvalidArgument), "{other}");
        }
        for grpc in ["application/grpc+proto", "application/grpc;charset=utf-8"] {
            assert!(read(&parts("POST", &[("content-type", grpc), GOOD[1]]), now).is_ok(), "{grpc}");
        }
    }

    #[test]
    fn a_broken_timeout_fails_and_a_proxy_may_have_taken_te_away() {
        let now = Instant::now();
        let refusal = read(&parts("POST", &[GOOD[0], GOOD[1], ("grpc-timeout", "soon")]), now).unwrap_err();
        assert_eq!((refusal.http, refusal.failure.code), (StatusCode::OK, Code::Internal));
        assert!(read(&parts("POST", &GOOD[..1]), now).is_ok());
    }
}
