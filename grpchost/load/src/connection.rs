//! One connection to the server under test.

use crate::frames::{self, Head};
use std::collections::{HashMap, VecDeque};
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// Give back what answers have used of the connection's window at the latest after so much.
const GIVE_BACK: u32 = frames::WINDOW / 2;

/// How one call ended.
#[derive(Clone, Copy, Debug)]
pub struct Ended {
    pub due: Instant,
    pub status: Status,
    /// The answer's first field if it is a small number: `overall_code` of a `RateLimitResponse`.
    pub code: Option<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Status {
    Grpc(u8),
    /// The stream was reset, with this error code.
    Reset(u32),
    /// It ended without a status.
    None,
}

/// A call that waits for its end.
#[derive(Clone, Copy, Debug)]
struct Call {
    due: Instant,
    code: Option<u8>,
}

pub struct Connection {
    stream: TcpStream,
    out: Vec<u8>,
    sent: usize,
    input: Vec<u8>,
    /// By stream number, from `oldest` on; None for those that have ended.
    calls: VecDeque<Option<Call>>,
    oldest: u32,
    pub in_flight: usize,
    /// What the server allows.
    pub streams: usize,
    window: i64,
    used: u32,
    greeted: bool,
    first_headers: Option<Vec<u8>>,
    headers: Vec<u8>,
    /// Header blocks that have been decoded: with no dynamic table, the same bytes are the same headers.
    statuses: HashMap<Vec<u8>, Option<u8>>,
    decoder: httlib_hpack::Decoder<'static>,
}

fn invalid(message: impl Into<String>) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, message.into())
}

