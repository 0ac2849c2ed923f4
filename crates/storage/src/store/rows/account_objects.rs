//! Batches and files that providers' accounts hold, and the keys that they belong to. Not part of
//! the configuration: read and written by requests about them.

use crate::domain::batch::BatchAsk;
use crate::domain::clock::Timestamp;
use crate::domain::ids::{CredentialId, KeyId, ProviderId};
use crate::store::Store;
use crate::store::engine::column::{Fields, Values};
use crate::store::engine::error::StoreError;
use crate::store::engine::sql;
use sqlx::AssertSqlSafe;

/// One batch or file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountObject {
    /// The key that made it.
    pub key: KeyId,
    /// Its id at the provider.
    pub id: String,
    /// The name of its kind, such as `files`.
    pub collection: &'static str,
    /// The provider whose account holds it.
    pub provider: ProviderId,
    /// The credential of that account.
    pub credential: CredentialId,
    /// When it was made, by this gateway's clock.
    pub created_at: Timestamp,
    /// Of a batch: it is not billed yet.
    pub is_open: bool,
    /// Of a file that a batch made: the id of that batch.
    pub batch: Option<String>,
    /// What the provider said of it last, as JSON.
    pub body: String,
    /// Of a file: the requests that it has for a batch.
    pub requests: Option<BatchAsk>,
}

/// Which part of a list is asked for.
#[derive(Debug, Clone, Copy)]
pub struct ObjectPage<'a> {
    /// The name of the kind.
    pub collection: &'static str,
    /// Only those after this id in the list, or before it.
    pub from: Option<&'a str>,
    /// `from` is the end of the part, not its beginning.
    pub is_before: bool,
    /// Oldest first.
    pub ascending: bool,
    /// How many at most.
    pub most: u32,
}

const COLUMNS: &[&str] = &[
    "key_id",
    "object_id",
    "collection",
    "provider_id",
    "credential_id",
    "created_at",
    "is_open",
    "batch",
    "body",
    "requests",
];
/// What is known of it for good stays.
const UPDATE: &str = "ON CONFLICT (key_id, object_id) DO UPDATE SET body = excluded.body, \
    is_open = CASE WHEN excluded.is_open < account_objects.is_open THEN excluded.is_open \
    ELSE account_objects.is_open END";

impl Store {
    /// Stores one, or what the provider says of it now. A batch that is billed stays so.
    ///
    /// # Errors
    /// [`StoreError`] of the write.
    pub async fn put_object(&self, object: &AccountObject) -> Result<(), StoreError> {
        self.insert_object(object, UPDATE).await
    }

    /// Stores one, unless it is known.
    ///
    /// # Errors
    /// [`StoreError`] of the write.
    pub async fn add_object(&self, object: &AccountObject) -> Result<(), StoreError> {
        self.insert_object(object, "ON CONFLICT DO NOTHING").await
    }

    async fn insert_object(&self, object: &AccountObject, known: &str) -> Result<(), StoreError> {
        let mut values = Values::default();
        values.int(object.key.0).text(&object.id).text(object.collection);
        values
            .int(object.provider.0)
            .int(object.credential.0)
            .time(object.created_at)
            .flag(object.is_open);
        values.opt_text(object.batch.as_deref()).text(&object.body);
        match &object.requests {
            Some(requests) => values.json(requests),
            None => values.opt_text(None),
        };
        let insert = sql::insert(self.backend(), "account_objects", COLUMNS, 1) + known;
        let query = sqlx::query_with(AssertSqlSafe(insert), values.into_arguments());
        query.execute(&mut *self.writer().await?).await?;
        Ok(())
    }

    /// Notes that a batch is billed.
    ///
    /// # Errors
    /// [`StoreError`] of the write.
    pub async fn close_object(&self, key: KeyId, id: &str) -> Result<(), StoreError> {
        let mut values = Values::default();
        values.int(key.0).text(id).flag(false);
        let sql = "UPDATE account_objects SET is_open = $3 WHERE key_id = $1 AND object_id = $2";
        let query = sqlx::query_with(sql, values.into_arguments());
        query.execute(&mut *self.writer().await?).await?;
        Ok(())
    }

    /// Removes one.
    ///
    /// # Errors
    /// [`StoreError`] of the write.
    pub async fn delete_object(&self, key: KeyId, id: &str) -> Result<(), StoreError> {
        let mut values = Values::default();
        values.int(key.0).text(id);
        let sql = "DELETE FROM account_objects WHERE key_id = $1 AND object_id = $2";
        let query = sqlx::query_with(sql, values.into_arguments());
        query.execute(&mut *self.writer().await?).await?;
        Ok(())
    }

    /// The key's object of this kind and id.
    ///
    /// # Errors
    /// [`StoreError`] of the query, or a row that cannot be read.
    pub async fn object(
        &self,
        key: KeyId,
        collection: &'static str,
        id: &str,
    ) -> Result<Option<AccountObject>, StoreError> {
        let mut values = Values::default();
        values.int(key.0).text(collection).text(id);
        let sql = "SELECT * FROM account_objects \
                   WHERE key_id = $1 AND collection = $2 AND object_id = $3";
        let query = sqlx::query_with(sql, values.into_arguments());
        let row = query.fetch_optional(&mut *self.reader().await?).await?;
        let read = |row| {
            let fields = Fields { row, table: "account_objects" };
            let requests = fields.opt_text("requests")?.is_some();
            Ok(AccountObject {
                key,
                id: id.to_owned(),
                collection,
                provider: ProviderId(fields.int("provider_id")?),
                credential: CredentialId(fields.int("credential_id")?),
                created_at: fields.time("created_at")?,
                is_open: fields.flag("is_open")?,
                batch: fields.opt_text("batch")?,
                body: fields.text("body")?,
                requests: requests.then(|| fields.json("requests")).transpose()?,
            })
        };
        row.as_ref().map(read).transpose()
    }

    /// The bodies of a part of the key's list, as JSON, in the order of the list.
    ///
    /// # Errors
    /// [`StoreError`] of the query.
    pub async fn objects(
        &self,
        key: KeyId,
        page: ObjectPage<'_>,
    ) -> Result<Vec<String>, StoreError> {
        let mut values = Values::default();
        values.int(key.0).text(page.collection);
        // A part that ends at an id is read from its end.
        let newer = page.ascending != page.is_before;
        let (order, beyond) = if newer { ("ASC", ">") } else { ("DESC", "<") };
        let from = match page.from {
            Some(from) => {
                values.text(from);
                format!(
                    "AND (created_at, object_id) {beyond} (SELECT created_at, object_id FROM account_objects \
                     WHERE key_id = $1 AND collection = $2 AND object_id = $3)"
                )
            }
            None => String::new(),
        };
        let sql = format!(
            "SELECT body FROM account_objects WHERE key_id = $1 AND collection = $2 {from} \
             ORDER BY created_at {order}, object_id {order} LIMIT {}",
            page.most
        );
        let query = sqlx::query_with(AssertSqlSafe(sql), values.into_arguments());
        let rows = query.fetch_all(&mut *self.reader().await?).await?;
        let read = |row| Fields { row, table: "account_objects" }.text("body");
        let mut bodies: Vec<_> = rows.iter().map(read).collect::<Result<_, _>>()?;
        if page.is_before {
            bodies.reverse();
        }
        Ok(bodies)
    }
}
