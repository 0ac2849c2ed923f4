//! When providers' credentials were used last: by this process, and by all nodes as the database
//! has it.

use std::sync::Arc;

use parking_lot::RwLock;

use super::{CredentialPlace, CredentialStates, Health, Snapshot};
use crate::domain::clock::Timestamp;
use crate::domain::fast_map::FastMap;
use crate::domain::provider::Provider;
use crate::store::CredentialUse;

/// A credential that no request uses for so long is reported.
const UNUSED_MS: i64 = 90 * 86_400_000;
/// How many are forgotten at a time.
const FORGOTTEN: usize = 100;

/// What the database has; `None` until it was read.
#[derive(Default)]
pub struct CredentialUses(RwLock<Option<FastMap<CredentialPlace, CredentialUse>>>);

impl CredentialUses {
    /// Takes what the database has now.
    pub fn renew(&self, stored: Vec<CredentialUse>) {
        let by_place = stored.into_iter().map(|one| ((one.provider, one.credential), one));
        *self.0.write() = Some(by_place.collect());
    }

    /// What the database does not have yet: credentials that are new, and later uses.
    pub fn news(&self, seen: impl Iterator<Item = CredentialUse>) -> Vec<CredentialUse> {
        let stored = self.0.read();
        let is_new = |one: &CredentialUse| {
            let known = stored.as_ref().and_then(|all| all.get(&(one.provider, one.credential)));
            known.is_none_or(|known| one.used_at > known.used_at)
        };
        seen.filter(is_new).collect()
    }

    /// The last use that is stored.
    pub fn last(&self, place: CredentialPlace) -> Option<Timestamp> {
        self.0.read().as_ref()?.get(&place)?.used_at
    }

    /// Those stored, 100 at most, whose provider or credential was removed.
    pub fn gone(&self, snapshot: &Snapshot) -> Vec<CredentialPlace> {
        let stored = self.0.read();
        let is_gone = |(provider, credential): &CredentialPlace| match snapshot.provider(*provider)
        {
            Some(one) => {
                let is_listed = one.credentials.iter().any(|listed| listed.id == *credential);
                !is_listed && !one.has_credential(*credential)
            }
            // Nothing is known of the credentials of one that is left out.
            None => !snapshot.left_out.iter().any(|one| one.id == *provider),
        };
        let places = stored.iter().flat_map(|all| all.keys().copied());
        places.filter(is_gone).take(FORGOTTEN).collect()
    }

    /// Since when an enabled credential of `provider` is unused, if that is longer than 90 days ago.
    pub fn unused_since(&self, provider: &Provider, now: Timestamp) -> Option<Timestamp> {
        let stored = self.0.read();
        let one = stored.as_ref()?.get(&(provider.id, provider.credential_id()))?;
        // Another key may have been entered since.
        let since = one.used_at.unwrap_or(one.known_since).max(provider.health_since);
        let is_enabled = provider.credential.as_ref().is_none_or(|one| one.is_enabled);
        (is_enabled && now.since(since) > UNUSED_MS).then_some(since)
    }
}

/// The uses of a provider's credentials by this process.
pub fn used_here(
    health: &Health,
    credentials: &CredentialStates,
    provider: &Arc<Provider>,
    now: Timestamp,
) -> Vec<CredentialUse> {
    let attempts = health.figures(provider, now);
    // Of a provider with one credential, each attempt is a use of it that succeeded, or that failed
    // in a way that counts for the circuit.
    let of_one = attempts.last_success.max(attempts.last_failure);
    let used = |one: &Arc<Provider>| match one.credential {
        None => of_one,
        Some(_) => credentials.seen(one, now).figures.last_used,
    };
    let all = provider.with_each_credential().iter();
    let noted = all.map(|one| CredentialUse {
        provider: provider.id,
        credential: one.credential_id(),
        known_since: now,
        used_at: used(one),
    });
    noted.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::ids::{CredentialId, ProviderId};

    #[test]
    fn a_credential_is_unused_once_its_last_use_is_90_days_ago() {
        let uses = CredentialUses::default();
        let (start, day) = (Timestamp(1_000_000_000_000), 86_400_000);
        let provider = Provider { id: ProviderId(7), ..Provider::blank(start) };
        let noted = |used_at| CredentialUse {
            provider: ProviderId(7),
            credential: CredentialId::KEY,
            known_since: start,
            used_at,
        };
        let late = start.plus_ms(91 * day);
        assert_eq!(uses.unused_since(&provider, late), None, "nothing was read yet");
        uses.renew(vec![noted(None)]);
        assert_eq!(uses.unused_since(&provider, start.plus_ms(90 * day)), None);
        assert_eq!(uses.unused_since(&provider, late), Some(start));
        let used = start.plus_ms(5 * day);
        assert!(uses.news([noted(None)].into_iter()).is_empty());
        assert_eq!(uses.news([noted(Some(used))].into_iter()), [noted(Some(used))]);
        uses.renew(vec![noted(Some(used))]);
        assert!(uses.news([noted(Some(start))].into_iter()).is_empty());
        assert_eq!(uses.last((ProviderId(7), CredentialId::KEY)), Some(used));
        assert_eq!(uses.unused_since(&provider, late), None);
        assert_eq!(uses.unused_since(&provider, used.plus_ms(91 * day)), Some(used));
    }

    #[test]
    fn uses_of_removed_providers_and_credentials_are_gone() {
        let (uses, now) = (CredentialUses::default(), Timestamp(1_000));
        let provider = |id| Arc::new(Provider { id: ProviderId(id), ..Provider::blank(now) });
        let mut snapshot = Snapshot::new(1, Vec::new(), Vec::new());
        snapshot.providers = vec![provider(7)];
        snapshot.left_out = vec![provider(8)];
        assert!(uses.gone(&snapshot).is_empty(), "nothing was read yet");
        let places = [(7, 0), (7, 1), (8, 5), (9, 0)];
        let place = |(provider, credential)| (ProviderId(provider), CredentialId(credential));
        let stored = places.map(place).map(|(provider, credential)| CredentialUse {
            provider,
            credential,
            known_since: now,
            used_at: None,
        });
        uses.renew(stored.to_vec());
        let mut gone = uses.gone(&snapshot);
        gone.sort();
        assert_eq!(gone, [(7, 1), (9, 0)].map(place));
    }
}
