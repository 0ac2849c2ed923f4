//! The versions of known clients in use, and the newest one that is required of others.
//!
//! That is the newest one that at least two users run and that is not above the newest *vouched
//! for*: sent by an administrator, or by a quarter of the client's users and at least two. So a few
//! users who make up a version lock nobody out.
//!
//! Each node notes the versions it receives, in memory. Once a minute it writes them to the
//! database and reads those of all nodes. So no request waits for the database, a restart loses at
//! most a minute, and on one node two users have an effect at once.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use crate::domain::clock::{Clock, Timestamp};
use crate::domain::ids::UserId;
use crate::policy::client_version::{Client, Version};
use crate::store::{AgreedClient, SeenClient, Store, StoreError};

/// How often the notes are exchanged with the database.
pub const INTERVAL: Duration = Duration::from_secs(60);
/// A version that was not used for this long is not required of others.
const DAYS_MS: i64 = 7 * 24 * 3_600_000;
/// How many users must run a version before it is required of the others.
const USERS: u64 = 2;
/// The part of a client's users that vouches for a version: one in four.
const QUARTER: u64 = 4;
/// The same user with the same version is noted again after this time.
const AGAIN_MS: i64 = 3_600_000;
/// Maximum notes between two exchanges: made-up user agents must not fill the memory.
const MAX_SEEN: usize = 4096;
/// Maximum versions of one user within an hour: a person uses a few, a program could send any
/// number.
const MAX_PER_USER: usize = 16;

/// The noted versions, and the newest ones derived from them. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct ClientVersions(Arc<Mutex<VersionsInner>>);

#[derive(Debug, Default)]
struct VersionsInner {
    seen: HashMap<(Client, Version, UserId), Noted>,
    /// What the notes of all nodes say, as of the last exchange.
    stored: HashMap<Client, Stored>,
    /// The version that is required, from those notes and the ones of this node.
    required: HashMap<Client, Version>,
}

#[derive(Debug, Clone, Copy)]
struct Noted {
    at: Timestamp,
    of_administrator: bool,
    /// Not in the database yet.
    is_new: bool,
}

#[derive(Debug, Default)]
struct Stored {
    /// Users of the client, of any version.
    users: u64,
    /// Versions that enough users run, or that an administrator runs.
    versions: Vec<(Version, Runners)>,
}

/// The users who run a version.
#[derive(Debug, Clone, Copy, Default)]
struct Runners {
    users: u64,
    has_administrator: bool,
}

impl Runners {
    const fn are_enough(self) -> bool {
        self.users >= USERS
    }

    const fn vouch(self, users_of_client: u64) -> bool {
        self.has_administrator
            || self.are_enough() && self.users.saturating_mul(QUARTER) >= users_of_client
    }
}

/// Who runs a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientUser {
    /// The user; [`ClientUser::TOKEN`]'s is none.
    pub id: UserId,
    /// Whether that is an administrator.
    pub is_administrator: bool,
}

impl ClientUser {
    /// The holder of the admin token: an administrator who is not a user.
    pub const TOKEN: Self = Self { id: SeenClient::TOKEN, is_administrator: true };
}

impl ClientVersions {
    /// Notes that a user runs a version. Pre-release versions are not required of others, so they
    /// are not noted.
    pub fn note(&self, user: ClientUser, client: Client, version: Version, now: Timestamp) {
        if !version.released {
            return;
        }
        let mut inner = self.0.lock();
        match inner.seen.get(&(client, version, user.id)) {
            Some(noted) if now.is_within(AGAIN_MS, noted.at) => return,
            Some(_) => {}
            None => {
                let of_user = inner.seen.keys().filter(|(_, _, who)| *who == user.id).count();
                if of_user >= MAX_PER_USER || inner.seen.len() >= MAX_SEEN {
                    return;
                }
            }
        }
        let noted = Noted { at: now, of_administrator: user.is_administrator, is_new: true };
        inner.seen.insert((client, version, user.id), noted);
        inner.weigh(client);
    }

    /// The version that is required of users of this client.
    pub fn required(&self, client: Client) -> Option<Version> {
        self.0.lock().required.get(&client).copied()
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
        self.take_over(agreed, now);
        Ok(())
    }

