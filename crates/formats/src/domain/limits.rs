//! The limits of a key, a user or a provider, a row each, and the reset of the daily window.

use serde::{Deserialize, Serialize};

use super::money::NanoUsd;

/// Calls a macro with what is given to it, and with a row for each limit that keys, users and
/// providers have. Made from the rows are the types below, the columns of the database, the bodies
/// and records of the administration API; by hand are [`Period::IN_ORDER`], the body of several keys
/// and its codes.
///
/// A row of `money`: its variant and its field (the column is `limit_` and the field), the API's
/// names of the limit and of its use, what it covers, the largest limit of a key, a user and a
/// provider in USD; the name on the wire, the adjective, and the error code of a key's limit that
/// is above its user's. A row of `counts` is the same without use and name.
#[macro_export]
macro_rules! limit_rows {
    ($($then:ident)::+! $($given:tt)*) => { $($then)::+! {
        [$($given)*]
        money {
            FiveHours five_hours limit_5h_usd cost_5h
                "in the past 5 hours" [10_000 10_000 1_000_000]
                ["5h" "5-hour" "KEY_LIMIT_5H_EXCEEDS_USER_LIMIT"];
            Daily daily limit_daily_usd cost_daily
                "in the day that the daily reset defines" [10_000 100_000 1_000_000]
                ["daily" "daily" "KEY_LIMIT_DAILY_EXCEEDS_USER_LIMIT"];
            Weekly weekly limit_weekly_usd cost_weekly
                "in the calendar week of the gateway's time zone" [50_000 50_000 5_000_000]
                ["weekly" "weekly" "KEY_LIMIT_WEEKLY_EXCEEDS_USER_LIMIT"];
            Monthly monthly limit_monthly_usd cost_monthly
                "in the calendar month of the gateway's time zone" [200_000 200_000 20_000_000]
                ["monthly" "monthly" "KEY_LIMIT_MONTHLY_EXCEEDS_USER_LIMIT"];
            Total total limit_total_usd cost_total
                "in total" [10_000_000 10_000_000 1_000_000_000]
                ["total" "total" "KEY_LIMIT_TOTAL_EXCEEDS_USER_LIMIT"];
        }
        counts {
            ConcurrentSessions concurrent_sessions limit_concurrent_sessions
                "Conversations at once" [1000 1000 100_000]
                ["concurrent sessions" "KEY_LIMIT_CONCURRENT_EXCEEDS_USER_LIMIT"];
        }
    } };
}

macro_rules! types {
    ([]
    money { $($period:ident $field:ident $api:ident $cost:ident $covers:tt $most:tt
        [$wire:tt $word:tt $above:tt];)+ }
    counts { $($count:ident $number:ident $api_count:ident $counts:tt $most_count:tt
        [$word_count:tt $above_count:tt];)+ }) => {
        /// The periods of spending limits, the shortest first.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Period {
            $(#[doc = concat!("What is spent ", $covers, ".")] $period,)+
        }

        const PERIODS: usize = [$(Period::$period),+].len();

        impl Period {
            /// The name on the wire, such as `5h`.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$period => $wire,)+ }
            }

            /// The adjective in messages, such as `5-hour`.
            pub const fn adjective(self) -> &'static str {
                match self { $(Self::$period => $word,)+ }
            }

            /// The field of its limit in records of the declarative document.
            #[must_use]
            pub const fn field(self) -> &'static str {
                match self { $(Self::$period => stringify!($api),)+ }
            }
        }

        /// Spending and session limits of one holder. Money `None` = no limit, `Some(0)` = nothing
        /// may be spent. A count of 0 = no limit.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
        #[serde(default)]
        pub struct Limits {
            $(#[doc = concat!("Spending ", $covers, ", nano-USD.")] pub $field: Option<NanoUsd>,)+
            $(#[doc = concat!($counts, ".")] pub $number: u32,)+
            /// When the window of `daily` starts.
            pub daily_reset: DailyReset,
        }

        impl Limits {
            /// The spending limits.
            #[must_use]
            pub const fn money(&self) -> ByPeriod<Option<NanoUsd>> {
                ByPeriod { $($field: self.$field),+ }
            }

            /// The same with these spending limits.
            #[must_use]
            pub const fn with_money(self, money: ByPeriod<Option<NanoUsd>>) -> Self {
                Self { $($field: money.$field,)+ ..self }
            }
        }

        /// A value for each period of spending limits.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub struct ByPeriod<T> {
            $(#[doc = concat!("Of what is spent ", $covers, ".")] pub $field: T,)+
        }

        impl<T> ByPeriod<T> {
            /// Calls `value` for each period, the shortest first.
            pub fn of(mut value: impl FnMut(Period) -> T) -> Self {
                Self { $($field: value(Period::$period)),+ }
            }

            /// The value for one period.
            pub const fn get(&self, period: Period) -> &T {
                match period { $(Period::$period => &self.$field,)+ }
            }

            /// The values, the shortest period first.
            pub fn each(self) -> [(Period, T); PERIODS] {
                [$((Period::$period, self.$field)),+]
            }
        }

        /// A limit that a key and its user share.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum SharedLimit {
            $(#[doc = concat!("Of what is spent ", $covers, ".")] $period,)+
            $(#[doc = concat!($counts, ".")] $count,)+
        }

        impl SharedLimit {
            /// Spending limits, the shortest period first; then counts.
            pub const ALL: &[Self] = &[$(Self::$period,)+ $(Self::$count),+];

            /// The limit, in nano-USD or as a number; `None` = no limit.
            #[must_use]
            pub fn get(self, limits: &Limits) -> Option<i64> {
                match self {
                    $(Self::$period => limits.$field.map(|limit| limit.0),)+
                    $(Self::$count => Some(limits.$number.into()).filter(|limit| *limit > 0),)+
                }
            }

            /// Sets the limit to what [`Self::get`] gave.
            pub fn set(self, limits: &mut Limits, limit: Option<i64>) {
                match self {
                    $(Self::$period => limits.$field = limit.map(NanoUsd),)+
                    $(Self::$count => {
                        limits.$number = limit.and_then(|n| n.try_into().ok()).unwrap_or_default();
                    })+
                }
            }

            /// What [`Self::get`] gives, as messages show it: USD, or a number.
            #[must_use]
            pub fn text(self, limit: i64) -> String {
                match self {
                    $(Self::$period => NanoUsd(limit).to_string(),)+
                    $(Self::$count => limit.to_string(),)+
                }
            }

            /// The adjective in messages, such as `5-hour`.
            #[must_use]
            pub const fn adjective(self) -> &'static str {
                match self { $(Self::$period => $word,)+ $(Self::$count => $word_count,)+ }
            }

            /// The error code of a key's limit that is above its user's.
            #[must_use]
            pub const fn above_users(self) -> &'static str {
                match self { $(Self::$period => $above,)+ $(Self::$count => $above_count,)+ }
            }
        }
    };
}
limit_rows! { types! }

impl Period {
    /// In the order in which their limits are checked.
    pub const IN_ORDER: [Self; PERIODS] =
        [Self::Total, Self::FiveHours, Self::Daily, Self::Weekly, Self::Monthly];

    /// The place in that order, from 0.
    pub fn place(self) -> usize {
        Self::IN_ORDER.iter().take_while(|period| **period != self).count()
    }

    /// The limit for it, if there is one.
    pub const fn limit_of(self, limits: &Limits) -> Option<NanoUsd> {
        *limits.money().get(self)
    }
}

impl Limits {
    /// Whether there is any spending limit.
    pub fn of_money(&self) -> bool {
        self.money().each().iter().any(|(_, limit)| limit.is_some())
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
