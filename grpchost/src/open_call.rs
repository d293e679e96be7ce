//! A streaming call that Python keeps open.

use crate::status::failure;
use grpchost_server::{Failure, OpenCall as ServerOpenCall, framed};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Its caller gets UNAVAILABLE when it goes without an end.
#[pyclass(module = "grpchost")]
pub struct OpenCall(Option<ServerOpenCall>);

impl OpenCall {
    pub fn new(call: ServerOpenCall) -> Self {
        Self(Some(call))
    }

    fn ended(&mut self, status: Result<(), Failure>) -> PyResult<()> {
        match self.0.take() {
            Some(call) => {
                call.end(status);
                Ok(())
            }
            None => Err(PyValueError::new_err("the call has been ended already")),
        }
    }
}

#[pymethods]
impl OpenCall {
    #[getter]
    fn is_over(&self) -> bool {
        self.0.as_ref().is_none_or(ServerOpenCall::is_over)
    }

    fn send(&self, message: &[u8]) -> bool {
        self.0.as_ref().is_some_and(|call| call.send(framed(message)))
    }

    fn end(&mut self) -> PyResult<()> {
        self.ended(Ok(()))
    }

    fn fail(&mut self, status: u8, message: String) -> PyResult<()> {
        let failure = failure(status, message)?;
        self.ended(Err(failure))
    }
}
