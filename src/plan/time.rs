//! Days and points in time. Times are read in several text forms and written in one.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A point in time, UTC. planwatch writes whole seconds (`2026-11-21T09:14:03Z`, RFC 3339); only decisions and insights
/// have milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(into = "String", try_from = "String")]
#[schemars(inline, extend("format" = "date-time"))]
pub struct Time(Timestamp);

/// A day as people write it: `2026-11-21`. It is over when the day has ended in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(into = "String", try_from = "String")]
#[schemars(inline, extend("format" = "date"))]
pub struct Day(Date);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a date: write it as 2026-11-21")]
pub struct NotADay(pub String);

impl Day {
    pub fn is_over(self, now: Time) -> bool {
        self.0 < now.0.to_zoned(TimeZone::UTC).date()
    }

    /// The first moment after the day.
    pub fn end(self) -> Time {
        let next = self.0.tomorrow().unwrap_or(self.0);
        next.to_zoned(TimeZone::UTC).map_or(Time(Timestamp::MAX), |it| Time(it.timestamp()))
    }
}

impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl FromStr for Day {
    type Err = NotADay;

    /// Reads `YYYY-MM-DD` and no other form; blanks around it are ignored.
    fn from_str(text: &str) -> Result<Self, NotADay> {
        let is_form =
            |(at, it): (usize, u8)| if matches!(at, 4 | 7) { it == b'-' } else { it.is_ascii_digit() };
        let text = text.trim();
        let has_form = text.len() == 10 && text.bytes().enumerate().all(is_form);
        let day = if has_form { text.parse().ok() } else { None };
        day.map(Self).ok_or_else(|| NotADay(text.to_owned()))
    }
}

impl TryFrom<String> for Day {
    type Error = NotADay;

    fn try_from(text: String) -> Result<Self, NotADay> {
        text.parse()
    }
}

impl From<Day> for String {
    fn from(day: Day) -> Self {
        day.to_string()
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a time: write it as 2026-11-21T09:14:03Z or 2026-11-21")]
pub struct NotATime(pub String);

impl Time {
    /// Converts nanoseconds since 1970. A time out of range becomes the nearest time in range.
    pub fn from_nanoseconds(ns: i128) -> Self {
        let clamped = ns.clamp(Timestamp::MIN.as_nanosecond(), Timestamp::MAX.as_nanosecond());
        Self(Timestamp::from_nanosecond(clamped).unwrap_or(Timestamp::UNIX_EPOCH))
    }

    pub fn as_nanoseconds(self) -> i128 {
        self.0.as_nanosecond()
    }

    /// Returns the seconds from `earlier` to this time; negative if `earlier` is later.
    pub fn seconds_since(self, earlier: Self) -> i64 {
        self.0.as_second().saturating_sub(earlier.0.as_second())
    }

    /// Returns the time this many seconds later, at most the latest time in range.
    #[must_use]
    pub fn plus_seconds(self, seconds: i64) -> Self {
        Self::from_nanoseconds(self.0.as_nanosecond() + i128::from(seconds) * 1_000_000_000)
    }

    /// Returns the time truncated to seconds, as stored in files.
    pub fn whole_seconds(self) -> Self {
        Self(Timestamp::from_second(self.0.as_second()).unwrap_or(self.0))
    }

    /// Returns the time truncated to milliseconds, as in file names.
    pub fn whole_milliseconds(self) -> Self {
        Self(Timestamp::from_millisecond(self.0.as_millisecond()).unwrap_or(self.0))
    }

    /// Returns the start of the next millisecond, or the same time if that would be out of range.
    #[must_use]
    pub fn next_millisecond(self) -> Self {
        Self(Timestamp::from_millisecond(self.0.as_millisecond().saturating_add(1)).unwrap_or(self.0))
    }

    /// Returns the time as text with milliseconds: `2026-11-21T09:14:03.250Z`.
    pub fn with_milliseconds(self) -> String {
        self.0.strftime("%Y-%m-%dT%H:%M:%S.%3fZ").to_string()
    }

    /// Returns the time as text for a file's name: `20261121T091403.250Z`. Such names sort in the order of their times.
    pub fn stamp(self) -> String {
        self.0.strftime("%Y%m%dT%H%M%S.%3fZ").to_string()
    }

    /// Reads exactly the form that [`Self::stamp`] returns.
    pub fn from_stamp(stamp: &str) -> Option<Self> {
        let (date, clock) = stamp.split_once('T')?;
        let part = |text: &str, from: usize, to: usize| text.get(from..to).map(str::to_owned);
        let date = format!("{}-{}-{}", part(date, 0, 4)?, part(date, 4, 6)?, date.get(6..)?);
        let clock = format!("{}:{}:{}", part(clock, 0, 2)?, part(clock, 2, 4)?, clock.get(4..)?);
        format!("{date}T{clock}").parse().ok().filter(|it: &Self| it.stamp() == stamp)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.strftime("%Y-%m-%dT%H:%M:%SZ"))
    }
}

impl FromStr for Time {
    type Err = NotATime;

