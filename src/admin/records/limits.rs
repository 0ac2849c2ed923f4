//! Limits as shown, in the records of users, keys and providers.

use schemars::JsonSchema;
use serde::Serialize;

use super::Exact;
use crate::domain::limits::Limits;

macro_rules! record {
    ([]
    money { $($period:ident $field:ident $api:ident $cost:ident $covers:tt $most:tt $names:tt;)+ }
    counts { $($count:ident $number:ident $api_count:ident $counts:tt $most_count:tt
        $names_count:tt;)+ }) => {
        /// The limits of one holder.
        #[derive(Debug, Serialize, JsonSchema)]
        #[serde(rename_all = "camelCase")]
        pub struct LimitsRecord {
            $(#[doc = concat!("USD ", $covers, "; `null` = no limit.")]
            pub $api: Option<Exact>,)+
            /// `fixed` or `rolling`.
            pub daily_reset_mode: &'static str,
            /// `HH:MM` in the gateway's time zone.
            pub daily_reset_time: String,
            $(#[doc = concat!($counts, "; 0 = no limit.")] pub $api_count: u32,)+
        }

        impl From<&Limits> for LimitsRecord {
            fn from(limits: &Limits) -> Self {
                Self {
                    $($api: limits.$field.map(Exact::usd),)+
                    daily_reset_mode: limits.daily_reset.mode.as_str(),
                    daily_reset_time: limits.daily_reset.time.to_string(),
                    $($api_count: limits.$number,)+
                }
            }
        }
    };
}
tollgate_formats::limit_rows! { record! }
