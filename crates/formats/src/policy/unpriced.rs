//! Whether a request is served although its model has no price, so that no money limit applies to
//! it.

/// How such requests are treated: the setting `prices.unpriced`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[derive(strum::IntoStaticStr, strum::EnumString, strum::VariantNames)]
#[strum(serialize_all = "snake_case")]
pub enum Unpriced {
    /// They are served, cost nothing, and are priced when a price arrives.
    Serve,
    /// They are refused if the key or its user has a money limit.
    #[default]
    RefuseWhenLimited,
    /// They are refused.
    Refuse,
}

impl Unpriced {
    /// Every value that the setting accepts.
    pub const NAMES: &'static [&'static str] = <Self as strum::VariantNames>::VARIANTS;

    /// The treatment of this name; [`Self::RefuseWhenLimited`] for any other text.
    pub fn parse(text: &str) -> Self {
        text.parse().unwrap_or_default()
    }

    /// The setting's value, such as `refuse_when_limited`.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Whether a caller may be served without a price. `is_limited`: the key or its user has a
    /// money limit of any period.
    pub const fn serves(self, is_limited: bool) -> bool {
        match self {
            Self::Serve => true,
            Self::RefuseWhenLimited => !is_limited,
            Self::Refuse => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_setting_and_the_limits_decide() {
        for (setting, limited, served) in [
            ("serve", false, true),
            ("serve", true, true),
            ("refuse_when_limited", false, true),
            ("refuse_when_limited", true, false),
            ("refuse", false, false),
            ("refuse", true, false),
        ] {
            assert_eq!(Unpriced::parse(setting).serves(limited), served, "{setting} {limited}");
        }
        for name in Unpriced::NAMES {
            assert_eq!(Unpriced::parse(name).as_str(), *name);
        }
        assert_eq!(Unpriced::default(), Unpriced::RefuseWhenLimited);
    }
}
