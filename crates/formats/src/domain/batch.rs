//! A batch of requests, as far as its reservation and its bill depend on it.

use serde::{Deserialize, Serialize};

use super::feature::Feature;
use super::feature_policy::FeatureUse;
use super::fee::Fee;

/// What a batch asks for. Stored with the file that holds its requests.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BatchAsk {
    /// The path that each of its requests would have alone, such as `/v1/messages`.
    pub path: String,
    /// The models that requests name, each once: that of the first request first.
    pub models: Vec<String>,
    /// Its requests, those that cost nearly the same together.
    pub groups: Vec<BatchGroup>,
    /// The features that requests use, each once.
    #[serde(default)]
    pub features: Vec<BatchFeature>,
    /// The models that requests name beside their own.
    #[serde(default)]
    pub named: Vec<String>,
    /// A request lets its provider choose a model.
    #[serde(default)]
    pub has_providers_choice: bool,
}

/// A feature that requests of a batch use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BatchFeature {
    /// Its name in records.
    pub name: String,
    /// The price entry of a container, or the type or member that decides the fee.
    pub fee: String,
}

impl From<&FeatureUse> for BatchFeature {
    fn from(used: &FeatureUse) -> Self {
        let row = used.feature.row();
        let of_fee = row.other_fees.iter().find(|(_, fee)| *fee == used.fee && *fee != row.fee);
        let fee = match (used.fee, of_fee) {
            (Fee::Container(entry), _) => entry,
            (_, Some((word, _))) => word,
            (_, None) => "",
        };
        Self { name: row.name.to_owned(), fee: fee.to_owned() }
    }
}

impl BatchFeature {
    /// The use of it, by this member; `None` for a name that is not known any more.
    pub fn used_by(&self, member: &'static str) -> Option<FeatureUse> {
        let feature = Feature::parse(&self.name)?;
        let fee = Fee::by_entry(&self.fee).unwrap_or_else(|| feature.fee(&self.fee));
        Some(FeatureUse::new(feature, member, fee))
    }
}

/// Requests for one model, of about the same length and with about the same bound of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct BatchGroup {
    /// The place of the model in [`BatchAsk::models`].
    pub model: usize,
    /// Requests; at least one.
    pub count: u64,
    /// Input tokens of all, estimated.
    pub input: u64,
    /// An upper bound of the input tokens of each.
    pub input_bound: u64,
    /// The bound of the output tokens of each answer, if they have one.
    pub max_tokens: Option<u64>,
    /// Answers to each.
    pub choices: u64,
}

impl BatchAsk {
    /// All requests.
    pub fn count(&self) -> u64 {
        self.groups.iter().fold(0, |sum, group| sum.saturating_add(group.count))
    }
}
