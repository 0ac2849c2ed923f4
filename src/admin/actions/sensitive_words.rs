//! `sensitive-words/*`: words that clients may not send to a model.

use crate::admin::call::{Call, Change, recorded};
use crate::admin::envelope::{ApiError, Code};
use crate::admin::fields::{Body, Field, Kind, Values};
use crate::admin::records::word::{WordRecord, WordStats};
use crate::admin::table::{Operation, Permission};
use crate::domain::clock::Timestamp;
use crate::domain::ids::WordId;
use crate::domain::matching::MatchType;
use crate::domain::word::SensitiveWord;
use crate::policy::fold::fold;
use crate::policy::pattern::{self, PatternFault};
use crate::policy::words;
use crate::store::Tx;

/// Longest word, characters; for regular expressions their own bound is the same.
const WORD: Kind = Kind::text(1, pattern::MAX_LENGTH);
pub const MATCH_TYPE: Kind = Kind::Choice(&["contains", "exact", "regex"]);
pub const DESCRIPTION: Kind = Kind::text(0, 500);
/// More words than this are a list for another tool.
pub const MAX_WORDS: usize = 10_000;

const ID: &[Field] = &[Field::new("id", Kind::ID, "The word's id.").required()];

pub const FIELDS: &[Field] = &[
    Field::new("word", WORD, "A word or phrase, or a regular expression. Letter case never counts.").required(),
    Field::new(
        "matchType",
        MATCH_TYPE,
        "`contains`: anywhere in a text; `exact`: a whole text, without blanks around it; `regex`: a regular expression.",
    )
    .required(),
    Field::new("description", DESCRIPTION, "For administrators.").nullable(),
    Field::new("isEnabled", Kind::Boolean, "").or_true(),
];

pub fn operations() -> Vec<Operation> {
    vec![
        Operation::action("actions/sensitive-words/listSensitiveWords", Permission::Admin, Body::EMPTY, list)
            .doc("All sensitive words, the oldest first."),
        Operation::action(
            "actions/sensitive-words/createSensitiveWordAction",
            Permission::Admin,
            Body::of(&[], FIELDS),
            create,
        )
        .doc("Adds a word; requests with a text that holds it are refused from now on.")
        .errors(&[Code::DUPLICATE_WORD]),
        Operation::action(
            "actions/sensitive-words/updateSensitiveWordAction",
            Permission::Admin,
            Body::edit(ID, FIELDS),
            update,
        )
        .doc("Changes what is sent and leaves the rest.")
        .errors(&[Code::NOT_FOUND, Code::DUPLICATE_WORD]),
        Operation::action(
            "actions/sensitive-words/deleteSensitiveWordAction",
            Permission::Admin,
            Body::of(ID, &[]),
            delete,
        )
        .doc("Removes a word.")
        .errors(&[Code::NOT_FOUND]),
        Operation::action("actions/sensitive-words/refreshCacheAction", Permission::Admin, Body::EMPTY, refresh)
            .doc("Reads the words from the database anew. Changes made here need no refresh."),
        Operation::action("actions/sensitive-words/getCacheStats", Permission::Admin, Body::EMPTY, stats)
            .doc("What the data plane of this node looks for, and since when."),
    ]
}

async fn list(call: Call) -> Result<Vec<WordRecord>, ApiError> {
    Ok(call.ctx.state.peek().words.all().iter().map(WordRecord::new).collect())
}

/// A word as it is before any field is put into it.
pub(in crate::admin) const fn blank(now: Timestamp) -> SensitiveWord {
    SensitiveWord {
        id: WordId(0),
        word: String::new(),
        match_type: MatchType::Contains,
        description: String::new(),
        is_enabled: true,
        created_at: now,
        updated_at: now,
    }
}

async fn create(call: Call) -> Result<WordRecord, ApiError> {
    let mut word = blank(call.now);
    apply(&call.values, &mut word);
    let mut tx = call.ctx.store.begin().await?;
    check(&mut tx, &word).await?;
    word.id = tx.insert_word(&word).await?;
    let record = WordRecord::new(&word);
    audit(&call, &mut tx, "sensitive-words.createSensitiveWordAction", (None, Some(&word))).await?;
    call.commit(tx).await?;
    Ok(record)
}

