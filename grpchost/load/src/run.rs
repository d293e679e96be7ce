//! The loop.

use crate::bodies::Bodies;
use crate::connection::Connection;
use crate::options::Options;
use crate::report::Report;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::time::{ClockId, clock_gettime};
use std::io;
use std::num::NonZeroU64;
use std::time::{Duration, Instant};

/// A connection that was lost is not opened again before this.
const REOPEN: Duration = Duration::from_millis(100);
/// What calls have to end in when the time is over.
const LAST_ANSWERS: Duration = Duration::from_secs(2);

/// Calls until the time is over. The error is that no connection could be opened at first.
pub fn run(options: &Options) -> io::Result<Report> {
    // Fifty microseconds by default, which at a fixed rate would be taken for the server's.
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1_000));
    let mut load = Load::new(options)?;
    let begin = Instant::now();
    let (from, end) = (begin + options.warmup, begin + options.warmup + options.duration);
    let mut report = Report::new(from)?;
    let mut cpu = None;
    let mut now = begin;
    load.due = begin;
    while now < end {
        if now >= from {
            cpu.get_or_insert_with(cpu_time);
        }
        load.send(now, &mut report);
        load.wait(end, &mut report)?;
        now = Instant::now();
    }
    report.cpu = cpu_time().saturating_sub(cpu.unwrap_or_default());
    report.seconds = options.duration.as_secs_f64();
    load.finish(&mut report)?;
    Ok(report)
}

fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let (seconds, nanos) = (u64::try_from(time.tv_sec), u32::try_from(time.tv_nsec));
    Duration::new(seconds.unwrap_or(0), nanos.unwrap_or(0))
}

struct Load<'a> {
    options: &'a Options,
    bodies: Bodies,
    /// None: lost, and to be opened again at this time.
    connections: Vec<Result<Connection, Instant>>,
    next: usize,
    /// When the next call is due, where there is a rate.
    due: Instant,
}

impl<'a> Load<'a> {
    fn new(options: &'a Options) -> io::Result<Self> {
        let open = |_| Connection::open(&options.address, &options.method, options.timeout_ms).map(Ok);
        let connections = (0..options.connections).map(open).collect::<io::Result<_>>()?;
        Ok(Self { options, bodies: Bodies::new(options)?, connections, next: 0, due: Instant::now() })
    }

    fn send(&mut self, now: Instant, report: &mut Report) {
        match self.options.rate {
            Some(rate) => self.send_due(now, Duration::from_secs_f64(1.0 / rate), report),
            None => self.fill(now),
        }
        for slot in &mut self.connections {
            if slot.as_mut().is_ok_and(|connection| connection.flush().is_err()) {
                lose(slot, report);
            }
        }
    }

    /// As many calls as may be in flight.
    fn fill(&mut self, now: Instant) {
        for connection in self.connections.iter_mut().flatten() {
            while connection.in_flight < self.options.in_flight {
                let message = self.bodies.next();
                if !connection.has_room(message.len()) {
                    break;
                }
                connection.call(message, now);
            }
        }
    }

    /// All calls that are due by now, over the connections in turn.
    fn send_due(&mut self, now: Instant, interval: Duration, report: &mut Report) {
        while self.due <= now {
            let message = self.bodies.next();
            let count = self.connections.len();
            let free = (0..count).map(|offset| (self.next + offset) % count).find(|index| {
                self.connections[*index].as_ref().is_ok_and(|connection| connection.has_room(message.len()))
            });
            let Some(index) = free else {
                // It stays due: what it waits for here is the server's doing.
                report.late += 1;
                return;
            };
            if let Ok(connection) = &mut self.connections[index] {
                connection.call(message, self.due);
            }
            self.next = (index + 1) % count;
            self.due += interval;
        }
    }

    /// Until something has come, or is due.
    fn wait(&mut self, end: Instant, report: &mut Report) -> io::Result<()> {
        let now = Instant::now();
        self.reopen(now);
        let until = if self.options.rate.is_some() && self.due > now { self.due.min(end) } else { end };
        let mut timeout = until.saturating_duration_since(now);
        if self.connections.iter().any(Result::is_err) {
            timeout = timeout.min(REOPEN);
        }
        self.receive(timeout, report)
    }

    fn receive(&mut self, timeout: Duration, report: &mut Report) -> io::Result<()> {
        let flags = |connection: &Connection| {
            if connection.wants_to_write() { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN }
        };
        let open = self.connections.iter().flatten();
        let mut polled: Vec<_> = open.map(|connection| PollFd::new(connection.stream(), flags(connection))).collect();
        let timeout = Timespec {
            tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(timeout.subsec_nanos()),
        };
        match poll(&mut polled, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let ready: Vec<bool> = polled.iter().map(|polled| !polled.revents().is_empty()).collect();
        let open = self.connections.iter_mut().filter(|slot| slot.is_ok());
        for slot in open.zip(ready).filter_map(|(slot, ready)| ready.then_some(slot)) {
            let Ok(connection) = slot else { continue };
            let now = Instant::now();
            let received = connection.receive(&mut |call| report.ended(call, now));
            if received.and_then(|()| connection.flush()).is_err() {
                lose(slot, report);
            }
        }
        Ok(())
    }

    fn reopen(&mut self, now: Instant) {
        for slot in &mut self.connections {
            if slot.as_ref().is_err_and(|at| *at <= now) {
                let opened = Connection::open(&self.options.address, &self.options.method, self.options.timeout_ms);
                *slot = opened.map_err(|_| Instant::now() + REOPEN);
            }
        }
    }

    /// Lets calls in flight end.
    fn finish(&mut self, report: &mut Report) -> io::Result<()> {
        let end = Instant::now() + LAST_ANSWERS;
        let in_flight = |load: &Self| load.connections.iter().flatten().map(|connection| connection.in_flight).sum();
        // Answers from now on came after the time that is divided by.
        let mut after = Report::new(end)?;
        while in_flight(self) != 0_usize && Instant::now() < end {
            self.receive(end.saturating_duration_since(Instant::now()), &mut after)?;
        }
        report.unanswered = in_flight(self);
        Ok(())
    }
}

fn lose(slot: &mut Result<Connection, Instant>, report: &mut Report) {
    report.connections_lost += 1;
    *slot = Err(Instant::now() + REOPEN);
}
