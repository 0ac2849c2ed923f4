//! Builds the statements with long column lists, from one list of columns per table.
//!
//! Only table and column names that are constants of this module go into the text; every value is
//! bound.

use std::fmt::Write as _;

use crate::store::Backend;

/// `INSERT INTO table (columns) VALUES ($1, …), … tail` for `rows` rows.
///
/// SQLite treats `$1` as a name and searches each one in a list, which for thousands of values
/// costs more than the insert itself. It gets plain `?`, which means the same here, where every
/// value occurs once and in order.
pub(in crate::store) fn insert(
    backend: Backend,
    table: &str,
    columns: &[&str],
    rows: usize,
) -> String {
    let mut sql = String::with_capacity(64 + columns.len() * (16 + rows * 6));
    sql.push_str("INSERT INTO ");
    sql.push_str(table);
    sql.push_str(" (");
    push_list(&mut sql, columns.iter());
    sql.push_str(") VALUES ");
    for row in 0..rows {
        sql.push_str(if row == 0 { "(" } else { ", (" });
        for column in 0..columns.len() {
            if column > 0 {
                sql.push(',');
            }
            match backend {
                Backend::Sqlite => sql.push('?'),
                // Writing to a String cannot fail.
                Backend::Postgres => {
                    let _ = write!(sql, "${}", row * columns.len() + column + 1);
                }
            }
        }
        sql.push(')');
    }
    sql.push(' ');
    sql
}

/// `UPDATE table SET column = $1, … WHERE id = $n`, `n` being one more than the number of columns.
pub(in crate::store) fn update_by_id(table: &str, columns: &[&str]) -> String {
    let assignments =
        columns.iter().enumerate().map(|(at, column)| format!("{column} = ${}", at + 1));
    let mut sql = format!("UPDATE {table} SET ");
    push_list(&mut sql, assignments);
    let _ = write!(sql, " WHERE id = ${}", columns.len() + 1);
    sql
}

/// `SELECT id, columns FROM table rest`
pub(in crate::store) fn select(table: &str, columns: &[&str], rest: &str) -> String {
    let mut sql = String::from("SELECT id, ");
    push_list(&mut sql, columns.iter());
    let _ = write!(sql, " FROM {table} {rest}");
    sql
}

fn push_list<T: AsRef<str>>(sql: &mut String, items: impl Iterator<Item = T>) {
    for (at, item) in items.enumerate() {
        if at > 0 {
            sql.push_str(", ");
        }
        sql.push_str(item.as_ref());
    }
}

#[cfg(test)]
mod tests {
    use super::{Backend, select, update_by_id};

    #[test]
    fn statements_number_their_values_in_order() {
        let insert = |backend| super::insert(backend, "t", &["a", "b"], 2);
        assert_eq!(insert(Backend::Postgres), "INSERT INTO t (a, b) VALUES ($1,$2), ($3,$4) ");
        assert_eq!(insert(Backend::Sqlite), "INSERT INTO t (a, b) VALUES (?,?), (?,?) ");
        assert_eq!(update_by_id("t", &["a", "b"]), "UPDATE t SET a = $1, b = $2 WHERE id = $3");
        assert_eq!(select("t", &["a"], "WHERE x"), "SELECT id, a FROM t WHERE x");
    }
}
