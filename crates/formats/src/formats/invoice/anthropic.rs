//! Anthropic's usage and cost report of an organization. Amounts are in cents.

use serde::Deserialize;

use super::{Ask, MAX_DAYS, Page, ReportKind, Unreadable, amount, in_dollars, kind_of, pages};
use crate::domain::clock::Timestamp;
use crate::domain::invoice::{CostLine, Tokens, UsageLine};

#[derive(Deserialize)]
struct AnthropicUse {
    api_key_id: Option<String>,
    model: Option<String>,
    service_tier: Option<String>,
    context_window: Option<String>,
    uncached_input_tokens: i64,
    #[serde(default)]
    cache_read_input_tokens: i64,
    output_tokens: i64,
    #[serde(default)]
    cache_creation: Option<Created>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Created {
    ephemeral_1h_input_tokens: i64,
    ephemeral_5m_input_tokens: i64,
}

#[derive(Deserialize)]
struct Charged {
    amount: String,
    currency: String,
    cost_type: Option<String>,
    description: Option<String>,
    model: Option<String>,
    service_tier: Option<String>,
    context_window: Option<String>,
    token_type: Option<String>,
}

pub(super) fn query(ask: &Ask<'_>) -> (&'static str, Vec<(&'static str, String)>) {
    let (path, groups) = match ask.part {
        ReportKind::Usage => (
            "/v1/organizations/usage_report/messages",
            &["api_key_id", "model", "service_tier", "context_window"][..],
        ),
        ReportKind::Costs => ("/v1/organizations/cost_report", &["description"][..]),
    };
    let mut query = vec![
        ("starting_at", iso(ask.from)),
        ("ending_at", iso(ask.until)),
        ("bucket_width", "1d".to_owned()),
        ("limit", MAX_DAYS.to_string()),
    ];
    query.extend(groups.iter().map(|group| ("group_by[]", (*group).to_owned())));
    query.extend(ask.page.map(|page| ("page", page.to_owned())));
    (path, query)
}

fn iso(time: Timestamp) -> String {
    time.to_utc().format("%Y-%m-%dT%H:%M:%SZ").to_string()
}

pub(super) fn read(part: ReportKind, text: &str) -> Result<Page, Unreadable> {
    match part {
        ReportKind::Usage => pages(text, |page: &mut Page, day, used: AnthropicUse| {
            page.usage.push(usage(day, used));
            Ok(())
        }),
        ReportKind::Costs => pages(text, |page: &mut Page, day, charged: Charged| {
            page.costs.push(cost(day, charged)?);
            Ok(())
        }),
    }
}

/// What is billed at a rate of its own.
fn variant(tier: Option<String>, context: Option<String>) -> String {
    format!("{} {}", tier.unwrap_or_default(), context.unwrap_or_default())
}

fn usage(day: Timestamp, used: AnthropicUse) -> UsageLine {
    let created = used.cache_creation.unwrap_or_default();
    UsageLine {
        day,
        model: used.model.unwrap_or_default(),
        api_key: used.api_key_id,
        variant: variant(used.service_tier, used.context_window),
        tokens: Tokens {
            input: used.uncached_input_tokens,
            cache_read: used.cache_read_input_tokens,
            cache_write_5m: created.ephemeral_5m_input_tokens,
            cache_write_1h: created.ephemeral_1h_input_tokens,
            output: used.output_tokens,
        },
    }
}

fn cost(day: Timestamp, charged: Charged) -> Result<CostLine, Unreadable> {
    in_dollars(&charged.currency)?;
    let kind = charged.token_type.as_deref().and_then(kind_of);
    let what = charged.description.or(charged.cost_type).unwrap_or_default();
    Ok(CostLine {
        day,
        model: charged.model,
        api_key: None,
        variant: variant(charged.service_tier, charged.context_window),
        kind,
        what,
        amount: amount(&charged.amount, 2)?,
    })
}
