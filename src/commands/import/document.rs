//! The declarative document of what was mapped, and the stored records that it meant.
//!
//! A user whose key is stored already is the user that has the key, whatever their name is now; so
//! is a key. So another import finds what was renamed here since.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value, json};

use super::accepted::fill;
use super::model::{Form, Mapped, MappedUser};
use crate::admin::declarative::VERSION;
use crate::admin::limits::{OF_KEY, OF_PROVIDER, OF_USER};
use crate::domain::ids::{KeyId, ProviderId, UserId};
use crate::domain::key::KeyHash;
use crate::policy::cost::{Belief, rates_from_json};
use crate::store::Everything;

/// How a document names a record: its name, and which of that name.
pub(super) type Named = (String, usize);

/// The document, and how it names each user and provider.
#[derive(Debug)]
pub(super) struct Document {
    pub document: Map<String, Value>,
    pub users: Vec<Named>,
    pub providers: Vec<Named>,
}

/// Which records an import means.
#[derive(Debug)]
pub(super) struct Ids {
    pub users: Vec<Option<UserId>>,
    pub keys: HashMap<KeyHash, KeyId>,
    pub providers: Vec<Option<ProviderId>>,
}

/// Builds the document.
pub(super) fn build(mapped: &mut Mapped, stored: &Everything) -> Document {
    let mut document = Map::new();
    document.insert("version".to_owned(), VERSION.into());
    let providers = providers(mapped, &mut document);
    let users = users(mapped, stored, &mut document);
    prices(mapped, &mut document);
    if !mapped.words.is_empty() {
        document.insert("words".to_owned(), std::mem::take(&mut mapped.words).into());
    }
    Document { document, users, providers }
}

fn providers(mapped: &mut Mapped, document: &mut Map<String, Value>) -> Vec<Named> {
    let mut entries = Vec::new();
    for provider in &mapped.providers {
        let mut form = Form::from_iter([("name".to_owned(), provider.name.as_str().into())]);
        let subject = format!("provider {:?}", provider.name);
        fill(&mut form, &provider.form, &subject, &mut mapped.notes);
        provider.limits.write(&mut form, OF_PROVIDER, &subject, &mut mapped.notes);
        entries.push(Value::Object(form));
    }
    let named = mapped.providers.iter().map(|provider| (provider.name.clone(), 1)).collect();
    if !entries.is_empty() {
        document.insert("providers".to_owned(), entries.into());
    }
    named
}

/// The stored owner of each key, as a document names them, and the name of the key.
type Owners = HashMap<KeyHash, (UserId, Named, String)>;

fn owners(stored: &Everything) -> Owners {
    let mut sorted: Vec<_> = stored.users.iter().collect();
    sorted.sort_by_key(|user| user.id);
    let mut counts: HashMap<&str, usize> = HashMap::new();
    let mut named = HashMap::new();
    for user in sorted {
        let nth = counts.entry(user.name.as_str()).or_default();
        *nth += 1;
        named.insert(user.id, (user.name.clone(), *nth));
    }
    let of = |key: &crate::domain::key::Key| {
        let named = named.get(&key.user_id)?.clone();
        Some((key.hash, (key.user_id, named, key.name.clone())))
    };
    stored.keys.iter().filter_map(of).collect()
}

fn users(
    mapped: &mut Mapped,
    stored: &Everything,
    document: &mut Map<String, Value>,
) -> Vec<Named> {
    let owners = owners(stored);
    let mut taken: HashSet<Named> = HashSet::new();
    let known: Vec<Option<Named>> = mapped
        .users
        .iter()
        .map(|user| {
            let found = user.keys.iter().find_map(|key| owners.get(&key.hash));
            found.map(|(_, named, _)| named.clone()).filter(|named| taken.insert(named.clone()))
        })
        .collect();
    let mut named = Vec::with_capacity(known.len());
    let mut next: HashMap<&str, usize> = HashMap::new();
    for (user, known) in mapped.users.iter().zip(known) {
        let name = known.unwrap_or_else(|| {
            let nth = next.entry(&user.name).or_insert(1);
            // Another of this import is the stored user of that name.
            while !taken.insert((user.name.clone(), *nth)) {
                *nth += 1;
            }
            (user.name.clone(), *nth)
        });
        named.push(name);
    }
    let mut entries = Vec::with_capacity(named.len());
    for (user, (name, nth)) in mapped.users.iter().zip(&named) {
        let mut form = Form::from_iter([("name".to_owned(), name.as_str().into())]);
        if *nth > 1 {
            form.insert("nth".to_owned(), (*nth).into());
        }
        let subject = format!("user {name:?}");
        fill(&mut form, &user.form, &subject, &mut mapped.notes);
        user.limits.write(&mut form, OF_USER, &subject, &mut mapped.notes);
        let keys = keys(user, name, &owners, &mapped.deleted, &mut mapped.notes);
        form.insert("keys".to_owned(), keys.into());
        entries.push((*nth, Value::Object(form)));
    }
    // The second of a name stands after the first.
    entries.sort_by_key(|(nth, _)| *nth);
    if !entries.is_empty() {
        let entries: Vec<Value> = entries.into_iter().map(|(_, entry)| entry).collect();
        document.insert("users".to_owned(), entries.into());
    }
    named
}

