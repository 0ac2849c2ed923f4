//! A dump of a peer's MySQL database, as `mysqldump` writes it, parsed by sqlparser.
//!
//! The file is read statement by statement, and each byte once. Only `CREATE TABLE` and `INSERT` of
//! wanted tables are kept and parsed, so what other statements say, and in which dialect, does not
//! matter. Rows of the table with requests are summed as they come.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;

use rust_decimal::Decimal;
use sqlparser::ast::{Expr, Insert, ObjectName, SetExpr, Statement, UnaryOperator, Value};
use sqlparser::dialect::MySqlDialect;
use sqlparser::parser::{Parser, ParserError};

use super::{Only, PeerData, PeerError, PeerRow, PeerSchema, PeerSpend, PeerSpendTable, decimal};
use crate::domain::clock::Timestamp;

/// A longer statement is not one of a dump: `mysqldump` writes at most about 1 MiB (its
/// `net_buffer_length`), and a row of a wanted table is small.
const MAX_STATEMENT: usize = 16 << 20;

/// A row's values in the order of the columns.
type Values = Vec<Option<String>>;

struct Reading<'s> {
    schema: &'s PeerSchema,
    /// First single minute, in seconds since the epoch.
    since: i64,
    /// The columns of the tables so far, in their order.
    columns: BTreeMap<&'static str, Vec<String>>,
    rows: BTreeMap<&'static str, Vec<PeerRow>>,
    sums: BTreeMap<(Vec<Option<String>>, Option<i64>), Decimal>,
}

pub(super) fn read(
    file: &Path,
    schema: &PeerSchema,
    since: Timestamp,
) -> Result<PeerData, PeerError> {
    let mut reading = Reading {
        schema,
        since: since.0 / 1_000,
        columns: BTreeMap::new(),
        rows: BTreeMap::new(),
        sums: BTreeMap::new(),
    };
    let mut lines = BufReader::with_capacity(1 << 20, File::open(file)?);
    let (mut statement, mut ending, mut began, mut number) = (Vec::new(), Ending::default(), 1, 0);
    let (mut line, mut is_wanted) = (Vec::new(), false);
    loop {
        line.clear();
        let most = u64::try_from(MAX_STATEMENT).unwrap_or(u64::MAX);
        if lines.by_ref().take(most).read_until(b'\n', &mut line)? == 0 {
            break;
        }
        number += 1;
        if !ending.is_within {
            began = number;
            if line.starts_with(b"--") || line.starts_with(b"#") || line.trim_ascii().is_empty() {
                continue;
            }
            is_wanted = reading.wanted(&String::from_utf8_lossy(&line)).is_some();
        }
        let ends = ending.after(&line);
        if is_wanted {
            if statement.len() + line.len() > MAX_STATEMENT {
                let why = format!("the statement is longer than {} MiB", MAX_STATEMENT >> 20);
                return Err(PeerError::Dump { line: began, why });
            }
            statement.extend_from_slice(&line);
        }
        if ends && is_wanted {
            let parsed = reading.statement(&String::from_utf8_lossy(&statement));
            parsed.map_err(|error| broken(began, &error))?;
            statement.clear();
        }
    }
    if ending.is_within {
        let why = "the file ends within a statement".to_owned();
        return Err(PeerError::Dump { line: began, why });
    }
    reading.finish()
}

/// Finds the end of a statement: a line that ends with `;` outside of texts, names and comments.
#[derive(Default)]
struct Ending {
    /// A statement has begun and not ended.
    is_within: bool,
    /// The character that ends the text or the name; `*` for a comment of several lines.
    quote: Option<u8>,
    is_escaped: bool,
}

