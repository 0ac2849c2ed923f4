//! The limits that a request is checked against, a row each: whose it is, and what it bounds.

use super::limits::Period;

/// What a limit bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitFigure {
    /// What is spent in a period.
    Money(Period),
    /// Live sessions.
    Sessions,
    /// Requests of the past 60 seconds: of a user, a key's are not counted.
    Requests,
}

/// Whose figure a limit bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitOwner {
    /// The key's.
    Key,
    /// The user's, over all keys.
    User,
}

macro_rules! limit_types {
    ($($limit:ident = $number:literal $name:literal $holder:ident $figure:expr;)+) => {
        /// The limits, by their wire names, in the order of the checks in
        /// docs/limits-and-money.md.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, strum::FromRepr)]
        #[repr(u8)]
        pub enum LimitType {
            $(#[doc = concat!("`", $name, "`.")] $limit = $number,)+
        }

        const LIMITS: usize = [$($number),+].len();

        impl LimitType {
            /// In the order of the checks.
            pub const IN_ORDER: [Self; LIMITS] = [$(Self::$limit),+];

            /// The name in refusals and their headers, such as `key_5h`.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$limit => $name,)+ }
            }

            /// Whose figure it bounds.
            pub const fn holder(self) -> LimitOwner {
                match self { $(Self::$limit => LimitOwner::$holder,)+ }
            }

            /// What it bounds.
            pub const fn figure(self) -> LimitFigure {
                match self { $(Self::$limit => $figure,)+ }
            }
        }
    };
}

// The numbers are those by which Redis' records name the checks: a new limit gets the next one,
// wherever its row is. Of two money limits with equal room left, the headers have the one that is
// checked first; in Redis' fast way (`admit.lua`) it is the one of the smaller number.
limit_types! {
    KeyTotal = 1 "key_total" Key LimitFigure::Money(Period::Total);
    UserTotal = 2 "user_total" User LimitFigure::Money(Period::Total);
    KeyConcurrentSessions = 3 "key_concurrent_sessions" Key LimitFigure::Sessions;
    UserConcurrentSessions = 4 "user_concurrent_sessions" User LimitFigure::Sessions;
    UserRpm = 5 "user_rpm" User LimitFigure::Requests;
    KeyFiveHours = 6 "key_5h" Key LimitFigure::Money(Period::FiveHours);
    UserFiveHours = 7 "user_5h" User LimitFigure::Money(Period::FiveHours);
    KeyDaily = 8 "key_daily" Key LimitFigure::Money(Period::Daily);
    UserDaily = 9 "user_daily" User LimitFigure::Money(Period::Daily);
    KeyWeekly = 10 "key_weekly" Key LimitFigure::Money(Period::Weekly);
    UserWeekly = 11 "user_weekly" User LimitFigure::Money(Period::Weekly);
    KeyMonthly = 12 "key_monthly" Key LimitFigure::Money(Period::Monthly);
    UserMonthly = 13 "user_monthly" User LimitFigure::Money(Period::Monthly);
}

impl LimitType {
    /// Whether it is a limit of the key, not of the user.
    pub const fn is_keys(self) -> bool {
        matches!(self.holder(), LimitOwner::Key)
    }

    /// The period of a spending limit; `None` for another limit.
    pub const fn period(self) -> Option<Period> {
        if let LimitFigure::Money(period) = self.figure() { Some(period) } else { None }
    }
}
