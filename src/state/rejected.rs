//! Requests that failed authentication, for administrators: the last ones, in memory, bounded in
//! number and in the cost of a flood.
//!
//! They leave no row in the database: anyone can send them. Equal ones share an entry. A key's text
//! is never stored; a short fingerprint under a secret of this process shows whether two wrong keys
//! are the same.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::IpAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use sha2::{Digest, Sha256};

use crate::domain::clock::Timestamp;
use crate::domain::format::WireFormat;
use crate::domain::ids::KeyId;

/// Maximum entries; beyond that the one that was silent for longest is dropped.
const ENTRIES: usize = 200;
/// Requests that are examined per second; the rest of a flood is only counted.
const PER_SECOND: u32 = 50;
/// Characters of a path and of a client's name that are stored.
const TEXT_CHARS: usize = 200;

/// A request whose credential was refused.
#[derive(Debug, Clone, Copy)]
pub struct Attempt<'a> {
    /// When the request was refused.
    pub at: Timestamp,
    /// The client's address; `None` if it is not known.
    pub client: Option<IpAddr>,
    /// The request's path, without its query.
    pub endpoint: &'a str,
    /// The wire format of the endpoint.
    pub format: WireFormat,
    /// A short name: `unknown_key`, …
    pub reason: &'static str,
    /// The client's `User-Agent` header.
    pub user_agent: Option<&'a str>,
    /// The presented credential, if it was a single key.
    pub credential: Option<&'a str>,
    /// The key, if it exists but may not be used.
    pub key: Option<KeyId>,
}

/// Rejected requests of one kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejected {
    /// When the first of them was refused.
    pub first_at: Timestamp,
    /// When the latest of them was refused.
    pub last_at: Timestamp,
    /// How many they are, at least 1.
    pub count: u64,
    /// The client's address; `None` if it is not known.
    pub client: Option<IpAddr>,
    /// The path, at most 200 characters.
    pub endpoint: Box<str>,
    /// The wire format of the endpoint.
    pub format: WireFormat,
    /// A short name, as [`Attempt::reason`].
    pub reason: &'static str,
    /// The client's `User-Agent` header, at most 200 characters.
    pub user_agent: Option<Box<str>>,
    /// Eight hexadecimal digits for the credential; `None` if there was no single one. Comparable
    /// within one process.
    pub fingerprint: Option<Box<str>>,
    /// The key, if it exists but may not be used.
    pub key: Option<KeyId>,
    same: u64,
}

/// The rejected requests of this process.
pub struct RejectedRequests {
    since: Timestamp,
    /// Makes fingerprints useless outside of this process.
    secret: [u8; 32],
    inner: Mutex<RejectedInner>,
}

#[derive(Default)]
struct RejectedInner {
    /// Sorted by their last request, oldest first.
    entries: Vec<Rejected>,
    total: u64,
    second: i64,
    looked_at: u32,
}

impl RejectedRequests {
    /// Starts without entries; `now` is the time from which rejected requests are counted.
    pub fn new(now: Timestamp) -> Self {
        let mut secret = [0; 32];
        // Without random bytes fingerprints could be computed elsewhere, but no key is in them
        // either way.
        let _ = ring::rand::SecureRandom::fill(&ring::rand::SystemRandom::new(), &mut secret);
        Self { since: now, secret, inner: Mutex::default() }
    }

    /// Notes a request. Returns the entry to log; `None` in a flood.
    pub fn note(&self, attempt: &Attempt<'_>) -> Option<Rejected> {
        let mut inner = self.inner.lock();
        inner.total += 1;
        let second = attempt.at.0.div_euclid(1_000);
        if std::mem::replace(&mut inner.second, second) != second {
            inner.looked_at = 0;
        }
        inner.looked_at += 1;
        if inner.looked_at > PER_SECOND {
            return None;
        }
        let new = self.entry(attempt);
        let found = inner.entries.iter().position(|entry| entry.same == new.same);
        let entry = match found {
            Some(at) => {
                let Rejected { first_at, count, .. } = inner.entries.remove(at);
                Rejected { first_at, count: count + 1, ..new }
            }
            None => new,
        };
        if inner.entries.len() >= ENTRIES {
            inner.entries.remove(0);
        }
        inner.entries.push(entry.clone());
        Some(entry)
    }

