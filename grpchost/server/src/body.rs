//! What goes back to the caller.

use crate::headers::Refusal;
use crate::status::{Code, Failure, trailers, write_failure};
use crate::stream::Streaming;
use bytes::Bytes;
use http::{HeaderName, HeaderValue, Response, header::CONTENT_TYPE};
use http_body::{Body, Frame};
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

const GRPC: HeaderValue = HeaderValue::from_static("application/grpc");
const ACCEPT_ENCODING: HeaderName = HeaderName::from_static("grpc-accept-encoding");

/// An answer's body: one frame and the trailers, or nothing; or a stream.
pub enum Answer {
    Message(Bytes),
    Trailers,
    Stream(Box<Streaming>),
    End,
}

impl Body for Answer {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if let Self::Stream(stream) = &mut *self {
            return stream.poll_frame(cx).map(|frame| frame.map(Ok));
        }
        let (frame, next) = match std::mem::replace(&mut *self, Self::End) {
            Self::Message(message) => (Frame::data(message), Self::Trailers),
            Self::Trailers => (Frame::trailers(trailers(&Ok(()))), Self::End),
            Self::Stream(_) | Self::End => return Poll::Ready(None),
        };
        *self = next;
        Poll::Ready(Some(Ok(frame)))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::End)
    }

    // No size is told, for hyper would make a content-length of it, which gRPC has no use for.
}

/// The answer with a message, which has its frame already.
pub fn answered(framed: Bytes) -> Response<Answer> {
    let mut response = Response::new(Answer::Message(framed));
    response.headers_mut().insert(CONTENT_TYPE, GRPC);
    response
}

/// An answer that goes on.
pub fn streaming(stream: Streaming) -> Response<Answer> {
    let mut response = Response::new(Answer::Stream(Box::new(stream)));
    response.headers_mut().insert(CONTENT_TYPE, GRPC);
    response
}

/// A status alone: headers that are trailers too ("Trailers-Only").
pub fn failed(failure: &Failure) -> Response<Answer> {
    let mut response = Response::new(Answer::End);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, GRPC);
    write_failure(headers, failure);
    if failure.code == Code::Unimplemented {
        // The specification wants it where an encoding is not known ("Compression").
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity,gzip"));
    }
    response
}

/// A status for what cannot be read as a call.
pub fn refused_as(refusal: &Refusal) -> Response<Answer> {
    let mut response = failed(&refusal.failure);
    *response.status_mut() = refusal.http;
    response
}
