//! The amount that a request reserves, over all providers that it can reach.

use std::sync::Arc;

use rust_decimal::Decimal;

use super::snapshot::Snapshot;
use crate::domain::batch::BatchAsk;
use crate::domain::endpoint::EndpointAsk;
use crate::domain::money::NanoUsd;
use crate::domain::named_model::NamedModel;
use crate::domain::price::{CostKind, Price};
use crate::domain::provider::Provider;
use crate::domain::usage::{ServiceTier, Usage};
use crate::policy::bill::PricedReply;
use crate::policy::reservation::{self, Forecast, OtherModel, Reservation, ReservedAt, Share};
use crate::policy::select::{self, SelectInput};
use crate::policy::units::{self, Figures};

impl Snapshot {
    /// The amount that a request reserves while it is in flight: by the price and multiplier of the
    /// most expensive provider that [`select::plan`] could choose. An open circuit or a reached
    /// limit excludes no provider: both may change before the request is sent.
    ///
    /// Each provider's price is the one that its reply would be billed by. No allocation.
    pub fn reservation(
        &self,
        mode: Reservation,
        ask: &SelectInput<'_>,
        forecast: &Forecast,
    ) -> NanoUsd {
        if mode == Reservation::Off {
            return NanoUsd::ZERO;
        }
        let reachable = self.providers.iter().filter(|provider| select::could_serve(ask, provider));
        let candidates = reachable.filter_map(|provider| {
            let price = self.price_for(ask.model, provider.upstream_model(ask.model))?;
            Some(ReservedAt {
                rates: &price.rates,
                max_output: price.max_output,
                multiplier: provider.multiplier(),
            })
        });
        // Most providers of a model share one price and one multiplier: each pair is computed once.
        let mut last: Option<ReservedAt<'_>> = None;
        let distinct = candidates.filter(move |next| {
            let same = last.is_some_and(|last| {
                std::ptr::eq(last.rates, next.rates) && last.multiplier == next.multiplier
            });
            last = Some(*next);
            !same
        });
        reservation::amount(mode, forecast, distinct)
    }

    /// What a request is expected to cost at one provider, in nano-dollars; the most without a price.
    pub fn expected_cost(&self, model: &str, provider: &Provider, forecast: &Forecast) -> u64 {
        if provider.auth.is_clients() {
            return 0;
        }
        let Some(price) = self.price_for(model, provider.upstream_model(model)) else {
            return u64::MAX;
        };
        let at = candidate(price, provider.multiplier());
        let amount = reservation::amount(Reservation::Expected, forecast, [at]);
        u64::try_from(amount.0).unwrap_or(0)
    }

    /// What a request to an endpoint reserves: the price of its unit, or of the tokens that are
    /// estimated from it, at the dearest provider that it can reach.
    pub fn reservation_of_units(
        &self,
        mode: Reservation,
        ask: &SelectInput<'_>,
        forecast: &Forecast,
        asked: &EndpointAsk,
    ) -> NanoUsd {
        let input = if mode == Reservation::Strict { forecast.input_bound } else { forecast.input };
        let find = |name: &str| self.price_for(name, name).map(AsRef::as_ref);
        let reachable = self.providers.iter().filter(|provider| select::could_serve(ask, provider));
        let amounts = reachable.filter_map(|provider| {
            let upstream = provider.upstream_model(ask.model);
            let own = self.price_for(ask.model, upstream).map(AsRef::as_ref);
            let usage = Usage { input, ..Usage::default() };
            let reported = Figures { usage, estimated: true, ..Figures::default() };
            let (named, multiplier) = ([ask.model, upstream], provider.multiplier());
            let reply = PricedReply { own, asked: named, find, multiplier };
            let mut figures = units::charged(asked, upstream, own, find, reported);
            let by_unit = reply.charge(&figures.usage, &mut figures.parts);
            // If the provider reports tokens, these are charged.
            let by_tokens = reply.charge(&units::as_tokens(asked, usage), &mut []);
            by_unit.max(by_tokens)
        });
        amounts.max().unwrap_or(NanoUsd::ZERO)
    }

