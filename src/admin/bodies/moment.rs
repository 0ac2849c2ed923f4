//! Dates and times of bodies, read in the gateway's time zone when it is known.

use chrono::{
    DateTime, Datelike, Days, LocalResult, NaiveDate, NaiveDateTime, NaiveTime, TimeDelta,
    TimeZone, Utc,
};
use chrono_tz::Tz;
use schemars::SchemaGenerator;
use serde_json::{Value, json};

use super::{Fault, Faults};
use crate::admin::reasons::Reason;
use crate::bounded::{FromJson, from_json};
use crate::domain::clock::Timestamp;

/// The last millisecond of the year 9999, in UTC.
const LAST: Timestamp = Timestamp(253_402_300_799_999);

/// A date or a time of 1970 … 9999. An empty text counts as not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// `YYYY-MM-DD`
    Day(NaiveDate),
    /// An ISO time without an offset.
    Wall(NaiveDateTime),
    /// An ISO time with an offset.
    Instant(DateTime<Utc>),
}

/// Which end of the day a bare date means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DayEdge {
    Start,
    End,
}

impl Moment {
    /// The time; of a bare date its first millisecond. Without an offset it is in `tz`.
    pub fn start(self, tz: Tz) -> Timestamp {
        self.at(DayEdge::Start, tz)
    }

    /// The time; of a bare date its last millisecond. Without an offset it is in `tz`.
    pub fn end(self, tz: Tz) -> Timestamp {
        self.at(DayEdge::End, tz)
    }

    fn at(self, edge: DayEdge, tz: Tz) -> Timestamp {
        let moment = match self {
            Self::Day(date) => of_day(date, edge, tz),
            Self::Wall(wall) => local(wall, tz),
            Self::Instant(instant) => Some(instant),
        };
        // West of UTC the last day of 9999 ends in the year 10000, which ISO texts cannot name.
        moment.map(Timestamp::from).unwrap_or_default().min(LAST)
    }

    fn parse(text: &str) -> Option<Self> {
        let moment = if let Ok(date) = NaiveDate::parse_from_str(text, "%Y-%m-%d") {
            Self::Day(date)
        } else if let Ok(time) = DateTime::parse_from_rfc3339(text) {
            Self::Instant(time.with_timezone(&Utc))
        } else {
            Self::Wall(without_offset(text)?)
        };
        let year = match moment {
            Self::Day(date) => date.year(),
            Self::Wall(wall) => wall.year(),
            Self::Instant(instant) => instant.year(),
        };
        (1970..=9999).contains(&year).then_some(moment)
    }
}

impl FromJson for Moment {
    fn take(json: &Value) -> Result<Self, Faults> {
        let text = json.as_str().ok_or_else(|| Fault::wrong_type(Reason::MustBeMomentText))?.trim();
        match text {
            "" => Err(Faults::NOT_SENT),
            text => Self::parse(text).ok_or_else(|| Fault::format(Reason::MustBeMoment).into()),
        }
    }

    fn describe(_: &mut SchemaGenerator) -> Value {
        json!({ "type": "string", "examples": ["2027-01-31", "2027-01-31T18:00:00Z"] })
    }
}

from_json!([] Moment);

fn without_offset(text: &str) -> Option<NaiveDateTime> {
    ["%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M"]
        .into_iter()
        .find_map(|form| NaiveDateTime::parse_from_str(text, form).ok())
}

/// The day's first millisecond, or its last: the one before the next day begins, so that days of 23
/// and 25 hours are correct.
fn of_day(date: NaiveDate, edge: DayEdge, tz: Tz) -> Option<DateTime<Utc>> {
    match edge {
        DayEdge::Start => local(date.and_time(NaiveTime::MIN), tz),
        DayEdge::End => {
            let next = local(date.checked_add_days(Days::new(1))?.and_time(NaiveTime::MIN), tz)?;
            next.checked_sub_signed(TimeDelta::milliseconds(1))
        }
    }
}

/// A wall-clock time as an instant: the earlier one if it occurs twice, the first that exists if it
/// is skipped.
fn local(wall: NaiveDateTime, tz: Tz) -> Option<DateTime<Utc>> {
    let quarter_hours = (0..=96).map(|n| TimeDelta::minutes(n * 15));
    quarter_hours.filter_map(|skip| wall.checked_add_signed(skip)).find_map(|wall| {
        match tz.from_local_datetime(&wall) {
            LocalResult::Single(time) | LocalResult::Ambiguous(time, _) => {
                Some(time.with_timezone(&Utc))
            }
            LocalResult::None => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_and_times_are_read_in_the_time_zone() {
        let cases = [
            ("2026-03-01", DayEdge::End, "Asia/Shanghai", Some("2026-03-01T15:59:59.999Z")),
            ("2026-03-01", DayEdge::Start, "Asia/Shanghai", Some("2026-02-28T16:00:00.000Z")),
            (
                "2026-03-01T12:00:00",
                DayEdge::End,
                "Asia/Shanghai",
                Some("2026-03-01T04:00:00.000Z"),
            ),
            ("2026-03-01T12:00", DayEdge::End, "UTC", Some("2026-03-01T12:00:00.000Z")),
            ("2026-03-01 12:00:01.5", DayEdge::End, "UTC", Some("2026-03-01T12:00:01.500Z")),
            (
                "2026-03-01T12:00:00Z",
                DayEdge::End,
                "Asia/Shanghai",
                Some("2026-03-01T12:00:00.000Z"),
            ),
            (
                "2026-03-01T12:00:00+02:00",
                DayEdge::End,
                "Asia/Shanghai",
                Some("2026-03-01T10:00:00.000Z"),
            ),
            // 29 March 2026 has 23 hours in Berlin, and 02:30 does not exist
            ("2026-03-29", DayEdge::End, "Europe/Berlin", Some("2026-03-29T21:59:59.999Z")),
            (
                "2026-03-29T02:30:00",
                DayEdge::End,
                "Europe/Berlin",
                Some("2026-03-29T01:00:00.000Z"),
            ),
            // 25 October 2026 has 25 hours, and 02:30 comes twice: the first is meant
            ("2026-10-25", DayEdge::End, "Europe/Berlin", Some("2026-10-25T22:59:59.999Z")),
            (
                "2026-10-25T02:30:00",
                DayEdge::End,
                "Europe/Berlin",
                Some("2026-10-25T00:30:00.000Z"),
            ),
            ("2026-02-30", DayEdge::End, "UTC", None),
            ("tomorrow", DayEdge::End, "UTC", None),
            ("1969-12-31", DayEdge::Start, "UTC", None),
            ("9999-12-31", DayEdge::End, "UTC", Some("9999-12-31T23:59:59.999Z")),
            ("9999-12-31", DayEdge::End, "America/New_York", Some("9999-12-31T23:59:59.999Z")),
            ("12026-01-01", DayEdge::End, "UTC", None),
            ("1700000000", DayEdge::End, "UTC", None),
        ];
        for (text, edge, tz, expected) in cases {
            let tz: Tz = tz.parse().unwrap();
            let read = Moment::parse(text).map(|moment| moment.at(edge, tz).to_iso());
            assert_eq!(read.as_deref(), expected, "{text} in {tz}");
        }
    }
}
