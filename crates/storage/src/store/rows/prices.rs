//! Price table rows: the uploaded entry, unchanged. Its exact rates are read from it when the row
//! is read.

use std::sync::Arc;

use futures_util::TryStreamExt as _;
use sqlx::any::AnyRow;
use sqlx::{AnyConnection, AssertSqlSafe};

use crate::domain::fast_map::FastMap;
use crate::domain::price::{Price, PriceSource};
use crate::policy::price::stored_rates;
use crate::store::Store;
use crate::store::engine::column::{Fields, Values};
use crate::store::engine::error::StoreError;
use crate::store::engine::sql;
use crate::store::engine::tx::Tx;

const COLUMNS: &[&str] = &["model", "source", "data", "updated_at"];
const REPLACE: &str = "ON CONFLICT (model) DO UPDATE \
                       SET source = excluded.source, data = excluded.data, updated_at = \
                       excluded.updated_at";
/// Rows per statement: the public list has some thousands.
const CHUNK: usize = 100;

fn bind(values: &mut Values, price: &Price) {
    values.text(&price.model).text(price.source.as_str()).json(&price.data.parse());
    values.time(price.updated_at);
}

fn read(row: &AnyRow) -> Result<Price, StoreError> {
    let fields = Fields { row, table: "model_prices" };
    let data: serde_json::Value = fields.json("data")?;
    let (model, source) = (fields.text("model")?, fields.named("source", PriceSource::parse)?);
    Ok(Price::new(model, source, &data, stored_rates(&data), fields.time("updated_at")?))
}

/// The price of `known` that this row still holds: its JSON is not parsed again, and two tables at
/// once are memory that the allocator keeps.
fn unchanged(
    row: &AnyRow,
    known: &FastMap<String, Arc<Price>>,
) -> Result<Option<Arc<Price>>, StoreError> {
    let fields = Fields { row, table: "model_prices" };
    let Some(price) = known.get(&fields.text("model")?) else { return Ok(None) };
    let same = price.updated_at == fields.time("updated_at")?
        && price.source.as_str() == fields.text("source")?
        && price.data.as_str() == fields.text("data")?;
    Ok(same.then(|| Arc::clone(price)))
}

/// The whole price table, by model name. Unchanged prices are taken from `known`.
pub(super) async fn all(
    connection: &mut AnyConnection,
    known: &FastMap<String, Arc<Price>>,
) -> Result<Vec<Arc<Price>>, StoreError> {
    let sql = "SELECT model, source, data, updated_at FROM model_prices ORDER BY model";
    // Row by row: all rows of a large table at once are megabytes that the allocator keeps.
    let mut rows = sqlx::query(sql).fetch(connection);
    let mut prices = Vec::new();
    while let Some(row) = rows.try_next().await? {
        let price = match unchanged(&row, known)? {
            Some(price) => price,
            None => Arc::new(read(&row)?),
        };
        prices.push(price);
    }
    Ok(prices)
}

impl Tx {
    /// The whole price table, by model name.
    pub async fn prices(&mut self) -> Result<Vec<Price>, StoreError> {
        let prices = all(&mut self.inner, &FastMap::default()).await?;
        Ok(prices.into_iter().map(Arc::unwrap_or_clone).collect())
    }

    /// Adds the entries, replacing those of the same model; of two for one model the last wins.
    pub async fn upsert_prices(&mut self, prices: &[Price]) -> Result<(), StoreError> {
        // PostgreSQL refuses a statement that changes one row twice.
        let last: std::collections::BTreeMap<&str, &Price> =
            prices.iter().map(|price| (price.model.as_str(), price)).collect();
        let prices: Vec<&Price> = last.into_values().collect();
        for chunk in prices.chunks(CHUNK) {
            let mut values = Values::default();
            for price in chunk {
                bind(&mut values, price);
            }
            let sql = AssertSqlSafe(
                sql::insert(self.backend, "model_prices", COLUMNS, chunk.len()) + REPLACE,
            );
            let query = sqlx::query_with(sql, values.into_arguments()).persistent(false);
            query.execute(&mut *self.inner).await?;
        }
        Ok(())
    }

    /// Removes the entry of a model. Returns whether there was one.
    pub async fn delete_price(&mut self, model: &str) -> Result<bool, StoreError> {
        let mut values = Values::default();
        values.text(model);
        let sql = "DELETE FROM model_prices WHERE model = $1";
        let done = sqlx::query_with(sql, values.into_arguments()).execute(&mut *self.inner).await?;
        Ok(done.rows_affected() > 0)
    }
}

impl Store {
    /// The whole price table.
    pub async fn price_table(&self) -> Result<Vec<Arc<Price>>, StoreError> {
        all(&mut *self.reader().await?, &FastMap::default()).await
    }

    /// The stored price of one model.
    pub async fn price(&self, model: &str) -> Result<Option<Price>, StoreError> {
        let mut values = Values::default();
        values.text(model);
        let sql = "SELECT model, source, data, updated_at FROM model_prices WHERE model = $1";
        let row = sqlx::query_with(sql, values.into_arguments())
            .fetch_optional(&mut *self.reader().await?)
            .await?;
        row.as_ref().map(read).transpose()
    }
}

/// A price table as serde writes it: the columns of its rows. Rates are read from the entry again,
/// as they are from a row.
pub(super) mod stored {
    use std::sync::Arc;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use crate::domain::clock::Timestamp;
    use crate::domain::price::{Price, PriceSource};
    use crate::policy::price::stored_rates;

    #[derive(Serialize, Deserialize)]
    struct PriceRow {
        model: String,
        source: PriceSource,
        data: serde_json::Value,
        updated_at: Timestamp,
    }

    pub(in super::super) fn serialize<S: Serializer>(
        prices: &[Arc<Price>],
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.collect_seq(prices.iter().map(|price| PriceRow {
            model: price.model.clone(),
            source: price.source,
            data: price.data.parse(),
            updated_at: price.updated_at,
        }))
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Vec<Arc<Price>>, D::Error> {
        let rows = Vec::<PriceRow>::deserialize(from)?;
        let read = |PriceRow { model, source, data, updated_at }: PriceRow| {
            Arc::new(Price::new(model, source, &data, stored_rates(&data), updated_at))
        };
        Ok(rows.into_iter().map(read).collect())
    }
}
