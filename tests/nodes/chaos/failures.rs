//! Requests that failed or were refused: each has a reason that the documents name.

use super::faults::{Fault, Outage};
use super::load::{Asked, Caller, End, Kind};

/// How many requests ended how.
#[derive(Debug, Default)]
pub struct Ends {
    pub whole: usize,
    pub limited: usize,
    /// Their node was killed.
    pub killed: usize,
    /// The disk of their node was full.
    pub full: usize,
}

/// The requests that may not have failed, and the counts of all.
pub fn check(asked: &[Asked], callers: &[Caller], outages: &[Outage]) -> (Vec<String>, Ends) {
    let (mut wrong, mut ends) = (Vec::new(), Ends::default());
    for asked in asked {
        let during = |wanted: fn(Fault) -> bool| {
            outages.iter().any(|outage| {
                outage.node == asked.node
                    && wanted(outage.fault)
                    && outage.meets(asked.began, asked.ended)
            })
        };
        let kind = callers.iter().find(|caller| caller.key == asked.key).map(|c| c.kind);
        let count = match &asked.end {
            End::Whole => Some(&mut ends.whole),
            End::Limited(limit) => kind
                .filter(|kind| *kind != Kind::Free && kind.limit() == limit)
                .map(|_| &mut ends.limited),
            End::Broken(_) => {
                during(|fault| matches!(fault, Fault::KillNode(_))).then_some(&mut ends.killed)
            }
            End::Wrong(status, text) => (*status == 503
                && text.contains("cannot account")
                && during(|fault| matches!(fault, Fault::FullDisk(_))))
            .then_some(&mut ends.full),
        };
        match count {
            Some(count) => *count += 1,
            None => wrong.push(format!("a request failed that had another way: {asked:?}")),
        }
    }
    (wrong, ends)
}
