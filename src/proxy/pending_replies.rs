//! Replies that providers make in the background, and batches, until they are billed.
//!
//! Each is in memory and in a file. The file is written before the client learns the reply's id, so
//! the end of the process loses none; it is synced within a second. Every process has a directory of
//! its own below `background` in the data directory, held by a lock on a file in it: another process
//! adopts its replies once the lock is free.
//!
//! [`PendingReplies::take`] gives a reply to one caller only, who bills it.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use crate::domain::batch::BatchAsk;
use crate::domain::clock::Timestamp;
use crate::domain::feature::Feature;
use crate::domain::feature_policy::FeatureUse;
use crate::domain::fee::Fee;
use crate::domain::ids::{CredentialId, KeyId, ProviderId};
use crate::domain::money::NanoUsd;
use crate::domain::record::Record;
use crate::files;
use crate::formats::batch::google;
use crate::formats::route::{self, Collection};
use crate::limits::Permit;
use crate::state::CredentialPlace;

/// Replies that one node follows at most.
const MAX: usize = 1_000;
/// Of them those of one key.
const MAX_OF_KEY: usize = MAX / 4;
/// The wait before the first poll; each later one is half as long again, up to the longest.
const FIRST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_secs(60);
const MOST_MISSES: u32 = 3;
const LOCK: &str = "lock";
const ENDING: &str = "json";

/// A reply that its provider still makes.
pub struct PendingReply {
    /// Its id at the provider.
    pub reply: String,
    /// The provider that makes it.
    pub provider: ProviderId,
    /// The provider's credential of the account that makes it.
    pub credential: CredentialId,
    /// What is billed if its end is never seen.
    pub record: Record,
    /// What the request uses; after a restart only its containers.
    pub features: Vec<FeatureUse>,
    /// Holds the reservation.
    pub permit: Option<Permit>,
    /// What a batch asks for; `None` for a reply in the background.
    pub batch: Option<PendingBatch>,
    file: Option<PathBuf>,
    is_synced: bool,
    next_poll: Instant,
    wait: Duration,
    /// Polls that did not find it.
    misses: u32,
}

/// A batch.
#[derive(Clone, Serialize, Deserialize)]
pub struct PendingBatch {
    /// What it asks for.
    pub ask: Arc<BatchAsk>,
    /// What it reserves, also after a restart.
    pub reserved: NanoUsd,
}

/// A reply's file.
#[derive(Serialize, Deserialize)]
struct Kept {
    reply: String,
    /// The price entries of the request's containers.
    containers: Vec<String>,
    record: Record,
    #[serde(default)]
    credential: CredentialId,
    batch: Option<PendingBatch>,
}

/// A poll that is due.
pub struct DuePoll {
    /// The id of the reply, or of the batch.
    pub reply: String,
    /// When it was asked for.
    pub since: Timestamp,
    /// What it is called by.
    pub collection: &'static Collection,
}

/// All of them.
pub struct PendingReplies {
    root: PathBuf,
    /// The directory of this process, once it has a reply, with its lock.
    own: Mutex<Option<(PathBuf, File)>>,
    known: Mutex<HashMap<(ProviderId, String), PendingReply>>,
}

impl PendingReply {
    /// `None` if the record names no provider.
    pub fn new(
        reply: String,
        record: Record,
        features: Vec<FeatureUse>,
        permit: Option<Permit>,
        batch: Option<PendingBatch>,
    ) -> Option<Self> {
        let (provider, next_poll) = (record.provider_id?, Instant::now() + FIRST_WAIT);
        Some(Self {
            reply,
            provider,
            credential: CredentialId::KEY,
            record,
            features,
            permit,
            batch,
            file: None,
            is_synced: false,
            next_poll,
            wait: FIRST_WAIT,
            misses: 0,
        })
    }

    /// The account that makes it.
    pub fn holder(&self) -> CredentialPlace {
        (self.provider, self.credential)
    }

