//! Reads another gateway's database for `tollgate import`: PostgreSQL, SQLite, or the text of
//! `mysqldump`.
//!
//! Everything is read as text, so the same mapping serves all three. What to read is a list of
//! tables and columns ([`PeerSchema`]). Columns that only some versions of the peer have are
//! optional. Nothing is ever written to the peer, and no error names a password.

mod database;
mod dump;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use rust_decimal::Decimal;

use crate::domain::clock::Timestamp;
use crate::domain::secret::Secret;

/// Where the peer's data is.
#[derive(Debug, Clone)]
pub enum PeerSource {
    /// The address of a PostgreSQL database, with its password.
    Postgres(Secret),
    /// The file of an SQLite database.
    Sqlite(PathBuf),
    /// A file that `mysqldump` wrote.
    MysqlDump(PathBuf),
}

/// A table that is read completely.
#[derive(Debug, Clone, Copy)]
pub struct PeerTable {
    /// The table's name, as the database backoffs it.
    pub name: &'static str,
    /// Columns that every supported version has.
    pub required: &'static [&'static str],
    /// Columns that some versions have.
    pub optional: &'static [&'static str],
    /// The peer may lack the table.
    pub may_lack: bool,
}

/// A table with a row per request, of which only sums are read.
#[derive(Debug, Clone, Copy)]
pub struct PeerSpendTable {
    /// The table's name, as the database backoffs it.
    pub name: &'static str,
    /// The columns to group by. A column that the peer lacks counts as null.
    pub holders: &'static [&'static str],
    /// The time of the request: a timestamp, or seconds since the epoch.
    pub at: &'static str,
    /// What the request cost, in any unit.
    pub amount: &'static str,
    /// Which rows count. A condition on a column that the peer lacks is always met.
    pub only: &'static [Only],
}

/// A condition on a row.
#[derive(Debug, Clone, Copy)]
pub enum Only {
    /// The column has this value.
    Is(&'static str, &'static str),
    /// The column has another value, or none.
    IsNot(&'static str, &'static str),
    /// The column is null.
    IsNull(&'static str),
}

/// What to read of a peer.
#[derive(Debug, Clone, Copy)]
pub struct PeerSchema {
    /// Read completely.
    pub tables: &'static [PeerTable],
    /// The first of these that the peer has is summed; none is needed.
    pub spend: &'static [PeerSpendTable],
}

/// A row as text, by column; a null is absent. Flags are `true`, `false`, `1` or `0`; times are
/// seconds since the epoch; lists are JSON.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct PeerRow {
    values: BTreeMap<&'static str, String>,
    /// Columns whose text was asked for as something that it is not.
    unreadable: RefCell<BTreeSet<String>>,
}

/// Without the values, which may be secrets.
impl std::fmt::Debug for PeerRow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.values.keys()).finish()
    }
}

impl FromIterator<(&'static str, String)> for PeerRow {
    fn from_iter<T: IntoIterator<Item = (&'static str, String)>>(values: T) -> Self {
        Self { values: values.into_iter().collect(), unreadable: RefCell::default() }
    }
}

impl PeerRow {
    /// The text of a column; `None` if it is null, empty or not there.
    pub fn text(&self, column: &str) -> Option<&str> {
        self.values.get(column).map(|text| text.trim()).filter(|text| !text.is_empty())
    }

    /// Columns that were asked for as a number, a flag, a time or JSON, and hold something else.
    pub fn unreadable(&self) -> Vec<String> {
        self.unreadable.borrow().iter().cloned().collect()
    }

    fn read<T>(&self, column: &str, parse: impl FnOnce(&str) -> Option<T>) -> Option<T> {
        let value = parse(self.text(column)?);
        if value.is_none() {
            self.unreadable.borrow_mut().insert(column.to_owned());
        }
        value
    }

    /// A whole number; `None` if there is none.
    pub fn int(&self, column: &str) -> Option<i64> {
        self.read(column, |text| text.parse().ok())
    }

    /// A decimal number, also in scientific notation; `None` if there is none.
    pub fn decimal(&self, column: &str) -> Option<Decimal> {
        self.read(column, decimal)
    }

    /// A flag; `None` if there is none.
    pub fn flag(&self, column: &str) -> Option<bool> {
        self.read(column, |text| match text.to_ascii_lowercase().as_str() {
            "true" | "t" | "1" => Some(true),
            "false" | "f" | "0" => Some(false),
            _ => None,
        })
    }

