//! HTTP/2's frames, as far as a caller needs them (RFC 9113, 4 and 6).

pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
pub const HEAD: usize = 9;

pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
pub const RST_STREAM: u8 = 3;
pub const SETTINGS: u8 = 4;
pub const PING: u8 = 6;
pub const GOAWAY: u8 = 7;
pub const WINDOW_UPDATE: u8 = 8;

pub const END_STREAM: u8 = 1;
pub const ACK: u8 = 1;
pub const END_HEADERS: u8 = 4;

/// Settings.
pub const HEADER_TABLE_SIZE: u16 = 1;
pub const MAX_CONCURRENT_STREAMS: u16 = 3;
pub const INITIAL_WINDOW_SIZE: u16 = 4;

/// The largest window.
pub const WINDOW: u32 = (1 << 31) - 1;
/// A window before anything is said of it.
pub const FIRST_WINDOW: u32 = 65_535;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    pub length: usize,
    pub kind: u8,
    pub flags: u8,
    pub stream: u32,
}

impl Head {
    /// None before all of it has come.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let head = bytes.get(..HEAD)?;
        Some(Self {
            length: usize::from(head[0]) << 16 | usize::from(head[1]) << 8 | usize::from(head[2]),
            kind: head[3],
            flags: head[4],
            stream: number(&head[5..]) & WINDOW,
        })
    }
}

/// The first four bytes as a number.
pub fn number(bytes: &[u8]) -> u32 {
    bytes.iter().take(4).fold(0, |number, byte| number << 8 | u32::from(*byte))
}

pub fn write(out: &mut Vec<u8>, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
    write_head(out, payload.len(), kind, flags, stream);
    out.extend_from_slice(payload);
}

pub fn write_head(out: &mut Vec<u8>, length: usize, kind: u8, flags: u8, stream: u32) {
    let length = u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes();
    out.extend_from_slice(&[length[1], length[2], length[3], kind, flags]);
    out.extend_from_slice(&stream.to_be_bytes());
}

/// What opens a connection: no dynamic table for answers, so that the same header block always says the same.
pub fn opening() -> Vec<u8> {
    let mut out = PREFACE.to_vec();
    let mut settings = vec![];
    for (setting, value) in [(HEADER_TABLE_SIZE, 0), (INITIAL_WINDOW_SIZE, WINDOW)] {
        settings.extend_from_slice(&setting.to_be_bytes());
        settings.extend_from_slice(&value.to_be_bytes());
    }
    write(&mut out, SETTINGS, 0, 0, &settings);
    write(&mut out, WINDOW_UPDATE, 0, 0, &(WINDOW - FIRST_WINDOW).to_be_bytes());
    out
}

/// Setting and value, one after the other.
pub fn settings(payload: &[u8]) -> impl Iterator<Item = (u16, u32)> {
    payload.chunks_exact(6).map(|setting| (u16::from_be_bytes([setting[0], setting[1]]), number(&setting[2..])))
}

/// A request's header block as (first time, every further time) on a connection: with indexing, then by index, which is
/// what Envoy and gRPC's clients do (RFC 7541, 6.1 and 6.2.1).
pub fn request_headers(authority: &str, path: &str, timeout_ms: Option<u32>) -> (Vec<u8>, Vec<u8>) {
    const SCHEME_HTTP: u8 = 0x80 | 6;
    const METHOD_POST: u8 = 0x80 | 3;
    let timeout = timeout_ms.map(|timeout| format!("{timeout}m"));
    let mut headers =
        vec![(":path", path), (":authority", authority), ("content-type", "application/grpc"), ("te", "trailers")];
    headers.extend(timeout.as_deref().map(|timeout| ("grpc-timeout", timeout)));
    let (mut first, mut further) = (vec![METHOD_POST, SCHEME_HTTP], vec![METHOD_POST, SCHEME_HTTP]);
    let mut index = 61 + u8::try_from(headers.len()).unwrap_or(0);
    for (name, value) in headers {
        first.push(0x40);
        for text in [name, value] {
            // Seven bits are enough for lengths that need no continuation.
            first.push(u8::try_from(text.len().min(126)).unwrap_or(126));
            first.extend_from_slice(&text.as_bytes()[..text.len().min(126)]);
        }
        further.push(0x80 | index);
        index -= 1;
    }
    (first, further)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_the_same_the_first_time_and_further_times() {
        let (first, further) = request_headers("127.0.0.1:1", "/a.B/C", Some(20));
        let mut decoder = httlib_hpack::Decoder::default();
        let mut pairs = |mut block: Vec<u8>| {
            let mut headers = vec![];
            decoder.decode(&mut block, &mut headers).unwrap();
            headers.into_iter().map(|(name, value, _)| (name, value)).collect::<Vec<_>>()
        };
        let headers = pairs(first);
        assert_eq!(pairs(further.clone()), headers);
        assert_eq!(headers.len(), 7);
        assert!(headers.contains(&(b"grpc-timeout".to_vec(), b"20m".to_vec())));
        assert_eq!(further.len(), 7);
    }

    #[test]
    fn heads_go_both_ways() {
        let mut out = vec![];
        write(&mut out, DATA, END_STREAM, 77, b"abc");
        assert_eq!(Head::read(&out), Some(Head { length: 3, kind: DATA, flags: END_STREAM, stream: 77 }));
        assert_eq!(Head::read(&out[..8]), None);
    }
}