    /// `None` if the file is damaged.
    fn read(path: &Path) -> io::Result<Option<Self>> {
        let Ok(Kept { reply, containers, record, credential, batch }) =
            serde_json::from_slice(&fs::read(path)?)
        else {
            return Ok(None);
        };
        let fees = containers.iter().filter_map(|entry| Fee::by_entry(entry));
        let features = fees.map(|fee| FeatureUse::new(Feature::CodeInterpreter, "tools", fee));
        let read = Self::new(reply, record, features.collect(), None, batch);
        Ok(read.map(|read| Self { file: Some(path.to_owned()), credential, ..read }))
    }

    fn text(&self) -> serde_json::Result<Vec<u8>> {
        let entry = |used: &FeatureUse| match used.fee {
            Fee::Container(entry) => Some(entry.to_owned()),
            _ => None,
        };
        serde_json::to_vec(&Kept {
            reply: self.reply.clone(),
            containers: self.features.iter().filter_map(entry).collect(),
            record: self.record.clone(),
            credential: self.credential,
            batch: self.batch.clone(),
        })
    }

    /// The calls about it.
    pub fn collection(&self) -> &'static Collection {
        match &self.batch {
            None => &route::REPLIES,
            Some(batch) if batch.ask.path == "/v1/messages" => &route::MESSAGE_BATCHES,
            Some(batch) if google::is_googles(&batch.ask.path) => &route::GOOGLE_BATCHES,
            Some(_) => &route::BATCHES,
        }
    }
}

impl PendingReplies {
    /// None yet; their directories are below this one.
    pub fn new(data_dir: &Path) -> Self {
        Self { root: data_dir.join("background"), own: Mutex::default(), known: Mutex::default() }
    }

    /// How many are not billed yet.
    pub fn open(&self) -> usize {
        self.known.lock().len()
    }

    /// Whether this node follows as many as it may, or as many as it may of this key.
    pub fn is_full(&self, key: Option<KeyId>) -> bool {
        let known = self.known.lock();
        let own = known.values().filter(|pending| pending.record.key_id == key).count();
        known.len() >= MAX || own >= MAX_OF_KEY
    }

    /// Whether the provider's reply is not billed yet.
    pub fn has(&self, provider: ProviderId, reply: &str) -> bool {
        self.known.lock().contains_key(&(provider, reply.to_owned()))
    }

    /// The credential of the account that makes a reply.
    pub fn credential(&self, provider: ProviderId, reply: &str) -> CredentialId {
        let known = self.known.lock();
        known.get(&(provider, reply.to_owned())).map(|one| one.credential).unwrap_or_default()
    }

    /// Keeps a reply, in memory and in a file. A file that cannot be written is logged. Returns the
    /// reply that had its id at its provider before.
    pub fn keep(&self, mut pending: PendingReply) -> Option<PendingReply> {
        if pending.file.is_none() {
            match self.write(&pending) {
                Ok(file) => pending.file = Some(file),
                Err(error) => {
                    tracing::error!(request_id = %pending.record.request_id, %error, "a reply in the background is in memory only");
                }
            }
        }
        self.known.lock().insert((pending.provider, pending.reply.clone()), pending)
    }

    /// The provider did not find it: whether it has said so three times.
    pub fn misses(&self, provider: ProviderId, reply: &str) -> bool {
        let mut known = self.known.lock();
        known.get_mut(&(provider, reply.to_owned())).is_some_and(|pending| {
            pending.misses += 1;
            pending.misses >= MOST_MISSES
        })
    }

    /// Polls it soon: it has ended.
    pub fn hurry(&self, provider: ProviderId, reply: &str) {
        if let Some(pending) = self.known.lock().get_mut(&(provider, reply.to_owned())) {
            pending.next_poll = Instant::now();
        }
    }

