//! gRPC's frames: a byte of flags, four of length, the message.

use crate::headers::Encoding;
use crate::status::{Code, Failure};
use bytes::{BufMut, Bytes, BytesMut};
use flate2::read::MultiGzDecoder;
use http_body::Body;
use http_body_util::BodyExt;
use std::io::Read;
use std::time::Duration;
use tokio::time::timeout;

const PREFIX: usize = 5;

/// `message` with its frame, uncompressed.
pub fn framed(message: &[u8]) -> Bytes {
    let mut frame = Vec::with_capacity(PREFIX + message.len());
    frame.put_u8(0);
    // Nothing that long comes out of a server whose requests are bounded.
    frame.put_u32(u32::try_from(message.len()).unwrap_or(u32::MAX));
    frame.put_slice(message);
    frame.into()
}

/// The one message of a unary request, inflated; at most `most` bytes.
pub async fn receive<B>(mut body: B, encoding: Encoding, most: usize) -> Result<Bytes, Failure>
where
    B: Body<Data = Bytes> + Unpin,
{
    let first = loop {
        match next(&mut body).await? {
            Some(data) if data.is_empty() => {}
            Some(data) => break data,
            None => return Err(Failure::new(Code::Unimplemented, "a unary call has one message, this one has none")),
        }
    };
    let frame = if body.is_end_stream() { first } else { rest(body, first, most).await? };
    unframed(&frame, encoding, most)
}

/// The messages of a streaming call, one after the other.
pub struct Messages<B> {
    body: B,
    /// What has come of the next ones.
    buffer: BytesMut,
    encoding: Encoding,
    most: usize,
    patience: Duration,
}

impl<B: Body<Data = Bytes> + Unpin> Messages<B> {
    /// Each has at most `most` bytes, and comes within `patience` once it has begun.
    pub fn new(body: B, encoding: Encoding, most: usize, patience: Duration) -> Self {
        Self { body, buffer: BytesMut::new(), encoding, most, patience }
    }

    /// None once the caller has said all.
    pub async fn next(&mut self) -> Result<Option<Bytes>, Failure> {
        while self.buffer.is_empty() {
            match next(&mut self.body).await? {
                Some(data) => self.buffer.extend_from_slice(&data),
                None => return Ok(None),
            }
        }
        let patience = self.patience;
        timeout(patience, self.rest()).await.unwrap_or_else(|_| Err(too_slow(patience))).map(Some)
    }

    async fn rest(&mut self) -> Result<Bytes, Failure> {
        loop {
            if let Some(length) = announced(&self.buffer) {
                if length > self.most {
                    return Err(too_large(self.most));
                }
                if self.buffer.len() >= PREFIX + length {
                    let frame = self.buffer.split_to(PREFIX + length).freeze();
                    return unframed(&frame, self.encoding, self.most);
                }
            }
            match next(&mut self.body).await? {
                Some(data) => self.buffer.extend_from_slice(&data),
                None => return Err(breaks_off()),
            }
        }
    }
}

/// `first` and all that follows. Ends early at what is too much.
async fn rest<B>(mut body: B, first: Bytes, most: usize) -> Result<Bytes, Failure>
where
    B: Body<Data = Bytes> + Unpin,
{
    let mut whole: Option<BytesMut> = None;
    loop {
        let so_far: &[u8] = whole.as_deref().unwrap_or(&first);
        check_length(so_far, most)?;
        match next(&mut body).await? {
            Some(data) if data.is_empty() => {}
            Some(data) => whole.get_or_insert_with(|| first.as_ref().into()).extend_from_slice(&data),
            None => return Ok(whole.map_or(first, BytesMut::freeze)),
        }
    }
}

/// The next data of the body; None at its end. The caller's trailers say nothing.
async fn next<B>(body: &mut B) -> Result<Option<Bytes>, Failure>
where
    B: Body<Data = Bytes> + Unpin,
{
    while let Some(frame) = body.frame().await {
        // Nobody will read this: the stream, or all of the connection, is gone.
        let frame = frame.map_err(|_| Failure::new(Code::Cancelled, "the request broke off"))?;
        if let Ok(data) = frame.into_data() {
            return Ok(Some(data));
        }
    }
    Ok(None)
}

