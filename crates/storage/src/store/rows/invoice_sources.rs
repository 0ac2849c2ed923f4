//! Where providers' invoices are read from, and the ledger's side of a comparison with one.

use sqlx::any::AnyRow;
use sqlx::{AnyConnection, AssertSqlSafe};

use crate::domain::clock::Timestamp;
use crate::domain::ids::ProviderId;
use crate::domain::invoice::{DAY_MS, InvoiceKind, InvoiceSource, LedgerLine, Tokens};
use crate::domain::money::NanoUsd;
use crate::store::Store;
use crate::store::engine::column::{Fields, Values};
use crate::store::engine::error::StoreError;
use crate::store::engine::tx::Tx;

/// A source with its sealed key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredInvoiceSource {
    /// The source.
    pub source: InvoiceSource,
    /// The vendor's administration key, sealed; empty: it was forgotten.
    pub key_cipher: String,
}

fn read(row: &AnyRow) -> Result<StoredInvoiceSource, StoreError> {
    let fields = Fields { row, table: "invoice_sources" };
    let source = InvoiceSource {
        provider_id: ProviderId(fields.int("provider_id")?),
        kind: fields.named("kind", InvoiceKind::parse)?,
        url: fields.text("url")?,
        api_key_ids: fields.json("api_key_ids")?,
        is_daily: fields.flag("is_daily")?,
        alert_above: NanoUsd(fields.int("alert_above")?),
        updated_at: fields.time("updated_at")?,
    };
    Ok(StoredInvoiceSource { source, key_cipher: fields.text("key_cipher")? })
}

/// All of them, in the order of their providers.
pub(super) async fn all(
    connection: &mut AnyConnection,
) -> Result<Vec<StoredInvoiceSource>, StoreError> {
    let sql = "SELECT provider_id, kind, url, key_cipher, api_key_ids, is_daily, alert_above, \
               updated_at FROM invoice_sources ORDER BY provider_id";
    sqlx::query(sql).fetch_all(connection).await?.iter().map(read).collect()
}

/// The condition is in a sub-query that only selects: SQLite's ledger is a view.
const LEDGER: &str = "SELECT day, model, upstream_model, COUNT(*) AS requests, \
    CAST(SUM(failed) AS BIGINT) AS failed, CAST(SUM(unpriced) AS BIGINT) AS unpriced, \
    CAST(SUM(input_tokens) AS BIGINT) AS input, CAST(SUM(cache_read_tokens) AS BIGINT) AS \
    cache_read, CAST(SUM(cache_write_5m_tokens) AS BIGINT) AS write_5m, \
    CAST(SUM(cache_write_1h_tokens) AS BIGINT) AS write_1h, CAST(SUM(output_tokens) AS BIGINT) AS \
    output, CAST(SUM(cost) AS BIGINT) AS cost FROM (SELECT started_at - started_at % 86400000 AS \
    day, model, COALESCE(upstream_model, model) AS upstream_model, CASE WHEN estimated = 1 OR \
    status_code <> 200 THEN 1 ELSE 0 END AS failed, CASE WHEN cost IS NULL THEN 1 ELSE 0 END AS \
    unpriced, input_tokens, cache_read_tokens, cache_write_5m_tokens, cache_write_1h_tokens, \
    output_tokens, COALESCE(cost, 0) AS cost FROM ledger WHERE provider_id = $1 AND started_at >= \
    $2 AND started_at < $3) AS counted GROUP BY day, model, upstream_model \
    ORDER BY day, model, upstream_model";

impl Store {
    /// Every source, in the order of their providers.
    pub async fn invoice_sources(&self) -> Result<Vec<StoredInvoiceSource>, StoreError> {
        all(&mut *self.reader().await?).await
    }

    /// What the ledger has of a provider in whole UTC days, from the start of the first to the
    /// start of the day after the last.
    pub async fn ledger_days(
        &self,
        provider: ProviderId,
        from: Timestamp,
        until: Timestamp,
    ) -> Result<Vec<LedgerLine>, StoreError> {
        debug_assert!(from.0 % DAY_MS == 0 && until.0 % DAY_MS == 0, "whole days");
        let mut values = Values::default();
        values.int(provider.0).time(from).time(until);
        let mut tx = self.report().await?;
        let rows = sqlx::query_with(LEDGER, values.into_arguments()).fetch_all(&mut *tx).await?;
        tx.commit().await?;
        rows.iter().map(line).collect()
    }
}

fn line(row: &AnyRow) -> Result<LedgerLine, StoreError> {
    let fields = Fields { row, table: "ledger" };
    Ok(LedgerLine {
        day: fields.time("day")?,
        model: fields.text("model")?,
        upstream_model: fields.text("upstream_model")?,
        requests: fields.int("requests")?,
        failed: fields.int("failed")?,
        unpriced: fields.int("unpriced")?,
        tokens: Tokens {
            input: fields.int("input")?,
            cache_read: fields.int("cache_read")?,
            cache_write_5m: fields.int("write_5m")?,
            cache_write_1h: fields.int("write_1h")?,
            output: fields.int("output")?,
        },
        cost: NanoUsd(fields.int("cost")?),
    })
}

impl Tx {
    /// Every source, in the order of their providers.
    pub async fn invoice_sources(&mut self) -> Result<Vec<StoredInvoiceSource>, StoreError> {
        all(&mut self.inner).await
    }

    /// Adds the source of a provider, or overwrites it.
    pub async fn save_invoice_source(
        &mut self,
        stored: &StoredInvoiceSource,
    ) -> Result<(), StoreError> {
        let source = &stored.source;
        let mut values = Values::default();
        values.int(source.provider_id.0).text(source.kind.as_str()).text(&source.url);
        values.text(&stored.key_cipher).json(&source.api_key_ids).flag(source.is_daily);
        values.int(source.alert_above.0).time(source.updated_at);
        let sql = "INSERT INTO invoice_sources (provider_id, kind, url, key_cipher, api_key_ids, \
                   is_daily, alert_above, updated_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8) \
                   ON CONFLICT (provider_id) DO UPDATE SET kind = excluded.kind, \
                   url = excluded.url, key_cipher = excluded.key_cipher, \
                   api_key_ids = excluded.api_key_ids, is_daily = excluded.is_daily, \
                   alert_above = excluded.alert_above, updated_at = excluded.updated_at";
        sqlx::query_with(sql, values.into_arguments()).execute(&mut *self.inner).await?;
        Ok(())
    }

    /// Removes the source of a provider, if it has one.
    pub async fn delete_invoice_source(&mut self, id: ProviderId) -> Result<(), StoreError> {
        let mut values = Values::default();
        values.int(id.0);
        let sql = "DELETE FROM invoice_sources WHERE provider_id = $1";
        sqlx::query_with(sql, values.into_arguments()).execute(&mut *self.inner).await?;
        Ok(())
    }

    /// Replaces only the sealed key of a source.
    pub(super) async fn set_invoice_key(
        &mut self,
        id: ProviderId,
        cipher: &str,
    ) -> Result<(), StoreError> {
        let mut values = Values::default();
        values.text(cipher).int(id.0);
        let sql = "UPDATE invoice_sources SET key_cipher = $1 WHERE provider_id = $2";
        sqlx::query_with(AssertSqlSafe(sql), values.into_arguments())
            .execute(&mut *self.inner)
            .await?;
        Ok(())
    }
}
