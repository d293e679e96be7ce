//! What a host is made with.

use grpchost_server::{ClientCertificates, Limits as ServerLimits, Tls as ServerTls};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::time::Duration;

/// Seconds, as a duration.
pub fn seconds(name: &str, value: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(value)
        .map_err(|_| PyValueError::new_err(format!("{name}: {value} s is no length of time")))
}

fn some_seconds(name: &str, value: Option<f64>) -> PyResult<Option<Duration>> {
    match value {
        Some(value) if value > 0.0 => seconds(name, value).map(Some),
        Some(value) => Err(PyValueError::new_err(format!("{name}: {value} s is not more than 0; None is no limit"))),
        None => Ok(None),
    }
}

/// What callers may ask of a host.
#[pyclass(frozen, module = "grpchost")]
pub struct Limits(pub ServerLimits);

#[pymethods]
impl Limits {
    #[new]
    #[pyo3(signature = (
        *, in_flight = 10_000, streaming = 1_000, message_bytes = 4 << 20, connections = 10_000, streams = 1_000, header_bytes = 16 << 10,
        pending_resets = 200, handshake_s = 10.0, receive_s = 10.0, idle_s = None, age_s = None, age_grace_s = 30.0,
        keepalive_s = Some(60.0), keepalive_timeout_s = 20.0,
    ))]
    #[expect(clippy::too_many_arguments, reason = "each has a name and a default")]
    fn new(
        in_flight: usize,
        streaming: usize,
        message_bytes: usize,
        connections: usize,
        streams: u32,
        header_bytes: u32,
        pending_resets: usize,
        handshake_s: f64,
        receive_s: f64,
        idle_s: Option<f64>,
        age_s: Option<f64>,
        age_grace_s: f64,
        keepalive_s: Option<f64>,
        keepalive_timeout_s: f64,
    ) -> PyResult<Self> {
        Ok(Self(ServerLimits {
            in_flight,
            streaming,
            message_bytes,
            connections,
            streams,
            header_bytes,
            pending_resets,
            handshake: seconds("handshake_s", handshake_s)?,
            receive: seconds("receive_s", receive_s)?,
            idle: some_seconds("idle_s", idle_s)?,
            age: some_seconds("age_s", age_s)?,
            age_grace: seconds("age_grace_s", age_grace_s)?,
            keepalive: some_seconds("keepalive_s", keepalive_s)?,
            keepalive_timeout: seconds("keepalive_timeout_s", keepalive_timeout_s)?,
        }))
    }
}

/// What a host proves itself with, and asks of clients; PEM.
#[pyclass(frozen, module = "grpchost")]
pub struct Tls(pub ServerTls);

#[pymethods]
impl Tls {
    #[new]
    #[pyo3(signature = (*, certificates, key, client_ca = None, client_required = true))]
    fn new(certificates: Vec<u8>, key: Vec<u8>, client_ca: Option<Vec<u8>>, client_required: bool) -> Self {
        let clients = match client_ca {
            None => ClientCertificates::Ignored,
            Some(authorities) if client_required => ClientCertificates::Required(authorities),
            Some(authorities) => ClientCertificates::Optional(authorities),
        };
        Self(ServerTls { certificates, key, clients })
    }
}
