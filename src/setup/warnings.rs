//! What a start and `tollgate check` warn of: settings and prices without an effect.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::config::Config;
use crate::domain::price::{Price, PriceSource};
use crate::domain::provider::{InstructionsStrategy, Provider, ProviderType};
use crate::policy::price;
use crate::state::Snapshot;

/// Bounds of the report about prices that are not applied: the public list has thousands of
/// entries.
const GROUPS_SHOWN: usize = 20;
const FIELDS_SHOWN: usize = 4;
const MODELS_SHOWN: usize = 5;

/// Warnings of prices that no request is charged by: one for all entries of the shipped table, and
/// each set of fields of the operator's own.
pub(crate) fn prices(snapshot: &Snapshot) -> Vec<String> {
    let all: BTreeMap<_, _> = snapshot.prices.iter().collect();
    let unapplied = |price: &Price| price::unapplied(&price.data.parse());
    let (shipped, own): (Vec<_>, Vec<_>) =
        all.into_values().partition(|price| price.source == PriceSource::Seed);
    let count = shipped.into_iter().filter(|price| !unapplied(price).is_empty()).count();
    let shipped = (count > 0).then(|| {
        format!(
            "the shipped entries of {count} models have prices that are not applied; the web UI \
             shows them at each model"
        )
    });
    let own = own.iter().map(|price| (price.model.as_str(), unapplied(price)));
    shipped.into_iter().chain(unapplied_prices(own)).collect()
}

/// A warning of the providers that are to replace instructions, if there is no text to replace them
/// by.
pub(crate) fn without_instructions(config: &Config, snapshot: &Snapshot) -> Option<String> {
    let texts = &config.instructions;
    if texts.short_file.is_some() || texts.long_file.is_some() {
        return None;
    }
    let is_idle = |provider: &&Arc<Provider>| {
        provider.kind == ProviderType::Responses
            && provider.instructions != InstructionsStrategy::KeepOriginal
    };
    let idle = snapshot.providers.iter().filter(is_idle);
    let names: Vec<&str> = idle.map(|provider| provider.name.as_str()).collect();
    let named = first(&names, MODELS_SHOWN);
    (!names.is_empty()).then(|| {
        format!(
            "instructions_strategy has no effect on the providers {named}: set \
             instructions.short_file or instructions.long_file"
        )
    })
}

/// The first names of a list, and the number of the others.
fn first(names: &[&str], shown: usize) -> String {
    let text = names.iter().take(shown).copied().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(shown) {
        0 => text,
        more => format!("{text} and {more} more"),
    }
}

/// A warning for each set of price fields that no request is charged by, with the models that have
/// them.
fn unapplied_prices<'a>(entries: impl Iterator<Item = (&'a str, Vec<String>)>) -> Vec<String> {
    let mut models_of: BTreeMap<Vec<String>, Vec<&str>> = BTreeMap::new();
    for (model, fields) in entries.filter(|(_, fields)| !fields.is_empty()) {
        models_of.entry(fields).or_default().push(model);
    }
    let mut groups: Vec<_> = models_of.into_iter().collect();
    groups.sort_by_key(|(_, models)| std::cmp::Reverse(models.len()));
    let left_out = groups.len().saturating_sub(GROUPS_SHOWN);
    let mut warnings: Vec<String> = groups
        .iter()
        .take(GROUPS_SHOWN)
        .map(|(fields, models)| {
            let fields: Vec<&str> = fields.iter().map(String::as_str).collect();
            format!(
                "prices that are not applied: {} of {}",
                first(&fields, FIELDS_SHOWN),
                first(models, MODELS_SHOWN)
            )
        })
        .collect();
    if left_out > 0 {
        warnings.push(format!(
            "prices that are not applied: {left_out} more groups of fields; the web UI shows them \
             at each model"
        ));
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_that_are_not_applied_are_reported_in_groups() {
        let fields =
            |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let names: Vec<String> = (0..7).map(|n| format!("m{n}")).collect();
        let same = names.iter().map(|name| (name.as_str(), fields(&["a_cost", "b_cost"])));
        let other = [("x", fields(&["c_cost"])), ("fine", Vec::new())];
        assert_eq!(
            unapplied_prices(other.into_iter().chain(same)),
            [
                "prices that are not applied: a_cost, b_cost of m0, m1, m2, m3, m4 and 2 more",
                "prices that are not applied: c_cost of x",
            ]
        );
        let many: Vec<(String, String)> =
            (0..23).map(|n| (format!("m{n}"), format!("cost_{n:02}"))).collect();
        let warnings =
            unapplied_prices(many.iter().map(|(model, field)| (model.as_str(), fields(&[field]))));
        assert_eq!(warnings.len(), GROUPS_SHOWN + 1);
        assert!(warnings.last().unwrap().contains("3 more groups"), "{warnings:?}");
    }
}