fn keys(
    user: &MappedUser,
    owner: &str,
    owners: &Owners,
    deleted: &HashMap<KeyHash, KeyId>,
    notes: &mut super::model::Notes,
) -> Vec<Value> {
    let mut taken: HashSet<&str> = HashSet::new();
    let stored = |hash: &KeyHash| owners.get(hash).map(|(_, _, name)| name.as_str());
    taken.extend(user.keys.iter().filter_map(|key| stored(&key.hash)));
    let mut entries = Vec::with_capacity(user.keys.len());
    for key in &user.keys {
        if deleted.contains_key(&key.hash) {
            let subject = format!("key \"{owner}/{}\"", key.name);
            notes.add("the key was deleted here, and stays deleted", subject);
            continue;
        }
        let name = match stored(&key.hash) {
            Some(name) => name.to_owned(),
            None if taken.contains(key.name.as_str()) => {
                format!("{} ({})", key.name, hex::encode(&key.hash.0[..3]))
            }
            None => key.name.clone(),
        };
        let mut form = Form::from_iter([("name".to_owned(), name.as_str().into())]);
        form.insert("hash".to_owned(), format!("sha256:{}", hex::encode(key.hash.0)).into());
        let subject = format!("key \"{owner}/{name}\"");
        fill(&mut form, &key.form, &subject, notes);
        let limits = key.limits.within(&user.limits);
        if limits != key.limits {
            let why = "a key's limit cannot be above its user's here: it has its user's";
            notes.add(why, subject.clone());
        }
        limits.write(&mut form, OF_KEY, &subject, notes);
        entries.push(Value::Object(form));
    }
    entries
}

/// Entries that this gateway accepts.
fn prices(mapped: &mut Mapped, document: &mut Map<String, Value>) {
    let (mut usual, mut forced) = (Form::new(), Form::new());
    for (model, entry) in std::mem::take(&mut mapped.prices) {
        match rates_from_json(&entry, Belief::Usual)
            .map_err(|why| (rates_from_json(&entry, Belief::Forced), why))
        {
            Ok(_) => drop(usual.insert(model, entry)),
            Err((Ok(_), _)) => drop(forced.insert(model, entry)),
            Err((Err(_), why)) => {
                mapped.notes.add("tollgate cannot use the price", format!("{model:?}: {why}"))
            }
        }
    }
    if !usual.is_empty() || !forced.is_empty() {
        document.insert("prices".to_owned(), json!(usual));
    }
    if !forced.is_empty() {
        document.insert("forced_prices".to_owned(), json!(forced));
    }
}

/// The records that the document has made or found.
pub(super) fn ids(document: &Document, mapped: &Mapped, stored: &Everything) -> Ids {
    let mut users: HashMap<&str, Vec<UserId>> = HashMap::new();
    for user in &stored.users {
        users.entry(user.name.as_str()).or_default().push(user.id);
    }
    let mut providers: HashMap<&str, Vec<ProviderId>> = HashMap::new();
    for stored in &stored.providers {
        providers.entry(stored.provider.name.as_str()).or_default().push(stored.provider.id);
    }
    users.values_mut().for_each(|ids| ids.sort_unstable());
    providers.values_mut().for_each(|ids| ids.sort_unstable());
    Ids {
        users: document
            .users
            .iter()
            .map(|(name, nth)| users.get(name.as_str())?.get(nth - 1).copied())
            .collect(),
        // What was spent with a key that was deleted stays its own.
        keys: (mapped.deleted.iter().map(|(hash, id)| (*hash, *id)))
            .chain(stored.keys.iter().map(|key| (key.hash, key.id)))
            .collect(),
        providers: document
            .providers
            .iter()
            .map(|(name, nth)| providers.get(name.as_str())?.get(nth - 1).copied())
            .collect(),
    }
}