    /// What is billed, to price the results of a batch by it; `None` if it is billed already.
    pub fn batch(&self, provider: ProviderId, batch: &str) -> Option<(Record, Arc<BatchAsk>)> {
        let known = self.known.lock();
        let pending = known.get(&(provider, batch.to_owned()))?;
        Some((pending.record.clone(), Arc::clone(&pending.batch.as_ref()?.ask)))
    }

    /// The provider has it, whatever it said before.
    pub fn found(&self, provider: ProviderId, reply: &str) {
        if let Some(pending) = self.known.lock().get_mut(&(provider, reply.to_owned())) {
            pending.misses = 0;
        }
    }

    /// Takes a reply out to bill it; `None` if another caller has done so. [`Self::forget`] it once
    /// it is billed.
    pub fn take(&self, provider: ProviderId, reply: &str) -> Option<PendingReply> {
        self.known.lock().remove(&(provider, reply.to_owned()))
    }

    /// Removes the file of a reply that is billed.
    pub fn forget(&self, pending: &PendingReply) {
        let Some(file) = &pending.file else { return };
        if let Err(error) = fs::remove_file(file) {
            tracing::warn!(path = %file.display(), %error, "the file of a billed reply cannot be removed");
        }
    }

    /// The replies that are due for a poll, by provider: each is due again later. Those of `busy`
    /// providers are left for later.
    pub fn due(&self, busy: &HashSet<ProviderId>) -> HashMap<ProviderId, Vec<DuePoll>> {
        let now = Instant::now();
        let mut due: HashMap<_, Vec<_>> = HashMap::new();
        let mut known = self.known.lock();
        let is_due = |pending: &&mut PendingReply| {
            pending.next_poll <= now && !busy.contains(&pending.provider)
        };
        for pending in known.values_mut().filter(is_due) {
            pending.next_poll = now + pending.wait;
            pending.wait = (pending.wait + pending.wait / 2).min(LONGEST_WAIT);
            let (reply, since) = (pending.reply.clone(), pending.record.started_at);
            let one = DuePoll { reply, since, collection: pending.collection() };
            due.entry(pending.provider).or_default().push(one);
        }
        due
    }

    fn write(&self, pending: &PendingReply) -> io::Result<PathBuf> {
        let mut own = self.own.lock();
        let dir = match &*own {
            Some((dir, _)) => dir,
            None => &own.insert(self.claim()?).0,
        };
        let path = dir.join(format!("{}.{ENDING}", pending.record.request_id));
        let beside = path.with_extension("new");
        let mut file = files::private().write(true).create(true).truncate(true).open(&beside)?;
        io::Write::write_all(&mut file, &pending.text()?)?;
        fs::rename(&beside, &path)?;
        Ok(path)
    }

    /// A directory for this process, which no other one takes for abandoned.
    fn claim(&self) -> io::Result<(PathBuf, File)> {
        let name = uuid::Uuid::now_v7().to_string();
        // Directories that are not named by an id alone are not looked at.
        let (unborn, dir) = (self.root.join(format!("new-{name}")), self.root.join(name));
        files::make_dir(&unborn)?;
        let lock = files::private().write(true).create_new(true).open(unborn.join(LOCK))?;
        lock.try_lock()?;
        fs::rename(&unborn, &dir)?;
        Ok((dir, lock))
    }

    /// Syncs the files of new replies. Blocks.
    pub fn sync(&self) {
        let mut new = Vec::new();
        for pending in self.known.lock().values_mut().filter(|pending| !pending.is_synced) {
            pending.is_synced = true;
            new.extend(pending.file.clone());
        }
        for file in &new {
            // A reply that was billed meanwhile has no file.
            let _ = File::open(file).and_then(|file| file.sync_all());
        }
        let dir = self.own.lock().as_ref().map(|(dir, _)| dir.clone());
        if let Some(dir) = dir.filter(|_| !new.is_empty()) {
            let _ = files::sync_dir(&dir).and_then(|()| files::sync_dir(&self.root));
        }
    }