    /// A time; `None` if there is none.
    pub fn time(&self, column: &str) -> Option<Timestamp> {
        self.read(column, |text| {
            let millis = decimal(text)?.checked_mul(Decimal::ONE_THOUSAND)?;
            rust_decimal::prelude::ToPrimitive::to_i64(&millis).map(Timestamp)
        })
    }

    /// A JSON value; `None` if there is none.
    pub fn json(&self, column: &str) -> Option<serde_json::Value> {
        self.read(column, |text| serde_json::from_str(text).ok())
    }
}

fn decimal(text: &str) -> Option<Decimal> {
    text.parse().or_else(|_| Decimal::from_scientific(text)).ok()
}

/// What was spent by one group of holders in one minute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerSpend {
    /// The values of the columns to group by, in their order.
    pub holders: Vec<Option<String>>,
    /// The minute's start; `None` = before the first single minute.
    pub minute: Option<Timestamp>,
    /// The sum, in the unit of its column.
    pub amount: Decimal,
}

/// Everything that was read of a peer, as of one moment.
#[derive(Debug, Clone, Default)]
pub struct PeerData {
    /// The rows by table.
    pub tables: BTreeMap<&'static str, Vec<PeerRow>>,
    /// The sums of [`PeerData::spend_table`].
    pub spend: Vec<PeerSpend>,
    /// The table that was summed.
    pub spend_table: Option<&'static str>,
}

impl PeerData {
    /// The rows of a table; none if the peer lacks it.
    pub fn rows(&self, table: &str) -> &[PeerRow] {
        self.tables.get(table).map_or(&[], Vec::as_slice)
    }
}

/// Why a peer cannot be read. No message contains an address or a value.
#[derive(Debug, thiserror::Error)]
pub enum PeerError {
    /// The server does not answer, or refuses the login.
    #[error("the database cannot be reached: {0}")]
    Unreachable(String),
    /// It is not this peer's database.
    #[error("there is no table {0:?}")]
    NoTable(&'static str),
    /// It is another version of the peer.
    #[error("the table {table:?} has no column {column:?}")]
    NoColumn {
        /// The table.
        table: &'static str,
        /// The missing column.
        column: &'static str,
    },
    /// A table that is there cannot be read.
    #[error("the table {table:?} cannot be read: {why}")]
    NotReadable {
        /// The table.
        table: &'static str,
        /// The database's answer.
        why: String,
    },
    /// The file cannot be read.
    #[error("the file cannot be read: {0}")]
    File(#[from] std::io::Error),
    /// The dump has a statement that cannot be parsed.
    #[error("line {line} of the dump cannot be read: {why}")]
    Dump {
        /// The line at which the statement begins, from 1.
        line: usize,
        /// What the parser expected.
        why: String,
    },
}

/// The first single minute, found from the tables.
pub type Since<'a> = &'a (dyn Fn(&BTreeMap<&'static str, Vec<PeerRow>>) -> Timestamp + Sync);

/// Reads a peer. Before `since` minutes are summed. For a dump `since` is called before the tables
/// exist.
pub async fn read_peer(
    source: &PeerSource,
    schema: &PeerSchema,
    since: Since<'_>,
) -> Result<PeerData, PeerError> {
    match source {
        PeerSource::Postgres(address) => database::postgres(address, schema, since).await,
        PeerSource::Sqlite(file) => database::sqlite(file, schema, since).await,
        PeerSource::MysqlDump(file) => dump::read(file, schema, since(&BTreeMap::new())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_from_any_databases_text() {
        let row: PeerRow =
            [("n", "1e-05"), ("yes", "1"), ("no", "false"), ("at", "1700000000.5"), ("none", " ")]
                .map(|(name, text)| (name, text.to_owned()))
                .into_iter()
                .collect();
        assert_eq!(row.decimal("n"), Some(Decimal::new(1, 5)));
        assert_eq!(
            (row.flag("yes"), row.flag("no"), row.flag("n")),
            (Some(true), Some(false), None)
        );
        assert_eq!(row.time("at"), Some(Timestamp(1_700_000_000_500)));
        assert_eq!((row.text("none"), row.text("absent")), (None, None));
        assert!(!format!("{row:?}").contains("1700000000"), "{row:?}");
    }
}
