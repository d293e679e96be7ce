//! Where calls wait to be taken.

use crate::call::Call;
use crate::counters::Counters;
use rustix::event::{EventfdFlags, eventfd};
use rustix::io::{read, write};
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Who is given calls, on the server's thread. None of this may block.
pub trait Inbox: Send + Sync {
    /// A call has arrived.
    fn push(&self, call: Call);
    /// All calls that arrived together have been pushed.
    fn signal(&self);
    /// There is no room for another call: those that are over are to be let go, and with them their places.
    fn sweep(&self);
    /// The server has stopped; nothing will be pushed any more.
    fn close(&self);
}

/// A full server looks for calls that are over at most so often, ...
const SWEEP_EVERY: Duration = Duration::from_millis(5);
/// ... or when so many ended that each of them pays for a look at this many: not more than a sixteenth of all places is
/// held by calls that are over, and whoever cancels calls does not keep the server busy with looking.
const SWEPT_FOR_ONE: u64 = 16;

/// Calls in the order of their arrival, for one other thread.
///
/// The eventfd that [`Queue::as_fd`] names is readable while calls wait, and once the server has stopped.
#[derive(Debug)]
pub struct Queue {
    state: Mutex<State>,
    readable: OwnedFd,
    counters: Arc<Counters>,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<Call>,
    /// The eventfd is readable.
    signalled: bool,
    closed: bool,
    swept: Option<Instant>,
    /// Calls that had ended unanswered by then.
    swept_over: u64,
}

impl Queue {
    pub fn new(counters: Arc<Counters>) -> io::Result<Arc<Self>> {
        let readable = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        Ok(Arc::new(Self { state: Mutex::default(), readable, counters }))
    }

    /// Up to `most` calls, oldest first, without those that are over.
    pub fn take(&self, most: usize) -> Vec<Call> {
        let now = Instant::now();
        let mut state = self.lock();
        let mut calls = Vec::with_capacity(most.min(state.waiting.len()));
        while calls.len() < most {
            let Some(call) = state.waiting.pop_front() else { break };
            if !call.pending.is_over() && call.deadline.is_none_or(|deadline| deadline > now) {
                calls.push(call);
            }
        }
        if state.waiting.is_empty() && !state.closed {
            // Also where nothing is signalled: the word of calls that had been taken by then may have come since.
            let _ = read(&self.readable, &mut [0; 8]);
            state.signalled = false;
        }
        drop(state);
        if !calls.is_empty() {
            self.counters.turns.one();
            self.counters.taken.add(calls.len() as u64);
        }
        calls
    }

    /// Calls that wait, over or not.
    pub fn len(&self) -> usize {
        self.lock().waiting.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// The state is consistent between any two statements, so a panic elsewhere does not spoil it.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes the other thread, which may run at once, and so is not to find the lock taken.
    fn raise(&self, mut state: MutexGuard<'_, State>) {
        let raised = std::mem::replace(&mut state.signalled, true);
        drop(state);
        if !raised {
            let _ = write(&self.readable, &1_u64.to_ne_bytes());
        }
    }
}

impl AsFd for Queue {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.readable.as_fd()
    }
}

impl Inbox for Queue {
    fn push(&self, call: Call) {
        self.lock().waiting.push_back(call);
    }

    fn signal(&self) {
        let state = self.lock();
        if !state.waiting.is_empty() {
            self.raise(state);
        }
    }

    fn sweep(&self) {
        let over = self.counters.cancelled.get() + self.counters.expired.get();
        let now = Instant::now();
        let mut state = self.lock();
        let more = over.saturating_sub(state.swept_over);
        let due = more.saturating_mul(SWEPT_FOR_ONE) >= state.waiting.len() as u64
            || state.swept.is_none_or(|swept| now - swept >= SWEEP_EVERY);
        if more > 0 && due {
            state.swept = Some(now);
            state.swept_over = over;
            state.waiting.retain(|call| !call.pending.is_over());
        }
    }

    fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        state.waiting.clear();
        self.raise(state);
    }
}
