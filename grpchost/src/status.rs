//! How a call ends that has no answer, as Python says it.

use grpchost_server::{Code, Failure};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Raises `ValueError` where `code` is none that a call can fail with.
pub fn failure(code: u8, message: String) -> PyResult<Failure> {
    match Code::from_number(code) {
        None | Some(Code::Ok) => Err(PyValueError::new_err(format!("{code} is no status that a call can fail with"))),
        Some(code) => Ok(Failure::new(code, message)),
    }
}