/// The announced length; None before all of it has come.
fn announced(frame: &[u8]) -> Option<usize> {
    let length = frame.get(1..PREFIX)?.try_into().ok()?;
    usize::try_from(u32::from_be_bytes(length)).ok()
}

/// Refuses what is, or says that it will be, too large, and a second message.
fn check_length(frame: &[u8], most: usize) -> Result<(), Failure> {
    let Some(length) = announced(frame) else { return Ok(()) };
    if length > most {
        return Err(too_large(most));
    }
    if frame.len() > PREFIX + length {
        return Err(Failure::new(Code::Unimplemented, "a unary call has one message, this one has more"));
    }
    Ok(())
}

fn unframed(frame: &Bytes, encoding: Encoding, most: usize) -> Result<Bytes, Failure> {
    check_length(frame, most)?;
    if announced(frame).is_none_or(|length| frame.len() < PREFIX + length) {
        return Err(breaks_off());
    }
    match (frame[0], encoding) {
        (0, _) => Ok(frame.slice(PREFIX..)),
        (1, Encoding::Gzip) => inflated(&frame[PREFIX..], most),
        (1, Encoding::Unknown) => {
            Err(Failure::new(Code::Unimplemented, "the message is compressed in a way other than gzip"))
        }
        (1, Encoding::Identity) => {
            Err(Failure::new(Code::Internal, "the message is compressed, but no grpc-encoding says how"))
        }
        _ => Err(Failure::new(Code::Internal, "the first byte of a message's frame is neither 0 nor 1")),
    }
}

fn inflated(deflated: &[u8], most: usize) -> Result<Bytes, Failure> {
    let mut message = Vec::new();
    let one_too_many = u64::try_from(most).unwrap_or(u64::MAX).saturating_add(1);
    MultiGzDecoder::new(deflated)
        .take(one_too_many)
        .read_to_end(&mut message)
        .map_err(|error| Failure::new(Code::Internal, format!("the message can't be inflated: {error}")))?;
    if message.len() > most { Err(too_large(most)) } else { Ok(message.into()) }
}

fn breaks_off() -> Failure {
    Failure::new(Code::Internal, "the request ends within its message")
}

/// For a message that was not complete within `patience`.
pub fn too_slow(patience: Duration) -> Failure {
    let seconds = patience.as_secs_f64();
    Failure::new(Code::Aborted, format!("the request did not arrive in full within {seconds} s"))
}

