//! The figures by which the two sides of a copy are compared: rows of each table, exact sums of
//! each column, exact sums of each user.
//!
//! Both databases run the same queries. Integers are summed in two halves, because the sum of many
//! times does not fit into 64 bits; of texts and bytes the lengths are summed.

use std::fmt::Write as _;

use rust_decimal::Decimal;
use sha2::{Digest, Sha256};
use sqlx::any::AnyRow;
use sqlx::{AnyConnection, AssertSqlSafe, Row};

use super::tables::{ColumnKind, Table};
use crate::store::engine::error::StoreError;

/// The figures of one database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatabaseFigures {
    tables: Vec<TableFigures>,
    users: Vec<UserFigures>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct TableFigures {
    name: &'static str,
    rows: i64,
    columns: Vec<ColumnFigures>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct ColumnFigures {
    name: String,
    /// Rows in which the column is not null.
    filled: i64,
    total: i128,
}

/// The ledger's figures of a user; 0 means none.
#[derive(Debug, Clone, PartialEq, Eq)]
struct UserFigures {
    user: i64,
    requests: i64,
    /// Cost in nano-USD, then tokens of each kind, by the names of `USER_SUMS`.
    sums: Vec<i128>,
}

/// A figure that differs between the sides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Names the figure: `rows of users`, `cost of user 7`.
    pub what: String,
    /// Its value on this side, as text; amounts of users are in USD, sums of columns in nano-USD.
    pub here: String,
    /// Its value on the other side, in the same form.
    pub there: String,
}

/// Columns of the ledger that are summed for each user.
const USER_SUMS: [&str; 7] = [
    "cost",
    "input_tokens",
    "output_tokens",
    "cache_write_5m_tokens",
    "cache_write_1h_tokens",
    "cache_read_tokens",
    "reasoning_tokens",
];

impl DatabaseFigures {
    pub(super) async fn of(
        connection: &mut AnyConnection,
        tables: &[Table],
    ) -> Result<Self, StoreError> {
        let mut figures = Vec::with_capacity(tables.len());
        for table in tables {
            let row =
                sqlx::query(AssertSqlSafe(table_sql(table))).fetch_one(&mut *connection).await?;
            figures.push(read_table(table, &row)?);
        }
        let mut sql = "SELECT CAST(COALESCE(user_id, 0) AS BIGINT), COUNT(*)".to_owned();
        for column in USER_SUMS {
            // Writing to a String cannot fail.
            let _ = write!(sql, ", CAST(SUM({column}) AS TEXT)");
        }
        sql.push_str(" FROM ledger GROUP BY 1 ORDER BY 1");
        let rows = sqlx::query(AssertSqlSafe(sql)).fetch_all(connection).await?;
        let users = rows.iter().map(read_user).collect::<Result<_, _>>()?;
        Ok(Self { tables: figures, users })
    }

    /// Represents all figures: two databases with the same digest have the same content.
    pub(super) fn digest(&self) -> String {
        hex::encode(Sha256::digest(format!("{self:?}")))
    }

    /// A table's number of rows.
    pub fn rows(&self, table: &str) -> i64 {
        self.tables.iter().find(|figures| figures.name == table).map_or(0, |figures| figures.rows)
    }

    /// Every table with its number of rows.
    pub fn tables(&self) -> impl Iterator<Item = (&'static str, i64)> {
        self.tables.iter().map(|table| (table.name, table.rows))
    }

    /// The number of users in the ledger.
    pub fn users(&self) -> usize {
        self.users.len()
    }

    /// The ledger's sums over all users: cost in USD, then tokens of each kind.
    pub fn sums(&self) -> Vec<(&'static str, String)> {
        let total =
            |at: usize| self.users.iter().filter_map(|user| user.sums.get(at)).sum::<i128>();
        let name = |at: usize, column: &'static str| if at == 0 { "cost in USD" } else { column };
        USER_SUMS
            .iter()
            .enumerate()
            .map(|(at, column)| (name(at, column), shown(at, total(at))))
            .collect()
    }