    /// Parses RFC 3339 with any offset. A time without an offset is taken as UTC, and a date as its start in UTC.
    fn from_str(text: &str) -> Result<Self, NotATime> {
        let trimmed = text.trim();
        let at_utc = |it: DateTime| it.to_zoned(TimeZone::UTC).ok().map(|zoned| zoned.timestamp());
        let local = || trimmed.parse().ok().filter(|_| trimmed.len() > 10).and_then(at_utc);
        let midnight = |it: Date| at_utc(it.to_datetime(jiff::civil::Time::midnight()));
        let day = || trimmed.parse().ok().and_then(midnight);
        let parsed = trimmed.parse::<Timestamp>().ok().or_else(local).or_else(day);
        // Years before 0 are refused: RFC 3339 does not have them, and their text could not be read again.
        let parsed = parsed.filter(|it| it.to_zoned(TimeZone::UTC).year() >= 0);
        parsed.map(Self).ok_or_else(|| NotATime(text.to_owned()))
    }
}

impl TryFrom<String> for Time {
    type Error = NotATime;

    fn try_from(text: String) -> Result<Self, NotATime> {
        text.parse()
    }
}

impl From<Time> for String {
    fn from(time: Time) -> Self {
        time.to_string()
    }
}

/// Reads a duration such as `90s`, `30m`, `2h`, `1d` or `1h30m`, and returns it in seconds. It must be at least 1 second
/// and at most 366 days.
pub fn read_seconds(text: &str) -> Option<i64> {
    let mut rest = text.trim();
    let mut sum: i64 = 0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit())?;
        let (number, tail) = rest.split_at(digits);
        let length = match tail.chars().next()? {
            's' => 1,
            'm' => 60,
            'h' => 3_600,
            'd' => 86_400,
            _ => return None,
        };
        sum = sum.checked_add(number.parse::<i64>().ok()?.checked_mul(length)?)?;
        rest = &tail[1..];
    }
    (1..=366 * 86_400).contains(&sum).then_some(sum)
}

/// How long ago something was, for people: `just now`, `5 minutes ago`, `3 days ago`.
pub fn ago(now: Time, then: Time) -> String {
    match now.seconds_since(then) {
        ..0 => "in the future".to_owned(),
        0..60 => "just now".to_owned(),
        _ => format!("{} ago", span(now, then)),
    }
}

