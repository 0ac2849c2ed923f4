//! Opening balances: what holders had spent at another gateway before `tollgate import`.
//!
//! They are rows of their own and no requests, so no figure of the ledger, the request log or the
//! statistics contains them. Only the counters of the limits read them ([`Store::spend_seen`]).

use sqlx::{AnyConnection, AssertSqlSafe};

use super::spend::SpendRow;
use crate::domain::clock::Timestamp;
use crate::domain::ids::{KeyId, ProviderId, UserId};
use crate::domain::money::NanoUsd;
use crate::store::engine::column::{Fields, Values};
use crate::store::engine::error::StoreError;
use crate::store::engine::sql;
use crate::store::{Store, Tx};

const TABLE: &str = "opening_balances";
const COLUMNS: &[&str] = &["peer", "spent_at", "key_id", "user_id", "provider_id", "cost"];
/// Rows per statement.
const CHUNK: usize = 100;

/// An amount that was spent at another gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct OpeningBalance {
    /// `None` if it belongs to no stored user: then only the provider counts it.
    pub user_id: Option<UserId>,
    /// `None` if it belongs to no stored key: then the key's user counts it alone.
    pub key_id: Option<KeyId>,
    /// The provider that was paid, if it is known.
    pub provider_id: Option<ProviderId>,
    /// When it was spent; the windows that contain this time count it.
    pub at: Timestamp,
    /// The amount.
    pub cost: NanoUsd,
}

impl Store {
    /// All opening balances, of every gateway that was imported.
    pub async fn opening_balances(&self) -> Result<Vec<SpendRow>, StoreError> {
        all(&mut *self.reader().await?).await
    }
}

impl Tx {
    /// The opening balances that were imported from a peer, in order.
    pub async fn opening_balances(
        &mut self,
        peer: &str,
    ) -> Result<Vec<OpeningBalance>, StoreError> {
        let mut values = Values::default();
        values.text(peer);
        let sql = "SELECT spent_at, key_id, user_id, provider_id, cost FROM opening_balances \
                   WHERE peer = $1";
        let rows =
            sqlx::query_with(sql, values.into_arguments()).fetch_all(&mut *self.inner).await?;
        let read = |row| {
            let SpendRow { minute, key_id, user_id, provider_id, cost } = spend(row)?;
            Ok(OpeningBalance { user_id, key_id, provider_id, at: minute, cost })
        };
        let mut found = rows.iter().map(read).collect::<Result<Vec<_>, StoreError>>()?;
        found.sort_unstable();
        Ok(found)
    }

    /// Replaces a peer's opening balances of one user; with `None` those that belong to no user.
    pub async fn replace_opening_balances(
        &mut self,
        peer: &str,
        user: Option<UserId>,
        balances: &[OpeningBalance],
    ) -> Result<(), StoreError> {
        let mut values = Values::default();
        values.text(peer).int(user.map_or(0, |id| id.0));
        let sql = "DELETE FROM opening_balances WHERE peer = $1 AND COALESCE(user_id, 0) = $2";
        sqlx::query_with(sql, values.into_arguments()).execute(&mut *self.inner).await?;
        for chunk in balances.chunks(CHUNK) {
            let mut values = Values::default();
            for balance in chunk {
                values.text(peer).time(balance.at);
                values
                    .opt_int(balance.key_id.map(|id| id.0))
                    .opt_int(balance.user_id.map(|id| id.0));
                values.opt_int(balance.provider_id.map(|id| id.0)).int(balance.cost.0);
            }
            let sql = sql::insert(self.backend, TABLE, COLUMNS, chunk.len());
            sqlx::query_with(AssertSqlSafe(sql), values.into_arguments())
                .execute(&mut *self.inner)
                .await?;
        }
        Ok(())
    }
}

/// Every opening balance, as rows of spending.
pub(super) async fn all(connection: &mut AnyConnection) -> Result<Vec<SpendRow>, StoreError> {
    let sql = "SELECT spent_at, key_id, user_id, provider_id, cost FROM opening_balances";
    let rows = sqlx::query(sql).fetch_all(connection).await?;
    rows.iter().map(spend).collect()
}

fn spend(row: &sqlx::any::AnyRow) -> Result<SpendRow, StoreError> {
    let fields = Fields { row, table: TABLE };
    Ok(SpendRow {
        minute: fields.time("spent_at")?,
        key_id: fields.opt_int("key_id")?.map(KeyId),
        user_id: fields.opt_int("user_id")?.map(UserId),
        provider_id: fields.opt_int("provider_id")?.map(ProviderId),
        cost: NanoUsd(fields.int("cost")?),
    })
}
