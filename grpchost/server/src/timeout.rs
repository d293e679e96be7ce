//! `grpc-timeout`: how long a caller waits.

use std::time::Duration;

/// A timeout of the wire: one to eight digits and a unit. None if it is not one.
pub fn parse(value: &[u8]) -> Option<Duration> {
    let (unit, digits) = value.split_last()?;
    if digits.is_empty() || digits.len() > 8 {
        return None;
    }
    let mut number = 0u64;
    for digit in digits {
        if !digit.is_ascii_digit() {
            return None;
        }
        number = number * 10 + u64::from(digit - b'0');
    }
    Some(match unit {
        b'H' => Duration::from_secs(number * 3600),
        b'M' => Duration::from_secs(number * 60),
        b'S' => Duration::from_secs(number),
        b'm' => Duration::from_millis(number),
        b'u' => Duration::from_micros(number),
        b'n' => Duration::from_nanos(number),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_those_of_the_specification() {
        let cases = [("1H", 3_600_000_000), ("2M", 120_000_000), ("3S", 3_000_000), ("20m", 20_000), ("7u", 7)];
        for (text, micros) in cases {
            assert_eq!(parse(text.as_bytes()), Some(Duration::from_micros(micros)), "{text}");
        }
        assert_eq!(parse(b"99999999n"), Some(Duration::from_nanos(99_999_999)));
    }

    #[test]
    fn what_is_no_timeout_is_told_apart() {
        for text in ["", "m", "20", "20x", "-1m", "+1m", "1.5S", "123456789m", " 1m", "1 m"] {
            assert_eq!(parse(text.as_bytes()), None, "{text}");
        }
    }
}
