//! How settings are declared: [`settings!`] makes a section of the configuration.

use super::setting::Setting;
use super::values::SettingValues;

/// A part of the configuration that is made of settings.
pub(super) trait SettingsSection: Sized {
    /// Its settings.
    fn rows() -> Vec<Setting>;

    /// The section with its values; `None` if a setting is unset that has neither a default nor an
    /// optional type, or a value cannot be read again.
    fn fill(values: &SettingValues) -> Option<Self>;
}

/// A section that is there only if its settings without a default are set.
impl<S: SettingsSection> SettingsSection for Option<S> {
    fn rows() -> Vec<Setting> {
        S::rows()
    }

    fn fill(values: &SettingValues) -> Option<Self> {
        Some(S::fill(values))
    }
}

/// The values themselves have no settings.
impl SettingsSection for SettingValues {
    fn rows() -> Vec<Setting> {
        Vec::new()
    }

    fn fill(values: &SettingValues) -> Option<Self> {
        Some(values.clone())
    }
}

/// Declares sections. Each field is a setting: its type, which holds the bounds, and its row, which
/// holds the path, maybe a default (`.or`) and the name of its variable (`.env`). The field has the
/// type's plain value. After `with` come the sections that it contains. All settings of a section
/// that is `live` are applied by a reload: `live` is called on each row.
///
/// ```ignore
/// settings! {
///     /// Where prices come from.
///     pub struct Prices: live {
///         /// What is fetched each day.
///         sync: OneOf<PriceUpdates> = at("prices.sync").or("daily");
///     } with {
///         /// More settings.
///         pub more: More,
///     }
/// }
/// ```
macro_rules! settings {
    ($(
        $(#[$about:meta])*
        pub struct $name:ident $(: $live:ident)? {
            $($(#[$each:meta])* $field:ident: $type:ty = $row:expr;)*
        } $(with {
            $($(#[$of_part:meta])* $vis:vis $part:ident: $section:ty,)*
        })?
    )+) => {$(
        $(#[$about])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub struct $name {
            $($(#[$each])* pub $field: <$type as $crate::bounded::FromText>::Out,)*
            $($($(#[$of_part])* $vis $part: $section,)*)?
        }

        impl $crate::config::section::SettingsSection for $name {
            fn rows() -> Vec<$crate::config::setting::Setting> {
                let own = vec![$($row.of::<$type>()),*];
                $(let own: Vec<_> = own.into_iter().map(|row| row.$live()).collect();)?
                [own, $($(<$section>::rows(),)*)?].concat()
            }

            fn fill(values: &$crate::config::values::SettingValues) -> Option<Self> {
                Some(Self {
                    $($field: values.take::<$type>($row.path)?,)*
                    $($($part: <$section>::fill(values)?,)*)?
                })
            }
        }
    )+};
}
pub(super) use settings;
