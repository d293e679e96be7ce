//! What was seen.

use crate::connection::{Ended, Status};
use hdrhistogram::Histogram;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::io;
use std::time::{Duration, Instant};

/// The longest latency that is told apart: ten minutes, in tenths of microseconds.
const LONGEST: u64 = 6_000_000_000;

/// Counts what counts: calls that ended after the warm-up.
pub struct Report {
    from: Instant,
    /// Tenths of microseconds from due to answered, of calls that ended well.
    latency: Histogram<u64>,
    statuses: BTreeMap<Status, u64>,
    codes: BTreeMap<u8, u64>,
    pub seconds: f64,
    pub connections_lost: u64,
    pub unanswered: usize,
    /// Calls that could not be sent when they were due.
    pub late: u64,
    pub cpu: Duration,
}

impl Report {
    pub fn new(from: Instant) -> io::Result<Self> {
        Ok(Self {
            from,
            latency: Histogram::new_with_bounds(1, LONGEST, 3).map_err(io::Error::other)?,
            statuses: BTreeMap::new(),
            codes: BTreeMap::new(),
            seconds: 0.0,
            connections_lost: 0,
            unanswered: 0,
            late: 0,
            cpu: Duration::ZERO,
        })
    }

    pub fn ended(&mut self, call: Ended, now: Instant) {
        if now < self.from {
            return;
        }
        *self.statuses.entry(call.status).or_default() += 1;
        if call.status == Status::Grpc(0) {
            let tenths = now.saturating_duration_since(call.due).as_nanos() / 100;
            self.latency.saturating_record(u64::try_from(tenths).unwrap_or(u64::MAX));
            if let Some(code) = call.code {
                *self.codes.entry(code).or_default() += 1;
            }
        }
    }

    /// One line.
    pub fn json(&self) -> String {
        let ok = self.statuses.get(&Status::Grpc(0)).copied().unwrap_or(0);
        let total: u64 = self.statuses.values().sum();
        #[expect(clippy::cast_precision_loss, reason = "figures for people")]
        let rate = ok as f64 / self.seconds;
        let mut json = format!("{{\"calls_per_s\": {rate:.0}, \"ok\": {ok}, \"errors\": {}", total - ok);
        for (name, quantile) in [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99_9", 0.999), ("max", 1.0)] {
            #[expect(clippy::cast_precision_loss, reason = "figures for people")]
            let millis = self.latency.value_at_quantile(quantile) as f64 / 10_000.0;
            let _ = write!(json, ", \"{name}_ms\": {millis:.4}");
        }
        let statuses = self.statuses.iter().map(|(status, count)| (name(*status), *count));
        let codes = self.codes.iter().map(|(code, count)| (code.to_string(), *count));
        let _ = write!(json, ", \"statuses\": {}, \"codes\": {}", object(statuses), object(codes));
        let _ =
            write!(json, ", \"connections_lost\": {}, \"unanswered\": {}", self.connections_lost, self.unanswered);
        let _ = write!(json, ", \"late\": {}, \"seconds\": {:.3}", self.late, self.seconds);
        let _ = write!(json, ", \"generator_cpu_s\": {:.3}}}", self.cpu.as_secs_f64());
        json
    }
}

fn name(status: Status) -> String {
    match status {
        Status::Grpc(code) => code.to_string(),
        Status::Reset(code) => format!("reset {code}"),
        Status::None => "none".into(),
    }
}

fn object(pairs: impl Iterator<Item = (String, u64)>) -> String {
    let pairs: Vec<_> = pairs.map(|(name, count)| format!("\"{name}\": {count}")).collect();
    format!("{{{}}}", pairs.join(", "))
}
