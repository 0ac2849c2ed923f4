//! Whether a request is served although its model has no price, so that no money limit applies to
//! it.

/// How such requests are treated: the setting `prices.unpriced`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, strum::IntoStaticStr)]
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
            (Unpriced::Serve, false, true),
            (Unpriced::Serve, true, true),
            (Unpriced::RefuseWhenLimited, false, true),
            (Unpriced::RefuseWhenLimited, true, false),
            (Unpriced::Refuse, false, false),
            (Unpriced::Refuse, true, false),
        ] {
            assert_eq!(setting.serves(limited), served, "{setting:?} {limited}");
        }
        assert_eq!(Unpriced::default(), Unpriced::RefuseWhenLimited);
    }
}
