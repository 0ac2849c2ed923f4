//! Turns a table with rows into the first partition of a new table of its name.
//!
//! PostgreSQL takes a table as a partition without reading it if a validated check of the table
//! proves its range. So the table gets a check that all rows are from before a month in the future,
//! the check is validated beside the writers, and then one short transaction renames the table,
//! makes the new one and attaches the old one. Each step finds by the catalogue what is done, so a
//! node that dies leaves nothing that another cannot continue.
//!
//! The columns keep their order, and the ledger its primary key. So statements of programs from
//! before the partitions, prepared or not, go on working.

use sqlx::any::AnyRow;
use sqlx::{AnyConnection, AssertSqlSafe, Executor};

use super::identity::identity;
use super::month::{Month, Part};
use super::{LOG, PARTITIONED, Partitioned, run};
use crate::domain::clock::Timestamp;
use crate::store::Store;
use crate::store::engine::column::Fields;
use crate::store::engine::error::StoreError;
use crate::store::engine::schema::UNBOUNDED;

/// A table of at most this size, with its indexes, is converted at the start, in one step.
const SMALL_BYTES: i64 = 64 << 20;
/// The old table's range ends this much later at least, so that no row that is written meanwhile is
/// from after its end.
const AHEAD_MS: i64 = 7 * 86_400_000;
/// A check whose end has come this near is replaced by one with a later end.
const LATE_MS: i64 = 86_400_000;
/// A grantee of `aclexplode`, as statements name it.
const ROLE: &str =
    "CASE grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(grantee)) END";
/// Held while a node reads a table to validate its check; any otherwise unused number.
const VALIDATING: &str = "SELECT CAST(pg_try_advisory_xact_lock(7215836404) AS INT) AS held";

/// The check on a table that is to become a partition.
struct Check {
    end: Month,
    validated: bool,
}

impl Store {
    /// Converts a table of any size beside its writers. Returns whether it did; `false`: it has
    /// partitions already.
    pub(super) async fn convert(
        &self,
        table: &Partitioned,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        if table.is_partitioned(&mut *self.reader().await?).await? {
            self.drop_late_check(table).await?;
            return Ok(false);
        }
        let mut check = table.check(&mut *self.reader().await?).await?;
        if check.as_ref().is_some_and(|check| check.end.start() <= now.plus_ms(LATE_MS)) {
            let mut tx = self.alter().await?;
            table.drop_check(&mut tx).await?;
            tx.commit().await?;
            check = None;
        }
        let end = match &check {
            Some(check) => check.end,
            None => match self.add_check(table, now).await? {
                Some(end) => end,
                None => return Ok(false),
            },
        };
        if !check.is_some_and(|check| check.validated) {
            self.validate(table, end).await?;
        }
        let mut tx = self.alter().await?;
        if !table.lock_whole(&mut tx).await? {
            return Ok(false);
        }
        // Another node may have given up this check meanwhile.
        match table.check(&mut tx).await? {
            Some(check) if check.validated => table.swap(&mut tx, check.end, now).await?,
            _ => return Err(StoreError::Busy { what: "another node prepares the table".into() }),
        }
        tx.commit().await?;
        Ok(true)
    }

    /// Converts a small table, in one transaction that reads it once.
    pub(super) async fn convert_small(
        &self,
        table: &Partitioned,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let mut connection = self.reader().await?;
        if table.is_partitioned(&mut connection).await? || !table.is_small(&mut connection).await? {
            return Ok(false);
        }
        drop(connection);
        let mut tx = self.alter().await?;
        if !table.lock_whole(&mut tx).await? {
            return Ok(false);
        }
        table.drop_check(&mut tx).await?;
        let end = table.end(&mut tx, now).await?;
        table.swap(&mut tx, end, now).await?;
        tx.commit().await?;
        Ok(true)
    }

    /// `None`: another node has converted the table.
    async fn add_check(
        &self,
        table: &Partitioned,
        now: Timestamp,
    ) -> Result<Option<Month>, StoreError> {
        let mut tx = self.alter().await?;
        if table.is_partitioned(&mut tx).await? {
            return Ok(None);
        }
        if let Some(check) = table.check(&mut tx).await? {
            return Ok(Some(check.end));
        }
        let end = table.end(&mut tx, now).await?;
        let condition = format!("{} < {}", table.key, table.bound(end));
        let (table, name) = (table.table, Part::Until(end).name(table.table));
        let sql =
            format!("ALTER TABLE {table} ADD CONSTRAINT {name} CHECK ({condition}) NOT VALID");
        run(&mut tx, sql).await?;
        tx.commit().await?;
        Ok(Some(end))
    }

