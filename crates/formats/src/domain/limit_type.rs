//! The names of the limits, and of the periods of the spending limits.

use super::limits::Limits;
use super::money::NanoUsd;

/// The periods of spending limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum Period {
    /// The past five hours.
    #[strum(serialize = "5h")]
    FiveHours,
    /// A day, fixed or rolling.
    Daily,
    /// A calendar week.
    Weekly,
    /// A calendar month.
    Monthly,
    /// Everything since the first record.
    Total,
}

impl Period {
    /// In the order in which their limits are checked.
    pub const IN_ORDER: [Self; 5] =
        [Self::Total, Self::FiveHours, Self::Daily, Self::Weekly, Self::Monthly];

    /// The name on the wire, such as `5h`.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// The limit for it, if there is one.
    pub const fn limit_of(self, limits: &Limits) -> Option<NanoUsd> {
        *limits.money().get(self)
    }

    /// The field of its limit in records of the declarative document.
    #[must_use]
    pub const fn field(self) -> &'static str {
        match self {
            Self::FiveHours => "limit_5h_usd",
            Self::Daily => "limit_daily_usd",
            Self::Weekly => "limit_weekly_usd",
            Self::Monthly => "limit_monthly_usd",
            Self::Total => "limit_total_usd",
        }
    }

    /// The error code of a key's limit that is above its user's.
    #[must_use]
    pub const fn above_users(self) -> &'static str {
        match self {
            Self::FiveHours => "KEY_LIMIT_5H_EXCEEDS_USER_LIMIT",
            Self::Daily => "KEY_LIMIT_DAILY_EXCEEDS_USER_LIMIT",
            Self::Weekly => "KEY_LIMIT_WEEKLY_EXCEEDS_USER_LIMIT",
            Self::Monthly => "KEY_LIMIT_MONTHLY_EXCEEDS_USER_LIMIT",
            Self::Total => "KEY_LIMIT_TOTAL_EXCEEDS_USER_LIMIT",
        }
    }
}

/// The thirteen limits, by their wire names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum LimitType {
    /// Spending of the key in total.
    KeyTotal,
    /// Spending of the user in total.
    UserTotal,
    /// Live sessions of the key.
    KeyConcurrentSessions,
    /// Live sessions of the user, over all keys.
    UserConcurrentSessions,
    /// Requests of the user in the past 60 seconds.
    UserRpm,
    /// Spending of the key in the past five hours.
    #[strum(serialize = "key_5h")]
    KeyFiveHours,
    /// Spending of the user in the past five hours.
    #[strum(serialize = "user_5h")]
    UserFiveHours,
    /// Spending of the key in its day, fixed or rolling.
    KeyDaily,
    /// Spending of the user in the user's day, fixed or rolling.
    UserDaily,
    /// Spending of the key in the calendar week.
    KeyWeekly,
    /// Spending of the user in the calendar week.
    UserWeekly,
    /// Spending of the key in the calendar month.
    KeyMonthly,
    /// Spending of the user in the calendar month.
    UserMonthly,
}

impl LimitType {
    /// In the order of the checks in docs/limits-and-money.md.
    pub const IN_ORDER: [Self; 13] = [
        Self::KeyTotal,
        Self::UserTotal,
        Self::KeyConcurrentSessions,
        Self::UserConcurrentSessions,
        Self::UserRpm,
        Self::KeyFiveHours,
        Self::UserFiveHours,
        Self::KeyDaily,
        Self::UserDaily,
        Self::KeyWeekly,
        Self::UserWeekly,
        Self::KeyMonthly,
        Self::UserMonthly,
    ];

    /// The name in refusals and their headers, such as `key_5h`.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Whether it is a limit of the key, not of the user.
    pub const fn is_keys(self) -> bool {
        matches!(
            self,
            Self::KeyTotal
                | Self::KeyConcurrentSessions
                | Self::KeyFiveHours
                | Self::KeyDaily
                | Self::KeyWeekly
                | Self::KeyMonthly
        )
    }

    /// The period of a spending limit; `None` for another limit.
    pub const fn period(self) -> Option<Period> {
        match self {
            Self::KeyTotal | Self::UserTotal => Some(Period::Total),
            Self::KeyFiveHours | Self::UserFiveHours => Some(Period::FiveHours),
            Self::KeyDaily | Self::UserDaily => Some(Period::Daily),
            Self::KeyWeekly | Self::UserWeekly => Some(Period::Weekly),
            Self::KeyMonthly | Self::UserMonthly => Some(Period::Monthly),
            Self::KeyConcurrentSessions | Self::UserConcurrentSessions | Self::UserRpm => None,
        }
    }
}
