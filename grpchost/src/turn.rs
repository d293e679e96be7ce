//! The calls of one take.

use crate::open_call::OpenCall;
use crate::status::failure;
use grpchost_server::{Answers, Call, Peer, Pending, Reply, framed};
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};
use std::mem::take;
use std::sync::Arc;
use std::thread::yield_now;
use std::time::Instant;

/// After so few answers the server's thread runs next, where both share a core: their callers are served before Python
/// tidies up. After more of them there is as much to do here.
const FEW: usize = 4;

/// Owns the way to answer its calls; those unanswered when it goes are answered UNAVAILABLE.
#[pyclass(module = "grpchost")]
pub struct Turn {
    #[pyo3(get)]
    messages: Py<PyList>,
    #[pyo3(get)]
    deadlines: Py<PyList>,
    origins: Vec<(u32, Arc<Peer>)>,
    pending: Vec<Option<Pending>>,
    /// Methods whose index is smaller.
    unary: u32,
    unanswered: usize,
    ready: Vec<(Pending, Reply)>,
    answers: Answers,
}

#[derive(FromPyObject)]
enum Answer<'py> {
    Message(Bound<'py, PyBytes>),
    Failure(u8, String),
}

impl Turn {
    pub fn new(py: Python<'_>, calls: Vec<Call>, now: f64, unary: u32, answers: Answers) -> PyResult<Self> {
        let taken = Instant::now();
        let left = |call: &Call| {
            let wait = call.deadline.map(|deadline| deadline.saturating_duration_since(taken));
            wait.map_or(f64::INFINITY, |wait| now + wait.as_secs_f64())
        };
        let messages = PyList::new(py, calls.iter().map(|call| PyBytes::new(py, &call.message)))?;
        let deadlines = PyList::new(py, calls.iter().map(left))?;
        let unanswered = calls.len();
        let mut origins = Vec::with_capacity(unanswered);
        let mut pending = Vec::with_capacity(unanswered);
        for call in calls {
            origins.push((call.method, call.peer));
            pending.push(Some(call.pending));
        }
        let ready = Vec::with_capacity(unanswered);
        Ok(Self {
            messages: messages.unbind(),
            deadlines: deadlines.unbind(),
            origins,
            pending,
            unary,
            unanswered,
            ready,
            answers,
        })
    }

    fn reply(&mut self, call: usize, reply: Reply) -> PyResult<()> {
        let pending = self.remove(call)?;
        self.ready.push((pending, reply));
        self.removed();
        Ok(())
    }

    fn remove(&mut self, call: usize) -> PyResult<Pending> {
        let Some(pending) = self.pending.get_mut(call) else {
            return Err(PyIndexError::new_err(format!(
                "there is no call {call} in this turn of {}",
                self.pending.len()
            )));
        };
        pending.take().ok_or_else(|| PyValueError::new_err(format!("call {call} has been answered already")))
    }

    fn removed(&mut self) {
        self.unanswered -= 1;
        if self.unanswered == 0 {
            self.flush();
        }
    }
}

#[pymethods]
impl Turn {
    #[getter]
    fn methods(&self) -> Vec<u32> {
        self.origins.iter().map(|(method, _)| *method).collect()
    }

    #[getter]
    fn peers(&self) -> Vec<&str> {
        self.origins.iter().map(|(_, peer)| peer.address.as_str()).collect()
    }

    #[getter]
    fn identities(&self) -> Vec<Option<&str>> {
        self.origins.iter().map(|(_, peer)| peer.identity.as_deref()).collect()
    }

    fn __len__(&self) -> usize {
        self.pending.len()
    }

    fn __repr__(&self) -> String {
        format!("<Turn of {} calls, {} unanswered>", self.pending.len(), self.unanswered)
    }

    fn is_over(&self, call: usize) -> bool {
        self.pending.get(call).is_none_or(|pending| pending.as_ref().is_none_or(Pending::is_over))
    }

    fn answer(&mut self, call: usize, message: &[u8]) -> PyResult<()> {
        self.reply(call, Ok(framed(message)))
    }

    fn fail(&mut self, call: usize, status: u8, message: String) -> PyResult<()> {
        let failure = failure(status, message)?;
        self.reply(call, Err(failure))
    }

    fn open(&mut self, call: usize) -> PyResult<OpenCall> {
        if self.origins.get(call).is_some_and(|(method, _)| *method < self.unary) {
            return Err(PyValueError::new_err(format!("call {call} is none of a streaming method")));
        }
        let pending = self.remove(call)?;
        self.removed();
        Ok(OpenCall::new(pending.open()))
    }

    fn answer_all(&mut self, answers: Vec<Answer<'_>>) -> PyResult<()> {
        if answers.len() != self.pending.len() {
            let message = format!("{} answers for a turn of {} calls", answers.len(), self.pending.len());
            return Err(PyValueError::new_err(message));
        }
        let replies = answers.into_iter().map(|answer| match answer {
            Answer::Message(message) => Ok(Ok(framed(message.as_bytes()))),
            Answer::Failure(code, message) => failure(code, message).map(Err),
        });
        for (call, reply) in replies.collect::<PyResult<Vec<Reply>>>()?.into_iter().enumerate() {
            self.reply(call, reply)?;
        }
        Ok(())
    }

    fn flush(&mut self) {
        if !self.ready.is_empty() {
            let few = self.ready.len() <= FEW;
            self.answers.send(take(&mut self.ready));
            if few {
                yield_now();
            }
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.flush();
        self.answers.abandon(self.pending.drain(..).flatten());
    }
}
