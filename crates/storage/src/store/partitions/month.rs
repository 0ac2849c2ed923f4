//! Calendar months in UTC, and the names of the partitions that hold them.

use chrono::{DateTime, Datelike};

use crate::domain::clock::Timestamp;

/// A calendar month in UTC: months since January of year 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Month(i32);

impl Month {
    /// The month that contains a time; times that no calendar has are in January 1970.
    pub(super) fn of(time: Timestamp) -> Self {
        let (year, month0) = DateTime::from_timestamp_millis(time.0)
            .map_or((1970, 0), |date| (date.year(), date.month0()));
        Self(year * 12 + i32::try_from(month0).unwrap_or(0))
    }

    /// The month after this one.
    pub(super) const fn next(self) -> Self {
        Self(self.0 + 1)
    }

    /// Its first millisecond.
    pub(super) fn start(self) -> Timestamp {
        let month = u32::try_from(self.0.rem_euclid(12)).unwrap_or(0) + 1;
        let first = chrono::NaiveDate::from_ymd_opt(self.0.div_euclid(12), month, 1);
        Timestamp(
            first
                .map_or(0, |day| day.and_time(chrono::NaiveTime::MIN).and_utc().timestamp_millis()),
        )
    }

    /// `2026_11`
    fn name(self) -> String {
        format!("{:04}_{:02}", self.0.div_euclid(12), self.0.rem_euclid(12) + 1)
    }

    fn parse(text: &str) -> Option<Self> {
        let (year, month) = text.split_once('_')?;
        let (year, month) = (year.parse::<i32>().ok()?, month.parse::<i32>().ok()?);
        (1..=12).contains(&month).then(|| Self(year * 12 + month - 1))
    }
}

/// What a partition holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum PartitionContent {
    /// The rows of one month.
    Of(Month),
    /// Rows of months that have no partition.
    Other,
}

impl PartitionContent {
    /// The partition's name: `ledger_2026_11`, `ledger_other`.
    pub(super) fn name(self, table: &str) -> String {
        match self {
            Self::Of(month) => format!("{table}_{}", month.name()),
            Self::Other => format!("{table}_other"),
        }
    }

    /// Reads what [`PartitionContent::name`] writes; `None`: no partition of this program's.
    pub(super) fn parse(table: &str, name: &str) -> Option<Self> {
        let rest = name.strip_prefix(table)?.strip_prefix('_')?;
        if rest == "other" {
            return Some(Self::Other);
        }
        Month::parse(rest).map(Self::Of)
    }

    /// The end of what it holds, exclusive; `None`: it may hold any time.
    pub(super) fn end(self) -> Option<Timestamp> {
        match self {
            Self::Of(month) => Some(month.next().start()),
            Self::Other => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn months_begin_at_midnight_of_their_first_day_in_utc() {
        for (time, name, start, end) in [
            (0, "1970_01", 0, 2_678_400_000),
            (-1, "1969_12", -2_678_400_000, 0),
            (1_795_651_199_999, "2026_11", 1_793_491_200_000, 1_796_083_200_000),
            (1_709_164_800_000, "2024_02", 1_706_745_600_000, 1_709_251_200_000),
        ] {
            let month = Month::of(Timestamp(time));
            let found = (month.name(), month.start().0, month.next().start().0);
            assert_eq!(found, (name.to_owned(), start, end), "{time}");
        }
        assert_eq!(Month::of(Timestamp(i64::MAX)).name(), "1970_01");
    }

    #[test]
    fn names_of_partitions_are_read_as_they_are_written() {
        let month = Month::of(Timestamp(1_795_651_199_999));
        for part in [PartitionContent::Of(month), PartitionContent::Other] {
            assert_eq!(PartitionContent::parse("ledger", &part.name("ledger")), Some(part));
        }
        for name in ["ledger", "ledger_2026_13", "ledger_by_hand", "request_log_2026_11"] {
            assert_eq!(PartitionContent::parse("ledger", name), None, "{name}");
        }
    }
}