    fn take_over(&self, agreed: Vec<AgreedClient>, now: Timestamp) {
        let mut inner = self.0.lock();
        // Notes that are now in the database are read from there.
        inner.seen.retain(|_, noted| now.is_within(AGAIN_MS, noted.at));
        inner.stored.clear();
        for AgreedClient { client, version, users, of_client, has_administrator } in agreed {
            if let (Some(client), Some(version)) =
                (Client::parse(&client), Version::parse(&version))
            {
                let stored = inner.stored.entry(client).or_default();
                stored.users = of_client;
                stored.versions.push((version, Runners { users, has_administrator }));
            }
        }
        inner.required.clear();
        Client::ALL.into_iter().for_each(|client| inner.weigh(client));
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

impl VersionsInner {
    /// Finds the version that is required. A note of this node may be in the database too, so the
    /// two are never added up.
    fn weigh(&mut self, client: Client) {
        let mut versions: BTreeMap<Version, Runners> = BTreeMap::new();
        let mut users = HashSet::new();
        for ((_, version, user), noted) in self.seen.iter().filter(|((of, ..), _)| *of == client) {
            let runners = versions.entry(*version).or_default();
            runners.has_administrator |= noted.of_administrator;
            if *user != SeenClient::TOKEN {
                runners.users += 1;
                users.insert(*user);
            }
        }
        let stored = self.stored.get(&client);
        let of_client = (users.len() as u64).max(stored.map_or(0, |stored| stored.users));
        for (version, known) in stored.into_iter().flat_map(|stored| &stored.versions) {
            let runners = versions.entry(*version).or_default();
            runners.has_administrator |= known.has_administrator;
            runners.users = runners.users.max(known.users);
        }
        let newest = versions.iter().rev().find(|(_, runners)| runners.vouch(of_client));
        let required = newest.and_then(|(newest, _)| {
            versions.range(..=*newest).rev().find(|(_, runners)| runners.are_enough())
        });
        match required {
            Some((required, _)) => self.required.insert(client, *required),
            None => self.required.remove(&client),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(1_800_000_000_000);

    fn version(text: &str) -> Version {
        Version::parse(text).unwrap()
    }

    fn user(id: i64) -> ClientUser {
        ClientUser { id: UserId(id), is_administrator: false }
    }

    fn administrator(id: i64) -> ClientUser {
        ClientUser { id: UserId(id), is_administrator: true }
    }

    #[test]
    fn a_version_counts_once_two_users_run_it() {
        let versions = ClientVersions::default();
        versions.note(user(1), Client::Codex, version("0.9.0"), NOW);
        versions.note(user(1), Client::Codex, version("0.9.0"), NOW.plus_ms(2 * AGAIN_MS));
        assert_eq!(versions.required(Client::Codex), None, "the same user twice");
        versions.note(user(2), Client::Codex, version("0.9.0"), NOW);
        versions.note(user(3), Client::Codex, version("0.8.0"), NOW);
        versions.note(user(4), Client::Codex, version("0.8.0"), NOW);
        for id in 5..9 {
            versions.note(user(id), Client::Codex, version("0.10.0-beta.1"), NOW);
        }
        assert_eq!(versions.required(Client::Codex), Some(version("0.9.0")));
        versions.note(user(1), Client::Codex, version("0.10.0"), NOW);
        versions.note(user(2), Client::Codex, version("0.10.0"), NOW);
        assert_eq!(versions.required(Client::Codex), Some(version("0.10.0")));
        assert_eq!(versions.required(Client::ClaudeCode), None);
    }

    #[test]
    fn a_version_above_what_a_quarter_or_an_administrator_runs_is_not_required() {
        let versions = ClientVersions::default();
        let required = || versions.required(Client::Codex).map(|version| version.to_string());
        for id in 1..=9 {
            versions.note(user(id), Client::Codex, version("1.0.0"), NOW);
        }
        for id in 1..=2 {
            versions.note(user(id), Client::Codex, version("999999999.0.0"), NOW);
        }
        assert_eq!(required().as_deref(), Some("1.0.0"), "two of nine");
        versions.note(user(3), Client::Codex, version("1.1.0"), NOW);
        versions.note(user(4), Client::Codex, version("1.1.0"), NOW);
        assert_eq!(required().as_deref(), Some("1.0.0"), "they may have made it up");
        versions.note(administrator(10), Client::Codex, version("1.2.0"), NOW);
        assert_eq!(required().as_deref(), Some("1.1.0"), "an administrator is ahead of them");
        versions.note(ClientUser::TOKEN, Client::Codex, version("1.3.0"), NOW);
        assert_eq!(required().as_deref(), Some("1.1.0"), "the token is not a user");
        for id in 5..=7 {
            versions.note(user(id), Client::Codex, version("2.0.0"), NOW);
        }
        assert_eq!(required().as_deref(), Some("2.0.0"), "three of ten");
    }

    #[test]
    fn what_the_database_knows_counts_for_the_quarter() {
        let versions = ClientVersions::default();
        let stored = |text: &str, users, of_client| AgreedClient {
            client: Client::Codex.as_str().to_owned(),
            version: text.to_owned(),
            users,
            of_client,
            has_administrator: false,
        };
        versions.take_over(vec![stored("1.0.0", 90, 100), stored("9.0.0", 20, 100)], NOW);
        assert_eq!(versions.required(Client::Codex), Some(version("1.0.0")));
        versions.note(user(1), Client::Codex, version("9.9.0"), NOW);
        versions.note(user(2), Client::Codex, version("9.9.0"), NOW);
        assert_eq!(versions.required(Client::Codex), Some(version("1.0.0")));
        versions.take_over(vec![stored("1.0.0", 90, 100), stored("9.0.0", 25, 100)], NOW);
        assert_eq!(versions.required(Client::Codex), Some(version("9.0.0")));
    }

    #[test]
    fn made_up_versions_do_not_fill_the_memory() {
        let versions = ClientVersions::default();
        let note_many = |id: i64| {
            for n in 0..100 {
                versions.note(user(id), Client::Codex, version(&format!("1.{id}.{n}")), NOW);
            }
        };
        note_many(1);
        assert_eq!(versions.0.lock().seen.len(), MAX_PER_USER);
        (2..400).for_each(note_many);
        assert_eq!(versions.0.lock().seen.len(), MAX_SEEN);
    }
}
