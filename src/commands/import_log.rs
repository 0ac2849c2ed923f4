//! `tollgate import-log`: puts the records that a gateway wrote to its log, because its disk was
//! full, into a journal of their own. A running gateway, or the next start, delivers them. Those
//! that the ledger has already do not count again.

use std::collections::BTreeMap;
use std::io::BufRead;
use std::sync::Arc;

use anyhow::Context as _;

use crate::config::Config;
use crate::domain::clock::{Clock, SystemClock};
use crate::domain::record::Record;
use crate::ledger::record_of_line;
use crate::setup::journal;

/// Returns the number of records in the log, each id once.
pub fn import_log(config: &Config, mut log: impl BufRead) -> anyhow::Result<usize> {
    let (mut line, mut records) = (Vec::new(), BTreeMap::new());
    while log.read_until(b'\n', &mut line)? > 0 {
        if let Some(record) = record_of_line(&String::from_utf8_lossy(&line)) {
            records.insert(record.request_id, record);
        }
        line.clear();
    }
    if records.is_empty() {
        return Ok(0);
    }
    let records: Vec<Record> = records.into_values().collect();
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let ledger = journal::open(config, &clock)?;
    ledger.leave(&records).context("writing the records to the journal")?;
    Ok(records.len())
}
