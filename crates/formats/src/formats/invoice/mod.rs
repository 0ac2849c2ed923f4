//! Vendors' reports of use and cost: the queries of their APIs, the pages of the answers, and the
//! billing files of vendors that have no such API.
//!
//! Days are those of UTC, amounts exact. What a reader does not know it keeps as the vendor's
//! words, so that no charge is lost.

mod anthropic;
mod billing_file;
mod openai;

use std::str::FromStr as _;

use rust_decimal::Decimal;
use serde::Deserialize;

pub use billing_file::{FileKind, read_file, reduce};

use crate::domain::clock::Timestamp;
use crate::domain::invoice::{CostLine, DAY_MS, InvoiceKind, TokenKind, UsageLine};
use crate::domain::money::NanoUsd;

/// The most days of one comparison: the most that a page of daily buckets has.
pub const MAX_DAYS: i64 = 31;

/// Which of a vendor's two reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReportKind {
    /// Tokens.
    Usage,
    /// Money.
    Costs,
}

/// What is asked of a report.
#[derive(Debug, Clone, Copy)]
pub struct Ask<'a> {
    /// Which report.
    pub part: ReportKind,
    /// The start of the first day.
    pub from: Timestamp,
    /// The end of the last day.
    pub until: Timestamp,
    /// Whether charges are to be split by API key, where the vendor can.
    pub by_key: bool,
    /// The page's name in the answer before.
    pub page: Option<&'a str>,
}

/// One page of a report.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// Tokens.
    pub usage: Vec<UsageLine>,
    /// Money.
    pub costs: Vec<CostLine>,
    /// The name of the next page; `None`: this is the last.
    pub next: Option<String>,
}

/// Why an answer or a file is not one; the text can be shown to an administrator.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unreadable(pub String);

/// The path and the query of a report.
pub fn query(kind: InvoiceKind, ask: &Ask<'_>) -> (&'static str, Vec<(&'static str, String)>) {
    match kind {
        InvoiceKind::Anthropic => anthropic::query(ask),
        InvoiceKind::OpenAi => openai::query(ask),
    }
}

/// Reads a page.
///
/// # Errors
/// It is not of the form that the vendor documents, or its amounts are not in US dollars.
pub fn read(kind: InvoiceKind, part: ReportKind, text: &str) -> Result<Page, Unreadable> {
    match kind {
        InvoiceKind::Anthropic => anthropic::read(part, text),
        InvoiceKind::OpenAi => openai::read(part, text),
    }
}

#[derive(Deserialize)]
struct Answer<R> {
    data: Vec<ReportBucket<R>>,
    has_more: bool,
    next_page: Option<String>,
}

#[derive(Deserialize)]
struct ReportBucket<R> {
    #[serde(alias = "starting_at", alias = "start_time")]
    start: Start,
    results: Vec<R>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Start {
    Seconds(i64),
    Time(chrono::DateTime<chrono::Utc>),
}

/// A page of daily buckets, whose results `add` puts into it.
fn pages<R: for<'de> Deserialize<'de>>(
    text: &str,
    add: impl Fn(&mut Page, Timestamp, R) -> Result<(), Unreadable>,
) -> Result<Page, Unreadable> {
    let form = |error| Unreadable(format!("the report is not of the documented form: {error}"));
    let answer: Answer<R> = serde_json::from_str(text).map_err(form)?;
    let mut page = Page { next: answer.next_page.filter(|_| answer.has_more), ..Page::default() };
    if answer.has_more && page.next.is_none() {
        return Err(Unreadable("the report has more pages, and does not name the next".to_owned()));
    }
    for bucket in answer.data {
        let start = match bucket.start {
            Start::Seconds(seconds) => Timestamp(seconds.saturating_mul(1000)),
            Start::Time(time) => Timestamp::from(time),
        };
        for result in bucket.results {
            add(&mut page, day_of(start), result)?;
        }
    }
    Ok(page)
}

/// The start of the UTC day.
fn day_of(time: Timestamp) -> Timestamp {
    Timestamp(time.0.saturating_sub(time.0.rem_euclid(DAY_MS)))
}

/// A decimal number with or without an exponent, times ten to the power of `-shift`.
fn amount(text: &str, shift: u32) -> Result<NanoUsd, Unreadable> {
    let text = text.trim().trim_matches('"');
    let decimal = Decimal::from_str(text).or_else(|_| Decimal::from_scientific(text));
    let scale = Decimal::new(1, shift);
    let nanos = decimal.ok().and_then(|d| d.checked_mul(scale)).and_then(NanoUsd::from_decimal);
    nanos.ok_or_else(|| Unreadable(format!("the amount {text:.40} cannot be read")))
}

/// Refuses amounts of another currency: they cannot be compared with the ledger.
fn in_dollars(currency: &str) -> Result<(), Unreadable> {
    match currency.eq_ignore_ascii_case("usd") {
        true => Ok(()),
        false => Err(Unreadable(format!(
            "the amounts are in {currency:.10}: the ledger has US dollars, so only token counts of \
             such a vendor can be compared by hand"
        ))),
    }
}

/// The kind of tokens that a vendor's words name.
fn kind_of(words: &str) -> Option<TokenKind> {
    let words = words.to_ascii_lowercase();
    let has = |part: &str| words.contains(part);
    if has("cach") && (has("write") || has("creation") || has("storage")) {
        let is_long = ["1h", "1 h", "1-h", "1_h", "one hour"].into_iter().any(has);
        return Some(if is_long { TokenKind::CacheWrite1h } else { TokenKind::CacheWrite5m });
    }
    if has("cach") && (has("read") || has("input") || has("hit")) {
        Some(TokenKind::CacheRead)
    } else if has("output") || has("response") {
        Some(TokenKind::Output)
    } else if has("input") || has("prompt") {
        Some(TokenKind::Input)
    } else {
        None
    }
}

#[cfg(test)]
mod tests;
