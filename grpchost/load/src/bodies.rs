//! The messages that are sent: files as they are, or rate limit requests with keys of a kind.

use crate::options::{Keys, Options};
use std::io;
use std::time::{SystemTime, UNIX_EPOCH};

/// Digits of a key.
const WIDTH: usize = 16;
/// How many draws are made beforehand, for a draw costs more than all else that a call does here.
const DRAWS: usize = 1 << 20;

/// Makes one message after the other.
pub struct Bodies {
    messages: Vec<Message>,
    next: usize,
    keys: Sequence,
}

/// A message, and where in it the call's key stands.
struct Message {
    bytes: Vec<u8>,
    keys: Vec<usize>,
}

enum Sequence {
    Same,
    Counted(u64),
    Drawn { ranks: Vec<u32>, next: usize },
}

impl Bodies {
    pub fn new(options: &Options) -> io::Result<Self> {
        let mut messages = vec![];
        for path in &options.bodies {
            messages.push(Message { bytes: std::fs::read(path)?, keys: vec![] });
        }
        if messages.is_empty() {
            messages.push(request(options));
        }
        let clock = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros());
        let keys = match options.keys {
            Keys::Hot => Sequence::Same,
            Keys::Unique => Sequence::Counted(options.first.unwrap_or_else(|| u64::try_from(clock()).unwrap_or(0))),
            Keys::Zipf => Sequence::Drawn { ranks: draws(options.key_space, options.skew), next: 0 },
        };
        Ok(Self { messages, next: 0, keys })
    }

    /// The next call's message.
    pub fn next(&mut self) -> &[u8] {
        let count = self.messages.len();
        let message = &mut self.messages[self.next];
        self.next = (self.next + 1) % count;
        let key = match &mut self.keys {
            Sequence::Same => return &message.bytes,
            Sequence::Counted(next) => {
                *next += 1;
                *next
            }
            Sequence::Drawn { ranks, next } => {
                *next = (*next + 1) % ranks.len();
                u64::from(ranks[*next])
            }
        };
        for at in &message.keys {
            write_key(&mut message.bytes[*at..*at + WIDTH], key);
        }
        &message.bytes
    }
}

fn write_key(digits: &mut [u8], mut key: u64) {
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + u8::try_from(key % 10).unwrap_or(0);
        key /= 10;
    }
}

/// `RateLimitRequest`: `domain` = 1, `descriptors` = 2 with `entries` = 1 of `key` = 1 and `value` = 2, `hits_addend` = 3.
fn request(options: &Options) -> Message {
    let mut message = Message { bytes: vec![], keys: vec![] };
    field(&mut message.bytes, 1, options.domain.as_bytes());
    for descriptor in &options.descriptors {
        let (mut entries, mut stars) = (vec![], vec![]);
        for part in descriptor.split(',') {
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            let mut entry = vec![];
            field(&mut entry, 1, key.as_bytes());
            let star = value == "*";
            field(&mut entry, 2, if star { &[b'0'; WIDTH] } else { value.as_bytes() });
            field(&mut entries, 1, &entry);
            if star {
                stars.push(entries.len() - WIDTH);
            }
        }
        field(&mut message.bytes, 2, &entries);
        let begin = message.bytes.len() - entries.len();
        message.keys.extend(stars.iter().map(|at| begin + at));
    }
    if let Some(hits) = options.hits {
        message.bytes.push(3 << 3);
        varint(&mut message.bytes, u64::from(hits));
    }
    message
}

/// A length-delimited field.
fn field(message: &mut Vec<u8>, number: u8, contents: &[u8]) {
    message.push(number << 3 | 2);
    varint(message, contents.len() as u64);
    message.extend_from_slice(contents);
}

fn varint(message: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        message.push(u8::try_from(value & 0x7f).unwrap_or(0) | 0x80);
        value >>= 7;
    }
    message.push(u8::try_from(value).unwrap_or(0));
}

/// Ranks from 1 on, each as often as Zipf's law has it; the same for every run.
fn draws(keys: usize, skew: f64) -> Vec<u32> {
    let keys = u32::try_from(keys).unwrap_or(u32::MAX);
    let mut sum = 0.0;
    let sums: Vec<f64> = (1..=keys)
        .map(|rank| {
            sum += f64::from(rank).powf(-skew);
            sum
        })
        .collect();
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut draw = || {
        // xorshift*: it need not be good, only cheap and always the same.
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        let random = u32::try_from(state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32).unwrap_or(0);
        let point = f64::from(random) / f64::from(u32::MAX) * sum;
        u32::try_from(sums.partition_point(|sum| *sum < point)).unwrap_or(0).min(keys - 1) + 1
    };
    (0..DRAWS).map(|_| draw()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(keys: Keys) -> Options {
        let descriptors = vec!["a=*".into(), "b=c,d=*".into()];
        Options { descriptors, keys, first: Some(6), hits: Some(300), ..Options::default() }
    }

    #[test]
    fn the_request_is_the_message_that_protobuf_makes() {
        let mut bodies = Bodies::new(&options(Keys::Unique)).unwrap();
        let expected = b"\x0a\x04mesh\x12\x17\x0a\x15\x0a\x01a\x12\x100000000000000007\
            \x12\x1f\x0a\x06\x0a\x01b\x12\x01c\x0a\x15\x0a\x01d\x12\x100000000000000007\x18\xac\x02";
        assert_eq!(bodies.next(), expected);
    }

    #[test]
    fn hot_keys_are_one_and_unique_keys_are_not() {
        let mut bodies = Bodies::new(&options(Keys::Hot)).unwrap();
        assert_eq!(bodies.next().to_vec(), bodies.next());
        let mut bodies = Bodies::new(&options(Keys::Unique)).unwrap();
        assert_ne!(bodies.next().to_vec(), bodies.next());
    }

    #[test]
    fn zipf_draws_the_second_key_half_as_often_as_the_first() {
        let ranks = draws(1_000, 1.0);
        let times = |rank| f64::from(u32::try_from(ranks.iter().filter(|drawn| **drawn == rank).count()).unwrap());
        assert!((times(1) / times(2) - 2.0).abs() < 0.05);
        assert!((times(1) / times(10) - 10.0).abs() < 0.5);
        assert!(ranks.iter().all(|rank| (1..=1_000).contains(rank)));
    }
}
