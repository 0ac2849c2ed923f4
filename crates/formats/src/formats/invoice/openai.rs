//! OpenAI's usage of completions (all text models) and costs of an organization. Times are in
//! seconds, amounts in dollars, and what a charge is for is a text: `gpt-5.1-2025-11-13, input`.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Ask, MAX_DAYS, Page, ReportKind, Unreadable, amount, in_dollars, kind_of, pages};
use crate::domain::clock::Timestamp;
use crate::domain::invoice::{CostLine, TokenKind, Tokens, UsageLine};

#[derive(Deserialize)]
struct OpenAiUse {
    /// Cached tokens and those written to a cache included.
    input_tokens: i64,
    #[serde(default)]
    input_cached_tokens: i64,
    #[serde(default)]
    input_cache_write_tokens: i64,
    output_tokens: i64,
    model: Option<String>,
    api_key_id: Option<String>,
}

#[derive(Deserialize)]
struct Charged {
    amount: Amount,
    line_item: Option<String>,
    #[serde(default)]
    api_key_id: Option<String>,
}

#[derive(Deserialize)]
struct Amount {
    /// A number, or a text with more digits than a binary fraction has.
    value: Box<RawValue>,
    currency: String,
}

pub(super) fn query(ask: &Ask<'_>) -> (&'static str, Vec<(&'static str, String)>) {
    let (path, groups) = match (ask.part, ask.by_key) {
        (ReportKind::Usage, _) => {
            ("/v1/organization/usage/completions", &["model", "api_key_id"][..])
        }
        (ReportKind::Costs, false) => ("/v1/organization/costs", &["line_item"][..]),
        (ReportKind::Costs, true) => ("/v1/organization/costs", &["line_item", "api_key_id"][..]),
    };
    let mut query = vec![
        ("start_time", (ask.from.0 / 1000).to_string()),
        ("end_time", (ask.until.0 / 1000).to_string()),
        ("bucket_width", "1d".to_owned()),
        ("limit", MAX_DAYS.to_string()),
    ];
    query.extend(groups.iter().map(|group| ("group_by", (*group).to_owned())));
    query.extend(ask.page.map(|page| ("page", page.to_owned())));
    (path, query)
}

pub(super) fn read(part: ReportKind, text: &str) -> Result<Page, Unreadable> {
    match part {
        ReportKind::Usage => pages(text, |page: &mut Page, day, used: OpenAiUse| {
            page.usage.push(usage(day, used));
            Ok(())
        }),
        ReportKind::Costs => pages(text, |page: &mut Page, day, charged: Charged| {
            page.costs.push(cost(day, charged)?);
            Ok(())
        }),
    }
}

fn usage(day: Timestamp, used: OpenAiUse) -> UsageLine {
    let (cached, written) = (used.input_cached_tokens, used.input_cache_write_tokens);
    UsageLine {
        day,
        model: used.model.unwrap_or_default(),
        api_key: used.api_key_id,
        variant: String::new(),
        tokens: Tokens {
            input: used.input_tokens.saturating_sub(cached).saturating_sub(written),
            cache_read: cached,
            cache_write_5m: written,
            cache_write_1h: 0,
            output: used.output_tokens,
        },
    }
}

fn cost(day: Timestamp, charged: Charged) -> Result<CostLine, Unreadable> {
    in_dollars(&charged.amount.currency)?;
    let what = charged.line_item.unwrap_or_default();
    let (model, kind) = of_item(&what);
    Ok(CostLine {
        day,
        model,
        api_key: charged.api_key_id,
        variant: String::new(),
        kind,
        amount: amount(charged.amount.value.get(), 0)?,
        what,
    })
}

/// The model and the kind of tokens of a line of the invoice; neither, of what has no model's name
/// before a comma.
fn of_item(item: &str) -> (Option<String>, Option<TokenKind>) {
    let Some((before, after)) = item.rsplit_once(", ") else { return (None, None) };
    let kind = kind_of(after);
    let model = before.split_whitespace().next().filter(|_| kind.is_some());
    (model.map(str::to_owned), kind)
}
