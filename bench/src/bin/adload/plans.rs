//! The plans of the reports' statements, from PostgreSQL itself: its module `auto_explain` writes
//! the plan of each statement into the server's log while every question is sent twice. Statements
//! that occur both times are the question's; the others are the gateway's background work.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use sqlx::{AnyConnection, AssertSqlSafe, Connection, Executor};
use tollgate_bench::process::pause;

use super::ask::{self, Question};

/// Tables whose statements are shown.
const TABLES: [&str; 6] =
    ["request_log", "ledger", "hourly_sums", "hourly_users", "daily_sums", "usage_totals"];

/// Of a statement, and lines of a plan, that are shown.
const BYTES: usize = 600;
const LINES: usize = 30;

/// From now on, new connections write the plan of each statement.
pub async fn switch_on(url: &str) -> Result<()> {
    let mut connection = AnyConnection::connect(url).await?;
    for (name, value) in [
        ("session_preload_libraries", "auto_explain"),
        ("auto_explain.log_min_duration", "0"),
        ("auto_explain.log_analyze", "on"),
        ("auto_explain.log_timing", "off"),
    ] {
        let sql = format!(
            "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET {name} = ''{value}''', \
             current_database()); END $$"
        );
        connection.execute(AssertSqlSafe(sql)).await?;
    }
    Ok(connection.close().await?)
}

/// New connections write no plans any more.
pub async fn switch_off(url: &str) -> Result<()> {
    let mut connection = AnyConnection::connect(url).await?;
    let sql =
        "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I RESET ALL', current_database()); END $$";
    connection.execute(sql).await?;
    Ok(connection.close().await?)
}

/// A statement and the lines of its plan.
type Planned = (String, Vec<String>);

/// Sends every question, and returns the page.
pub fn page(
    addr: SocketAddr,
    questions: &[Question],
    key: &str,
    log: &Path,
    about: &str,
) -> Result<String> {
    let about = format!(
        "Made by `make bench-admin ARGS='--plans target/plans.md'`. {about} \
         PostgreSQL's plans of every statement that a report sends, with the rows that each step \
         found. Of partitions that are read in the same way, the plan shows one; long statements \
         and plans are cut."
    );
    let mut page = format!("# Plans of the reports\n\n{}\n", wrapped(&about));
    let mut shown = BTreeSet::new();
    for question in questions {
        let (first, second) = (sent(addr, question, key, log)?, sent(addr, question, key, log)?);
        writeln!(page, "\n## {}\n", question.name)?;
        for (sql, plan) in second.iter().filter(|(sql, _)| first.iter().any(|(s, _)| s == sql)) {
            if !shown.insert((sql.clone(), shape(plan))) {
                continue;
            }
            writeln!(page, "```sql\n{}\n```\n\n```text", wrapped(sql))?;
            let lines = folded(plan);
            for line in lines.iter().take(LINES) {
                writeln!(page, "{}", without_costs(line))?;
            }
            if lines.len() > LINES {
                writeln!(page, "… {} more lines", lines.len() - LINES)?;
            }
            page.push_str("```\n\n");
        }
        if page.ends_with(&format!("## {}\n\n", question.name)) {
            page.push_str("Its statements, with plans of the same shape, are above.\n");
        }
    }
    Ok(page.replace("\n\n\n", "\n\n"))
}

/// Sends a question, and returns what the server logged meanwhile.
fn sent(addr: SocketAddr, question: &Question, key: &str, log: &Path) -> Result<Vec<Planned>> {
    let before = std::fs::metadata(log)?.len();
    ask::send(addr, question, key)?;
    pause(Duration::from_millis(100));
    let bytes = std::fs::read(log)?;
    let new = bytes.get(usize::try_from(before)?..).unwrap_or_default();
    Ok(planned(&String::from_utf8_lossy(new)))
}

fn planned(log: &str) -> Vec<Planned> {
    let mut found = Vec::new();
    let mut lines = log.lines().peekable();
    while let Some(line) = lines.next() {
        if !line.ends_with(" plan:") {
            continue;
        }
        let (mut sql, mut plan) = (String::new(), Vec::new());
        while let Some(line) = lines.next_if(|line| line.starts_with('\t')) {
            let line = line.trim_start_matches('\t');
            if plan.is_empty() && !line.contains("(cost=") {
                sql.push_str(line.trim_start_matches("Query Text: ").trim());
                sql.push(' ');
            } else {
                plan.push(line.to_owned());
            }
        }
        let sql = sql.trim().to_owned();
        let reads = sql.starts_with("SELECT") || sql.starts_with("WITH");
        if reads && TABLES.iter().any(|table| sql.contains(table)) {
            found.push((sql, plan));
        }
    }
    found
}

/// The plan without its figures, to tell whether two are the same.
fn shape(plan: &[String]) -> String {
    plan.iter().map(|line| line.split("  (cost=").next().unwrap_or_default()).collect()
}

/// A line with only the rows that were found: costs differ from machine to machine.
fn without_costs(line: &str) -> String {
    match (line.find("  (cost="), line.find("(actual")) {
        (Some(from), Some(to)) => format!("{}  {}", &line[..from], &line[to..]),
        _ => line.to_owned(),
    }
}

fn wrapped(sql: &str) -> String {
    let mut text = String::new();
    let mut width = 0;
    for word in sql.split_whitespace() {
        if text.len() > BYTES {
            return text + " …";
        }
        if width + word.len() > 98 {
            text.push('\n');
            width = 0;
        } else if width > 0 {
            text.push(' ');
            width += 1;
        }
        text.push_str(word);
        width += word.len();
    }
    text
}

const fn indent(line: &str) -> usize {
    line.len() - line.trim_ascii_start().len()
}

/// The plan with the reads of like partitions, after the second, left out: a step and all lines
/// that are indented further.
fn folded(plan: &[String]) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut seen: Vec<(usize, String, usize)> = Vec::new();
    let mut skip = None;
    for line in plan {
        let at = indent(line);
        if skip.is_some_and(|step| at > step) {
            continue;
        }
        skip = None;
        if let Some(kind) = partition_scan(line) {
            match seen.iter_mut().find(|(place, known, _)| *place == at && *known == kind) {
                Some((_, _, count)) => {
                    *count += 1;
                    if *count == 2 {
                        lines.push(format!(
                            "{}->  … as many more as there are partitions",
                            " ".repeat(at)
                        ));
                    }
                    if *count > 1 {
                        skip = Some(at);
                        continue;
                    }
                }
                None => seen.push((at, kind, 1)),
            }
        }
        lines.push(line.clone());
    }
    lines
}

/// The kind of a scan of a partition: `Index Scan ledger`.
fn partition_scan(line: &str) -> Option<String> {
    let step = line.trim_start().strip_prefix("->  ")?;
    let (kind, rest) = step.split_once(" on ").or_else(|| step.split_once(" using "))?;
    let of = |table: &&str| {
        rest.contains(&format!("{table}_2")) || rest.contains(&format!("{table}_other"))
    };
    let table = ["request_log", "ledger"].into_iter().find(|table| of(table))?;
    Some(format!("{} {table}", kind.split(" using ").next()?))
}