fn too_large(most: usize) -> Failure {
    Failure::new(Code::ResourceExhausted, format!("the message is larger than {most} bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::{Compression, write::GzEncoder};
    use http_body::Frame;
    use std::collections::VecDeque;
    use std::convert::Infallible;
    use std::io::Write;
    use std::pin::Pin;
    use std::task::{Context, Poll};

    /// A body that comes in these pieces.
    struct Pieces(VecDeque<Bytes>);

    impl Body for Pieces {
        type Data = Bytes;
        type Error = Infallible;
        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            Poll::Ready(self.0.pop_front().map(|piece| Ok(Frame::data(piece))))
        }
        fn is_end_stream(&self) -> bool {
            self.0.is_empty()
        }
    }

    fn received(pieces: &[&[u8]], encoding: Encoding, most: usize) -> Result<Bytes, Code> {
        let body = Pieces(pieces.iter().map(|piece| Bytes::copy_from_slice(piece)).collect());
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(receive(body, encoding, most)).map_err(|failure| failure.code)
    }

    fn gzipped(message: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(message).unwrap();
        let mut frame = framed(&encoder.finish().unwrap()).to_vec();
        frame[0] = 1;
        frame
    }

    #[test]
    fn a_message_is_the_same_however_it_is_cut() {
        let frame = framed(b"hello");
        for at in 0..=frame.len() {
            let (left, right) = frame.split_at(at);
            assert_eq!(received(&[left, b"", right], Encoding::Identity, 5), Ok("hello".into()), "cut at {at}");
        }
        let bytes: Vec<&[u8]> = frame.chunks(1).collect();
        assert_eq!(received(&bytes, Encoding::Gzip, 5), Ok("hello".into()));
        assert_eq!(received(&[&framed(b"")], Encoding::Identity, 5), Ok("".into()));
    }

    #[test]
    fn a_call_has_exactly_one_message() {
        assert_eq!(received(&[], Encoding::Identity, 5), Err(Code::Unimplemented));
        let twice = [framed(b"a"), framed(b"b")].concat();
        for at in 0..twice.len() {
            let (left, right) = twice.split_at(at);
            assert_eq!(received(&[left, right], Encoding::Identity, 5), Err(Code::Unimplemented), "cut at {at}");
        }
    }

    #[test]
    fn messages_of_a_stream_are_the_same_however_they_are_cut() {
        let frames = [framed(b"hello"), framed(b""), framed(b"you")].concat();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let streamed = |pieces: &[&[u8]]| {
            let body = Pieces(pieces.iter().map(|piece| Bytes::copy_from_slice(piece)).collect());
            let mut messages = Messages::new(body, Encoding::Identity, 5, Duration::from_secs(20));
            runtime.block_on(async {
                let mut found = vec![];
                loop {
                    match messages.next().await {
                        Ok(Some(message)) => found.push(message),
                        Ok(None) => return (found, None),
                        Err(failure) => return (found, Some(failure.code)),
                    }
                }
            })
        };
        let all = || vec![Bytes::from("hello"), "".into(), "you".into()];
        for at in 0..=frames.len() {
            let (left, right) = frames.split_at(at);
            assert_eq!(streamed(&[left, b"", right]), (all(), None), "cut at {at}");
        }
        let bytes: Vec<&[u8]> = frames.chunks(1).collect();
        assert_eq!(streamed(&bytes), (all(), None));
        assert_eq!(streamed(&[&frames[..frames.len() - 1]]), (all()[..2].to_vec(), Some(Code::Internal)));
        assert_eq!(streamed(&[&frames, &[0, 0, 0, 0, 6]]), (all(), Some(Code::ResourceExhausted)));
    }

    #[test]
    fn a_message_that_breaks_off_is_told() {
        let frame = framed(b"hello");
        for length in 1..frame.len() {
            assert_eq!(received(&[&frame[..length]], Encoding::Identity, 5), Err(Code::Internal), "{length} bytes");
        }
    }

    #[test]
    fn a_message_too_large_is_refused_before_it_has_come() {
        assert_eq!(received(&[&[0, 0, 0, 0, 6], b"h"], Encoding::Identity, 5), Err(Code::ResourceExhausted));
        assert_eq!(received(&[&[0, 255, 255, 255, 255]], Encoding::Identity, 5), Err(Code::ResourceExhausted));
    }

    #[test]
    fn gzip_is_inflated_up_to_the_limit() {
        let zeros = gzipped(&vec![0; 100_000]);
        assert!(zeros.len() < 1_000);
        assert_eq!(received(&[&zeros], Encoding::Gzip, 100_000).map(|message| message.len()), Ok(100_000));
        assert_eq!(received(&[&zeros], Encoding::Gzip, 99_999), Err(Code::ResourceExhausted));
        let cut = framed(&zeros[PREFIX..zeros.len() - 9]);
        let flagged = [&[1], &cut[1..]].concat();
        assert_eq!(received(&[&flagged], Encoding::Gzip, 100_000), Err(Code::Internal));
    }

    #[test]
    fn what_is_compressed_in_another_way_is_not_taken_for_a_message() {
        let message = gzipped(b"hello");
        assert_eq!(received(&[&message], Encoding::Identity, 100), Err(Code::Internal));
        assert_eq!(received(&[&message], Encoding::Unknown, 100), Err(Code::Unimplemented));
        assert_eq!(received(&[&[2, 0, 0, 0, 0]], Encoding::Gzip, 100), Err(Code::Internal));
    }
}