/// How long something has lasted, for people: `5 minutes`, `3 days`.
pub fn span(now: Time, then: Time) -> String {
    let seconds = now.seconds_since(then);
    let units = [(86_400 * 365, "year"), (86_400 * 30, "month"), (86_400 * 7, "week"), (86_400, "day")];
    let units = units.into_iter().chain([(3_600, "hour"), (60, "minute")]);
    for (length, name) in units {
        let n = seconds / length;
        // 7 to 13 days would all be one week. That is too coarse, because by default a step is stale after a week.
        if n > 1 || (n == 1 && name != "week") {
            return format!("{n} {name}{}", if n == 1 { "" } else { "s" });
        }
    }
    "less than a minute".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, written: &str) {
        assert_eq!(text.parse::<Time>().expect("it is a time").to_string(), written);
    }

    #[test]
    fn a_day_has_one_form_and_is_over_after_its_end() {
        let day: Day = "2026-11-21".parse().unwrap();
        assert_eq!(day.to_string(), "2026-11-21");
        let at = |text: &str| text.parse::<Time>().unwrap();
        assert!(!day.is_over(at("2026-11-21T23:59:59Z")) && day.is_over(at("2026-11-22T00:00:00Z")));
        assert_eq!(day.end(), at("2026-11-22"));
        for no in
            ["2026-11-31", "2026-1-2", "21.11.2026", "2026-11-21T00:00:00Z", "tomorrow", "", "+026-11-21"]
        {
            assert!(no.parse::<Day>().is_err(), "{no}");
        }
    }

    #[test]
    fn times_are_read_generously_and_written_in_one_form() {
        check("2026-11-21T09:14:03Z", "2026-11-21T09:14:03Z");
        check("2026-11-21", "2026-11-21T00:00:00Z");
        check("2026-11-21T10:14:03+01:00", "2026-11-21T09:14:03Z");
        check("2026-11-21 09:14:03Z", "2026-11-21T09:14:03Z");
        check("2026-11-21T09:14:03.250Z", "2026-11-21T09:14:03Z");
        check("2026-11-21T09:14", "2026-11-21T09:14:00Z");
        for text in ["", "yesterday", "2026-13-01", "12:30", "20261"] {
            assert!(text.parse::<Time>().is_err(), "{text}");
        }
    }

    #[test]
    fn stamps_of_names_are_read_back_and_sort_as_their_times() {
        let time: Time = "2026-11-21T09:14:03.2509Z".parse().expect("it is a time");
        assert_eq!(time.stamp(), "20261121T091403.250Z");
        assert_eq!(time.with_milliseconds(), "2026-11-21T09:14:03.250Z");
        assert_eq!(Time::from_stamp("20261121T091403.250Z"), Some(time.whole_milliseconds()));
        assert_eq!(time.next_millisecond().stamp(), "20261121T091403.251Z");
        for stamp in
            ["", "T", "20261121", "20261121T091403Z", "20261321T091403.250Z", "2026-11-21T09:14:03Z", "éé"]
        {
            assert_eq!(Time::from_stamp(stamp), None, "{stamp}");
        }
    }

    #[test]
    fn spans_of_time_are_read() {
        let spans = [("90s", 90), ("30m", 1_800), ("2h", 7_200), ("1d", 86_400), (" 1h30m ", 5_400)];
        for (text, seconds) in spans {
            assert_eq!(read_seconds(text), Some(seconds), "{text}");
        }
        for text in ["", "30", "m", "0s", "1w", "-5m", "5 m", "9999999999999999999s", "400d", "1mä", "ä"] {
            assert_eq!(read_seconds(text), None, "{text}");
        }
    }

    #[test]
    fn ages_are_shown_in_the_largest_unit() {
        let at = |text: &str| text.parse::<Time>().expect("it is a time");
        let now = at("2026-11-21T12:00:00Z");
        assert_eq!(ago(now, at("2026-11-21T11:59:30Z")), "just now");
        assert_eq!(ago(now, at("2026-11-21T11:58:30Z")), "1 minute ago");
        assert_eq!(ago(now, at("2026-11-18T12:00:00Z")), "3 days ago");
        assert_eq!(ago(now, at("2026-11-22")), "in the future");
        for (day, said) in [
            ("2026-11-20T12:00:00Z", "1 day ago"),
            ("2026-11-14T12:00:00Z", "7 days ago"),
            ("2026-11-08T00:00:00Z", "13 days ago"),
            ("2026-11-07T12:00:00Z", "2 weeks ago"),
            ("2026-10-22T12:00:00Z", "1 month ago"),
            ("2025-11-20T12:00:00Z", "1 year ago"),
        ] {
            assert_eq!(ago(now, at(day)), said);
        }
    }
}