impl Ending {
    /// Whether the statement ends with this line.
    fn after(&mut self, line: &[u8]) -> bool {
        let mut before = b'\n';
        let mut bytes = line.iter().copied().peekable();
        while let Some(byte) = bytes.next() {
            match (self.quote, byte) {
                _ if self.is_escaped => self.is_escaped = false,
                (Some(b'\'' | b'"'), b'\\') => self.is_escaped = true,
                (Some(b'*'), b'/') if before == b'*' => self.quote = None,
                (Some(b'*'), _) => {}
                (Some(quote), _) if quote == byte => self.quote = None,
                (Some(_), _) => {}
                (None, b'\'' | b'"' | b'`') => self.quote = Some(byte),
                (None, b'*') if before == b'/' => self.quote = Some(b'*'),
                (None, b'#') => break,
                (None, b'-')
                    if before == b'-' && bytes.peek().is_none_or(u8::is_ascii_whitespace) =>
                {
                    break;
                }
                (None, _) => {}
            }
            before = if before == b'/' && byte == b'*' { b'\n' } else { byte };
        }
        self.is_within = self.quote.is_some() || !line.trim_ascii_end().ends_with(b";");
        !self.is_within
    }
}

/// The parser quotes what it found, which may be a secret: the error has only what it expected.
fn broken(line: usize, error: &ParserError) -> PeerError {
    let text = match error {
        ParserError::TokenizerError(text) | ParserError::ParserError(text) => text.as_str(),
        ParserError::RecursionLimitExceeded => "it is nested too deeply",
    };
    let why = text
        .split(", found")
        .next()
        .filter(|_| text.starts_with("Expected"))
        .unwrap_or("no valid SQL");
    PeerError::Dump { line, why: why.to_owned() }
}

impl Reading<'_> {
    /// The table of a statement that begins so, if it is wanted.
    fn wanted(&self, beginning: &str) -> Option<&'static str> {
        let name = table_of(beginning)?;
        let tables = self.schema.tables.iter().map(|table| table.name);
        let spend = self.schema.spend.iter().map(|table| table.name);
        tables.chain(spend).find(|known| *known == name)
    }

    fn statement(&mut self, text: &str) -> Result<(), ParserError> {
        let Some(table) = self.wanted(text) else { return Ok(()) };
        for statement in Parser::parse_sql(&MySqlDialect {}, text)? {
            match statement {
                Statement::CreateTable(created) => {
                    let names =
                        created.columns.iter().map(|column| column.name.value.clone()).collect();
                    self.columns.insert(table, names);
                }
                Statement::Insert(insert) => self.insert(table, insert),
                _ => {}
            }
        }
        Ok(())
    }

    fn insert(&mut self, table: &'static str, insert: Insert) {
        let named: Vec<String> = insert.columns.iter().map(last).collect();
        let columns = match named.is_empty() {
            true => self.columns.get(table).cloned().unwrap_or_default(),
            false => named,
        };
        self.columns.entry(table).or_insert_with(|| columns.clone());
        let Some(SetExpr::Values(values)) = insert.source.map(|query| *query.body) else { return };
        for row in values.rows {
            let row: Values = row.content.iter().map(value).collect();
            self.row(table, &columns, row);
        }
    }

    fn row(&mut self, table: &'static str, columns: &[String], row: Values) {
        if let Some(wanted) = self.schema.tables.iter().find(|wanted| wanted.name == table) {
            let names = wanted.required.iter().chain(wanted.optional);
            let value = |name: &&'static str| {
                let at = columns.iter().position(|column| column == name)?;
                Some((*name, row.get(at)?.clone()?))
            };
            let row = names.filter_map(value).collect();
            self.rows.entry(table).or_default().push(row);
        }
        if let Some(wanted) = self.schema.spend.iter().find(|wanted| wanted.name == table) {
            self.sum(wanted, columns, &row);
        }
    }

    fn sum(&mut self, table: &PeerSpendTable, columns: &[String], row: &Values) {
        let get =
            |name: &str| row.get(columns.iter().position(|column| column == name)?)?.as_deref();
        let has = |name: &str| columns.iter().any(|column| column == name);
        let counts = table.only.iter().all(|condition| match condition {
            Only::Is(name, value) => !has(name) || get(name) == Some(value),
            Only::IsNot(name, value) => get(name) != Some(value),
            Only::IsNull(name) => get(name).is_none(),
        });
        let Some(amount) = get(table.amount).and_then(decimal).filter(|_| counts) else { return };
        let seconds = get(table.at).and_then(|text| text.parse::<i64>().ok()).unwrap_or(0);
        let minute = (seconds >= self.since).then(|| seconds.div_euclid(60));
        let holders = table.holders.iter().map(|name| get(name).map(str::to_owned)).collect();
        let sum = self.sums.entry((holders, minute)).or_default();
        *sum = sum.saturating_add(amount);
    }

    fn finish(mut self) -> Result<PeerData, PeerError> {
        let mut data = PeerData::default();
        for table in self.schema.tables {
            match self.columns.get(table.name) {
                None if table.may_lack => continue,
                None => return Err(PeerError::NoTable(table.name)),
                Some(columns) => lacks(table.name, columns, table.required)?,
            }
            data.tables.insert(table.name, self.rows.remove(table.name).unwrap_or_default());
        }
        let spend = self.schema.spend.iter().find(|table| self.columns.contains_key(table.name));
        if let Some(table) = spend {
            let columns = self.columns.get(table.name).map_or(&[][..], Vec::as_slice);
            lacks(table.name, columns, &[table.at, table.amount])?;
            data.spend_table = Some(table.name);
        }
        let sum = |((holders, minute), amount): ((Vec<Option<String>>, Option<i64>), Decimal)| {
            PeerSpend {
                holders,
                minute: minute.map(|minute| Timestamp(minute.saturating_mul(60_000))),
                amount,
            }
        };
        data.spend = self.sums.into_iter().map(sum).collect();
        Ok(data)
    }
}

