//! The journal: what waits for the database, how long, and what was set aside.

use crate::config::Config;
use crate::domain::clock::{Clock as _, SystemClock};
use crate::ledger;
use crate::setup::finding::{Finding, bytes, time};
use crate::setup::journal;

const PART: &str = "journal";
/// A running gateway delivers a record within a second: after this, it does not.
const LATE_MS: i64 = 60_000;

/// Looks at the journals of all processes on the data directory.
pub(super) fn look(config: &Config) -> Vec<Finding> {
    let root = journal::root(config);
    let waiting = match ledger::waiting(&root) {
        Ok(waiting) => waiting,
        Err(error) => {
            let text = format!("{} cannot be read: {error}", root.display());
            return vec![Finding::fault(PART, text, "Correct the rights of the folder.")];
        }
    };
    let mut findings = vec![undelivered(config, &waiting)];
    if waiting.set_aside > 0 {
        let text = format!("{} files in {}", waiting.set_aside, root.join("set-aside").display());
        let advice = "Damaged bytes, or records that the database refused: their spending is not \
                      in the ledger. Keep the files, and read docs/failures.md.";
        findings.push(Finding::warning(PART, text, advice));
    }
    findings
}

fn undelivered(config: &Config, waiting: &ledger::Undelivered) -> Finding {
    if waiting.bytes == 0 {
        return Finding::ok(PART, "nothing waits for the database");
    }
    let age = waiting.oldest.map_or(0, |oldest| SystemClock.now().since(oldest));
    let (size, most) = (bytes(waiting.bytes), bytes(config.ledger.max_bytes));
    let text = format!(
        "{size} of at most {most} wait for the database; the oldest request began {} ago",
        time(age)
    );
    let advice = "Nothing is lost: records wait until the database takes them. The database's \
                  finding says why it does not; if no gateway runs, the next start delivers them. \
                  A full journal refuses requests.";
    match waiting.bytes {
        size if size > config.ledger.max_bytes / 2 => Finding::fault(PART, text, advice),
        _ if age > LATE_MS => Finding::warning(PART, text, advice),
        _ => Finding::ok(PART, text),
    }
}
