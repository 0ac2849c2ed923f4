//! Pairs calls and results: by their ids, or by name and order if they have none.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};

use crate::formats::conversation::{Str, Text};

/// No further call.
const NONE: u32 = u32::MAX;

/// The calls so far, and which of them have no result yet.
#[derive(Default)]
pub(super) struct Calls<'a> {
    calls: Vec<Call<'a>>,
    by_id: Queues,
    by_name: Queues,
    /// By name, those to which the model gave no id.
    without_id: Queues,
    hasher: RandomState,
}

struct Call<'a> {
    id: Text<'a>,
    is_open: bool,
}

/// Calls in order, by the hash of a text: of each, the first one that may be open, and the last
/// one.
#[derive(Default)]
struct Queues {
    ends: HashMap<u64, (u32, u32)>,
    /// For each call the one after it in its queue.
    next: Vec<u32>,
}

impl Queues {
    fn push(&mut self, hash: u64, call: u32) {
        self.next.resize(call as usize + 1, NONE);
        let (_, last) = self.ends.entry(hash).or_insert((call, call));
        if let Some(next) = self.next.get_mut(*last as usize).filter(|_| *last != call) {
            *next = call;
        }
        *last = call;
    }

    /// The first call of the queue that is open; those before it leave the queue.
    fn first(&mut self, hash: u64, is_open: impl Fn(u32) -> bool) -> Option<u32> {
        let (first, _) = self.ends.get_mut(&hash)?;
        while !is_open(*first) {
            match self.next.get(*first as usize) {
                None | Some(&NONE) => {
                    self.ends.remove(&hash);
                    return None;
                }
                Some(next) => *first = *next,
            }
        }
        Some(*first)
    }
}

impl<'a> Calls<'a> {
    /// Adds a call, and returns its id.
    pub(super) fn add(&mut self, given: Option<Str<'a>>, name: &str) -> Text<'a> {
        let given = given.filter(|id| !id.is_empty()).map(Str::into_text);
        let has_id = given.is_some();
        // By position: the same in every later turn of the conversation.
        let id = given.unwrap_or_else(|| self.generated());
        // A body has less elements.
        let Ok(call) = u32::try_from(self.calls.len()) else { return id };
        let (of_id, of_name) = (self.hash(&id), self.hash(name));
        self.by_id.push(of_id, call);
        self.by_name.push(of_name, call);
        if !has_id {
            self.without_id.push(of_name, call);
        }
        self.calls.push(Call { id: id.clone(), is_open: true });
        id
    }

    /// The id of the call that a result answers.
    pub(super) fn answer(&mut self, given: Option<Str<'a>>, name: &str) -> Text<'a> {
        let given = given.filter(|id| !id.is_empty()).map(Str::into_text);
        let of_name = self.hash(name);
        let calls = &self.calls;
        let call = |at: u32| calls.get(at as usize);
        let is_open = |at| call(at).is_some_and(|call| call.is_open);
        let found = match &given {
            Some(id) => {
                let of_id = self.hash(id);
                let by_id = self.by_id.first(of_id, is_open);
                // Gemini CLI invents an id for the result of a call without one.
                by_id.or_else(|| self.without_id.first(of_name, is_open))
            }
            None => self.by_name.first(of_name, is_open),
        };
        match found.and_then(|at| self.calls.get_mut(at as usize)) {
            Some(call) => {
                call.is_open = false;
                call.id.clone()
            }
            None => given.unwrap_or_else(|| self.generated()),
        }
    }

    fn generated(&self) -> Text<'static> {
        format!("call_{}", self.calls.len()).into()
    }

    fn hash(&self, text: &str) -> u64 {
        self.hasher.hash_one(text)
    }
}
