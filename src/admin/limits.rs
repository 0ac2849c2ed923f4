//! The limit fields of the bodies for keys, users and providers, made from the rows of
//! `domain/limits.rs` and flattened into the bodies.

use schemars::JsonSchema;
use serde::Deserialize;

use super::bodies::{Clock, OneOf, Patch, Sent, Usd, Whole};
use crate::domain::limits::{ByPeriod, Limits, ResetMode};

/// A body's fields, and how they are applied.
macro_rules! body {
    ($whose:literal $name:ident $case:literal [$($mode:ident $time:ident)?]
    { $($money:ident $field:ident $covers:tt $most:tt;)+ }
    { $($count:ident $number:ident $counts:tt $most_count:tt;)* }) => {
        #[doc = $whose]
        #[derive(Debug, Default, Clone, Deserialize, JsonSchema)]
        #[serde(default, rename_all = $case)]
        pub struct $name {
            $(#[doc = concat!("USD ", $covers, "; `null` = no limit, 0 = nothing.")]
            pub(super) $money: Patch<Usd<$most>>,)+
            $(/// `fixed`: at the reset time; `rolling`: the past 24 hours.
            #[schemars(extend("default" = "fixed"))]
            $mode: Sent<OneOf<ResetMode>>,
            /// `HH:MM` in the gateway's time zone.
            #[schemars(extend("default" = "00:00"))]
            $time: Sent<Clock>,)?
            $(#[doc = concat!($counts, "; 0 or `null` = no limit.")]
            $count: Patch<Whole<u32, 0, $most_count>>,)*
        }

        impl $name {
            /// These limits with those that were sent. With none at all: what was sent, as an edit
            /// is checked only for the limits that it sets.
            pub(super) fn on(&self, mut limits: Limits) -> Limits {
                $(self.$money.plain().apply_option(&mut limits.$field);)+
                $(self.$mode.apply(&mut limits.daily_reset.mode);
                self.$time.apply(&mut limits.daily_reset.time);)?
                $(self.$count.plain().apply(&mut limits.$number);)*
                limits
            }
        }
    };
}

macro_rules! bodies {
    ([]
    money { $($period:ident $field:ident $api:ident $cost:ident $covers:tt
        [$key:tt $user:tt $provider:tt] $names:tt;)+ }
    counts { $($count:ident $number:ident $api_count:ident $counts:tt
        [$key_count:tt $user_count:tt $provider_count:tt] $names_count:tt;)+ }) => {
        /// The largest spending limits of a key, in USD.
        pub const OF_KEY: ByPeriod<i64> = ByPeriod { $($field: $key),+ };
        /// The largest spending limits of a user, in USD.
        pub const OF_USER: ByPeriod<i64> = ByPeriod { $($field: $user),+ };
        /// The largest spending limits of a provider, in USD.
        pub const OF_PROVIDER: ByPeriod<i64> = ByPeriod { $($field: $provider),+ };

        body! { "Of a key." KeyLimits "camelCase" [daily_reset_mode daily_reset_time]
            { $($api $field $covers $key;)+ }
            { $($api_count $number $counts $key_count;)+ } }
        body! { "Of a user." UserLimits "camelCase" [daily_reset_mode daily_reset_time]
            { $($api $field $covers $user;)+ }
            { $($api_count $number $counts $user_count;)+ } }
        body! { "Of a provider." ProviderLimits "snake_case" [daily_reset_mode daily_reset_time]
            { $($api $field $covers $provider;)+ }
            { $($api_count $number $counts $provider_count;)+ } }
    };
}
tollgate_formats::limit_rows! { bodies! }

body! { "Of several keys at once." BatchLimits "camelCase" []
{
    limit_5h_usd five_hours "in the past 5 hours" { OF_KEY.five_hours };
    limit_daily_usd daily "in the day that the daily reset defines" { OF_KEY.daily };
    limit_weekly_usd weekly "in the calendar week of the gateway's time zone" { OF_KEY.weekly };
    limit_monthly_usd monthly "in the calendar month of the gateway's time zone" { OF_KEY.monthly };
} {} }