    /// The replies of other processes: of those that have ended, to be followed here, and of those
    /// that run. What cannot be read is logged, and tried again by the next look. Blocks.
    pub fn of_others(&self) -> (Vec<PendingReply>, Vec<PendingReply>) {
        let (mut left, mut running) = (Vec::new(), Vec::new());
        let own = self.own.lock().as_ref().map(|(dir, _)| dir.clone());
        let failed = |dir: &Path, error: io::Error| {
            tracing::error!(dir = %dir.display(), %error, "replies in the background that another process left cannot be read");
        };
        let entries = match present(fs::read_dir(&self.root)) {
            Ok(entries) => entries,
            Err(error) => {
                failed(&self.root, error);
                None
            }
        };
        for dir in entries.into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path())) {
            let name = dir.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if uuid::Uuid::try_parse(name).is_err() || own.as_ref() == Some(&dir) {
                continue;
            }
            if let Err(error) = self.of_other(&dir, &mut left, &mut running) {
                failed(&dir, error);
            }
        }
        (left, running)
    }

    fn of_other(
        &self,
        dir: &Path,
        left: &mut Vec<PendingReply>,
        running: &mut Vec<PendingReply>,
    ) -> io::Result<()> {
        let Some(lock) = present(files::private().write(true).open(dir.join(LOCK)))? else {
            return Ok(());
        };
        match lock.try_lock() {
            Ok(()) => {
                left.extend(self.adopt(dir)?);
                // Files that could not be moved stay, and with them the directory.
                if !has_replies(dir)? {
                    files::remove_dir(dir)?;
                }
            }
            Err(TryLockError::WouldBlock) => running.extend(replies(dir)?),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        Ok(())
    }

    /// Moves the replies of a directory, which is locked, to that of this process.
    fn adopt(&self, dir: &Path) -> io::Result<Vec<PendingReply>> {
        let mut adopted = Vec::new();
        for path in paths(dir)? {
            if let Some(pending) = PendingReply::read(&path)? {
                adopted.push(pending);
                continue;
            }
            let name = path.file_stem().unwrap_or_default().to_string_lossy();
            let aside = self.root.join(format!("{name}.damaged"));
            fs::rename(&path, &aside)?;
            tracing::error!(file = %aside.display(), "a reply in the background is not billed: its file is damaged");
        }
        for pending in &mut adopted {
            let new = self.write(pending);
            let moved =
                new.and_then(|new| pending.file.replace(new).map_or(Ok(()), fs::remove_file));
            if let Err(error) = moved {
                tracing::error!(dir = %dir.display(), %error, "a reply in the background cannot be moved");
            }
        }
        Ok(adopted)
    }
}

impl Drop for PendingReplies {
    fn drop(&mut self) {
        if let Some((dir, _lock)) = self.own.lock().take()
            && has_replies(&dir).is_ok_and(|has_some| !has_some)
        {
            let _ = files::remove_dir(&dir);
        }
    }
}

/// `None` for what is not there.
fn present<T>(found: io::Result<T>) -> io::Result<Option<T>> {
    match found {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        found => found.map(Some),
    }
}

fn paths(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = present(fs::read_dir(dir))?.into_iter().flatten();
    let paths = entries.map(|entry| entry.map(|entry| entry.path()));
    let paths: io::Result<Vec<PathBuf>> = paths.collect();
    let is_reply = |path: &PathBuf| path.extension().is_some_and(|ending| ending == ENDING);
    Ok(paths?.into_iter().filter(is_reply).collect())
}

fn has_replies(dir: &Path) -> io::Result<bool> {
    paths(dir).map(|paths| !paths.is_empty())
}

fn replies(dir: &Path) -> io::Result<Vec<PendingReply>> {
    let read = |path: &PathBuf| PendingReply::read(path).ok().flatten();
    Ok(paths(dir)?.iter().filter_map(read).collect())
}