impl Connection {
    /// Connects and waits for the server's settings, at most ten seconds.
    pub fn open(address: &str, method: &str, timeout_ms: Option<u32>) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        let (first, headers) = frames::request_headers(address, method, timeout_ms);
        let mut connection = Self {
            stream,
            out: frames::opening(),
            sent: 0,
            input: vec![],
            calls: VecDeque::new(),
            oldest: 1,
            in_flight: 0,
            streams: usize::MAX,
            window: i64::from(frames::FIRST_WINDOW),
            used: 0,
            greeted: false,
            first_headers: Some(first),
            headers,
            statuses: HashMap::new(),
            decoder: httlib_hpack::Decoder::default(),
        };
        connection.stream.set_read_timeout(Some(Duration::from_secs(10)))?;
        connection.flush()?;
        while !connection.greeted {
            connection.receive(&mut |_| {})?;
        }
        connection.stream.set_nonblocking(true)?;
        Ok(connection)
    }

    pub fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// Another call may be sent now.
    pub fn has_room(&self, message: usize) -> bool {
        self.in_flight < self.streams && self.window >= i64::try_from(message + 5).unwrap_or(i64::MAX)
    }

    /// Something waits for the socket to take more.
    pub fn wants_to_write(&self) -> bool {
        self.sent < self.out.len()
    }

    /// Puts a call into the buffer that `flush` sends.
    pub fn call(&mut self, message: &[u8], due: Instant) {
        let stream = self.oldest + 2 * u32::try_from(self.calls.len()).unwrap_or(u32::MAX / 4);
        let first = self.first_headers.take();
        let headers = first.as_ref().unwrap_or(&self.headers);
        frames::write(&mut self.out, frames::HEADERS, frames::END_HEADERS, stream, headers);
        let length = message.len() + 5;
        frames::write_head(&mut self.out, length, frames::DATA, frames::END_STREAM, stream);
        self.out.push(0);
        self.out.extend_from_slice(&u32::try_from(message.len()).unwrap_or(u32::MAX).to_be_bytes());
        self.out.extend_from_slice(message);
        self.window -= i64::try_from(length).unwrap_or(i64::MAX);
        self.calls.push_back(Some(Call { due, code: None }));
        self.in_flight += 1;
    }

    pub fn flush(&mut self) -> io::Result<()> {
        while self.sent < self.out.len() {
            match self.stream.write(&self.out[self.sent..]) {
                Ok(bytes) => self.sent += bytes,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.out.clear();
        self.sent = 0;
        Ok(())
    }

    /// Reads what is there, once; `ended` is told of each call that is over.
    pub fn receive(&mut self, ended: &mut impl FnMut(Ended)) -> io::Result<()> {
        const CHUNK: usize = 64 << 10;
        let before = self.input.len();
        self.input.resize(before + CHUNK, 0);
        let read = self.stream.read(&mut self.input[before..]);
        self.input.truncate(before + *read.as_ref().unwrap_or(&0));
        match read {
            Ok(0) => return Err(io::Error::new(ErrorKind::UnexpectedEof, "the server has closed a connection")),
            Ok(_) => {}
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => return Ok(()),
            Err(error) => return Err(error),
        }
        let input = std::mem::take(&mut self.input);
        let mut rest = &input[..];
        while let Some(head) = Head::read(rest) {
            let Some(payload) = rest.get(frames::HEAD..frames::HEAD + head.length) else { break };
            self.frame(head, payload, ended)?;
            rest = &rest[frames::HEAD + head.length..];
        }
        let consumed = input.len() - rest.len();
        self.input = input;
        self.input.drain(..consumed);
        self.flush()
    }

    fn frame(&mut self, head: Head, payload: &[u8], ended: &mut impl FnMut(Ended)) -> io::Result<()> {
        match head.kind {
            frames::DATA => {
                if let (Some(call), [_, _, _, _, _, 0x08, code, ..]) = (self.waiting(head.stream), payload) {
                    call.code = Some(*code);
                }
                self.use_window(payload.len());
                if head.flags & frames::END_STREAM != 0 {
                    self.end(head.stream, Status::None, ended);
                }
            }
            frames::HEADERS => {
                if head.flags & frames::END_HEADERS == 0 {
                    return Err(invalid("an answer's headers take more than one frame"));
                }
                let status = self.status(payload)?;
                if head.flags & frames::END_STREAM != 0 {
                    self.end(head.stream, status.map_or(Status::None, Status::Grpc), ended);
                }
            }
            frames::RST_STREAM => self.end(head.stream, Status::Reset(frames::number(payload)), ended),
            frames::SETTINGS if head.flags & frames::ACK == 0 => self.settings(payload)?,
            frames::PING if head.flags & frames::ACK == 0 => {
                frames::write(&mut self.out, frames::PING, frames::ACK, 0, payload);
            }
            // Streams' windows need no care: a message never is as large as one.
            frames::WINDOW_UPDATE if head.stream == 0 => self.window += i64::from(frames::number(payload)),
            frames::GOAWAY => return Err(io::Error::new(ErrorKind::ConnectionAborted, "the server says GOAWAY")),
            _ => {}
        }
        Ok(())
    }

    /// The `grpc-status` of a header block.
    fn status(&mut self, block: &[u8]) -> io::Result<Option<u8>> {
        if let Some(status) = self.statuses.get(block) {
            return Ok(*status);
        }
        let mut headers = vec![];
        let read = self.decoder.decode(&mut block.to_vec(), &mut headers);
        read.map_err(|error| invalid(format!("an answer's headers: {error:?}")))?;
        let status = headers.iter().find(|(name, ..)| name == b"grpc-status");
        let status = status.and_then(|(_, value, _)| std::str::from_utf8(value).ok()?.parse().ok());
        self.statuses.insert(block.to_vec(), status);
        Ok(status)
    }

    fn settings(&mut self, payload: &[u8]) -> io::Result<()> {
        for (setting, value) in frames::settings(payload) {
            match setting {
                frames::HEADER_TABLE_SIZE if value < 4_096 => {
                    return Err(invalid("the server takes no headers by index, which this generator sends"));
                }
                frames::MAX_CONCURRENT_STREAMS => self.streams = usize::try_from(value).unwrap_or(usize::MAX),
                _ => {}
            }
        }
        frames::write(&mut self.out, frames::SETTINGS, frames::ACK, 0, &[]);
        self.greeted = true;
        Ok(())
    }

    fn use_window(&mut self, bytes: usize) {
        self.used += u32::try_from(bytes).unwrap_or(GIVE_BACK);
        if self.used >= GIVE_BACK {
            frames::write(&mut self.out, frames::WINDOW_UPDATE, 0, 0, &self.used.to_be_bytes());
            self.used = 0;
        }
    }

    fn waiting(&mut self, stream: u32) -> Option<&mut Call> {
        self.slot(stream)?.as_mut()
    }

    fn slot(&mut self, stream: u32) -> Option<&mut Option<Call>> {
        let index = stream.checked_sub(self.oldest)? / 2;
        self.calls.get_mut(usize::try_from(index).ok()?)
    }

    fn end(&mut self, stream: u32, status: Status, ended: &mut impl FnMut(Ended)) {
        if let Some(Call { due, code }) = self.slot(stream).and_then(Option::take) {
            self.in_flight -= 1;
            ended(Ended { due, status, code });
        }
        while let Some(None) = self.calls.front() {
            self.calls.pop_front();
            self.oldest += 2;
        }
    }
}
