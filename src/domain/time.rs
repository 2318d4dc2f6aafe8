//! Moments as UTC milliseconds and spans as milliseconds; parsing and printing both. Nothing here asks what time it is.

use crate::error::{Code, Error, Result};
use jiff::Timestamp;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// A moment: milliseconds since 1970 in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct Time(pub i64);

/// A length of time in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct Span(pub i64);

/// The longest span that is accepted: ten years.
const SPAN_MAX_MS: i64 = 3650 * 86_400_000;

impl Time {
    /// This moment a span later; never overflows.
    #[must_use]
    pub fn after(self, span: Span) -> Self {
        Self(self.0.saturating_add(span.0))
    }

    /// `YYYYMMDD_HHMMSS`, the beginning of a session id of our own making.
    pub fn compact(self) -> String {
        Timestamp::from_millisecond(self.0)
            .map_or_else(|_| "00000000_000000".to_owned(), |t| t.strftime("%Y%m%d_%H%M%S").to_string())
    }
}

impl Span {
    /// As the standard library has it.
    pub fn duration(self) -> Duration {
        Duration::from_millis(u64::try_from(self.0).unwrap_or(0))
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Timestamp::from_millisecond(self.0) {
            Ok(time) => write!(f, "{}", time.strftime("%Y-%m-%dT%H:%M:%S.%3fZ")),
            Err(_) => write!(f, "@{}", self.0),
        }
    }
}

impl FromStr for Span {
    type Err = Error;

    /// Reads `500ms`, `30s`, `5m`, `2h`, `1d`, several of them in a row (`1h30m`), or plain seconds.
    fn from_str(text: &str) -> Result<Self> {
        let bad = || {
            Error::new(Code::Usage, format!("'{text}' is not a length of time"))
                .hint("write 500ms, 30s, 5m, 2h, 1d or 1h30m")
        };
        if let Ok(seconds) = text.parse::<u32>() {
            return Ok(Self(i64::from(seconds) * 1000))
                .and_then(|span| if span.0 <= SPAN_MAX_MS { Ok(span) } else { Err(bad()) });
        }
        let (mut rest, mut total) = (text, 0_i64);
        while !rest.is_empty() {
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            let letters = rest[digits..].bytes().take_while(u8::is_ascii_lowercase).count();
            let unit = match &rest[digits..digits + letters] {
                "ms" => 1,
                "s" => 1000,
                "m" | "min" => 60_000,
                "h" => 3_600_000,
                "d" => 86_400_000,
                _ => return Err(bad()),
            };
            let count: i64 = rest[..digits].parse().map_err(|_| bad())?;
            total = count
                .checked_mul(unit)
                .and_then(|ms| total.checked_add(ms))
                .filter(|ms| *ms <= SPAN_MAX_MS)
                .ok_or_else(bad)?;
            rest = &rest[digits + letters..];
        }
        if text.is_empty() { Err(bad()) } else { Ok(Self(total)) }
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = self.0;
        match ms {
            ..1000 => write!(f, "{ms}ms"),
            1000..60_000 => write!(f, "{}.{:03}s", ms / 1000, ms % 1000),
            60_000..3_600_000 => write!(f, "{}m{:02}s", ms / 60_000, ms / 1000 % 60),
            _ => write!(f, "{}h{:02}m", ms / 3_600_000, ms / 60_000 % 60),
        }
    }
}

/// Reads a moment: RFC 3339 with its offset, `@SECONDS` since 1970, or `+SPAN` from now.
pub fn moment(text: &str, now: Time) -> Result<Time> {
    let bad = || {
        Error::new(Code::Usage, format!("'{text}' is not a moment"))
            .hint("write 2031-05-01T06:00:00Z, @1935468000 or +90m")
    };
    if let Some(span) = text.strip_prefix('+') {
        return span.parse().map(|span| now.after(span)).map_err(|_| bad());
    }
    if let Some(seconds) = text.strip_prefix('@') {
        return seconds.parse::<i64>().ok().and_then(|s| s.checked_mul(1000)).map(Time).ok_or_else(bad);
    }
    text.parse::<Timestamp>().map(|t| Time(t.as_millisecond())).map_err(|_| bad())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_parse() {
        let check = |text: &str, ms: i64| assert_eq!(text.parse::<Span>().unwrap(), Span(ms), "{text}");
        check("500ms", 500);
        check("30", 30_000);
        check("1h30m", 5_400_000);
        check("1d", 86_400_000);
        for bad in ["", "s", "5x", "-1s", "1.5h", "99999999999d", "5 m", "4000d"] {
            assert!(bad.parse::<Span>().is_err(), "{bad}");
        }
    }

    #[test]
    fn moments_parse_and_print() {
        let now = Time(1_000);
        assert_eq!(moment("+2s", now).unwrap(), Time(3_000));
        assert_eq!(moment("@7", now).unwrap(), Time(7_000));
        assert_eq!(moment("1970-01-01T00:00:09+00:00", now).unwrap(), Time(9_000));
        assert!(moment("tomorrow", now).is_err());
        assert_eq!(Time(1_796_058_880_123).to_string(), "2026-11-30T17:14:40.123Z");
        assert_eq!(Time(1_796_058_880_123).compact(), "20261130_171440");
    }
}
