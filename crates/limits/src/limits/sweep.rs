//! Frees idle entries, so that memory follows the holders in use, not those of the past.

use super::memory::Memory;
use crate::domain::clock::Timestamp;
use crate::domain::ids::{KeyId, ProviderId, UserId};

/// A key, user or provider with counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holder {
    /// One API key.
    Key(KeyId),
    /// One user, over all of the user's keys.
    User(UserId),
    /// One upstream provider.
    Provider(ProviderId),
}

impl Memory {
    pub(super) fn sweep(&self, now: Timestamp, keep: &dyn Fn(Holder) -> bool) {
        let tz = self.settings.time_zone;
        for mut users in self.users.each() {
            users.retain(|id, user| {
                user.refresh(now, &self.settings);
                user.keys.retain(|key, state| {
                    state.spend.refresh(now, tz);
                    state.spend.shrink();
                    let busy = state.running > 0 || state.sessions > 0;
                    busy || (!state.spend.is_empty() && keep(Holder::Key(*key)))
                });
                user.spend.shrink();
                user.rpm.shrink();
                user.sessions.shrink();
                let busy = !user.keys.is_empty() || user.rpm.count() > 0;
                busy || (!user.spend.is_empty() && keep(Holder::User(*id)))
            });
            users.shrink_to_fit();
        }
        self.expectations.retain(|key| keep(Holder::Key(key)));
        for mut providers in self.providers.each() {
            providers.retain(|id, state| {
                state.refresh(now, &self.settings);
                state.spend.shrink();
                state.sessions.shrink();
                state.sessions.len() > 0 || (!state.spend.is_empty() && keep(Holder::Provider(*id)))
            });
            providers.shrink_to_fit();
        }
    }
}

#[cfg(test)]
mod tests {
    use chrono_tz::Tz;
    use futures_util::FutureExt as _;

    use super::*;
    use crate::domain::format::WireFormat;
    use crate::domain::ids::{RequestId, SessionId};
    use crate::domain::limits::Limits;
    use crate::domain::money::NanoUsd;
    use crate::domain::user::User;
    use crate::limits::{Admission, Asks, CounterSettings, Counters, HolderUsage, example};
    use crate::policy::reservation::Reservation;

    const NOON: Timestamp = Timestamp(1_795_003_230_000);

    #[test]
    fn the_idle_and_the_deleted_are_swept_and_the_busy_stay() {
        let counters = Counters::new(CounterSettings {
            session_ttl_ms: 300_000,
            reservation: Reservation::Expected,
            time_zone: Tz::UTC,
        });
        let (key, user) =
            (example::key(Limits::default()), User { rpm: 0, ..example::user(Limits::default()) });
        let asks = Asks { model: "m".into(), format: WireFormat::Native };
        let session = SessionId::from("s");
        let ask = || {
            let (request, estimate) = (RequestId::new(), NanoUsd(5));
            let (key, user, session, asks) = (&key, &user, &session, &asks);
            let ask = Admission { request, now: NOON, key, user, session, estimate, asks };
            counters.admit(&ask).now_or_never().unwrap().unwrap()
        };
        let total = |usage: HolderUsage| usage.money.total.current;
        let key_usage = |at| total(counters.key_usage(&key, at).now_or_never().unwrap());
        let user_usage = |at| total(counters.user_usage(&user, at).now_or_never().unwrap());
        let held = |counters: &Counters| {
            let memory = counters.memory();
            let users: usize = memory.users.each().map(|users| users.len()).sum();
            let providers: usize = memory.providers.each().map(|providers| providers.len()).sum();
            (users, providers)
        };
        drop(ask());
        counters.sweep(NOON, &|_| true);
        assert_eq!(held(&counters), (0, 0), "nothing was ever spent");
        let running = ask();
        ask().settle(NOON, NanoUsd(5), Some(ProviderId(1)));
        counters.sweep(NOON, &|_| false);
        assert_eq!(held(&counters), (1, 0), "a request is running");
        running.settle(NOON, NanoUsd(5), Some(ProviderId(1)));
        let later = NOON.plus_ms(30 * 3_600_000);
        counters.sweep(later, &|_| true);
        assert_eq!(held(&counters), (1, 1));
        assert_eq!(key_usage(later), NanoUsd(10), "sums outlive the buckets");
        counters.sweep(later, &|holder| holder != Holder::Key(KeyId(1)));
        assert_eq!(key_usage(later), NanoUsd::ZERO, "deleted");
        assert_eq!(user_usage(later), NanoUsd(10));
        counters.sweep(later, &|_| false);
        assert_eq!(held(&counters), (0, 0));
    }
}