    /// What a batch reserves: the estimates of all its requests, at the dearest provider that it can
    /// reach.
    pub fn reservation_of_batch(
        &self,
        mode: Reservation,
        ask: &SelectInput<'_>,
        batch: &BatchAsk,
        usual: impl Fn(&str) -> Option<u64>,
    ) -> NanoUsd {
        let reachable = self.providers.iter().filter(|provider| select::could_serve(ask, provider));
        let amounts =
            reachable.map(|provider| self.estimate_of_batch(mode, provider, batch, &usual).1);
        amounts.max().unwrap_or(NanoUsd::ZERO)
    }

    /// What a batch probably uses at a provider, and costs there. `usual`: the output that a reply
    /// of this model usually has. A model without a price costs nothing.
    pub fn estimate_of_batch(
        &self,
        mode: Reservation,
        provider: &Provider,
        batch: &BatchAsk,
        usual: impl Fn(&str) -> Option<u64>,
    ) -> (Usage, NanoUsd) {
        let none = Usage { tier: ServiceTier::Batch, ..Usage::default() };
        batch.groups.iter().fold((none, NanoUsd::ZERO), |(sum, cost), group| {
            let model = batch.models.get(group.model).map_or("", String::as_str);
            let price = self.price_for(model, provider.upstream_model(model));
            let Some(price) = price else { return (sum, cost) };
            let at = candidate(price, provider.multiplier());
            let (usage, amount) = reservation::of_batch(mode, group, usual(model), &at);
            let input = sum.input.saturating_add(usage.input);
            let output = sum.output.saturating_add(usage.output);
            (Usage { input, output, ..sum }, cost.saturating_add(amount))
        })
    }

    /// What a request reserves beside `own`, the amount for its own model: for the models that it
    /// names elsewhere, and for searches that it bounds. `uses`: the bound on the uses of a tool.
    pub fn reservation_beside(
        &self,
        mode: Reservation,
        ask: &SelectInput<'_>,
        forecast: &Forecast,
        own: NanoUsd,
        uses: Option<u64>,
    ) -> NanoUsd {
        if mode == Reservation::Off || (ask.named.is_empty() && uses.is_none()) {
            return own;
        }
        let reachable =
            || self.providers.iter().filter(|provider| select::could_serve(ask, provider));
        let multiplier = reachable().map(|provider| provider.multiplier()).max();
        let multiplier = multiplier.unwrap_or(Decimal::ONE);
        let others = ask.named.iter().filter_map(|named| {
            let price = if named.is_providers_choice() {
                self.dearest_relative(mode, ask.model)?
            } else {
                self.price_for(&named.name, &named.name)?
            };
            let share = match named.member {
                NamedModel::FALLBACKS => Share::After,
                "models" | "generationConfig.routingConfig" => Share::Instead,
                _ => Share::Beside(uses.unwrap_or(1)),
            };
            Some(OtherModel { candidate: candidate(price, multiplier), share })
        });
        let all = reservation::with_others(mode, forecast, own, others);
        let searches = reachable().filter_map(|provider| {
            let price = self.price_for(ask.model, provider.upstream_model(ask.model))?;
            Some(reservation::searches(mode, uses?, &candidate(price, multiplier)))
        });
        all.saturating_add(searches.max().unwrap_or(NanoUsd::ZERO))
    }

    /// The model that a provider may choose itself (`fallbacks: "default"`), as `strict` assumes:
    /// the dearest one whose name begins as that of the requested one, such as `claude-`. The other
    /// modes assume none: it is hardly ever chosen.
    pub fn dearest_relative(&self, mode: Reservation, model: &str) -> Option<&Price> {
        let (family, _) = model.split_once('-').filter(|_| mode == Reservation::Strict)?;
        let is_relative = |price: &&Arc<Price>| {
            price.model.strip_prefix(family).is_some_and(|rest| rest.starts_with('-'))
        };
        let relatives = self.prices.values().filter(is_relative);
        let rate = |price: &Arc<Price>| price.rates.base(CostKind::Output);
        let dearest = relatives.max_by(|a, b| (rate(a), &a.model).cmp(&(rate(b), &b.model)));
        dearest.map(AsRef::as_ref)
    }
}

fn candidate(price: &Price, multiplier: Decimal) -> ReservedAt<'_> {
    ReservedAt { rates: &price.rates, max_output: price.max_output, multiplier }
}
