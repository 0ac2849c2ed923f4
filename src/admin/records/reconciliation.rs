//! Comparisons of vendors' invoices with the ledger, as shown: records, and the same as CSV.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::{Exact, Iso};
use crate::domain::clock::Timestamp;
use crate::domain::invoice::{DAY_MS, Tokens};
use crate::domain::money::NanoUsd;
use crate::jobs::reconcile::{Days, Outcome};
use crate::policy::reconcile::{Compared, Side, UsedBy};
use crate::store::StoredInvoiceSource;

/// Where a provider's invoice is read from.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InvoiceSourceRecord {
    /// The provider whose requests are on the invoice.
    pub provider_id: i64,
    /// Whose report API it is: `anthropic` or `openai`.
    pub kind: &'static str,
    /// The address of the report API.
    pub url: String,
    /// The vendor's administration key, masked.
    pub admin_key: String,
    /// The vendor's ids of the API keys that the gateway uses; empty: all of the organization.
    pub api_key_ids: Vec<String>,
    /// Whether the invoice is compared every day.
    pub is_daily: bool,
    /// A day's difference above this is reported, USD.
    pub alert_above_usd: Exact,
    /// When it was last changed.
    pub updated_at: Iso,
}

impl InvoiceSourceRecord {
    /// The record, with the key masked by the caller.
    pub fn new(stored: &StoredInvoiceSource, admin_key: String) -> Self {
        let source = &stored.source;
        Self {
            provider_id: source.provider_id.0,
            kind: source.kind.as_str(),
            url: source.url.clone(),
            admin_key,
            api_key_ids: source.api_key_ids.clone(),
            is_daily: source.is_daily,
            alert_above_usd: Exact::usd(source.alert_above),
            updated_at: Iso(source.updated_at),
        }
    }
}

/// Invoices beside the ledger, by day and model.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReconciliationRecord {
    /// The first day, UTC.
    pub start_date: String,
    /// The last day, UTC.
    pub end_date: String,
    /// Days that begin before this are complete at the vendors; of later ones use may be missing.
    pub complete_until: Iso,
    /// Each provider whose invoice was compared.
    pub providers: Vec<ProviderInvoice>,
}

/// One provider's invoice beside the ledger.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProviderInvoice {
    /// The provider.
    pub provider_id: i64,
    /// Its name.
    pub provider_name: String,
    /// Why its invoice could not be compared; `null`: it was.
    pub error: Option<String>,
    /// Sum of the vendor's charges, USD.
    pub vendor_cost_usd: Exact,
    /// Sum of the ledger's costs, USD.
    pub ledger_cost_usd: Exact,
    /// How many of the lines differ.
    pub differing: usize,
    /// By day and model.
    pub lines: Vec<InvoiceLine>,
}

/// One day and model on both sides.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InvoiceLine {
    /// The day, UTC.
    pub day: String,
    /// The model, or the vendor's words for a charge.
    pub model: String,
    /// `provider`: use of the provider's keys; `no_key`: of the vendor's own web pages; `fee`: a
    /// charge that is not for tokens.
    pub part: &'static str,
    /// The models that clients asked for.
    pub requested_models: Vec<String>,
    /// The vendor's ids of the API keys with this use.
    pub api_key_ids: Vec<String>,
    /// What the vendor says.
    pub vendor: InvoiceSide,
    /// What the ledger has.
    pub ledger: InvoiceSide,
    /// The vendor's figures beyond the ledger's.
    pub difference: InvoiceSide,
    /// The ledger's requests.
    pub requests: i64,
    /// Those that failed, or whose use was estimated.
    pub failed_requests: i64,
    /// Those without a price.
    pub unpriced_requests: i64,
    /// The likeliest cause of the difference; `null`: there is none.
    pub cause: Option<&'static str>,
    /// The cause in words.
    pub explanation: Option<&'static str>,
    /// Filters of the usage log for the requests of this line.
    pub requests_filter: RequestsFilter,
}

/// Tokens by kind, and money.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InvoiceSide {
    /// Input that was neither read from nor written to a cache.
    pub input_tokens: i64,
    /// Input read from a cache.
    pub cache_read_tokens: i64,
    /// Input written to a cache for less than an hour.
    pub cache_write_5m_tokens: i64,
    /// Input written to a cache for an hour or more.
    pub cache_write_1h_tokens: i64,
    /// All output.
    pub output_tokens: i64,
    /// Money; `null`: the side says nothing of it.
    pub cost_usd: Option<Exact>,
}

/// Filters of `usage-logs/getUsageLogs`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RequestsFilter {
    /// The provider.
    pub provider_id: i64,
    /// The model that clients asked for, where it was always the same.
    pub model: Option<String>,
    /// The start of the day.
    pub start_date: Iso,
    /// The end of the day.
    pub end_date: Iso,
}

fn date(day: Timestamp) -> String {
    day.to_utc().format("%Y-%m-%d").to_string()
}

impl ReconciliationRecord {
    /// The outcomes as shown.
    pub fn new(days: Days, outcomes: Vec<Outcome>) -> Self {
        Self {
            start_date: date(days.from),
            end_date: date(days.until.plus_ms(-DAY_MS)),
            complete_until: Iso(days.complete_until()),
            providers: outcomes.into_iter().map(ProviderInvoice::new).collect(),
        }
    }
}

