//! The limit columns that users, keys and providers share: `limit_` and the field of [`Limits`].

use crate::domain::limits::{DailyReset, Limits, ResetMode, TimeOfDay};
use crate::store::engine::column::{Fields, Values};
use crate::store::engine::error::StoreError;

/// The columns of a table, between whose own are those of the limits.
macro_rules! columns {
    ([$($before:literal),*], [$($after:literal),*]) => {
        tollgate_formats::limit_rows! {
            crate::store::rows::limits::with_limits! [$($before,)*] [$($after),*]
        }
    };
}
pub(super) use columns;

macro_rules! with_limits {
    ([[$($before:tt)*] [$($after:tt)*]]
    money { $($period:ident $field:ident $api:ident $cost:ident $covers:tt $most:tt $names:tt;)+ }
    counts { $($count:ident $number:ident $api_count:ident $counts:tt $most_count:tt
        $names_count:tt;)+ }) => {
        &[
            $($before)*
            $(concat!("limit_", stringify!($field)),)+
            $(concat!("limit_", stringify!($number)),)+
            "daily_reset_mode",
            "daily_reset_time",
            $($after)*
        ]
    };
}
pub(super) use with_limits;

macro_rules! functions {
    ([]
    money { $($period:ident $field:ident $api:ident $cost:ident $covers:tt $most:tt $names:tt;)+ }
    counts { $($count:ident $number:ident $api_count:ident $counts:tt $most_count:tt
        $names_count:tt;)+ }) => {
        /// Binds [`Limits`] in the order of the columns.
        pub(super) fn bind(values: &mut Values, limits: &Limits) {
            values $(.opt_money(limits.$field))+ $(.int(limits.$number.into()))+;
            let DailyReset { mode, time } = limits.daily_reset;
            values.text(mode.as_str()).text(&time.to_string());
        }

        pub(super) fn read(fields: Fields<'_>) -> Result<Limits, StoreError> {
            Ok(Limits {
                $($field: fields.opt_money(concat!("limit_", stringify!($field)))?,)+
                $($number: fields.number(concat!("limit_", stringify!($number)))?,)+
                daily_reset: DailyReset {
                    mode: fields.named("daily_reset_mode", ResetMode::parse)?,
                    time: fields.named("daily_reset_time", TimeOfDay::parse)?,
                },
            })
        }
    };
}
tollgate_formats::limit_rows! { functions! }
