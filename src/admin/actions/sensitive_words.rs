//! `sensitive-words/*`: words that clients may not send to a model.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::admin::bodies::{Edit, Id, Nothing, OneOf, Patch, Sent, Text};
use crate::admin::call::{AuditChange, Call, recorded};
use crate::admin::envelope::{ApiError, Code};
use crate::admin::operation::{Operation, Permission};
use crate::admin::reasons::Reason;
use crate::admin::records::word::{WordRecord, WordStats};
use crate::domain::clock::Timestamp;
use crate::domain::ids::WordId;
use crate::domain::matching::MatchType;
use crate::domain::word::SensitiveWord;
use crate::policy::fold::fold;
use crate::policy::pattern::{self, PatternFault};
use crate::policy::words;
use crate::store::Tx;

/// More words than this are a list for another tool.
pub const MAX_WORDS: usize = 10_000;

/// Which word.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OfWord {
    /// The word's id.
    pub id: Id,
}

/// A word's own fields: of a new one, and of an edit.
#[derive(Debug, Default, Clone, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct WordFields {
    /// A word or phrase, or a regular expression. Letter case never counts.
    #[schemars(extend("required" = true))]
    pub word: Sent<Text<1, { pattern::MAX_LENGTH }>>,
    /// `contains`: anywhere in a text; `exact`: a whole text, without blanks around it; `regex`: a
    /// regular expression.
    #[schemars(extend("required" = true))]
    pub match_type: Sent<OneOf<MatchType>>,
    /// For administrators.
    pub description: Patch<Text<0, 500>>,
    /// Whether requests are searched for it.
    #[schemars(extend("default" = true))]
    pub is_enabled: Sent<bool>,
}

/// The operations of this file, for the table of all.
pub fn operations() -> Vec<Operation> {
    vec![
        Operation::action("actions/sensitive-words/listSensitiveWords", Permission::Admin, list)
            .reads()
            .doc("All sensitive words, the oldest first."),
        Operation::action(
            "actions/sensitive-words/createSensitiveWordAction",
            Permission::Admin,
            create,
        )
        .creates()
        .doc("Adds a word; requests with a text that holds it are refused from now on.")
        .errors(&[Code::DUPLICATE_WORD]),
        Operation::action(
            "actions/sensitive-words/updateSensitiveWordAction",
            Permission::Admin,
            update,
        )
        .updates()
        .doc("Changes what is sent and leaves the rest.")
        .errors(&[Code::NOT_FOUND, Code::DUPLICATE_WORD]),
        Operation::action(
            "actions/sensitive-words/deleteSensitiveWordAction",
            Permission::Admin,
            delete,
        )
        .deletes()
        .doc("Removes a word.")
        .errors(&[Code::NOT_FOUND]),
        Operation::action("actions/sensitive-words/refreshCacheAction", Permission::Admin, refresh)
            .doc("Reads the words from the database again. Changes made here need no refresh."),
        Operation::action("actions/sensitive-words/getCacheStats", Permission::Admin, stats)
            .reads()
            .doc("What the data plane of this node looks for, and since when."),
    ]
}