async fn update(call: Call) -> Result<WordRecord, ApiError> {
    let mut tx = call.ctx.store.begin().await?;
    let before = found(&call, &mut tx).await?;
    let mut word = before.clone();
    apply(&call.values, &mut word);
    word.updated_at = call.now;
    check(&mut tx, &word).await?;
    tx.update_word(&word).await?;
    audit(&call, &mut tx, "sensitive-words.updateSensitiveWordAction", (Some(&before), Some(&word))).await?;
    call.commit(tx).await?;
    Ok(WordRecord::new(&word))
}

async fn delete(call: Call) -> Result<(), ApiError> {
    let mut tx = call.ctx.store.begin().await?;
    let before = found(&call, &mut tx).await?;
    tx.delete_word(before.id).await?;
    audit(&call, &mut tx, "sensitive-words.deleteSensitiveWordAction", (Some(&before), None)).await?;
    call.commit(tx).await
}

async fn refresh(call: Call) -> Result<WordStats, ApiError> {
    call.ctx.state.publish().await.map_err(ApiError::internal)?;
    stats(call).await
}

async fn stats(call: Call) -> Result<WordStats, ApiError> {
    Ok(WordStats::new(&call.ctx.state.snapshot()))
}

/// Puts every field that was sent into the word.
pub(in crate::admin) fn apply(values: &Values, word: &mut SensitiveWord) {
    values.text("word").apply_set(&mut word.word);
    values.word("matchType", MatchType::parse).apply_set(&mut word.match_type);
    values.text("description").apply(&mut word.description);
    values.boolean("isEnabled").apply_set(&mut word.is_enabled);
}

async fn found(call: &Call, tx: &mut Tx) -> Result<SensitiveWord, ApiError> {
    let id = call.values.id("id");
    let word = tx.words().await?.into_iter().find(|word| word.id.0 == id);
    word.ok_or_else(|| ApiError::missing("sensitive word", id))
}

/// What makes two words, or two error rules, the same. Case means something in a regular expression:
/// `\S` is not `\s`.
pub(in crate::admin) fn identity(match_type: MatchType, text: &str) -> (MatchType, String) {
    let text = match match_type {
        MatchType::Regex => text.to_owned(),
        MatchType::Contains | MatchType::Exact => fold(text),
    };
    (match_type, text)
}

/// The rules that need the other words: no word twice, and regular expressions that can be told
/// together.
async fn check(tx: &mut Tx, word: &SensitiveWord) -> Result<(), ApiError> {
    let others: Vec<SensitiveWord> = tx.words().await?.into_iter().filter(|other| other.id != word.id).collect();
    if others.len() >= MAX_WORDS {
        let refusal = ApiError::new(Code::OPERATION_FAILED, format!("there are {MAX_WORDS} words already"));
        return Err(refusal.with("max", MAX_WORDS.into()));
    }
    let identity = identity(word.match_type, &word.word);
    if let Some(twin) = others.iter().find(|other| self::identity(other.match_type, &other.word) == identity) {
        let message = format!("this word is there already, as {} with the id {}", twin.match_type.as_str(), twin.id);
        return Err(ApiError::new(Code::DUPLICATE_WORD, message).with("id", twin.id.0.into()));
    }
    if word.match_type == MatchType::Regex {
        let enabled = others.iter().filter(|other| other.is_enabled && other.match_type == MatchType::Regex);
        let checked = words::check_pattern(&word.word, enabled.map(|other| other.word.as_str()));
        checked.map_err(|fault| unsafe_pattern("word", &fault))?;
    }
    Ok(())
}

/// The refusal of a regular expression.
pub fn unsafe_pattern(field: &str, fault: &PatternFault) -> ApiError {
    ApiError::field(Code::INVALID_FORMAT, field, format!("{field}: {fault}")).with("reason", fault.as_str().into())
}

async fn audit(
    call: &Call,
    tx: &mut Tx,
    action: &'static str,
    states: (Option<&SensitiveWord>, Option<&SensitiveWord>),
) -> Result<(), ApiError> {
    let (before, after) = states;
    let id = before.or(after).map_or(0, |word| word.id.0);
    let record = |word: Option<&SensitiveWord>| word.map_or(Ok(None), |word| recorded(&WordRecord::new(word)));
    let change =
        Change { action, target: format!("sensitive word {id}"), before: record(before)?, after: record(after)? };
    call.audit(tx, change).await
}
