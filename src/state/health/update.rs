//! The text form of a provider's health, as nodes exchange it: one line.

use crate::domain::clock::Timestamp;
use crate::domain::ids::ProviderId;
use crate::policy::breaker::Standing;

/// A provider's circuit and cooldown, as of a time. The later of two wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HealthUpdate {
    /// Whose circuit and cooldown they are.
    pub provider: ProviderId,
    /// When one of them last changed, by the clock of the node that changed it.
    pub at: Timestamp,
    /// The circuit's state, with the counts that nodes share.
    pub standing: Standing,
    /// The end of the cooldown; `None` if there is none.
    pub cooldown_until: Option<Timestamp>,
}

impl HealthUpdate {
    /// `PROVIDER AT COOLDOWN STANDING…`, with times in ms and `-` for no cooldown.
    pub fn to_text(&self) -> String {
        let cooldown =
            self.cooldown_until.map_or_else(|| "-".to_owned(), |until| until.0.to_string());
        format!("{} {} {cooldown} {}", self.provider, self.at.0, self.standing.to_text())
    }

    /// Reads [`Self::to_text`]; `None` for anything else, such as a later version's form.
    pub fn read(text: &str) -> Option<Self> {
        let mut words = text.splitn(4, ' ');
        let provider = ProviderId(words.next()?.parse().ok()?);
        let at = Timestamp(words.next()?.parse().ok()?);
        let cooldown_until = match words.next()? {
            "-" => None,
            until => Some(Timestamp(until.parse().ok()?)),
        };
        Some(Self { provider, at, standing: Standing::read(words.next()?)?, cooldown_until })
    }
}