async fn list(call: Call, _: Nothing) -> Result<Vec<WordRecord>, ApiError> {
    Ok(call.ctx.node.state.peek().words.all().iter().map(WordRecord::new).collect())
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

async fn create(call: Call, body: WordFields) -> Result<WordRecord, ApiError> {
    let mut word = blank(call.now);
    body.apply(&mut word);
    let mut tx = call.ctx.node.store.begin().await?;
    check(&mut tx, &word).await?;
    word.id = tx.insert_word(&word).await?;
    let record = WordRecord::new(&word);
    audit(&call, &mut tx, "sensitive-words.createSensitiveWordAction", None, Some(&word)).await?;
    call.commit(tx).await?;
    Ok(record)
}

async fn update(call: Call, body: Edit<OfWord, WordFields>) -> Result<WordRecord, ApiError> {
    let mut tx = call.ctx.node.store.begin().await?;
    let before = found(&mut tx, &body.target).await?;
    let mut word = before.clone();
    body.change.apply(&mut word);
    if word == before {
        return Ok(WordRecord::new(&word));
    }
    word.updated_at = call.now;
    check(&mut tx, &word).await?;
    tx.update_word(&word).await?;
    audit(&call, &mut tx, "sensitive-words.updateSensitiveWordAction", Some(&before), Some(&word))
        .await?;
    call.commit(tx).await?;
    Ok(WordRecord::new(&word))
}

async fn delete(call: Call, body: OfWord) -> Result<(), ApiError> {
    let mut tx = call.ctx.node.store.begin().await?;
    let before = found(&mut tx, &body).await?;
    tx.delete_word(before.id).await?;
    audit(&call, &mut tx, "sensitive-words.deleteSensitiveWordAction", Some(&before), None).await?;
    call.commit(tx).await
}

async fn refresh(call: Call, _: Nothing) -> Result<WordStats, ApiError> {
    call.ctx.node.state.publish().await.map_err(ApiError::internal)?;
    stats(call, Nothing {}).await
}

async fn stats(call: Call, _: Nothing) -> Result<WordStats, ApiError> {
    Ok(WordStats::new(&call.ctx.node.state.snapshot()))
}

impl WordFields {
    /// Puts every field that was sent into the word.
    pub fn apply(&self, word: &mut SensitiveWord) {
        self.word.apply(&mut word.word);
        self.match_type.apply(&mut word.match_type);
        self.description.plain().apply(&mut word.description);
        self.is_enabled.apply(&mut word.is_enabled);
    }
}

async fn found(tx: &mut Tx, named: &OfWord) -> Result<SensitiveWord, ApiError> {
    let id = named.id.0;
    let word = tx.words().await?.into_iter().find(|word| word.id.0 == id);
    word.ok_or_else(|| ApiError::missing("sensitive word", id))
}

/// What makes two words, or two error rules, the same. Case counts in a regular expression: `\S` is
/// not `\s`.
pub(in crate::admin) fn identity(match_type: MatchType, text: &str) -> (MatchType, String) {
    let text = match match_type {
        MatchType::Regex => text.to_owned(),
        MatchType::Contains | MatchType::Exact => fold(text),
    };
    (match_type, text)
}

/// The rules that need the other words: no word twice, and regular expressions that can be searched
/// together.
async fn check(tx: &mut Tx, word: &SensitiveWord) -> Result<(), ApiError> {
    let others: Vec<SensitiveWord> =
        tx.words().await?.into_iter().filter(|other| other.id != word.id).collect();
    if others.len() >= MAX_WORDS {
        let refusal = ApiError::because(Code::OPERATION_FAILED, Reason::TooManyWords);
        return Err(refusal.with("max", MAX_WORDS.into()));
    }
    let identity = identity(word.match_type, &word.word);
    if let Some(twin) =
        others.iter().find(|other| self::identity(other.match_type, &other.word) == identity)
    {
        let message = format!(
            "this word is there already, as {} with the id {}",
            twin.match_type.as_str(),
            twin.id
        );
        return Err(ApiError::by_code(Code::DUPLICATE_WORD, message).with("id", twin.id.0.into()));
    }
    if word.match_type == MatchType::Regex {
        let enabled =
            others.iter().filter(|other| other.is_enabled && other.match_type == MatchType::Regex);
        let checked = words::check_pattern(&word.word, enabled.map(|other| other.word.as_str()));
        checked.map_err(|fault| unsafe_pattern("word", &fault))?;
    }
    Ok(())
}

/// The refusal of a regular expression.
pub fn unsafe_pattern(field: &str, fault: &PatternFault) -> ApiError {
    let of = |reason| ApiError::because(Code::INVALID_FORMAT, reason).field(field);
    match fault {
        PatternFault::TooLong => of(Reason::PatternTooLong).with("max", pattern::MAX_LENGTH.into()),
        PatternFault::NestedRepeat => of(Reason::PatternNestedRepeat),
        PatternFault::LookAround => of(Reason::PatternLookAround),
        PatternFault::BackReference => of(Reason::PatternBackReference),
        PatternFault::TooLarge => of(Reason::PatternTooLarge),
        PatternFault::MatchesEmpty => of(Reason::PatternMatchesEmpty),
        PatternFault::Syntax(why) => of(Reason::PatternSyntax).with("detail", why.as_str().into()),
    }
}

async fn audit(
    call: &Call,
    tx: &mut Tx,
    action: &'static str,
    before: Option<&SensitiveWord>,
    after: Option<&SensitiveWord>,
) -> Result<(), ApiError> {
    let id = before.or(after).map_or(0, |word| word.id.0);
    let record = |word: Option<&SensitiveWord>| {
        word.map_or(Ok(None), |word| recorded(&WordRecord::new(word)))
    };
    let change = AuditChange {
        action,
        target: format!("sensitive word {id}"),
        before: record(before)?,
        after: record(after)?,
    };
    call.audit(tx, change).await
}
