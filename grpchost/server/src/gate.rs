//! How many calls may be in flight at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Counts what is inside; never more than `most`.
#[derive(Debug)]
pub struct Gate {
    most: usize,
    inside: AtomicUsize,
}

impl Gate {
    pub fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most, inside: AtomicUsize::new(0) })
    }

    /// None if it is full. Only one thread may call it; passes may be dropped on any.
    pub fn enter(self: &Arc<Self>) -> Option<Pass> {
        if self.inside.load(Relaxed) >= self.most {
            return None;
        }
        self.inside.fetch_add(1, Relaxed);
        Some(Pass(Arc::clone(self)))
    }

    pub fn inside(&self) -> usize {
        self.inside.load(Relaxed)
    }
}

/// One who is inside, until it is dropped.
#[derive(Debug)]
pub struct Pass(Arc<Gate>);

impl Drop for Pass {
    fn drop(&mut self) {
        self.0.inside.fetch_sub(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_gate_opens_again_when_one_leaves() {
        let gate = Gate::new(2);
        let (first, second) = (gate.enter(), gate.enter());
        assert!(first.is_some() && second.is_some() && gate.enter().is_none());
        drop(first);
        assert_eq!(gate.inside(), 1);
        assert!(gate.enter().is_some());
    }
}
