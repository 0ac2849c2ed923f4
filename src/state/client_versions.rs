//! The versions of known clients in use, and the newest one that several users run.
//!
//! Each node notes the versions it receives, in memory. Once a minute it writes them to the
//! database and reads those of all nodes. So no request waits for the database, a restart loses at
//! most a minute, and on one node two users have an effect at once.

use std::collections::{HashMap, HashSet};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use crate::domain::clock::{Clock, Timestamp};
use crate::domain::ids::UserId;
use crate::policy::client_version::{Client, Version};
use crate::store::{SeenClient, Store, StoreError};

/// How often the notes are exchanged with the database.
pub const INTERVAL: Duration = Duration::from_secs(60);
/// A version that was not used for this long is not required of others.
const DAYS_MS: i64 = 7 * 24 * 3_600_000;
/// How many users must run a version before it is required of the others.
const USERS: usize = 2;
/// The same user with the same version is noted again after this time.
const AGAIN_MS: i64 = 3_600_000;
/// Maximum notes between two exchanges: made-up user agents must not fill the memory.
const MAX_SEEN: usize = 4096;
/// Maximum versions of one user within an hour: a person uses a few, a program could send any
/// number.
const MAX_PER_USER: usize = 16;

/// The noted versions, and the newest ones derived from them. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct ClientVersions(Arc<Mutex<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    seen: HashMap<(Client, Version, UserId), Noted>,
    /// The newest version that enough users run, from the notes of all nodes and this one.
    newest: HashMap<Client, Version>,
}

#[derive(Debug, Clone, Copy)]
struct Noted {
    at: Timestamp,
    /// Not in the database yet.
    is_new: bool,
}

impl ClientVersions {
    /// Notes that a user runs a version. Pre-release versions are not required of others, so they
    /// are not noted.
    pub fn note(&self, user: UserId, (client, version): (Client, Version), now: Timestamp) {
        if !version.released {
            return;
        }
        let mut inner = self.0.lock();
        match inner.seen.get(&(client, version, user)) {
            Some(noted) if now.is_within(AGAIN_MS, noted.at) => return,
            Some(_) => {}
            None => {
                let of_user = inner.seen.keys().filter(|(_, _, who)| *who == user).count();
                if of_user >= MAX_PER_USER || inner.seen.len() >= MAX_SEEN {
                    return;
                }
            }
        }
        inner.seen.insert((client, version, user), Noted { at: now, is_new: true });
        let users = inner.seen.keys().filter(|(c, v, _)| (*c, *v) == (client, version)).count();
        if users >= USERS {
            inner.raise(client, version);
        }
    }

    /// The newest version that enough users run.
    #[must_use]
    pub fn newest(&self, client: Client) -> Option<Version> {
        self.0.lock().newest.get(&client).copied()
    }

    /// Writes the notes to the database, and reads those of all nodes in the last seven days.
    ///
    /// # Errors
    /// The store failed: nothing is lost, the next exchange includes it.
    pub async fn exchange(&self, store: &Store, now: Timestamp) -> Result<(), StoreError> {
        let fresh: Vec<SeenClient> = {
            let inner = self.0.lock();
            let fresh = inner.seen.iter().filter(|(_, noted)| noted.is_new);
            fresh
                .map(|((client, version, user), noted)| SeenClient {
                    client: client.as_str().to_owned(),
                    version: version.to_string(),
                    user: *user,
                    at: noted.at,
                })
                .collect()
        };
        let since = now.plus_ms(-DAYS_MS);
        if !fresh.is_empty() {
            store.note_clients(&fresh, since).await?;
        }
        let agreed = store.agreed_clients(since, USERS).await?;
        self.take_over(&agreed, now);
        Ok(())
    }

    fn take_over(&self, agreed: &[(String, String)], now: Timestamp) {
        let mut inner = self.0.lock();
        // Notes that are now in the database are read from there.
        inner.seen.retain(|_, noted| now.is_within(AGAIN_MS, noted.at));
        inner.newest.clear();
        for (client, version) in agreed {
            if let (Some(client), Some(version)) = (Client::parse(client), Version::parse(version))
            {
                inner.raise(client, version);
            }
        }
        // Includes what was noted while the database was being read.
        let mut users: HashMap<(Client, Version), HashSet<UserId>> = HashMap::new();
        for (client, version, user) in inner.seen.keys() {
            users.entry((*client, *version)).or_default().insert(*user);
        }
        for ((client, version), users) in users {
            if users.len() >= USERS {
                inner.raise(client, version);
            }
        }
        for noted in inner.seen.values_mut() {
            noted.is_new &= noted.at >= now;
        }
    }

    /// Runs until `shutdown` resolves. Errors are logged once per change of state.
    pub async fn run(
        self,
        store: Store,
        clock: Arc<dyn Clock>,
        shutdown: impl Future<Output = ()>,
    ) {
        tokio::pin!(shutdown);
        let mut failing = false;
        loop {
            let exchanged = self.exchange(&store, clock.now()).await;
            match (&exchanged, failing) {
                (Err(e), false) => {
                    tracing::warn!(error = %e, "versions of clients cannot be kept in the database")
                }
                (Ok(()), true) => {
                    tracing::info!("versions of clients are kept in the database again")
                }
                _ => {}
            }
            failing = exchanged.is_err();
            tokio::select! {
                () = &mut shutdown => return,
                () = tokio::time::sleep(INTERVAL) => {}
            }
        }
    }
}

impl Inner {
    fn raise(&mut self, client: Client, version: Version) {
        let newest = self.newest.entry(client).or_insert(version);
        *newest = version.max(*newest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(1_800_000_000_000);

    fn version(text: &str) -> (Client, Version) {
        (Client::Codex, Version::parse(text).unwrap())
    }

    #[test]
    fn a_version_counts_once_two_users_run_it() {
        let versions = ClientVersions::default();
        versions.note(UserId(1), version("0.9.0"), NOW);
        versions.note(UserId(1), version("0.9.0"), NOW.plus_ms(2 * AGAIN_MS));
        assert_eq!(versions.newest(Client::Codex), None, "the same user twice");
        versions.note(UserId(2), version("0.9.0"), NOW);
        versions.note(UserId(3), version("0.8.0"), NOW);
        versions.note(UserId(4), version("0.8.0"), NOW);
        for user in 5..9 {
            versions.note(UserId(user), version("0.10.0-beta.1"), NOW);
        }
        assert_eq!(versions.newest(Client::Codex), Some(version("0.9.0").1));
        versions.note(UserId(1), version("0.10.0"), NOW);
        versions.note(UserId(2), version("0.10.0"), NOW);
        assert_eq!(versions.newest(Client::Codex), Some(version("0.10.0").1));
        assert_eq!(versions.newest(Client::ClaudeCode), None);
    }

    #[test]
    fn made_up_versions_do_not_fill_the_memory() {
        let versions = ClientVersions::default();
        let note_many = |user: i64| {
            for n in 0..100 {
                versions.note(UserId(user), version(&format!("1.{user}.{n}")), NOW);
            }
        };
        note_many(1);
        assert_eq!(versions.0.lock().seen.len(), MAX_PER_USER);
        (2..400).for_each(note_many);
        assert_eq!(versions.0.lock().seen.len(), MAX_SEEN);
    }
}
