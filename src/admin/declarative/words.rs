//! The section `words`: sensitive words. A word is known by its text and how it is matched.

use std::collections::HashMap;

use serde_json::Value;

use super::form::{self, Form};
use super::section::{self, Row, Section};
use super::work::Work;
use crate::admin::actions::sensitive_words::{
    self as actions, MAX_WORDS, WordFields, identity, unsafe_pattern,
};
use crate::admin::bodies::Shape;
use crate::admin::envelope::{ApiError, Code};
use crate::admin::records::word::WordRecord;
use crate::domain::clock::Timestamp;
use crate::domain::matching::MatchType;
use crate::domain::word::SensitiveWord;
use crate::policy::{pattern, words};

impl Section for SensitiveWord {
    const KIND: &'static str = "word";

    fn form(&self) -> Result<Option<Form>, ApiError> {
        form::of(&WordRecord::new(self), Shape::of::<WordFields>()).map(Some)
    }

    fn target(&self) -> String {
        format!("sensitive word {}", self.id)
    }

    fn defaults() -> Result<Form, ApiError> {
        actions::blank(Timestamp(0)).all_but(&["word", "match_type"])
    }
}

impl Row for SensitiveWord {
    async fn save(&mut self, work: &mut Work<'_>, is_new: bool) -> Result<(), ApiError> {
        match is_new {
            true => self.id = work.tx.insert_word(self).await?,
            false => work.tx.update_word(self).await?,
        }
        Ok(())
    }

    async fn delete(&self, work: &mut Work<'_>) -> Result<(), ApiError> {
        Ok(work.tx.delete_word(self.id).await?)
    }
}

pub(super) async fn apply(work: &mut Work<'_>, section: Option<Value>) -> Result<(), ApiError> {
    let Some(entries) = work.list(section, "/words") else { return Ok(()) };
    let stored: HashMap<_, SensitiveWord> = std::mem::take(&mut work.stored.words)
        .into_iter()
        .map(|word| (identity(word.match_type, &word.word), word))
        .collect();
    let mut wanted: Vec<SensitiveWord> = Vec::with_capacity(entries.len());
    let mut named: HashMap<Identity, String> = HashMap::new();
    for (at, entry) in entries {
        let Some(fields) = work.read::<WordFields>(&entry, &at)? else { continue };
        let mut word = actions::blank(work.desk.now);
        fields.apply(&mut word);
        let identity = identity(word.match_type, &word.word);
        if let Some(first) = named.get(&identity) {
            work.twice(Code::DUPLICATE_WORD, &at, first);
            continue;
        }
        if let Some(before) = stored.get(&identity) {
            (word.id, word.created_at) = (before.id, before.created_at);
        }
        named.insert(identity, at);
        wanted.push(word);
    }
    let mut left: Vec<&SensitiveWord> = stored
        .iter()
        .filter(|(identity, _)| !named.contains_key(identity))
        .map(|(_, word)| word)
        .collect();
    left.sort_by_key(|word| word.id);
    if work.prune {
        for word in std::mem::take(&mut left) {
            section::remove(work, word.word.clone(), word).await?;
        }
    }
    check(work, &wanted, &left, &stored, &named)?;
    for word in wanted {
        let before = stored.get(&identity(word.match_type, &word.word));
        section::write(work, word.word.clone(), before, word).await?;
    }
    Ok(())
}

type Identity = (MatchType, String);

/// The rules over all words: not too many, and regular expressions that can be searched together.
fn check(
    work: &mut Work<'_>,
    wanted: &[SensitiveWord],
    left: &[&SensitiveWord],
    stored: &HashMap<Identity, SensitiveWord>,
    named: &HashMap<Identity, String>,
) -> Result<(), ApiError> {
    if wanted.len() + left.len() > MAX_WORDS {
        work.faults.add(
            Code::OPERATION_FAILED,
            "/words",
            &format!("there may be {MAX_WORDS} words at most"),
        );
    }
    let place = |word: &SensitiveWord| {
        named.get(&identity(word.match_type, &word.word)).map_or("/words", String::as_str)
    };
    let is_regex = |word: &&SensitiveWord| word.match_type == MatchType::Regex;
    let is_new = |word: &&SensitiveWord| {
        let before = stored.get(&identity(word.match_type, &word.word));
        before.is_none_or(|before| before.is_enabled != word.is_enabled)
    };
    let new: Vec<&SensitiveWord> = wanted.iter().filter(is_regex).filter(is_new).collect();
    let mut sound = true;
    for word in &new {
        if let Err(fault) = pattern::compile(&word.word) {
            work.faults.take(place(word), unsafe_pattern("word", &fault))?;
            sound = false;
        }
    }
    // Together once: what they cost together is said of the last.
    if let Some(last) = new.last().filter(|_| sound) {
        let all = wanted.iter().chain(left.iter().copied()).filter(is_regex);
        let others = all.filter(|other| other.is_enabled && other.word != last.word);
        if let Err(fault) =
            words::check_pattern(&last.word, others.map(|other| other.word.as_str()))
        {
            work.faults.take(place(last), unsafe_pattern("word", &fault))?;
        }
    }
    Ok(())
}

pub(super) fn exported(words: &[SensitiveWord]) -> Result<Vec<Value>, ApiError> {
    let mut words: Vec<&SensitiveWord> = words.iter().collect();
    words.sort_by_key(|word| word.id);
    let defaults = SensitiveWord::defaults()?;
    words.into_iter().map(|word| Ok(word.short(&defaults)?.into())).collect()
}
