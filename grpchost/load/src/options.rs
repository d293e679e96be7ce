//! What the generator is told.

use lexopt::{Arg, Parser, ValueExt};
use std::path::PathBuf;
use std::time::Duration;

pub const USAGE: &str = "\
usage: grpchost-load [OPTIONS] HOST:PORT

How much
  --connections N   connections (default 4)
  --in-flight M     calls in flight on each (default 50); 1 and 1 for one call at a time
  --rate R          R calls a second, answered or not, instead: latency counts from when a call was due
  --duration S      seconds that count (default 5)
  --warmup S        seconds before them that don't (default 1)
  --timeout-ms MS   grpc-timeout of each call (default: none)

What
  --method PATH     default /envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit
  --body FILE       the message; several in turn. Instead, a RateLimitRequest is made of:
  --domain NAME     default mesh
  --descriptor LIST key=value,key=value (default generic_key=*); several may be given. Every * is the call's key:
  --keys KIND       hot: one; unique: another for each call; zipf: see below (default hot)
  --key-space N     how many keys zipf draws from (default 100000)
  --skew S          zipf's exponent (default 1.0)
  --first N         the first of the unique keys (default: from the clock, so that no two runs share one)
  --hits N          hits_addend";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keys {
    Hot,
    Unique,
    Zipf,
}

#[derive(Clone, Debug)]
pub struct Options {
    pub address: String,
    pub connections: usize,
    pub in_flight: usize,
    /// Calls a second; None: as many as are answered.
    pub rate: Option<f64>,
    pub duration: Duration,
    pub warmup: Duration,
    pub timeout_ms: Option<u32>,
    pub method: String,
    pub bodies: Vec<PathBuf>,
    pub domain: String,
    pub descriptors: Vec<String>,
    pub keys: Keys,
    pub key_space: usize,
    pub skew: f64,
    pub first: Option<u64>,
    pub hits: Option<u32>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            address: String::new(),
            connections: 4,
            in_flight: 50,
            rate: None,
            duration: Duration::from_secs(5),
            warmup: Duration::from_secs(1),
            timeout_ms: None,
            method: "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit".into(),
            bodies: vec![],
            domain: "mesh".into(),
            descriptors: vec![],
            keys: Keys::Hot,
            key_space: 100_000,
            skew: 1.0,
            first: None,
            hits: None,
        }
    }
}

impl Options {
    /// None where help was asked for.
    pub fn parse(mut parser: Parser) -> Result<Option<Self>, lexopt::Error> {
        let mut options = Self::default();
        while let Some(argument) = parser.next()? {
            match argument {
                Arg::Long("help") | Arg::Short('h') => return Ok(None),
                Arg::Value(address) if options.address.is_empty() => options.address = address.string()?,
                Arg::Long(name) => {
                    let name = name.to_owned();
                    options.set(&name, &mut parser)?;
                }
                other => return Err(other.unexpected()),
            }
        }
        options.check()?;
        Ok(Some(options))
    }

    fn set(&mut self, name: &str, parser: &mut Parser) -> Result<(), lexopt::Error> {
        let value = parser.value()?;
        match name {
            "connections" => self.connections = value.parse()?,
            "in-flight" => self.in_flight = value.parse()?,
            "rate" => self.rate = Some(value.parse()?),
            "duration" => self.duration = seconds(value.parse()?)?,
            "warmup" => self.warmup = seconds(value.parse()?)?,
            "timeout-ms" => self.timeout_ms = Some(value.parse()?),
            "method" => self.method = value.string()?,
            "body" => self.bodies.push(value.into()),
            "domain" => self.domain = value.string()?,
            "descriptor" => self.descriptors.push(value.string()?),
            "keys" => self.keys = value.parse_with(kind)?,
            "key-space" => self.key_space = value.parse()?,
            "skew" => self.skew = value.parse()?,
            "first" => self.first = Some(value.parse()?),
            "hits" => self.hits = Some(value.parse()?),
            _ => return Err(format!("there is no option --{name}").into()),
        }
        Ok(())
    }

    fn check(&mut self) -> Result<(), lexopt::Error> {
        if self.address.is_empty() {
            return Err("HOST:PORT is missing".into());
        }
        if self.connections == 0
            || self.in_flight == 0
            || self.key_space == 0
            || self.rate.is_some_and(|rate| rate <= 0.0)
        {
            return Err("--connections, --in-flight, --key-space and --rate have to be more than 0".into());
        }
        if self.descriptors.is_empty() {
            self.descriptors.push("generic_key=*".into());
        }
        Ok(())
    }
}

fn seconds(value: f64) -> Result<Duration, lexopt::Error> {
    Duration::try_from_secs_f64(value).map_err(|error| format!("{value} s: {error}").into())
}

fn kind(value: &str) -> Result<Keys, &'static str> {
    match value {
        "hot" => Ok(Keys::Hot),
        "unique" => Ok(Keys::Unique),
        "zipf" => Ok(Keys::Zipf),
        _ => Err("hot, unique or zipf"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(arguments: &[&str]) -> Result<Option<Options>, lexopt::Error> {
        Options::parse(Parser::from_args(arguments))
    }

    #[test]
    fn an_address_is_enough() {
        let options = parsed(&["127.0.0.1:1"]).unwrap().unwrap();
        assert_eq!((options.address.as_str(), options.keys, options.rate), ("127.0.0.1:1", Keys::Hot, None));
        assert_eq!(options.descriptors, ["generic_key=*"]);
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for wrong in [&["--keys", "hot"][..], &["a:1", "b:1"], &["a:1", "--keys", "cold"], &["a:1", "--rate", "0"]] {
            assert!(parsed(wrong).is_err(), "{wrong:?}");
        }
    }
}
