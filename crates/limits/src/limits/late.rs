//! Spending that becomes known after a request was settled: its model had no price then, and has
//! one now.

use super::Counters;
use super::backend::CounterBackend;
use super::held::HeldAmounts;
use super::memory::Memory;
use crate::domain::clock::Timestamp;
use crate::store::LateCosts;

impl Counters {
    /// Counts the later cost of settled requests: in the windows that contain their admission, and
    /// in the lifetime's sum. Never waits.
    ///
    /// Call it once for each transaction, on one node, after the ledger has it.
    pub fn spent_late(&self, late: &LateCosts, now: Timestamp) {
        let now = self.backend.time(now);
        match &self.backend {
            CounterBackend::Own(memory) => memory.spent_late(late, now),
            CounterBackend::Shared(shared) => shared.spent_late(late, now),
        }
    }
}

impl Memory {
    pub(super) fn spent_late(&self, late: &LateCosts, now: Timestamp) {
        for row in &late.rows {
            self.to_each(row.user_id, row.key_id, row.provider_id, now, |spend| {
                spend.add_late(row.minute, HeldAmounts::spent(row.cost), late.number)
            });
        }
    }
}
