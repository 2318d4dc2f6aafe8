//! When a quota is open again, out of the prose of agents: `6:26 PM` and `6:51pm (UTC)` for a time of the same day,
//! `Dec 2nd, 2026 5:27 PM` for another day. The zone is UTC because the call sets it.

use crate::domain::time::{Span, Time, moment};

const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

const MINUTE: Span = Span(60_000);
const HOUR_MS: i64 = 3_600_000;
const DAY_MS: i64 = 86_400_000;

/// The moment that follows these words, rounded up to the next minute because the seconds are cut off.
pub(super) fn after(message: &str, mark: &str, now: Time) -> Option<Time> {
    let text = &message[message.rfind(mark)? + mark.len()..];
    let text = text.trim_end().trim_end_matches('.').trim_end_matches(" (UTC)");
    let (time, stated_day) = match text.rsplit_once(", ") {
        Some((day, rest)) => {
            let (year, clock) = rest.split_once(' ')?;
            (at(&date(day, year)?, clock)?, true)
        }
        None => (at(now.to_string().get(..10)?, text)?, false),
    };
    // A time without a day that is long past was printed in another zone than ours, and is meant for tomorrow; one that
    // passed lately was only read late.
    let tomorrow = !stated_day && time.0 < now.0.saturating_sub(HOUR_MS);
    Some(Time(time.0 + if tomorrow { DAY_MS } else { 0 }).after(MINUTE))
}

/// `Dec 2nd` and `2026` as `2026-12-02`.
fn date(day: &str, year: &str) -> Option<String> {
    let (month, day) = day.rsplit_once(' ')?;
    let month = month.rsplit(' ').next()?;
    let month = 1 + MONTHS.iter().position(|known| *known == month)?;
    let day: u8 = day.trim_end_matches(|c: char| c.is_ascii_lowercase()).parse().ok()?;
    let year: u16 = year.parse().ok()?;
    Some(format!("{year:04}-{month:02}-{day:02}"))
}

/// A day and `5:27 PM`, `5:27pm` or `5pm` as a moment.
fn at(day: &str, clock: &str) -> Option<Time> {
    let (clock, half) = clock.split_at_checked(clock.len().checked_sub(2)?)?;
    let clock = clock.trim_end();
    let (hour, minute) = clock.split_once(':').unwrap_or((clock, "0"));
    let (hour, minute): (u8, u8) = (hour.parse().ok()?, minute.parse().ok()?);
    let noon = match half {
        "AM" | "am" => 0,
        "PM" | "pm" => 12,
        _ => return None,
    };
    if !(1..=12).contains(&hour) {
        return None;
    }
    moment(&format!("{day}T{:02}:{minute:02}:00Z", hour % 12 + noon), Time(0)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(message: &str, now: &str) -> Option<String> {
        after(message, "try again at ", moment(now, Time(0)).unwrap()).map(|time| time.to_string())
    }

    #[test]
    fn the_short_form_is_read_too() {
        let now = moment("2026-11-30T17:14:40Z", Time(0)).unwrap();
        let told = |text: &str| after(text, "resets ", now).map(|time| time.to_string());
        let limit = "You've hit your 5-hour limit · resets 6:51pm (UTC)";
        assert_eq!(told(limit).as_deref(), Some("2026-11-30T18:52:00.000Z"));
        assert_eq!(told("You've hit your limit · resets 8pm (UTC)").as_deref(), Some("2026-11-30T20:01:00.000Z"));
        assert_eq!(told("resets soon"), None);
        assert_eq!(told("resets Dec 5 at 6pm (UTC)"), None);
    }

    #[test]
    fn both_forms_are_read_as_utc() {
        let today = "You've hit your usage limit. Visit x to purchase more credits or try again at 6:26 PM.";
        assert_eq!(told(today, "2026-11-30T17:14:40Z").as_deref(), Some("2026-11-30T18:27:00.000Z"));
        let day = "You've hit your usage limit. Visit x or try again at Dec 2nd, 2026 5:27 PM.";
        assert_eq!(told(day, "2026-11-30T17:14:40Z").as_deref(), Some("2026-12-02T17:28:00.000Z"));
        let first = "or try again at Jan 1st, 2027 12:05 AM.";
        assert_eq!(told(first, "2026-12-31T23:59:00Z").as_deref(), Some("2027-01-01T00:06:00.000Z"));
    }

    #[test]
    fn midnight_and_noon_are_told_apart() {
        assert_eq!(told("try again at 12:00 PM.", "2026-11-30T11:00:00Z").as_deref(), Some("2026-11-30T12:01:00.000Z"));
        assert_eq!(told("try again at 12:30 AM", "2026-11-30T00:00:00Z").as_deref(), Some("2026-11-30T00:31:00.000Z"));
    }

    #[test]
    fn a_time_that_passed_just_now_stays_and_one_long_past_is_tomorrows() {
        let message = "try again at 6:26 PM.";
        assert_eq!(told(message, "2026-11-30T18:27:30Z").as_deref(), Some("2026-11-30T18:27:00.000Z"));
        assert_eq!(told(message, "2026-11-30T23:00:00Z").as_deref(), Some("2026-12-01T18:27:00.000Z"));
    }

    #[test]
    fn other_words_are_no_time() {
        for text in [
            "Try again later.",
            "or try again later.",
            "try again at ",
            "try again at 25:00 PM.",
            "try again at 13:00 PM.",
            "try again at 6:61 PM.",
            "try again at Foo 2nd, 2026 5:27 PM.",
            "try again at Feb 30th, 2026 5:27 PM.",
            "try again at €:€ PM.",
            "try again at , ",
        ] {
            assert_eq!(told(text, "2026-11-30T17:00:00Z"), None, "{text}");
        }
    }
}