    /// Drops the check, if there is one: on a table with partitions it would refuse later rows.
    async fn drop_late_check(&self, table: &Partitioned) -> Result<(), StoreError> {
        if table.check(&mut *self.reader().await?).await?.is_none() {
            return Ok(());
        }
        let mut tx = self.alter().await?;
        table.drop_check(&mut tx).await?;
        Ok(tx.commit().await?)
    }

    /// After a row that a check refused, because a clock is far ahead: the conversion begins again,
    /// with a check that accepts it.
    pub(in crate::store) async fn drop_checks(&self) -> Result<(), StoreError> {
        for table in PARTITIONED {
            self.drop_late_check(table).await?;
        }
        Ok(())
    }

    /// Reads the table once. Excludes neither readers nor writers.
    async fn validate(&self, table: &Partitioned, end: Month) -> Result<(), StoreError> {
        let mut tx = self.write().await?;
        let row = tx.fetch_one(VALIDATING).await?;
        if (Fields { row: &row, table: "pg_locks" }).int("held")? == 0 {
            return Err(StoreError::Busy { what: "another node prepares the table".to_owned() });
        }
        tx.execute(UNBOUNDED).await?;
        tx.execute(super::LOCK_TIMEOUT).await?;
        let (table, name) = (table.table, Part::Until(end).name(table.table));
        run(&mut tx, format!("ALTER TABLE {table} VALIDATE CONSTRAINT {name}")).await?;
        Ok(tx.commit().await?)
    }
}

impl Partitioned {
    async fn is_small(&self, connection: &mut AnyConnection) -> Result<bool, StoreError> {
        let table = self.table;
        let sql = format!("SELECT pg_total_relation_size(CAST('{table}' AS REGCLASS)) AS bytes");
        let row = sqlx::query(AssertSqlSafe(sql)).fetch_one(connection).await?;
        Ok(Fields { row: &row, table: "pg_class" }.int("bytes")? <= SMALL_BYTES)
    }

    /// The month before which all rows are: in some days at the earliest, and after the newest row.
    async fn end(
        &self,
        connection: &mut AnyConnection,
        now: Timestamp,
    ) -> Result<Month, StoreError> {
        let ahead = Month::of(now.plus_ms(AHEAD_MS)).next();
        // A week before the end of a month the next one begins soon enough.
        let ahead = match Month::of(now).next() {
            next if next.start() >= now.plus_ms(AHEAD_MS) => next,
            _ => ahead,
        };
        Ok(self.newest(connection).await?.map_or(ahead, |newest| newest.next().max(ahead)))
    }

    async fn check(&self, connection: &mut AnyConnection) -> Result<Option<Check>, StoreError> {
        let sql = format!(
            "SELECT CAST(conname AS TEXT) AS name, CAST(convalidated AS INT) AS validated \
             FROM pg_constraint WHERE conrelid = CAST('{}' AS REGCLASS) AND contype = 'c'",
            self.table
        );
        for row in &sqlx::query(AssertSqlSafe(sql)).fetch_all(connection).await? {
            let fields = Fields { row, table: "pg_constraint" };
            if let Some(Part::Until(end)) = Part::parse(self.table, &fields.text("name")?) {
                return Ok(Some(Check { end, validated: fields.flag("validated")? }));
            }
        }
        Ok(None)
    }

    async fn drop_check(&self, connection: &mut AnyConnection) -> Result<(), StoreError> {
        let Some(Check { end, .. }) = self.check(&mut *connection).await? else { return Ok(()) };
        let (table, name) = (self.table, Part::Until(end).name(self.table));
        run(connection, format!("ALTER TABLE {table} DROP CONSTRAINT {name}")).await
    }

    /// Excludes all readers and writers until the transaction ends. `false`: another node has
    /// converted the table.
    async fn lock_whole(&self, connection: &mut AnyConnection) -> Result<bool, StoreError> {
        run(connection, format!("LOCK TABLE {} IN ACCESS EXCLUSIVE MODE", self.table)).await?;
        Ok(!self.is_partitioned(connection).await?)
    }

