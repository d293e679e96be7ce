//! A socket that counts what goes through it.

use crate::counters::Counters;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// How much a connection's caller has said.
#[derive(Clone, Debug, Default)]
pub struct Heard(Arc<AtomicUsize>);

impl Heard {
    /// The length of HTTP/2's connection preface (RFC 9113, 3.4).
    const PREFACE: usize = 24;

    /// It has at least begun to speak HTTP/2: anything else of that length has ended the connection.
    pub fn preface(&self) -> bool {
        self.0.load(Relaxed) >= Self::PREFACE
    }
}

/// Counts bytes in the server's counters.
#[derive(Debug)]
pub struct Wire<S> {
    stream: S,
    heard: Heard,
    counters: Arc<Counters>,
}

impl<S> Wire<S> {
    pub fn new(stream: S, heard: Heard, counters: Arc<Counters>) -> Self {
        Self { stream, heard, counters }
    }

    fn wrote(&self, done: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if let Poll::Ready(Ok(bytes)) = done {
            self.counters.bytes_sent.add(bytes as u64);
        }
        done
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Wire<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let done = Pin::new(&mut self.stream).poll_read(cx, buffer);
        let bytes = buffer.filled().len() - before;
        self.heard.0.fetch_add(bytes, Relaxed);
        self.counters.bytes_received.add(bytes as u64);
        done
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Wire<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &[u8]) -> Poll<io::Result<usize>> {
        let done = Pin::new(&mut self.stream).poll_write(cx, buffer);
        self.wrote(done)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let done = Pin::new(&mut self.stream).poll_write_vectored(cx, buffers);
        self.wrote(done)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