fn lacks(
    table: &'static str,
    columns: &[String],
    required: &[&'static str],
) -> Result<(), PeerError> {
    match required.iter().find(|name| !columns.iter().any(|column| column == **name)) {
        Some(column) => Err(PeerError::NoColumn { table, column }),
        None => Ok(()),
    }
}

/// The table that a statement creates or fills; `None` for other statements.
fn table_of(statement: &str) -> Option<String> {
    let mut rest = statement.trim_start();
    let mut skip = |words: &[&str]| {
        let mut after = rest;
        for word in words {
            let head = after.get(..word.len()).filter(|head| head.eq_ignore_ascii_case(word))?;
            after = after.get(head.len()..)?.trim_start();
        }
        rest = after;
        Some(())
    };
    skip(&["CREATE", "TABLE"])
        .or_else(|| skip(&["INSERT", "INTO"]))
        .or_else(|| skip(&["INSERT", "IGNORE", "INTO"]))
        .or_else(|| skip(&["REPLACE", "INTO"]))?;
    let _if_not_there = skip(&["IF", "NOT", "EXISTS"]);
    let name = rest.split([' ', '(', '\n']).next()?;
    let name = name.rsplit('.').next()?;
    Some(name.trim_matches('`').to_owned())
}

fn last(name: &ObjectName) -> String {
    name.0
        .last()
        .and_then(|part| part.as_ident())
        .map(|ident| ident.value.clone())
        .unwrap_or_default()
}

/// A literal as text; `None` for null.
fn value(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Value(value) => match &value.value {
            Value::Null => None,
            Value::Number(digits, _) => Some(digits.clone()),
            Value::Boolean(flag) => Some(flag.to_string()),
            Value::HexStringLiteral(digits) => {
                let bytes = hex::decode(digits).ok()?;
                Some(String::from_utf8_lossy(&bytes).into_owned())
            }
            other => other.clone().into_string(),
        },
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => {
            value(expr).map(|digits| format!("-{digits}"))
        }
        Expr::Prefixed { value: inner, .. } => value(inner),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_found_by_their_table() {
        for (statement, table) in [
            ("CREATE TABLE `users` (\n", Some("users")),
            ("create table if not exists users(", Some("users")),
            ("INSERT INTO `oneapi`.`tokens` VALUES (1);", Some("tokens")),
            ("INSERT INTO `tokens`(`id`) VALUES (1);", Some("tokens")),
            ("LOCK TABLES `users` WRITE;", None),
            ("/*!40101 SET NAMES utf8mb4 */;", None),
        ] {
            assert_eq!(table_of(statement).as_deref(), table, "{statement}");
        }
    }

    #[test]
    fn a_statement_ends_at_the_end_of_a_line_outside_of_texts() {
        for (lines, ends) in [
            (&["a;"][..], &[true][..]),
            (&["a", "b;"], &[false, true]),
            (&["'a;", "b';"], &[false, true]),
            (&["'a\\';", "';"], &[false, true]),
            (&["'a'';", "';"], &[false, true]),
            (&["`a'`;"], &[true]),
            (&["`a;", "`;"], &[false, true]),
            (&["\"a;", "\\\";", "\";"], &[false, false, true]),
            (&["/* a' ;", "*/ b;"], &[false, true]),
            (&["/*/ ;", "*/;"], &[false, true]),
            (&["/*!40101 SET NAMES utf8mb4 */;"], &[true]),
            (&["a, -- it's", "b;"], &[false, true]),
            (&["a, # it's", "b;"], &[false, true]),
            (&["5--'a;", "';"], &[false, true]),
        ] {
            let mut ending = Ending::default();
            let found: Vec<bool> =
                lines.iter().map(|line| ending.after(format!("{line}\n").as_bytes())).collect();
            assert_eq!(found, ends, "{lines:?}");
        }
    }

    #[test]
    fn tables_and_rows_are_read_as_servers_write_them() {
        const TABLE: &str = "CREATE TABLE `tokens` (
  `id` bigint(20) unsigned NOT NULL AUTO_INCREMENT,
  `key` varchar(128) CHARACTER \
  SET utf8mb4 COLLATE utf8mb4_bin DEFAULT NULL COMMENT 'text; \\'quoted\\'',
  `other` json DEFAULT NULL,
  `note` longtext DEFAULT (_utf8mb4'x'),
  `at` timestamp(3) NULL DEFAULT CURRENT_TIMESTAMP(3) ON UPDATE CURRENT_TIMESTAMP(3),
  `balance` double DEFAULT NULL,
  PRIMARY KEY (`id`),
  UNIQUE KEY `idx_key` (`key`) USING BTREE,
  KEY `idx_prefix` (`note`(191)),
  FULLTEXT KEY `idx_text` (`note`)
) ENGINE=InnoDB AUTO_INCREMENT=7 DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci \
ROW_FORMAT=DYNAMIC COMMENT='x';
INSERT INTO `tokens` VALUES
(1,'a;
b\\'c',_binary 'x',NULL,'2026-01-01 00:00:00.000',-1.5e-7),
(2,0x6162,'{}','d','2026-01-01',0);
REPLACE INTO `tokens` (`id`, `key`) VALUES (3,'e');
";
        const SCHEMA: PeerSchema = PeerSchema {
            tables: &[super::super::PeerTable {
                name: "tokens",
                required: &["id", "key"],
                optional: &["other", "balance"],
                may_lack: false,
            }],
            spend: &[],
        };
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), TABLE).unwrap();
        let data = read(file.path(), &SCHEMA, Timestamp(0)).unwrap();
        let rows = data.rows("tokens");
        let keys: Vec<_> = rows.iter().map(|row| (row.int("id"), row.text("key"))).collect();
        assert_eq!(keys, [(Some(1), Some("a;\nb'c")), (Some(2), Some("ab")), (Some(3), Some("e"))]);
        assert_eq!(
            (rows[0].text("other"), rows[0].decimal("balance")),
            (Some("x"), Some(Decimal::new(-15, 8)))
        );
    }
}
