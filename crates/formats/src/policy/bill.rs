//! What a reply costs that has parts with a price of their own.
//!
//! A reply with passes over models is charged for the tokens of each pass, by the entry of its
//! model, at its own length and tier; beside them once for what is not per token (the fee per
//! request, web searches), by the entry of the requested model. Another reply is charged for its
//! tokens by one entry. Tools that the provider ran are added: images by the tokens of their model,
//! others by the fee in the requested model's entry or in [`TOOLS`]. The sum is rounded once.
//!
//! A part without a price is charged as nothing. A pass that made the reply, over a model without
//! one, is charged by the entry of the requested model; without that, the reply has no price.

use rust_decimal::Decimal;

use super::cost::{self, CostLine};
use super::price_name;
use crate::domain::feature::Feature;
use crate::domain::feature_policy::FeatureUse;
use crate::domain::fee::{Fee, TOOLS};
use crate::domain::money::NanoUsd;
use crate::domain::part::{Part, PartKind};
use crate::domain::price::{CostKind, Price};
use crate::domain::usage::Usage;

/// The model that makes images if neither the request nor the reply names one.
pub const IMAGES: &str = "gpt-image-2.6-sunburst";

/// A reply, and where its prices are.
pub struct PricedReply<'a, 'n, F> {
    /// The entry of the requested model.
    pub own: Option<&'a Price>,
    /// The requested model, and the one that the provider was asked for.
    pub asked: [&'n str; 2],
    /// The entry of any other model.
    pub find: F,
    /// The provider's multiplier.
    pub multiplier: Decimal,
}

/// Whether a tool's use can be charged. `own`: the entry of the requested model; `find`: that of
/// any other name.
pub fn is_priced<'a>(
    fee: Fee,
    own: Option<&Price>,
    find: impl Fn(&str) -> Option<&'a Price>,
) -> bool {
    let has = |price: Option<&Price>, kind| price.is_some_and(|p| p.rates.base(kind).is_some());
    match fee {
        Fee::Free => true,
        Fee::Rate(CostKind::WebSearch) => has(own, CostKind::WebSearch),
        Fee::Rate(kind) => has(own, kind) || has(find(TOOLS), kind),
        Fee::Container(entry) => {
            let kind = CostKind::CodeInterpreter;
            (entry == TOOLS && has(own, kind)) || has(find(entry), kind)
        }
        Fee::Images => find(IMAGES).is_some(),
        Fee::Unknown => false,
    }
}

/// Adds what only the request says: at whom the reply's queries were searched, and the size of its
/// containers.
pub fn as_asked(features: &[FeatureUse], usage: &mut Usage, parts: &mut Vec<Part>) {
    let is_elsewhere = features.iter().any(|used| used.feature == Feature::PartnerSearch);
    if is_elsewhere && usage.web_searches > 0 {
        let searches = std::mem::take(&mut usage.web_searches);
        parts.push(Part::calls(PartKind::PartnerSearch, searches));
    }
    let sizes = features.iter().filter_map(|used| match used.fee {
        Fee::Container(entry) if entry != TOOLS => Some(entry),
        _ => None,
    });
    for entry in sizes {
        let containers = parts.iter_mut().filter(|part| part.kind == PartKind::CodeInterpreter);
        containers.for_each(|part| part.model = Some(entry.into()));
    }
}

/// A line of a bill, and the entry that it is charged by.
#[derive(Debug, Clone, Copy)]
pub struct Line<'a> {
    /// The entry.
    pub price: &'a Price,
    /// What is charged for.
    pub line: CostLine,
}

