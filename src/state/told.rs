//! What nodes tell one another of a provider's health, as one line of text.

use crate::domain::clock::Timestamp;
use crate::domain::ids::ProviderId;
use crate::policy::breaker::Standing;

/// A provider's circuit and rest, as of a time. The later of two is believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Told {
    pub provider: ProviderId,
    pub at: Timestamp,
    pub standing: Standing,
    pub rest_until: Option<Timestamp>,
}

impl Told {
    /// `PROVIDER AT REST STANDING…`, with times in ms and `-` for no rest.
    #[must_use]
    pub fn to_text(&self) -> String {
        let rest = self.rest_until.map_or_else(|| "-".to_owned(), |until| until.0.to_string());
        format!("{} {} {rest} {}", self.provider, self.at.0, self.standing.to_text())
    }

    /// Reads [`Self::to_text`]; `None` for what a later version may tell.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        let mut words = text.splitn(4, ' ');
        let provider = ProviderId(words.next()?.parse().ok()?);
        let at = Timestamp(words.next()?.parse().ok()?);
        let rest_until = match words.next()? {
            "-" => None,
            until => Some(Timestamp(until.parse().ok()?)),
        };
        Some(Self { provider, at, standing: Standing::read(words.next()?)?, rest_until })
    }
}
