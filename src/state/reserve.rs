//! The amount that a request reserves, over all providers that it can reach.

use super::snapshot::Snapshot;
use crate::domain::money::NanoUsd;
use crate::policy::reservation::{self, Candidate, Forecast, Reservation};
use crate::policy::select::{self, SelectInput};

impl Snapshot {
    /// The amount that a request reserves while it is in flight: by the price and multiplier of the
    /// most expensive provider that [`select::plan`] could choose. An open circuit or a reached
    /// limit excludes no provider: both may change before the request is sent.
    ///
    /// Each provider's price is the one that its reply would be billed by. No allocation.
    #[must_use]
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
            Some(Candidate {
                rates: &price.rates,
                max_output: price.max_output,
                multiplier: provider.cost_multiplier,
            })
        });
        // Most providers of a model share one price and one multiplier: each pair is computed once.
        let mut last: Option<Candidate<'_>> = None;
        let distinct = candidates.filter(move |next| {
            let same = last.is_some_and(|last| {
                std::ptr::eq(last.rates, next.rates) && last.multiplier == next.multiplier
            });
            last = Some(*next);
            !same
        });
        reservation::amount(mode, forecast, distinct)
    }
}
