//! What keys were used for, as shown.

use schemars::JsonSchema;
use serde::Serialize;

use super::{Exact, Iso};
use crate::domain::ids::KeyId;
use crate::store::{KeyStatistics, ModelStatistics};

/// One key's use. "Today" is the calendar day in the gateway's time zone, up to now.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KeyStatisticsRecord {
    /// The key's id.
    pub key_id: i64,
    /// Today's requests, whatever became of them.
    pub today_call_count: u64,
    /// Today's input, cached or not, and output together.
    pub today_tokens: u64,
    /// USD spent today; requests without a price count as nothing, here and below.
    pub today_cost: Exact,
    /// USD spent since the key was made.
    pub total_cost: Exact,
    /// The start of the latest request; `null` = never used.
    pub last_used_at: Option<Iso>,
    /// The provider of the latest request, by its present name; `null` = it reached none.
    pub last_provider_name: Option<String>,
    /// Today's use by model, not that of all time; most expensive first.
    pub model_stats: Vec<ModelStatisticsRecord>,
}

/// The use of one model by one key: in `KeyStatisticsRecord` of today, in `MyStats` of the
/// requested time.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModelStatisticsRecord {
    /// The model that the client asked for.
    pub model: String,
    /// Requests, whatever became of them.
    pub call_count: u64,
    /// USD; requests without a price count as nothing.
    pub total_cost: Exact,
    /// Text that was neither read from nor written to a cache.
    pub input_tokens: u64,
    /// All output, reasoning included.
    pub output_tokens: u64,
    /// Input written to prompt caches of any lifetime.
    pub cache_creation_tokens: u64,
    /// Input read from a prompt cache.
    pub cache_read_tokens: u64,
}

impl From<KeyStatistics> for KeyStatisticsRecord {
    fn from(statistics: KeyStatistics) -> Self {
        let KeyStatistics {
            key_id: KeyId(key_id),
            models,
            total_cost,
            last_used_at,
            last_provider,
        } = statistics;
        Self {
            key_id,
            today_call_count: models.iter().map(|model| model.requests).sum(),
            today_tokens: models.iter().map(tokens).sum(),
            today_cost: Exact::usd(models.iter().map(|model| model.cost).sum()),
            total_cost: Exact::usd(total_cost),
            last_used_at: last_used_at.map(Iso),
            last_provider_name: last_provider,
            model_stats: models.into_iter().map(ModelStatisticsRecord::from).collect(),
        }
    }
}

/// All tokens of one model.
pub fn tokens(model: &ModelStatistics) -> u64 {
    model.input_tokens + model.cache_write_tokens + model.cache_read_tokens + model.output_tokens
}

impl From<ModelStatistics> for ModelStatisticsRecord {
    fn from(model: ModelStatistics) -> Self {
        Self {
            model: model.model,
            call_count: model.requests,
            total_cost: Exact::usd(model.cost),
            input_tokens: model.input_tokens,
            output_tokens: model.output_tokens,
            cache_creation_tokens: model.cache_write_tokens,
            cache_read_tokens: model.cache_read_tokens,
        }
    }
}
