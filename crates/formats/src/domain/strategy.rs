//! How providers of the same priority are ordered for the requests of a group's keys.

use serde::{Deserialize, Serialize};

/// The order among providers of the same priority.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[derive(strum::IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Strategy {
    /// The client's own format first, then a weighted draw.
    #[default]
    Weighted,
    /// The lowest expected cost of the request first.
    Cheapest,
    /// The shortest time to the first byte of the model's replies first.
    Fastest,
}

impl Strategy {
    /// The name on the wire, such as `cheapest`.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Whether it is the usual one.
    pub fn is_usual(&self) -> bool {
        *self == Self::Weighted
    }
}