impl ProviderInvoice {
    fn new(outcome: Outcome) -> Self {
        let (compared, error) = match outcome.compared {
            Ok(compared) => (compared, None),
            Err(error) => (Vec::new(), Some(error.to_string())),
        };
        let sum = |side: fn(&Compared) -> Side| {
            Exact::usd(compared.iter().filter_map(|row| side(row).cost).sum::<NanoUsd>())
        };
        Self {
            provider_id: outcome.provider.0,
            provider_name: outcome.name,
            error,
            vendor_cost_usd: sum(|row| row.vendor),
            ledger_cost_usd: sum(|row| row.ledger),
            differing: compared.iter().filter(|row| row.cause.is_some()).count(),
            lines: compared.iter().map(|row| InvoiceLine::new(outcome.provider.0, row)).collect(),
        }
    }
}

impl InvoiceLine {
    fn new(provider_id: i64, row: &Compared) -> Self {
        let only = row.requested.iter().next().filter(|_| row.requested.len() == 1);
        Self {
            day: date(row.day),
            model: row.model.clone(),
            part: match row.part {
                UsedBy::Provider => "provider",
                UsedBy::NoKey => "no_key",
                UsedBy::Fee => "fee",
            },
            requested_models: row.requested.iter().cloned().collect(),
            api_key_ids: row.api_keys.iter().cloned().collect(),
            vendor: InvoiceSide::new(row.vendor.tokens, row.vendor.cost),
            ledger: InvoiceSide::new(row.ledger.tokens, row.ledger.cost),
            difference: InvoiceSide::new(row.tokens(), row.money()),
            requests: row.requests,
            failed_requests: row.failed,
            unpriced_requests: row.unpriced,
            cause: row.cause.map(|cause| cause.as_str()),
            explanation: row.cause.map(|cause| cause.text()),
            requests_filter: RequestsFilter {
                provider_id,
                model: only.cloned(),
                start_date: Iso(row.day),
                end_date: Iso(row.day.plus_ms(DAY_MS - 1)),
            },
        }
    }
}

impl InvoiceSide {
    fn new(tokens: Tokens, cost: Option<NanoUsd>) -> Self {
        Self {
            input_tokens: tokens.input,
            cache_read_tokens: tokens.cache_read,
            cache_write_5m_tokens: tokens.cache_write_5m,
            cache_write_1h_tokens: tokens.cache_write_1h,
            output_tokens: tokens.output,
            cost_usd: cost.map(Exact::usd),
        }
    }
}

/// Columns of a line: their names, and where the value is in its JSON.
const COLUMNS: [(&str, &str); 8] = [
    ("day", "/day"),
    ("model", "/model"),
    ("part", "/part"),
    ("cause", "/cause"),
    ("requests", "/requests"),
    ("failed_requests", "/failedRequests"),
    ("unpriced_requests", "/unpricedRequests"),
    ("api_key_ids", "/apiKeyIds"),
];
const FIGURES: [(&str, &str); 6] = [
    ("input_tokens", "inputTokens"),
    ("cache_read_tokens", "cacheReadTokens"),
    ("cache_write_5m_tokens", "cacheWrite5mTokens"),
    ("cache_write_1h_tokens", "cacheWrite1hTokens"),
    ("output_tokens", "outputTokens"),
    ("cost_usd", "costUsd"),
];
const SIDES: [&str; 3] = ["vendor", "ledger", "difference"];

/// A [`ReconciliationRecord`], as the API answers it, as CSV: a line for each day and model.
pub fn csv(record: &Value) -> anyhow::Result<String> {
    let mut out = csv::Writer::from_writer(Vec::new());
    let figures = || SIDES.iter().flat_map(|side| FIGURES.iter().map(move |f| (side, f)));
    let mut names: Vec<String> = vec!["provider".to_owned()];
    names.extend(COLUMNS.iter().map(|(name, _)| (*name).to_owned()));
    names.extend(figures().map(|(side, (name, _))| format!("{side}_{name}")));
    out.write_record(&names)?;
    for provider in record["providers"].as_array().into_iter().flatten() {
        for line in provider["lines"].as_array().into_iter().flatten() {
            let mut cells = vec![cell(&provider["providerName"])];
            cells.extend(
                COLUMNS.iter().map(|(_, at)| line.pointer(at).map(cell).unwrap_or_default()),
            );
            cells.extend(figures().map(|(side, (_, name))| cell(&line[*side][*name])));
            out.write_record(&cells)?;
        }
    }
    Ok(String::from_utf8(out.into_inner()?)?)
}

/// Text that spreadsheets would take for a formula gets an apostrophe.
fn cell(value: &Value) -> String {
    let text = match value {
        Value::Null => String::new(),
        Value::Number(number) => return number.to_string(),
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(cell).collect::<Vec<_>>().join(" "),
        other => other.to_string(),
    };
    if text.starts_with(['=', '+', '-', '@', '\t', '\r']) { format!("'{text}") } else { text }
}
