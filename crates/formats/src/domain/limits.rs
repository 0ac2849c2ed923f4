//! The spending limits of a key, a user or a provider, and the reset of its daily window.

use serde::{Deserialize, Serialize};

use super::limit_type::Period;
use super::money::NanoUsd;

/// Spending and session limits of one holder. Money `None` = no limit, `Some(0)` = nothing may be
/// spent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Limits {
    /// Spending in the past five hours, nano-USD.
    pub five_hours: Option<NanoUsd>,
    /// Spending in a day, nano-USD. `daily_reset` defines the day.
    pub daily: Option<NanoUsd>,
    /// Spending in a calendar week from Monday 00:00 in the gateway's time zone, nano-USD.
    pub weekly: Option<NanoUsd>,
    /// Spending in a calendar month in the gateway's time zone, nano-USD.
    pub monthly: Option<NanoUsd>,
    /// Spending since the first record, nano-USD.
    pub total: Option<NanoUsd>,
    /// Live sessions at once; 0 = no limit.
    pub concurrent_sessions: u32,
    /// When the window of `daily` starts.
    pub daily_reset: DailyReset,
}

impl Limits {
    /// Whether there is any spending limit.
    pub fn of_money(&self) -> bool {
        Period::IN_ORDER.iter().any(|period| period.limit_of(self).is_some())
    }

    /// The spending limits.
    #[must_use]
    pub const fn money(&self) -> ByPeriod<Option<NanoUsd>> {
        let Self { five_hours, daily, weekly, monthly, total, .. } = *self;
        ByPeriod { five_hours, daily, weekly, monthly, total }
    }

    /// The same with these spending limits.
    #[must_use]
    pub const fn with_money(self, money: ByPeriod<Option<NanoUsd>>) -> Self {
        let ByPeriod { five_hours, daily, weekly, monthly, total } = money;
        Self { five_hours, daily, weekly, monthly, total, ..self }
    }
}

/// A value for each period of spending limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ByPeriod<T> {
    /// Of the past five hours.
    pub five_hours: T,
    /// Of a day, fixed or rolling.
    pub daily: T,
    /// Of a calendar week.
    pub weekly: T,
    /// Of a calendar month.
    pub monthly: T,
    /// Of everything since the first record.
    pub total: T,
}

impl<T> ByPeriod<T> {
    /// Calls `value` for each period, the shortest first.
    pub fn of(mut value: impl FnMut(Period) -> T) -> Self {
        Self {
            five_hours: value(Period::FiveHours),
            daily: value(Period::Daily),
            weekly: value(Period::Weekly),
            monthly: value(Period::Monthly),
            total: value(Period::Total),
        }
    }

    /// The value for one period.
    pub const fn get(&self, period: Period) -> &T {
        match period {
            Period::FiveHours => &self.five_hours,
            Period::Daily => &self.daily,
            Period::Weekly => &self.weekly,
            Period::Monthly => &self.monthly,
            Period::Total => &self.total,
        }
    }

    /// The values, the shortest period first.
    pub fn each(self) -> [(Period, T); 5] {
        [
            (Period::FiveHours, self.five_hours),
            (Period::Daily, self.daily),
            (Period::Weekly, self.weekly),
            (Period::Monthly, self.monthly),
            (Period::Total, self.total),
        ]
    }
}

/// When the daily window starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct DailyReset {
    /// Whether the day is a fixed or a rolling one.
    pub mode: ResetMode,
    /// Used in `fixed` mode only, in the gateway's time zone.
    pub time: TimeOfDay,
}

/// The two kinds of daily window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[derive(strum::IntoStaticStr, strum::EnumString)]
#[strum(serialize_all = "lowercase")]
pub enum ResetMode {
    /// At the same wall-clock time each day.
    #[default]
    Fixed,
    /// The past 24 hours.
    Rolling,
}

impl ResetMode {
    /// The name on the wire and in the database: `fixed` or `rolling`.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Reads what [`Self::as_str`] writes; `None` for any other text.
    pub fn parse(text: &str) -> Option<Self> {
        text.parse().ok()
    }
}

/// Minutes after midnight; written `HH:MM`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TimeOfDay(u16);

impl TimeOfDay {
    /// 03:00, a time of low load.
    pub const THREE: Self = Self(3 * 60);
    /// 09:00, the start of the working day.
    pub const NINE: Self = Self(9 * 60);

    /// Accepts `9:05` and `09:05`, up to `23:59` (docs/limits-and-money.md:
    /// `^([01]?[0-9]|2[0-3]):[0-5][0-9]$`).
    pub fn parse(text: &str) -> Option<Self> {
        let (hours, minutes) = text.split_once(':')?;
        let digits = |t: &str| !t.is_empty() && t.bytes().all(|b| b.is_ascii_digit());
        if hours.len() > 2 || minutes.len() != 2 || !digits(hours) || !digits(minutes) {
            return None;
        }
        let (hours, minutes): (u16, u16) = (hours.parse().ok()?, minutes.parse().ok()?);
        (hours < 24 && minutes < 60).then_some(Self(hours * 60 + minutes))
    }

    /// The hour, 0–23.
    pub const fn hour(self) -> u32 {
        (self.0 / 60) as u32
    }

    /// The minute of the hour, 0–59.
    pub const fn minute(self) -> u32 {
        (self.0 % 60) as u32
    }
}

impl TryFrom<String> for TimeOfDay {
    type Error = &'static str;
    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse(&text).ok_or("is not a time of day")
    }
}

impl From<TimeOfDay> for String {
    fn from(time: TimeOfDay) -> Self {
        time.to_string()
    }
}

impl std::fmt::Display for TimeOfDay {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:02}:{:02}", self.hour(), self.minute())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_of_day_follows_the_pattern_of_the_reference() {
        for (text, shown) in [("00:00", "00:00"), ("9:05", "09:05"), ("23:59", "23:59")] {
            assert_eq!(TimeOfDay::parse(text).map(|t| t.to_string()).as_deref(), Some(shown));
        }
        for text in ["", "24:00", "12:60", "1:5", "012:00", "+1:00", "12:+5", "12", "12:00 "] {
            assert_eq!(TimeOfDay::parse(text), None, "{text}");
        }
    }
}
