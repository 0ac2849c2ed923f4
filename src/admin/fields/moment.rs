//! Parses dates and times in the gateway's time zone.

use chrono::{DateTime, Datelike, Days, LocalResult, NaiveDate, NaiveDateTime, NaiveTime, TimeDelta, TimeZone, Utc};
use chrono_tz::Tz;

use super::DayEdge;
use crate::domain::clock::Timestamp;

/// Reads `YYYY-MM-DD` (that day's `edge`), an ISO time with an offset, or one without (then it is
/// in `tz`). `None` for anything else, and outside 1970 … 9999.
pub fn parse(text: &str, edge: DayEdge, tz: Tz) -> Option<Timestamp> {
    let text = text.trim();
    let moment = if let Ok(date) = NaiveDate::parse_from_str(text, "%Y-%m-%d") {
        of_day(date, edge, tz)?
    } else if let Ok(time) = DateTime::parse_from_rfc3339(text) {
        time.with_timezone(&Utc)
    } else {
        local(without_offset(text)?, tz)?
    };
    (1970..=9999).contains(&moment.year()).then(|| Timestamp::from(moment))
}

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
            LocalResult::Single(time) | LocalResult::Ambiguous(time, _) => Some(time.with_timezone(&Utc)),
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
            ("2026-03-01T12:00:00", DayEdge::End, "Asia/Shanghai", Some("2026-03-01T04:00:00.000Z")),
            ("2026-03-01T12:00", DayEdge::End, "UTC", Some("2026-03-01T12:00:00.000Z")),
            ("2026-03-01 12:00:01.5", DayEdge::End, "UTC", Some("2026-03-01T12:00:01.500Z")),
            ("2026-03-01T12:00:00Z", DayEdge::End, "Asia/Shanghai", Some("2026-03-01T12:00:00.000Z")),
            ("2026-03-01T12:00:00+02:00", DayEdge::End, "Asia/Shanghai", Some("2026-03-01T10:00:00.000Z")),
            // 29 March 2026 has 23 hours in Berlin, and 02:30 does not exist
            ("2026-03-29", DayEdge::End, "Europe/Berlin", Some("2026-03-29T21:59:59.999Z")),
            ("2026-03-29T02:30:00", DayEdge::End, "Europe/Berlin", Some("2026-03-29T01:00:00.000Z")),
            // 25 October 2026 has 25 hours, and 02:30 comes twice: the first is meant
            ("2026-10-25", DayEdge::End, "Europe/Berlin", Some("2026-10-25T22:59:59.999Z")),
            ("2026-10-25T02:30:00", DayEdge::End, "Europe/Berlin", Some("2026-10-25T00:30:00.000Z")),
            ("2026-02-30", DayEdge::End, "UTC", None),
            ("tomorrow", DayEdge::End, "UTC", None),
            ("1969-12-31", DayEdge::Start, "UTC", None),
            ("9999-12-31", DayEdge::End, "UTC", Some("9999-12-31T23:59:59.999Z")),
            ("12026-01-01", DayEdge::End, "UTC", None),
            ("1700000000", DayEdge::End, "UTC", None),
        ];
        for (text, edge, tz, expected) in cases {
            let tz: Tz = tz.parse().unwrap();
            assert_eq!(parse(text, edge, tz).map(Timestamp::to_iso).as_deref(), expected, "{text} in {tz}");
        }
    }
}