    /// All entries, latest first; the total number, and since when.
    pub fn all(&self) -> (Vec<Rejected>, u64, Timestamp) {
        let inner = self.inner.lock();
        (inner.entries.iter().rev().cloned().collect(), inner.total, self.since)
    }

    fn entry(&self, attempt: &Attempt<'_>) -> Rejected {
        let Attempt { at, client, endpoint, format, reason, user_agent, credential, key } =
            *attempt;
        let cut =
            |text: &str| -> Box<str> { text.chars().take(TEXT_CHARS).collect::<String>().into() };
        let fingerprint = credential.map(|text| self.fingerprint(text));
        let (endpoint, user_agent) = (cut(endpoint), user_agent.map(cut));
        let mut hasher = DefaultHasher::new();
        (client, &endpoint, format as u8, reason, &user_agent, &fingerprint, key).hash(&mut hasher);
        let same = hasher.finish();
        Rejected {
            first_at: at,
            last_at: at,
            count: 1,
            client,
            endpoint,
            format,
            reason,
            user_agent,
            fingerprint,
            key,
            same,
        }
    }

    /// Eight hexadecimal digits: enough to recognise a key among a few hundred, far too few to find
    /// it.
    fn fingerprint(&self, credential: &str) -> Box<str> {
        let digest = Sha256::new().chain_update(self.secret).chain_update(credential).finalize();
        hex::encode(&digest[..4]).into()
    }
}

/// Shared by the data plane and the administration.
pub type Rejections = Arc<RejectedRequests>;

#[cfg(test)]
mod tests {
    use super::*;

    fn attempt(at: i64, endpoint: &str) -> Attempt<'_> {
        Attempt {
            at: Timestamp(at),
            client: None,
            endpoint,
            format: WireFormat::Native,
            reason: "unknown_key",
            user_agent: Some("curl/8"),
            credential: Some("sk-0123456789abcdef0123456789abcdef"),
            key: None,
        }
    }

    #[test]
    fn equal_ones_share_an_entry_and_the_key_is_nowhere() {
        let rejected = RejectedRequests::new(Timestamp(0));
        rejected.note(&attempt(1, "/v1/messages"));
        rejected.note(&attempt(2, "/v1/models"));
        rejected.note(&attempt(3, "/v1/messages"));
        let other = Attempt { credential: Some("sk-another"), ..attempt(4, "/v1/models") };
        rejected.note(&other);
        let (all, total, _) = rejected.all();
        let shown: Vec<_> =
            all.iter().map(|e| (&*e.endpoint, e.count, e.first_at.0, e.last_at.0)).collect();
        assert_eq!(
            shown,
            [("/v1/models", 1, 4, 4), ("/v1/messages", 2, 1, 3), ("/v1/models", 1, 2, 2)]
        );
        assert_eq!((total, all[1].fingerprint == all[2].fingerprint), (4, true));
        assert_ne!(all[0].fingerprint, all[2].fingerprint);
        assert!(!format!("{all:?}").contains("0123456789abcdef"));
        let another_process = RejectedRequests::new(Timestamp(0)).note(&attempt(1, "/v1/messages"));
        assert_ne!(another_process.unwrap().fingerprint, all[1].fingerprint);
    }

    #[test]
    fn a_flood_is_counted_and_costs_a_bounded_number_of_entries() {
        let rejected = RejectedRequests::new(Timestamp(0));
        let paths: Vec<String> = (0..1_000).map(|n| format!("/{n}")).collect();
        for (n, path) in (0_i64..).zip(&paths) {
            rejected.note(&attempt(n * 100, path));
        }
        let noted =
            paths.iter().filter(|path| rejected.note(&attempt(7_000_000, path)).is_some()).count();
        let (all, total, _) = rejected.all();
        assert_eq!((all.len(), total, noted), (ENTRIES, 2_000, PER_SECOND as usize));
    }
}
