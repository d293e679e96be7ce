//! The server, as Python has it.

use crate::settings::{Limits, Tls, seconds};
use crate::turn::Turn;
use grpchost_server::{Answers, Config, Counters, Error, Limits as ServerLimits, Queue, Server};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

#[derive(FromPyObject)]
enum Listen {
    One(String),
    Several(Vec<String>),
}

/// A gRPC server on a thread of its own.
#[pyclass(frozen, module = "grpchost")]
pub struct Host {
    queue: Arc<Queue>,
    answers: Answers,
    counters: Arc<Counters>,
    /// Methods whose index is smaller.
    unary: u32,
    server: Mutex<Server>,
}

fn raised(error: Error) -> PyErr {
    match error {
        Error::Io(error) => error.into(),
        Error::Tls(message) => PyValueError::new_err(message),
    }
}

impl Host {
    fn server(&self) -> MutexGuard<'_, Server> {
        self.server.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl Host {
    #[new]
    #[pyo3(signature = (*, listen, methods, streams = vec![], tls = None, limits = None, reuse_port = false))]
    fn new(
        py: Python<'_>,
        listen: Listen,
        methods: Vec<String>,
        streams: Vec<String>,
        tls: Option<Py<Tls>>,
        limits: Option<Py<Limits>>,
        reuse_port: bool,
    ) -> PyResult<Self> {
        let listen = match listen {
            Listen::One(address) => vec![address],
            Listen::Several(addresses) => addresses,
        };
        if listen.is_empty() {
            return Err(PyValueError::new_err("there is no address to listen on"));
        }
        let limits = limits.map_or_else(ServerLimits::default, |limits| limits.get().0.clone());
        let tls = tls.map(|tls| tls.get().0.clone());
        let unary = u32::try_from(methods.len()).unwrap_or(u32::MAX);
        let config = Config { listen, reuse_port, methods, streams, tls, limits };
        let counters = Arc::new(Counters::default());
        let queue = Queue::new(Arc::clone(&counters))?;
        let server = py.detach(|| Server::start(config, queue.clone(), Arc::clone(&counters))).map_err(raised)?;
        Ok(Self { queue, answers: server.answers(), counters, unary, server: Mutex::new(server) })
    }

    #[getter]
    fn port(&self) -> u16 {
        self.server().ports().first().copied().unwrap_or(0)
    }

    #[getter]
    fn ports(&self) -> Vec<u16> {
        self.server().ports().to_vec()
    }

    #[getter]
    fn closed(&self) -> bool {
        self.queue.is_closed()
    }

    fn fileno(&self) -> i32 {
        self.queue.as_fd().as_raw_fd()
    }

    #[pyo3(signature = (most, now = 0.0))]
    fn take(&self, py: Python<'_>, most: usize, now: f64) -> PyResult<Option<Turn>> {
        let calls = self.queue.take(most);
        if calls.is_empty() {
            Ok(None)
        } else {
            Turn::new(py, calls, now, self.unary, self.answers.clone()).map(Some)
        }
    }

    fn drain(&self, grace_s: f64) -> PyResult<()> {
        self.server().drain(seconds("grace_s", grace_s)?);
        Ok(())
    }

    fn close(&self, py: Python<'_>) {
        py.detach(|| self.server().close());
    }

    fn reload_tls(&self, tls: &Tls) -> PyResult<()> {
        self.server().reload(&tls.0).map_err(raised)
    }

    #[getter]
    fn last_malformed(&self) -> Option<String> {
        self.server().malformed()
    }

    fn counters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let read = PyDict::new(py);
        for (name, value) in self.counters.read() {
            read.set_item(name, value)?;
        }
        read.set_item("in_flight", self.server().in_flight())?;
        read.set_item("waiting", self.queue.len())?;
        Ok(read)
    }
}
