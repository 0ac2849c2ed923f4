//! Which model of the ledger a vendor means. By id: without its date. In billing files a
//! description names it, such as `USE1-Claude4.5Sonnet-input-tokens`: the model of which it has
//! every word.

use std::collections::BTreeSet;

use crate::domain::invoice::LedgerLine;
use crate::policy::price_name;

pub(super) struct VendorNames {
    /// The ledger's models with their words, for descriptions.
    known: Option<Vec<(String, Vec<String>)>>,
}

impl VendorNames {
    pub(super) fn new(ledger: &[LedgerLine], by_description: bool) -> Self {
        let models: BTreeSet<String> =
            ledger.iter().map(|line| without_date(&line.upstream_model)).collect();
        let with_words = |model: String| {
            let words = model_words(&model);
            (model, words)
        };
        Self { known: by_description.then(|| models.into_iter().map(with_words).collect()) }
    }

    pub(super) fn of(&self, model: &str) -> String {
        let own = without_date(model);
        let Some(known) = &self.known else { return own };
        if known.iter().any(|(name, _)| *name == own) {
            return own;
        }
        let words = words(model);
        let fits = |wanted: &[String]| {
            !wanted.is_empty() && wanted.iter().all(|word| has(&words, wanted, word))
        };
        let matching = known.iter().filter(|(_, wanted)| fits(wanted));
        let best = matching.max_by_key(|(_, wanted)| wanted.len());
        best.map_or_else(|| model.to_owned(), |(name, _)| name.clone())
    }
}

fn without_date(model: &str) -> String {
    price_name::base(model).unwrap_or(model).to_owned()
}

/// Whether a description has the word. A number must not go on: 4.5 is not 4.
fn has(words: &[String], wanted: &[String], word: &String) -> bool {
    let goes_on = |next: &String| is_version(next) && !wanted.contains(next);
    words.iter().enumerate().any(|(at, found)| {
        found == word && !(is_version(word) && words.get(at + 1).is_some_and(goes_on))
    })
}

fn is_version(word: &str) -> bool {
    word.len() <= 2 && word.bytes().all(|b| b.is_ascii_digit())
}

/// The words of a model's id without those that tell where it is served.
fn model_words(model: &str) -> Vec<String> {
    const PLACES: [&str; 12] = [
        "us",
        "eu",
        "apac",
        "global",
        "jp",
        "au",
        "anthropic",
        "amazon",
        "meta",
        "models",
        "google",
        "latest",
    ];
    let id = model.split([':', '@']).next().unwrap_or(model);
    let is_place = |word: &str| PLACES.contains(&word);
    let is_revision = |word: &str| {
        word.strip_prefix('v').is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_digit()))
            || (word.len() >= 6 && word.bytes().all(|b| b.is_ascii_digit()))
    };
    words(id).into_iter().filter(|word| !is_place(word) && !is_revision(word)).collect()
}

/// Runs of letters and of digits in small letters; a single letter stays with its digits, as in
/// `4o` and `5m`.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    for run in text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|run| !run.is_empty()) {
        let mut pieces: Vec<String> = Vec::new();
        for c in run.chars() {
            let same = |piece: &&mut String| {
                piece.ends_with(|last: char| last.is_ascii_digit() == c.is_ascii_digit())
            };
            match pieces.last_mut().filter(same) {
                Some(piece) => piece.push(c.to_ascii_lowercase()),
                None => pieces.push(c.to_ascii_lowercase().to_string()),
            }
        }
        let is_letter = |piece: &String| piece.len() == 1 && !piece.as_bytes()[0].is_ascii_digit();
        if pieces.iter().any(is_letter) {
            words.push(pieces.concat())
        } else {
            words.extend(pieces)
        }
    }
    words
}
