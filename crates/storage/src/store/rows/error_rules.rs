//! Error rules. Removed built-in rules stay as rows, so that no upgrade adds them again.

use sqlx::any::AnyRow;
use sqlx::{AnyConnection, AssertSqlSafe};

use crate::domain::error_rule::{AppliesTo, ErrorCategory, ErrorRule};
use crate::domain::ids::RuleId;
use crate::domain::matching::MatchType;
use crate::store::engine::column::{Fields, Values};
use crate::store::engine::error::StoreError;
use crate::store::engine::sql;
use crate::store::engine::tx::Tx;

const TABLE: &str = "error_rules";
const COLUMNS: &[&str] = &[
    "builtin_code",
    "builtin_revision",
    "is_edited",
    "pattern",
    "match_type",
    "category",
    "description",
    "override_body",
    "override_status",
    "applies_to",
    "is_enabled",
    "priority",
    "created_at",
    "updated_at",
    "deleted_at",
];

fn bind(rule: &ErrorRule) -> Values {
    let mut values = Values::default();
    values
        .opt_text(rule.builtin_code.as_deref())
        .int(i64::from(rule.builtin_revision))
        .flag(rule.is_edited);
    values
        .text(&rule.pattern)
        .text(rule.match_type.as_str())
        .text(rule.category.as_str())
        .text(&rule.description);
    values.opt_text(rule.override_response.as_deref()).opt_int(rule.override_status.map(i64::from));
    values.text(rule.applies_to.as_str()).flag(rule.is_enabled).int(i64::from(rule.priority));
    values.time(rule.created_at).time(rule.updated_at).opt_time(rule.deleted_at);
    values
}

fn read(row: &AnyRow) -> Result<ErrorRule, StoreError> {
    let fields = Fields { row, table: TABLE };
    Ok(ErrorRule {
        id: RuleId(fields.int("id")?),
        builtin_code: fields.opt_text("builtin_code")?,
        builtin_revision: fields.number("builtin_revision")?,
        is_edited: fields.flag("is_edited")?,
        pattern: fields.text("pattern")?,
        match_type: fields.named("match_type", MatchType::parse)?,
        category: fields.named("category", ErrorCategory::parse)?,
        description: fields.text("description")?,
        override_response: fields.opt_text("override_body")?,
        override_status: fields.opt_number("override_status")?,
        applies_to: fields.named("applies_to", AppliesTo::parse)?,
        is_enabled: fields.flag("is_enabled")?,
        priority: fields.number("priority")?,
        created_at: fields.time("created_at")?,
        updated_at: fields.time("updated_at")?,
        deleted_at: fields.opt_time("deleted_at")?,
    })
}

/// All that are not removed, in their order of evaluation.
pub(super) async fn all(connection: &mut AnyConnection) -> Result<Vec<ErrorRule>, StoreError> {
    rows(connection, "WHERE deleted_at IS NULL ORDER BY priority, id").await
}

/// All, in the order in which they are asked; removed ones of the program's own behind them.
pub(super) async fn with_removed(
    connection: &mut AnyConnection,
) -> Result<Vec<ErrorRule>, StoreError> {
    rows(connection, "ORDER BY CASE WHEN deleted_at IS NULL THEN 0 ELSE 1 END, priority, id").await
}

async fn rows(connection: &mut AnyConnection, rest: &str) -> Result<Vec<ErrorRule>, StoreError> {
    let sql = AssertSqlSafe(sql::select(TABLE, COLUMNS, rest));
    sqlx::query(sql).fetch_all(connection).await?.iter().map(read).collect()
}

impl Tx {
    /// All error rules, in their order of evaluation; removed built-in ones follow.
    pub async fn error_rules(&mut self) -> Result<Vec<ErrorRule>, StoreError> {
        with_removed(&mut self.inner).await
    }

    /// Adds a rule. Its id is assigned here; the one in `rule` is ignored.
    pub async fn insert_error_rule(&mut self, rule: &ErrorRule) -> Result<RuleId, StoreError> {
        self.insert_row(TABLE, COLUMNS, bind(rule)).await.map(RuleId)
    }

    /// Overwrites the rule of this id.
    ///
    /// # Errors
    /// [`StoreError::Missing`] when there is none.
    pub async fn update_error_rule(&mut self, rule: &ErrorRule) -> Result<(), StoreError> {
        self.update_row(TABLE, COLUMNS, bind(rule), rule.id.0).await
    }

    /// Removes an operator's rule permanently.
    pub async fn delete_error_rule(&mut self, id: RuleId) -> Result<(), StoreError> {
        let mut values = Values::default();
        values.int(id.0);
        sqlx::query_with("DELETE FROM error_rules WHERE id = $1", values.into_arguments())
            .execute(&mut *self.inner)
            .await?;
        Ok(())
    }
}