    /// The differences from the figures of the other side.
    pub fn differences(&self, there: &Self) -> Vec<Difference> {
        let mut found = Vec::new();
        let mut compare = |what: String, here: String, there: String| {
            if here != there {
                found.push(Difference { what, here, there });
            }
        };
        for (here, there) in self.tables.iter().zip(&there.tables) {
            let name = here.name;
            compare(format!("rows of {name}"), here.rows.to_string(), there.rows.to_string());
            for (here, there) in here.columns.iter().zip(&there.columns) {
                let column = &here.name;
                compare(
                    format!("values in {name}.{column}"),
                    here.filled.to_string(),
                    there.filled.to_string(),
                );
                compare(
                    format!("sum of {name}.{column}"),
                    here.total.to_string(),
                    there.total.to_string(),
                );
            }
        }
        compare(
            "users in the ledger".to_owned(),
            self.users.len().to_string(),
            there.users.len().to_string(),
        );
        for (here, there) in self.users.iter().zip(&there.users) {
            let id = here.user;
            compare(format!("user {id}"), id.to_string(), there.user.to_string());
            compare(
                format!("requests of user {id}"),
                here.requests.to_string(),
                there.requests.to_string(),
            );
            for (at, (mine, other)) in here.sums.iter().zip(&there.sums).enumerate() {
                let name = USER_SUMS.get(at).copied().unwrap_or_default();
                compare(format!("{name} of user {id}"), shown(at, *mine), shown(at, *other));
            }
        }
        found
    }
}

/// The first sum is an amount of money.
fn shown(at: usize, sum: i128) -> String {
    match at {
        0 => Decimal::try_from_i128_with_scale(sum, 9)
            .map_or_else(|_| sum.to_string(), |usd| usd.normalize().to_string()),
        _ => sum.to_string(),
    }
}

fn table_sql(table: &Table) -> String {
    let mut sql = "SELECT COUNT(*)".to_owned();
    for column in &table.columns {
        let name = format!("\"{}\"", column.name);
        let (high, low) = match column.kind {
            ColumnKind::Int => {
                let int = format!("CAST({name} AS BIGINT)");
                (format!("SUM({int} >> 32)"), format!("SUM({int} & 4294967295)"))
            }
            ColumnKind::Text | ColumnKind::Bytes => {
                ("NULL".to_owned(), format!("SUM(OCTET_LENGTH({name}))"))
            }
        };
        // Writing to a String cannot fail.
        let _ = write!(sql, ", COUNT({name}), CAST({high} AS TEXT), CAST({low} AS TEXT)");
    }
    let _ = write!(sql, " FROM {}", table.name);
    sql
}

fn read_table(table: &Table, row: &AnyRow) -> Result<TableFigures, StoreError> {
    let mut columns = Vec::with_capacity(table.columns.len());
    for (at, column) in table.columns.iter().enumerate() {
        let (high, low) = (sum(row, 3 * at + 2)?, sum(row, 3 * at + 3)?);
        columns.push(ColumnFigures {
            name: column.name.clone(),
            filled: row.try_get(3 * at + 1)?,
            total: (high << 32) + low,
        });
    }
    Ok(TableFigures { name: table.name, rows: row.try_get(0)?, columns })
}

fn read_user(row: &AnyRow) -> Result<UserFigures, StoreError> {
    let sums = (0..USER_SUMS.len()).map(|at| sum(row, at + 2)).collect::<Result<_, _>>()?;
    Ok(UserFigures { user: row.try_get(0)?, requests: row.try_get(1)?, sums })
}

/// A sum as text; the sum of nothing is 0.
fn sum(row: &AnyRow, at: usize) -> Result<i128, StoreError> {
    let text: Option<String> = row.try_get(at)?;
    let unread = |_| StoreError::Corrupt { what: "a sum is not a number".to_owned() };
    text.map_or(Ok(0), |text| text.parse().map_err(unread))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(cost: i128, filled: i64) -> DatabaseFigures {
        let column = ColumnFigures { name: "cost".to_owned(), filled, total: cost };
        DatabaseFigures {
            tables: vec![TableFigures { name: "ledger", rows: 2, columns: vec![column] }],
            users: vec![UserFigures { user: 7, requests: 2, sums: vec![cost, 1, 2, 3, 4, 5, 6] }],
        }
    }

    #[test]
    fn a_billionth_of_a_dollar_is_a_difference() {
        let (one, other) = (figures(1_000_000_001, 2), figures(1_000_000_000, 1));
        assert_eq!(one.differences(&one.clone()), []);
        assert_ne!(one.digest(), other.digest());
        let said: Vec<String> = one
            .differences(&other)
            .into_iter()
            .map(|d| format!("{}: {} {}", d.what, d.here, d.there))
            .collect();
        assert_eq!(
            said,
            [
                "values in ledger.cost: 2 1",
                "sum of ledger.cost: 1000000001 1000000000",
                "cost of user 7: 1.000000001 1",
            ]
        );
        assert_eq!(
            one.sums()[..2],
            [("cost in USD", "1.000000001".to_owned()), ("input_tokens", "1".to_owned())]
        );
    }
}