    /// Puts a partitioned table in the place of the locked one, which becomes its first partition,
    /// or is dropped if it is empty.
    async fn swap(
        &self,
        connection: &mut AnyConnection,
        end: Month,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let (table, key) = (self.table, self.key);
        let old = Part::Until(end).name(table);
        let is_empty = self.newest(&mut *connection).await?.is_none();
        let indexes = self.indexes(&mut *connection).await?;
        let grants = self.grants(&mut *connection).await?;
        let owner = self.owner(&mut *connection).await?;
        let mut sql = format!("ALTER TABLE {table} RENAME TO {old};");
        for (name, _) in &indexes {
            let rest = name.strip_prefix(table).unwrap_or(name);
            sql.push_str(&format!("ALTER INDEX {name} RENAME TO {old}{rest};"));
        }
        // Before version 17, PostgreSQL has no identity columns in partitioned tables.
        if self.table == LOG.table {
            sql.push_str(&format!(
                "ALTER TABLE {old} ALTER COLUMN id DROP IDENTITY; \
                 CREATE SEQUENCE {table}_id_seq; \
                 SELECT setval('{table}_id_seq', COALESCE(MAX(id), 0) + 1, false) FROM {old};"
            ));
        }
        sql.push_str(&format!("CREATE TABLE {table} (LIKE {old}) PARTITION BY RANGE ({key});"));
        if self.table == LOG.table {
            sql.push_str(&format!(
                "ALTER TABLE {table} ALTER COLUMN id SET DEFAULT nextval('{table}_id_seq'); \
                 ALTER SEQUENCE {table}_id_seq OWNED BY {table}.id; {};",
                identity(&old)
            ));
        } else {
            sql.push_str(&format!("ALTER TABLE {table} ADD PRIMARY KEY ({key});"));
        }
        for made in indexes.iter().filter_map(|(_, made)| made.as_ref()).chain(&grants) {
            sql.push_str(made);
            sql.push(';');
        }
        sql.push_str(&if is_empty {
            format!("DROP TABLE {old};")
        } else {
            let end = self.bound(end);
            format!(
                "ALTER TABLE {table} ATTACH PARTITION {old} FOR VALUES FROM (MINVALUE) TO ({end});"
            )
        });
        sql.push_str(&self.end_of_swap(&owner));
        run(connection, sql).await?;
        if !is_empty {
            run(connection, format!("ALTER TABLE {old} DROP CONSTRAINT IF EXISTS {old}")).await?;
        }
        for month in [Month::of(now), Month::of(now).next()] {
            if is_empty || month >= end {
                self.make(connection, month).await?;
            }
        }
        Ok(())
    }

    /// The last statements of [`Self::swap`]: the default partition, owner and identity.
    fn end_of_swap(&self, owner: &str) -> String {
        let (table, other) = (self.table, Part::Other.name(self.table));
        let made = format!(
            "CREATE TABLE {other} PARTITION OF {table} DEFAULT; \
             ALTER TABLE {table} OWNER TO {owner}; ALTER TABLE {other} OWNER TO {owner}"
        );
        if self.table != LOG.table {
            return made;
        }
        format!("{made}; {}; {}", identity(table), identity(&other))
    }

    /// The names of the table's indexes, and the statements that make them; none for the primary
    /// key.
    async fn indexes(
        &self,
        connection: &mut AnyConnection,
    ) -> Result<Vec<(String, Option<String>)>, StoreError> {
        let sql = format!(
            "SELECT CAST(relname AS TEXT) AS name, \
             CASE WHEN indisprimary THEN NULL ELSE pg_get_indexdef(indexrelid) END AS made \
             FROM pg_index JOIN pg_class ON oid = indexrelid \
             WHERE indrelid = CAST('{}' AS REGCLASS) ORDER BY 1",
            self.table
        );
        let rows = sqlx::query(AssertSqlSafe(sql)).fetch_all(connection).await?;
        let read = |row: &AnyRow| {
            let fields = Fields { row, table: "pg_index" };
            Ok((fields.text("name")?, fields.opt_text("made")?))
        };
        rows.iter().map(read).collect()
    }

    async fn owner(&self, connection: &mut AnyConnection) -> Result<String, StoreError> {
        let sql = format!(
            "SELECT quote_ident(pg_get_userbyid(relowner)) AS owner FROM pg_class \
             WHERE oid = CAST('{}' AS REGCLASS)",
            self.table
        );
        let row = sqlx::query(AssertSqlSafe(sql)).fetch_one(connection).await?;
        Fields { row: &row, table: "pg_class" }.text("owner")
    }

    /// The statements that give other roles the rights on the new table that they have on the old,
    /// and those who insert the use of the row numbers' sequence.
    async fn grants(&self, connection: &mut AnyConnection) -> Result<Vec<String>, StoreError> {
        let table = self.table;
        let numbers = if table == LOG.table {
            format!(
                " || CASE privilege_type WHEN 'INSERT' THEN format('; GRANT USAGE ON SEQUENCE \
                 {table}_id_seq TO %s', {ROLE}) ELSE '' END"
            )
        } else {
            String::new()
        };
        let sql = format!(
            "SELECT format('GRANT %s ON {table} TO %s', privilege_type, {ROLE}){numbers} AS made \
             FROM pg_class CROSS JOIN LATERAL aclexplode(relacl) \
             WHERE oid = CAST('{table}' AS REGCLASS) AND grantee <> relowner"
        );
        let rows = sqlx::query(AssertSqlSafe(sql)).fetch_all(connection).await?;
        rows.iter().map(|row| Fields { row, table: "pg_class" }.text("made")).collect()
    }
}
