//! The likeliest cause of a difference.

use super::{Compared, UsedBy};
use crate::domain::clock::Timestamp;
use crate::domain::invoice::{DAY_MS, Tokens};
use crate::domain::money::NanoUsd;

/// Why the two sides differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Cause {
    /// The vendor's report may still lack some of the day's use.
    ReportNotComplete,
    /// The day beside it differs by as much the other way: requests around midnight.
    OtherDay,
    /// The tokens are as many, of other kinds: such as another lifetime of the cache.
    OtherKind,
    /// Requests failed, or were cut off, after they had been sent; the vendor bills them.
    FailedAfterSent,
    /// The key, or the vendor's web pages, are used without the gateway.
    OutsideGateway,
    /// The tokens are equal: the price table has other rates than the vendor.
    PriceChanged,
    /// The gateway knew no price.
    NoPrice,
    /// A charge that is not for tokens.
    UnknownFee,
    /// A charge of its own on the invoice, which the ledger counts with the model's requests.
    CountedWithModel,
    /// The vendor does not report it: another organization or key, a commitment, an estimate.
    NotInReport,
}

impl Cause {
    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// What it means, for people.
    pub const fn text(self) -> &'static str {
        match self {
            Self::ReportNotComplete => "the vendor's report of this day may not be complete yet",
            Self::OtherDay => "counted on the day before or after",
            Self::OtherKind => "counted as another kind of tokens",
            Self::FailedAfterSent => "requests failed or were cut off after they had been sent",
            Self::OutsideGateway => "use outside the gateway",
            Self::PriceChanged => "the vendor's price differs from the price table",
            Self::NoPrice => "the gateway knew no price",
            Self::UnknownFee => "a charge that the ledger does not have",
            Self::CountedWithModel => "the ledger counts this charge with the model's requests",
            Self::NotInReport => "not in the vendor's report",
        }
    }
}

/// Half a cent, or a thousandth: roundings of the vendor.
fn is_equal(a: NanoUsd, b: NanoUsd) -> bool {
    let difference = (a - b).0.saturating_abs();
    difference <= 5_000_000 || difference <= a.0.saturating_abs().max(b.0.saturating_abs()) / 1000
}

/// Gives every difference its cause.
pub(super) fn judge(rows: &mut [Compared], complete_until: Timestamp) {
    let causes: Vec<Option<Cause>> = rows.iter().map(|row| of(row, rows, complete_until)).collect();
    for (row, cause) in rows.iter_mut().zip(causes) {
        row.cause = cause;
    }
    match_fees(rows);
}

fn of(row: &Compared, all: &[Compared], complete_until: Timestamp) -> Option<Cause> {
    let is_complete = row.day.plus_ms(DAY_MS) <= complete_until;
    let tokens = row.tokens();
    let lacks = tokens.total() < 0 || row.money().is_some_and(|money| money < NanoUsd::ZERO);
    if row.part == UsedBy::Fee {
        return (row.money() != Some(NanoUsd::ZERO)).then_some(Cause::UnknownFee);
    }
    if tokens == Tokens::default() {
        let cause = of_money(row)?;
        let is_late = !is_complete && (lacks || row.vendor.cost.is_none());
        return Some(if is_late { Cause::ReportNotComplete } else { cause });
    }
    if row.part == UsedBy::NoKey {
        return Some(Cause::OutsideGateway);
    }
    if lacks && !is_complete {
        return Some(Cause::ReportNotComplete);
    }
    let is_beside = |other: &&Compared| {
        let days = (other.day.0 - row.day.0).abs() == DAY_MS;
        days && (other.part, &other.model) == (row.part, &row.model)
    };
    let cancels = |other: &Compared| other.tokens() + tokens == Tokens::default();
    Some(match tokens.total() {
        _ if all.iter().filter(is_beside).any(cancels) => Cause::OtherDay,
        0 => Cause::OtherKind,
        1.. if row.failed > 0 => Cause::FailedAfterSent,
        1.. => Cause::OutsideGateway,
        _ => Cause::NotInReport,
    })
}

/// The cause where the tokens are equal.
fn of_money(row: &Compared) -> Option<Cause> {
    let own = row.ledger.cost.unwrap_or_default();
    match row.vendor.cost {
        None => (own != NanoUsd::ZERO).then_some(Cause::NotInReport),
        Some(cost) if is_equal(cost, own) => None,
        Some(_) if row.part == UsedBy::NoKey => Some(Cause::OutsideGateway),
        Some(_) if row.unpriced > 0 => Some(Cause::NoPrice),
        Some(_) => Some(Cause::PriceChanged),
    }
}

/// A tool's charge is a line of its own on the invoice, and part of its request's cost in the
/// ledger. Where the fees of a day are as much as the ledger has beyond the vendor's rates for
/// equal tokens, the two explain each other.
fn match_fees(rows: &mut [Compared]) {
    let days: std::collections::BTreeSet<Timestamp> = rows.iter().map(|row| row.day).collect();
    for day in days {
        let belongs = |row: &Compared| {
            let is_fee = row.part == UsedBy::Fee && row.cause.is_some();
            let is_dearer = row.cause == Some(Cause::PriceChanged)
                && row.money().is_some_and(|money| money < NanoUsd::ZERO);
            row.day == day && (is_fee || is_dearer)
        };
        let of_part = |is_fee: bool| -> NanoUsd {
            let rows =
                rows.iter().filter(|row| belongs(row) && (row.part == UsedBy::Fee) == is_fee);
            rows.filter_map(Compared::money).sum()
        };
        let (fees, beyond) = (of_part(true), -of_part(false));
        if fees > NanoUsd::ZERO && is_equal(fees, beyond) {
            for row in rows.iter_mut().filter(|row| belongs(row)) {
                row.cause = Some(Cause::CountedWithModel);
            }
        }
    }
}
