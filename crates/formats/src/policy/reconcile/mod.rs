//! Compares what a vendor bills with what the ledger has, by UTC day and model, and names the
//! likeliest cause of each difference. Tokens must be equal; money may differ by roundings.

mod cause;
mod names;
mod shares;

use std::collections::{BTreeMap, BTreeSet};

pub use cause::Cause;

use self::names::VendorNames;
use self::shares::Shares;
use crate::domain::clock::Timestamp;
use crate::domain::invoice::{CostLine, DAY_MS, LedgerLine, Tokens, UsageLine, VendorReport};
use crate::domain::money::NanoUsd;

/// What of a report is the provider's.
#[derive(Debug, Clone, Copy)]
pub struct Scope<'a> {
    /// The vendor's ids of the API keys that the gateway uses; empty: all.
    pub api_keys: &'a [String],
    /// Days that end after this may still lack some of their use.
    pub complete_until: Timestamp,
}

/// Tokens and money of one side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Side {
    /// Tokens.
    pub tokens: Tokens,
    /// Money; `None`: the side says nothing of it.
    pub cost: Option<NanoUsd>,
}

/// Whose use a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum UsedBy {
    /// That of the provider's keys.
    Provider,
    /// Use of the vendor's own web pages, which has no API key.
    NoKey,
    /// A charge that is not for tokens.
    Fee,
}

/// One day and model on both sides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compared {
    /// The start of the day, UTC.
    pub day: Timestamp,
    /// The model, or the vendor's words for a charge.
    pub model: String,
    /// Whose use it is.
    pub part: UsedBy,
    /// The models that clients asked for.
    pub requested: BTreeSet<String>,
    /// The vendor's ids of the API keys with this use.
    pub api_keys: BTreeSet<String>,
    /// The vendor's side.
    pub vendor: Side,
    /// The ledger's side.
    pub ledger: Side,
    /// The ledger's requests.
    pub requests: i64,
    /// Those of them that failed, or whose use was estimated.
    pub failed: i64,
    /// Those of them without a price.
    pub unpriced: i64,
    /// Why the sides differ; `None`: they are equal.
    pub cause: Option<Cause>,
}

impl Compared {
    /// The vendor's tokens beyond the ledger's.
    pub fn tokens(&self) -> Tokens {
        self.vendor.tokens - self.ledger.tokens
    }

    /// The vendor's money beyond the ledger's; `None`: the vendor says nothing of it.
    pub fn money(&self) -> Option<NanoUsd> {
        self.vendor.cost.map(|cost| cost - self.ledger.cost.unwrap_or_default())
    }
}

/// The difference of a whole day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DayTotal {
    /// The start of the day, UTC.
    pub day: Timestamp,
    /// The vendor's money beyond the ledger's.
    pub money: NanoUsd,
    /// The cause of the largest difference of the day.
    pub cause: Option<Cause>,
}

type Rows = BTreeMap<(Timestamp, UsedBy, String), Compared>;

/// Compares the two sides.
pub fn compare(report: &VendorReport, ledger: &[LedgerLine], scope: Scope<'_>) -> Vec<Compared> {
    let names = VendorNames::new(ledger, report.by_description);
    let mut rows = Rows::new();
    for line in ledger {
        add_ledger(&mut rows, names.of(&line.upstream_model), line);
    }
    let mut shares = Shares::default();
    for line in &report.usage {
        let (name, part) = (names.of(&line.model), part_of(line, report, scope));
        shares.note(&name, part, line);
        if let Some(part) = part {
            let row = row(&mut rows, line.day, part, name);
            row.vendor.tokens += line.tokens;
            row.api_keys.extend(line.api_key.clone());
        }
    }
    for line in &report.costs {
        add_cost(&mut rows, &names, &shares, line, report, scope);
    }
    let mut all: Vec<Compared> = rows.into_values().collect();
    cause::judge(&mut all, scope.complete_until);
    all
}

/// The totals of the days that are complete.
pub fn day_totals(compared: &[Compared], complete_until: Timestamp) -> Vec<DayTotal> {
    let mut days: BTreeMap<Timestamp, (NanoUsd, NanoUsd, Option<Cause>)> = BTreeMap::new();
    for row in compared.iter().filter(|row| row.day.plus_ms(DAY_MS) <= complete_until) {
        let Some(money) = row.money() else { continue };
        let (sum, largest, cause) = days.entry(row.day).or_default();
        *sum += money;
        let size = NanoUsd(money.0.saturating_abs());
        if row.cause.is_some() && size >= *largest {
            (*largest, *cause) = (size, row.cause);
        }
    }
    days.into_iter().map(|(day, (money, _, cause))| DayTotal { day, money, cause }).collect()
}

/// Whose use it is; `None`: another key's.
fn part_of(line: &UsageLine, report: &VendorReport, scope: Scope<'_>) -> Option<UsedBy> {
    match &line.api_key {
        Some(key) if scope.api_keys.is_empty() || scope.api_keys.contains(key) => {
            Some(UsedBy::Provider)
        }
        Some(_) => None,
        None if report.by_description => Some(UsedBy::Provider),
        None if scope.api_keys.is_empty() => Some(UsedBy::NoKey),
        None => None,
    }
}

fn row(rows: &mut Rows, day: Timestamp, part: UsedBy, model: String) -> &mut Compared {
    rows.entry((day, part, model.clone())).or_insert_with(|| Compared {
        day,
        model,
        part,
        requested: BTreeSet::new(),
        api_keys: BTreeSet::new(),
        vendor: Side::default(),
        ledger: Side::default(),
        requests: 0,
        failed: 0,
        unpriced: 0,
        cause: None,
    })
}

fn add_ledger(rows: &mut Rows, name: String, line: &LedgerLine) {
    let row = row(rows, line.day, UsedBy::Provider, name);
    row.requested.insert(line.model.clone());
    row.ledger.tokens += line.tokens;
    row.ledger.cost = Some(row.ledger.cost.unwrap_or_default() + line.cost);
    row.requests += line.requests;
    row.failed += line.failed;
    row.unpriced += line.unpriced;
}

fn add_cost(
    rows: &mut Rows,
    names: &VendorNames,
    shares: &Shares,
    line: &CostLine,
    report: &VendorReport,
    scope: Scope<'_>,
) {
    let is_of_another = |key: &String| {
        report.costs_by_key && !scope.api_keys.is_empty() && !scope.api_keys.contains(key)
    };
    if line.api_key.as_ref().is_some_and(is_of_another) {
        return;
    }
    let add = |row: &mut Compared, amount: NanoUsd| {
        row.vendor.cost = Some(row.vendor.cost.unwrap_or_default() + amount);
    };
    let (Some(model), Some(kind)) = (&line.model, line.kind) else {
        return add(row(rows, line.day, UsedBy::Fee, line.what.clone()), line.amount);
    };
    let name = names.of(model);
    if line.api_key.is_some() {
        return add(row(rows, line.day, UsedBy::Provider, name), line.amount);
    }
    for (part, amount) in shares.split(&name, kind, line) {
        add(row(rows, line.day, part, name.clone()), amount);
    }
}

#[cfg(test)]
mod tests;