impl<'a, F: Fn(&str) -> Option<&'a Price>> PricedReply<'a, '_, F> {
    /// The entry that prices a part.
    pub fn price(&self, part: &Part) -> Option<&'a Price> {
        let is_image = part.kind == PartKind::ImageGeneration;
        let model = part.model.as_deref().or(is_image.then_some(IMAGES));
        let Some(model) = model else { return self.own };
        if self.asked.iter().any(|asked| price_name::is_same(asked, model)) {
            return self.own;
        }
        // A provider may name the requested model in another way.
        (self.find)(model).or(self.own.filter(|_| part.kind.is_reply()))
    }

    /// The lines of one part: none if it is free, `None` without a price.
    fn part(&self, part: &Part) -> Option<Vec<Line<'a>>> {
        if part.free {
            return Some(Vec::new());
        }
        if let Some(kind) = fee(part.kind) {
            return self.tool(kind, part);
        }
        let price = self.price(part).filter(|_| part.usage != Usage::default())?;
        Some(cost::tokens(&price.rates, &part.usage).map(|line| Line { price, line }).collect())
    }

    /// The line of a tool that has a fee.
    fn tool(&self, kind: CostKind, part: &Part) -> Option<Vec<Line<'a>>> {
        let charged = |price: &'a Price| {
            cost::tool(&price.rates, kind, part.quantity).map(|line| Line { price, line })
        };
        if let Some(container) = &part.model {
            return (self.find)(container).and_then(charged).map(|line| vec![line]);
        }
        let line = self.own.and_then(charged);
        if part.kind == PartKind::WebSearch {
            // With a fee they are among the lines beside the parts.
            return line.map(|_| Vec::new());
        }
        line.or_else(|| (self.find)(TOOLS).and_then(charged)).map(|line| vec![line])
    }

    /// What is charged beside the parts.
    fn beside(&self, usage: &Usage, parts: &[Part]) -> Option<Vec<Line<'a>>> {
        let has_passes = parts.iter().any(|part| part.kind.is_pass());
        let Some(price) = self.own else { return has_passes.then(Vec::new) };
        let line = |line| Line { price, line };
        // Nothing was made, so nothing is charged.
        let passes = || parts.iter().filter(|part| part.kind.is_pass());
        if has_passes && passes().all(|part| part.free) {
            return Some(Vec::new());
        }
        let tokens = cost::tokens(&price.rates, usage).filter(|_| !has_passes);
        Some(tokens.chain(cost::fees(&price.rates, usage)).map(line).collect())
    }

    /// All lines, at the prices that there are now.
    pub fn lines(&self, usage: &Usage, parts: &[Part]) -> Vec<Line<'a>> {
        let each = parts.iter().filter_map(|part| self.part(part)).flatten();
        self.beside(usage, parts).into_iter().flatten().chain(each).collect()
    }

    /// Charges the parts that have no cost yet, where there is a price now; returns their sum.
    pub fn charge_late(&self, parts: &mut [Part]) -> NanoUsd {
        let mut added = NanoUsd::ZERO;
        for part in parts.iter_mut().filter(|part| part.cost.is_none() && !part.free) {
            let quantity = part.quantity;
            let fee = |price: &'a Price| {
                let line = cost::tool(&price.rates, CostKind::WebSearch, quantity)?;
                Some(vec![Line { price, line }])
            };
            let lines = match part.kind {
                PartKind::WebSearch => self.own.and_then(fee),
                _ => self.part(part),
            };
            if let Some(lines) = lines {
                added = added.saturating_add(self.put(part, &lines, sum(&lines)));
            }
        }
        added
    }

    /// Notes the cost of a part, and the entry; returns the cost.
    fn put(&self, part: &mut Part, lines: &[Line<'_>], sum: Decimal) -> NanoUsd {
        let cost = cost::rounded(sum, self.multiplier).min(NanoUsd::MAX_OF_REQUEST);
        part.cost = Some(cost);
        let entry = lines.first().map(|line| line.price.model.as_str());
        part.price_model = entry.filter(|entry| *entry != self.asked[0]).map(Into::into);
        cost
    }

    /// The cost, and that of each part; `None` if the reply has no price. A part without a price
    /// keeps the cost that it has.
    pub fn charge(&self, usage: &Usage, parts: &mut [Part]) -> Option<NanoUsd> {
        let beside = self.beside(usage, parts);
        let mut is_priced = beside.is_some();
        let (mut all, mut known) = (sum(beside.as_deref().unwrap_or_default()), NanoUsd::ZERO);
        for part in parts {
            let Some(lines) = self.part(part) else {
                is_priced &= !part.kind.is_reply();
                known = known.saturating_add(part.cost.unwrap_or_default());
                continue;
            };
            let own = sum(&lines);
            all = all.checked_add(own).unwrap_or(Decimal::MAX);
            self.put(part, &lines, own);
        }
        let total = cost::rounded(all, self.multiplier).saturating_add(known);
        is_priced.then(|| total.min(NanoUsd::MAX_OF_REQUEST))
    }
}

/// The fee of a tool that is not charged by tokens; `None` for one that is, and for passes.
const fn fee(kind: PartKind) -> Option<CostKind> {
    match kind {
        PartKind::CodeInterpreter => Some(CostKind::CodeInterpreter),
        PartKind::FileSearch => Some(CostKind::FileSearch),
        PartKind::WebSearch => Some(CostKind::WebSearch),
        PartKind::Maps => Some(CostKind::Maps),
        PartKind::Image => Some(CostKind::Image),
        PartKind::Second => Some(CostKind::Second),
        PartKind::Character => Some(CostKind::Character),
        PartKind::Query => Some(CostKind::Query),
        _ => None,
    }
}

fn sum(lines: &[Line<'_>]) -> Decimal {
    let amounts = lines.iter().map(|line| line.line.amount);
    amounts.fold(Decimal::ZERO, |sum, amount| sum.checked_add(amount).unwrap_or(Decimal::MAX))
}
