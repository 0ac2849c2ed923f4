//! Which stored record an entry of a document means.
//!
//! Records are matched by name. Users and providers may share one: then `nth` tells which is meant,
//! the oldest first. So a document means the same on every database, which ids do not.

use std::collections::HashMap;

use serde_json::Value;

use super::faults::Faults;
use super::form::Form;
use crate::admin::envelope::Code;

/// The stored records of one kind by name, and what entries have claimed of them.
pub(super) struct RecordNames {
    /// Positions among the stored records, the oldest first.
    stored: HashMap<String, Vec<usize>>,
    claimed: HashMap<(String, usize), String>,
}

/// What an entry means.
pub(super) struct Meant {
    /// The position of the stored record; `None` = it is to be made.
    pub at: Option<usize>,
    /// As messages name it: `ada`, or `ada (2)`.
    pub label: String,
}

impl RecordNames {
    pub(super) fn of<'a>(stored: impl Iterator<Item = &'a str>) -> Self {
        let mut by_name: HashMap<String, Vec<usize>> = HashMap::new();
        for (at, name) in stored.enumerate() {
            by_name.entry(name.to_owned()).or_default().push(at);
        }
        Self { stored: by_name, claimed: HashMap::new() }
    }

    /// Takes `nth` out of the entry; `None` after a fault.
    pub(super) fn claim(
        &mut self,
        name: &str,
        entry: &mut Form,
        at: &str,
        faults: &mut Faults,
    ) -> Option<Meant> {
        let nth = match entry.remove("nth") {
            None | Some(Value::Null) => 1,
            Some(value) => {
                match value.as_u64().and_then(|n| usize::try_from(n).ok()).filter(|n| *n >= 1) {
                    Some(nth) => nth,
                    None => {
                        faults.add(
                            Code::INVALID_TYPE,
                            &format!("{at}/nth"),
                            "must be a whole number from 1",
                        );
                        return None;
                    }
                }
            }
        };
        let claim = (name.to_owned(), nth);
        if let Some(first) = self.claimed.get(&claim) {
            let what = format!("{name:?} is there already, at {}", super::faults::readable(first));
            faults.add(Code::DUPLICATE_NAME, &format!("{at}/name"), &what);
            return None;
        }
        let stored = self.stored.get(name).map_or(&[][..], Vec::as_slice);
        let before =
            (1..nth).all(|n| n <= stored.len() || self.claimed.contains_key(&(name.to_owned(), n)));
        if !before {
            let what = format!("there is no number {} of the name {name:?} before it", nth - 1);
            faults.add(Code::INVALID_FORMAT, &format!("{at}/nth"), &what);
            return None;
        }
        let meant = Meant { at: stored.get(nth - 1).copied(), label: label(name, nth) };
        self.claimed.insert(claim, at.to_owned());
        Some(meant)
    }

    /// The positions that no entry has claimed, each with its label.
    pub(super) fn unclaimed(&self) -> Vec<(usize, String)> {
        let each = self.stored.iter().flat_map(|(name, places)| {
            (1..).zip(places).map(move |(nth, at)| (name.clone(), nth, *at))
        });
        let mut left: Vec<(usize, String)> = each
            .filter(|(name, nth, _)| !self.claimed.contains_key(&(name.clone(), *nth)))
            .map(|(name, nth, at)| (at, label(&name, nth)))
            .collect();
        left.sort_unstable();
        left
    }
}

/// The number of each record among those of its name.
pub(super) fn numbers<'a>(names: impl Iterator<Item = &'a str>) -> Vec<usize> {
    let mut seen: HashMap<&str, usize> = HashMap::new();
    names
        .map(|name| {
            let count = seen.entry(name).or_default();
            *count += 1;
            *count
        })
        .collect()
}

pub(super) fn label(name: &str, nth: usize) -> String {
    if nth == 1 { name.to_owned() } else { format!("{name} ({nth})") }
}
