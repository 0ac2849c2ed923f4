//! Sensitive words.

use sqlx::any::AnyRow;
use sqlx::{AnyConnection, AssertSqlSafe};

use crate::domain::ids::WordId;
use crate::domain::matching::MatchType;
use crate::domain::word::SensitiveWord;
use crate::store::engine::column::{Fields, Values};
use crate::store::engine::error::StoreError;
use crate::store::engine::sql;
use crate::store::engine::tx::Tx;

const TABLE: &str = "sensitive_words";
const COLUMNS: &[&str] =
    &["word", "match_type", "description", "is_enabled", "created_at", "updated_at"];

fn bind(word: &SensitiveWord) -> Values {
    let mut values = Values::default();
    values.text(&word.word).text(word.match_type.as_str()).text(&word.description);
    values.flag(word.is_enabled).time(word.created_at).time(word.updated_at);
    values
}

fn read(row: &AnyRow) -> Result<SensitiveWord, StoreError> {
    let fields = Fields { row, table: TABLE };
    Ok(SensitiveWord {
        id: WordId(fields.int("id")?),
        word: fields.text("word")?,
        match_type: fields.named("match_type", MatchType::parse)?,
        description: fields.text("description")?,
        is_enabled: fields.flag("is_enabled")?,
        created_at: fields.time("created_at")?,
        updated_at: fields.time("updated_at")?,
    })
}

/// All of them, the oldest first.
pub(super) async fn all(connection: &mut AnyConnection) -> Result<Vec<SensitiveWord>, StoreError> {
    let sql = AssertSqlSafe(sql::select(TABLE, COLUMNS, "ORDER BY id"));
    sqlx::query(sql).fetch_all(connection).await?.iter().map(read).collect()
}

impl Tx {
    /// All sensitive words, the oldest first.
    pub async fn words(&mut self) -> Result<Vec<SensitiveWord>, StoreError> {
        all(&mut self.inner).await
    }

    /// Adds a word. Its id is assigned here; the one in `word` is ignored.
    pub async fn insert_word(&mut self, word: &SensitiveWord) -> Result<WordId, StoreError> {
        self.insert_row(TABLE, COLUMNS, bind(word)).await.map(WordId)
    }

    /// Overwrites the word of this id.
    ///
    /// # Errors
    /// [`StoreError::Missing`] when there is none.
    pub async fn update_word(&mut self, word: &SensitiveWord) -> Result<(), StoreError> {
        self.update_row(TABLE, COLUMNS, bind(word), word.id.0).await
    }

    /// Removes a word.
    pub async fn delete_word(&mut self, id: WordId) -> Result<(), StoreError> {
        let mut values = Values::default();
        values.int(id.0);
        let sql = "DELETE FROM sensitive_words WHERE id = $1";
        sqlx::query_with(sql, values.into_arguments()).execute(&mut *self.inner).await?;
        Ok(())
    }
}
