//! The sections `prices` and `forced_prices`: entries made by hand, by model.
//!
//! What came with the program or from the public list is not configuration: it is neither exported
//! nor removed. An entry of the document takes its place. `forced_prices` are
//! implausible ones, which `force` lets an administrator enter.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use serde_json::Value;

use super::faults::step as pointer;
use super::form::Form;
use super::section::{self, Section};
use super::work::Work;
use crate::admin::actions::prices::table::{Taking, read};
use crate::admin::envelope::{ApiError, Code};
use crate::domain::price::{Price, PriceSource};
use crate::policy::cost::{Belief, rates_from_json};

impl Section for Price {
    const KIND: &'static str = "price";

    /// An entry, and beside its own fields where it came from.
    fn form(&self) -> Result<Option<Form>, ApiError> {
        let mut form = match self.data.parse() {
            Value::Object(form) => form,
            _ => Form::new(),
        };
        form.insert("(source)".to_owned(), self.source.as_str().into());
        Ok(Some(form))
    }

    fn target(&self) -> String {
        format!("price {}", self.model)
    }
}

pub(super) async fn apply(
    work: &mut Work<'_>,
    entries: Form,
    forced: Form,
) -> Result<(), ApiError> {
    let stored: BTreeMap<String, Price> = std::mem::take(&mut work.stored.prices)
        .into_iter()
        .map(|price| (price.model.clone(), Arc::unwrap_or_clone(price)))
        .collect();
    let mut wanted = Vec::new();
    let mut named = HashSet::new();
    for (section, belief, entries) in
        [("prices", Belief::Usual, entries), ("forced_prices", Belief::Forced, forced)]
    {
        let taking = Taking {
            source: PriceSource::Manual,
            overwrite_manual: true,
            keep_seed: false,
            belief,
            now: work.desk.now,
        };
        for (model, entry) in entries {
            let at = format!("/{section}{}", pointer(&model));
            if !named.insert(model.trim().to_owned()) {
                work.faults.add(
                    Code::DUPLICATE_NAME,
                    &at,
                    "is there already, in the section `prices`",
                );
                continue;
            }
            match read(model.trim(), entry, taking) {
                Ok(price) => wanted.push(price),
                Err(fault) => work.faults.add(Code::INVALID_FORMAT, &at, &fault.words()),
            }
        }
    }
    if work.prune {
        for price in
            stored.values().filter(|p| p.source == PriceSource::Manual && !named.contains(&p.model))
        {
            if work.is_sound() {
                work.tx.delete_price(&price.model).await?;
            }
            section::note(work, price.model.clone(), Some(price), None)?;
        }
    }
    let same = |price: &Price| {
        stored.get(&price.model).is_some_and(|before| before.form().ok() == price.form().ok())
    };
    wanted.retain(|price| !same(price));
    if work.is_sound() {
        work.tx.upsert_prices(&wanted).await?;
    }
    work.prices_changed |= !wanted.is_empty();
    for price in &wanted {
        section::note(work, price.model.clone(), stored.get(&price.model), Some(price))?;
    }
    Ok(())
}

/// The entries made by hand, and those of them that must be forced.
pub(super) fn exported(prices: &[Arc<Price>]) -> (Form, Form) {
    let mut by_hand: Vec<&Price> = prices
        .iter()
        .map(Arc::as_ref)
        .filter(|price| price.source == PriceSource::Manual)
        .collect();
    by_hand.sort_by(|a, b| a.model.cmp(&b.model));
    let entry = |price: &&Price| (price.model.clone(), price.data.parse());
    let (usual, forced): (Vec<&Price>, Vec<&Price>) = by_hand
        .into_iter()
        .partition(|price| rates_from_json(&price.data.parse(), Belief::Usual).is_ok());
    (usual.iter().map(entry).collect(), forced.iter().map(entry).collect())
}
