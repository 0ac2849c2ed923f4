//! The thirteen checks, in the order of docs/limits-and-money.md; the first limit that is reached
//! refuses.

use super::admission::{Admission, Amount, Denied, Exceeds};
use super::held::HeldAmounts;
use super::holder::Pair;
use super::sessions::Slot;
use super::settings::CounterSettings;
use super::standing::{MoneyLeft, RequestsLeft, Standing};
use crate::domain::limit_type::{LimitFigure, LimitType};
use crate::domain::limits::Period;
use crate::domain::money::NanoUsd;
use crate::policy::reservation::Reservation;

/// Checks a request against its key's and its user's limits, and returns the remaining amount of
/// the tightest. The figures must be up to date.
pub(super) fn all(
    pair: &mut Pair<'_>,
    admission: &Admission<'_>,
    slot: &Slot,
    settings: &CounterSettings,
) -> Result<Standing, Denied> {
    let mut checks = Checks { pair, admission, slot, settings, tightest: None };
    LimitType::IN_ORDER.into_iter().try_for_each(|limit| checks.check(limit))?;
    let requests = RequestsLeft::after(admission.user.rpm, checks.pair.rpm.count(), admission.now);
    Ok(Standing { requests, money: checks.tightest })
}

/// Under strict reservation: whether the request could exceed a limit together with those in
/// flight. If no other request is in flight, it passes (docs/limits-and-money.md).
pub(super) fn strict(
    held: HeldAmounts,
    estimate: NanoUsd,
    limit: NanoUsd,
    mode: Reservation,
) -> Option<Exceeds> {
    let exceeds = Exceeds::of(held, estimate);
    let refused = mode == Reservation::Strict
        && exceeds.reserved > NanoUsd::ZERO
        && held.both() + exceeds.own > limit;
    refused.then_some(exceeds)
}

struct Checks<'a, 'b> {
    pair: &'a mut Pair<'b>,
    admission: &'a Admission<'a>,
    slot: &'a Slot,
    settings: &'a CounterSettings,
    /// The tightest of the money limits that were checked so far.
    tightest: Option<MoneyLeft>,
}

impl Checks<'_, '_> {
    fn check(&mut self, limit_type: LimitType) -> Result<(), Denied> {
        match limit_type.figure() {
            LimitFigure::Money(period) => self.spending(limit_type, period).map_or(Ok(()), Err),
            LimitFigure::Sessions => self.sessions(limit_type),
            LimitFigure::Requests => self.requests(limit_type),
        }
    }

    /// The refusal, if the limit is reached.
    fn spending(&mut self, limit_type: LimitType, period: Period) -> Option<Denied> {
        let limits = self.admission.limits(limit_type);
        let limit = period.limit_of(limits)?;
        let reset = limits.daily_reset;
        let spend =
            if limit_type.is_keys() { &mut self.pair.key.spend } else { &mut *self.pair.spend };
        let held = spend.held(period, reset, self.admission.now, self.settings.time_zone);
        let (is_reached, estimate) = (held.both() >= limit, self.admission.estimate);
        let exceeds = match is_reached {
            // What requests in flight reserved is not spent yet.
            true => (held.spent < limit).then(|| Exceeds::of(held, estimate)),
            false => strict(held, estimate, limit, self.settings.reservation),
        };
        if !is_reached && exceeds.is_none() {
            let (remaining, reset_at) = (limit - held.both(), spend.ends_at(period, reset));
            if self.tightest.is_none_or(|tightest| remaining < tightest.remaining) {
                self.tightest = Some(MoneyLeft { limit_type, limit, remaining, reset_at });
            }
            return None;
        }
        // It is unknown when a request in flight will release its reservation.
        let reset_at = if exceeds.is_none() { spend.below_at(period, reset, limit) } else { None };
        let (current, limit) = (Amount::Money(held.both()), Amount::Money(limit));
        Some(Denied { limit_type, current, limit, reset_at, at: self.admission.now, exceeds })
    }

    fn sessions(&self, limit_type: LimitType) -> Result<(), Denied> {
        let limit = self.admission.most(limit_type);
        let (current, of_key) = if limit_type.is_keys() {
            (self.pair.key.sessions, Some(self.admission.key.id))
        } else {
            (self.pair.sessions.len() as u64, None)
        };
        // A session that is already live never counts against itself.
        if limit == 0 || current < limit || self.pair.sessions.is_live(self.slot) {
            return Ok(());
        }
        // Only if the limit is met exactly does the next end free a place.
        let next_end = self.pair.sessions.next_end(of_key, self.settings.session_ttl_ms);
        let reset_at = next_end.filter(|_| current == limit);
        let (current, limit) = (Amount::Count(current), Amount::Count(limit));
        let at = self.admission.now;
        Err(Denied { limit_type, current, limit, reset_at, at, exceeds: None })
    }

    fn requests(&self, limit_type: LimitType) -> Result<(), Denied> {
        let limit = self.admission.most(limit_type);
        let current = self.pair.rpm.count();
        if limit == 0 || current < limit {
            return Ok(());
        }
        let reset_at = self.pair.rpm.below_at(limit);
        let (current, limit) = (Amount::Count(current), Amount::Count(limit));
        let at = self.admission.now;
        Err(Denied { limit_type, current, limit, reset_at, at, exceeds: None })
    }
}
