//! Addresses to listen on.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::path::{Path, PathBuf};
use tokio::net::{TcpListener, TcpSocket, TcpStream, UnixListener, UnixStream};

const BACKLOG: u32 = 1024;

/// A bound address. A unix socket's file goes with it.
#[derive(Debug)]
pub enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener, SocketFile),
}

/// One accepted connection.
#[derive(Debug)]
pub enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

#[derive(Debug)]
pub struct SocketFile(PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

impl Listener {
    /// Listens on `HOST:PORT` (port 0: any that is free) or `unix:PATH`. Needs a runtime; the error names the address.
    pub fn bind(address: &str, reuse_port: bool) -> io::Result<Self> {
        let bound = match address.strip_prefix("unix:") {
            Some(path) => bind_unix(Path::new(path)),
            None => bind_tcp(address, reuse_port),
        };
        bound.map_err(|error| io::Error::new(error.kind(), format!("can't listen on {address}: {error}")))
    }

    /// 0 for a unix socket.
    pub fn port(&self) -> u16 {
        match self {
            Self::Tcp(listener) => listener.local_addr().map_or(0, |address| address.port()),
            Self::Unix(..) => 0,
        }
    }

    /// The next connection, and its peer's address as text.
    pub async fn accept(&self) -> io::Result<(Socket, String)> {
        match self {
            Self::Tcp(listener) => {
                let (socket, address) = listener.accept().await?;
                // Without it, an answer may wait for the ACK of the one before. It fails where the caller has gone already.
                let _ = socket.set_nodelay(true);
                Ok((Socket::Tcp(socket), address.to_string()))
            }
            Self::Unix(listener, SocketFile(path)) => {
                let (socket, _) = listener.accept().await?;
                Ok((Socket::Unix(socket), format!("unix:{}", path.display())))
            }
        }
    }
}

fn bind_tcp(address: &str, reuse_port: bool) -> io::Result<Listener> {
    let mut last = io::Error::new(io::ErrorKind::InvalidInput, "the name has no address");
    for address in address.to_socket_addrs()? {
        match listen(address, reuse_port) {
            Ok(listener) => return Ok(Listener::Tcp(listener)),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn listen(address: SocketAddr, reuse_port: bool) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.set_reuseaddr(true)?;
    socket.set_reuseport(reuse_port)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// A socket that a process left behind, where nobody listens any more, is in nobody's way.
fn bind_unix(path: &Path) -> io::Result<Listener> {
    if let Ok(existing) = std::fs::symlink_metadata(path) {
        let left_behind = existing.file_type().is_socket()
            && StdUnixStream::connect(path).is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused);
        if left_behind {
            std::fs::remove_file(path)?;
        }
    }
    Ok(Listener::Unix(UnixListener::bind(path)?, SocketFile(path.to_owned())))
}
