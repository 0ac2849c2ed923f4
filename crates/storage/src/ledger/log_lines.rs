//! Records in lines of the log: those that the disk did not accept. They exist in memory only, or
//! not at all, so the log is what remains of them if the process ends. `tollgate import-log` reads
//! such lines back.

use crate::domain::record::Record;

use super::encoding::Decoder;
use super::error::AppendRefused;
use super::frame;

/// The target of these lines. Nothing else logs with it.
const TARGET: &str = "tollgate::record";
/// How the levels are written in lines of text.
const LEVELS: [&str; 5] = [" ERROR ", " WARN ", " INFO ", " DEBUG ", " TRACE "];

/// Logs a frame's record, which is held in memory.
pub(super) fn held(frame: &[u8], why: &AppendRefused) {
    let record = text_of(frame);
    tracing::error!(target: TARGET, %why, record, "the journal did not take a record: it is held in memory");
}

/// Logs a frame's record, which nothing keeps.
pub(super) fn lost(frame: &[u8], why: &AppendRefused) {
    let record = text_of(frame);
    tracing::error!(target: TARGET, %why, record, "a record is lost to the ledger: neither disk nor memory takes it");
}

/// Logs a record that has no frame.
pub(super) fn unwritable(record: &Record, why: &super::LedgerError) {
    let record = serde_json::to_string(record).unwrap_or_default();
    tracing::error!(target: TARGET, %why, record, "a record is lost to the ledger");
}

fn text_of(frame: &[u8]) -> String {
    let payload = frame.get(frame::HEAD..).unwrap_or_default();
    let record = Decoder::default().read(payload);
    record.and_then(|record| serde_json::to_string(&record).ok()).unwrap_or_default()
}

/// The record of a line of the log, in either format of `log.format`; `None` for every other line.
///
/// A line has texts of clients. So the target has to be where only the gateway writes.
pub fn record_of_line(line: &str) -> Option<Record> {
    let text = match first_level(line) {
        Some(at) => return of_text(line.get(at..)?),
        None => line.get(line.find('{')?..)?,
    };
    let line: serde_json::Map<String, serde_json::Value> = serde_json::from_str(text).ok()?;
    if line.get("target")?.as_str()? != TARGET {
        return None;
    }
    serde_json::from_str(line.get("record")?.as_str()?).ok()
}

/// Where the level of a line of text begins; `None` for a line that is JSON.
fn first_level(line: &str) -> Option<usize> {
    let before = line.find('{').unwrap_or(line.len());
    let head = line.get(..before)?;
    LEVELS.iter().filter_map(|level| head.find(level)).min()
}

/// `ERROR tollgate::record: … record="…"`: the record is quoted as Rust quotes a text.
fn of_text(line: &str) -> Option<Record> {
    let fields = line.strip_prefix(LEVELS[0])?.strip_prefix(TARGET)?.strip_prefix(": ")?;
    let (_, quoted) = fields.split_once(" record=")?;
    let text = unquoted(quoted)?;
    serde_json::from_str(&text).ok()
}

/// The text of a literal as `Debug` writes it.
fn unquoted(literal: &str) -> Option<String> {
    let mut text = String::with_capacity(literal.len());
    let mut rest = literal.strip_prefix('"')?.chars();
    loop {
        match rest.next()? {
            '"' => return Some(text),
            '\\' => match rest.next()? {
                'n' => text.push('\n'),
                'r' => text.push('\r'),
                't' => text.push('\t'),
                '0' => text.push('\0'),
                'u' => {
                    let (code, after) = rest.as_str().strip_prefix('{')?.split_once('}')?;
                    text.push(char::from_u32(u32::from_str_radix(code, 16).ok()?)?);
                    rest = after.chars();
                }
                other => text.push(other),
            },
            other => text.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::segment::sample;

    fn hard() -> Record {
        let odd = "a \"quote\"\n\\ \u{1b}[31m \u{7f} \u{e000} ü record={\"request_id\":1}";
        Record { model: odd.into(), user_agent: Some(odd.into()), ..sample(7) }
    }

    #[test]
    fn a_record_is_read_back_from_lines_of_both_formats() {
        let (record, text) = (hard(), serde_json::to_string(&hard()).unwrap());
        let json = serde_json::json!({"timestamp": "t", "level": "ERROR", "target": TARGET,
            "message": "m", "why": "the disk is full", "record": text});
        let plain = format!("2026-01-02T03:04:05Z ERROR {TARGET}: m why=the disk record={text:?}");
        for line in [json.to_string(), plain] {
            for before in ["", "Nov 27 19:05:01 node-1 tollgate[312]: "] {
                assert_eq!(record_of_line(&format!("{before}{line}")), Some(record.clone()));
            }
        }
    }

    #[test]
    fn what_a_client_or_a_provider_says_is_no_record() {
        let text = serde_json::to_string(&hard()).unwrap();
        let json = serde_json::json!({"target": TARGET, "record": text}).to_string();
        let plain = format!(" ERROR {TARGET}: m record={text:?}");
        let lines = [
            format!("t  INFO access: model={json:?}"),
            format!("t  INFO access: model={plain:?}"),
            format!("t  WARN tollgate::proxy: error={json}"),
            format!("t  WARN tollgate::proxy: error={plain}"),
            serde_json::json!({"level": "INFO", "target": "access", "model": json}).to_string(),
            serde_json::json!({"level": "INFO", "target": "access", "model": plain}).to_string(),
            serde_json::json!({"target": "access", "record": text}).to_string(),
            json[..json.len() - 1].to_owned(),
            String::new(),
        ];
        for line in lines {
            assert_eq!(record_of_line(&line), None, "{line}");
        }
    }
}
