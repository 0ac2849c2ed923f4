//! native: the passes over models that one reply took (`usage.iterations`), and the parts of the
//! bill that they are.
//!
//! The sums of a usage object are those of the model that served. They leave out compaction,
//! advisers, and models that declined before it. A pass without output is not charged if another
//! one served or the reply was refused. What the sums have more than their passes is one more pass.

use std::sync::Arc;

use super::tally::UsageTally;
use crate::domain::part::{Part, PartKind};
use crate::domain::usage::{ServiceTier, Usage};

/// A reply has a few passes. The counts of more than these are added to the last ones.
const MOST: usize = 64;

/// The figures of a pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PassFigure {
    Input,
    Output,
    CacheRead,
    CacheWrite,
    CacheWrite5m,
    CacheWrite1h,
}

/// One pass, as reported.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Pass {
    /// `None`: of a type that is not known.
    pub(super) kind: Option<PartKind>,
    pub(super) model: Option<Arc<str>>,
    /// By [`PassFigure`].
    counts: [u64; 6],
    pub(super) tier: Option<ServiceTier>,
    pub(super) is_fast: Option<bool>,
    pub(super) is_us: Option<bool>,
}

impl Pass {
    pub(super) const fn put(&mut self, figure: PassFigure, value: Option<u64>) {
        if let Some(value) = value {
            self.counts[figure as usize] = value;
        }
    }

    const fn of(&self, figure: PassFigure) -> u64 {
        self.counts[figure as usize]
    }

    fn add(&mut self, other: &Self) {
        for (count, more) in self.counts.iter_mut().zip(other.counts) {
            *count = count.saturating_add(more);
        }
    }

    /// Its tokens, at the tier of the reply where it names none itself.
    fn usage(&self, reply: &UsageTally) -> Usage {
        let (five, hour) = by_lifetime(
            self.of(PassFigure::CacheWrite),
            self.of(PassFigure::CacheWrite5m),
            self.of(PassFigure::CacheWrite1h),
        );
        // The mode is the request's own; an adviser is another request.
        let inherits = self.kind != Some(PartKind::AdvisorMessage);
        let is_fast = self.is_fast.unwrap_or(reply.is_fast && inherits);
        Usage {
            input: self.of(PassFigure::Input),
            output: self.of(PassFigure::Output),
            cache_write_5m: five,
            cache_write_1h: hour,
            cache_read: self.of(PassFigure::CacheRead),
            tier: tier(is_fast, self.is_us.unwrap_or(reply.is_us), self.tier.unwrap_or(reply.tier)),
            ..Usage::default()
        }
    }
}

/// A sum of cache writes by their lifetime: what is not in the split was written for five minutes.
pub(super) const fn by_lifetime(sum: u64, five: u64, hour: u64) -> (u64, u64) {
    (five.saturating_add(sum.saturating_sub(five.saturating_add(hour))), hour)
}

/// The tier of a mode, a place and a service tier.
pub(super) const fn tier(is_fast: bool, is_us: bool, tier: ServiceTier) -> ServiceTier {
    match (is_fast, is_us, tier) {
        (true, false, _) => ServiceTier::Fast,
        (true, true, _) => ServiceTier::FastUs,
        (false, true, ServiceTier::Standard) => ServiceTier::Us,
        (false, _, tier) => tier,
    }
}

/// The passes of a reply, as far as they are read. Empty, and without memory, for most replies.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Passes {
    open: Option<Box<Pass>>,
    /// Those of the usage object that is being read.
    reported: Vec<Pass>,
    known: Vec<Pass>,
}

impl Passes {
    /// The pass that is being read.
    pub(super) fn open(&mut self) -> &mut Pass {
        self.open.get_or_insert_default()
    }

    pub(super) fn ends(&mut self) {
        let Some(pass) = self.open.take() else { return };
        if self.reported.len() < MOST {
            return self.reported.push(*pass);
        }
        let is_same = |other: &&mut Pass| other.kind == pass.kind && other.model == pass.model;
        if let Some(same) = self.reported.iter_mut().rev().find(is_same) {
            same.add(&pass);
        }
    }

    /// The usage object is complete: its list, if it has one, replaces the known one. Returns
    /// whether it shortened the conversation.
    pub(super) fn take_over(&mut self) -> bool {
        if self.reported.is_empty() {
            return false;
        }
        self.known = std::mem::take(&mut self.reported);
        self.compactions().any(|pass| pass.counts != [0; 6])
    }

    /// Drops what was outside a complete usage object.
    pub(super) fn forget(&mut self) {
        if self.open.is_some() || !self.reported.is_empty() {
            self.open = None;
            self.reported.clear();
        }
    }

    fn compactions(&self) -> impl Iterator<Item = &Pass> {
        self.known.iter().filter(|pass| pass.kind == Some(PartKind::Compaction))
    }

    /// The tokens of all compaction, which the sums leave out.
    pub(super) fn compacted(&self, reply: &UsageTally) -> Usage {
        self.compactions().fold(Usage::default(), |sum, pass| plus(sum, &pass.usage(reply)))
    }
}

/// The parts of the bill. `sums`: the tokens of the model that served. None if the reply is one
/// pass that costs what its sums do.
pub(super) fn parts(tally: &UsageTally, sums: Usage) -> Vec<Part> {
    let passes = &tally.figures.passes().known;
    let refused = tally.refused && sums.output == 0;
    if passes.is_empty() && !refused && !tally.redeemed {
        return Vec::new();
    }
    let with_model = |pass: &&Pass| pass.kind.is_some_and(PartKind::is_reply);
    let fell_back = passes.iter().any(|pass| pass.kind == Some(PartKind::FallbackMessage));
    let server = passes.iter().filter(with_model).rfind(|pass| pass.model.is_some());
    let served = server.and_then(|pass| pass.model.clone());
    let is_served = |pass: &Pass| pass.model.is_none() || pass.model == served;
    let (mut parts, mut rest) = (Vec::with_capacity(passes.len() + 1), sums);
    for pass in passes {
        let kind = match pass.kind {
            Some(kind) => kind,
            // It is in the sums.
            None if is_served(pass) => continue,
            None => PartKind::OtherPass,
        };
        let mut part = Part::new(kind, pass.model.clone(), pass.usage(tally));
        part.free = part.usage.output == 0
            && match kind {
                PartKind::Message => fell_back || refused || !is_served(pass),
                PartKind::FallbackMessage => refused,
                PartKind::AdvisorMessage | PartKind::OtherPass => true,
                _ => false,
            };
        // What an earlier pass of another model used is not in the sums.
        if kind.is_reply() && is_served(pass) && !(part.free && fell_back && !refused) {
            let (reasoning, tier) = (rest.reasoning.min(part.usage.output), rest.tier);
            part.usage.reasoning = reasoning;
            rest = Usage { tier, ..less(rest, &part.usage) };
        }
        parts.push(part);
    }
    if rest.total() > 0 {
        let rest = Usage { web_searches: 0, ..rest };
        parts.push(Part { free: refused, ..Part::new(PartKind::Message, served.clone(), rest) });
    }
    if tally.redeemed {
        let own = |part: &&mut Part| {
            part.kind.is_reply() && (part.model.is_none() || part.model == served)
        };
        parts.iter_mut().filter(own).for_each(|part| redeem(&mut part.usage));
    }
    match parts.as_slice() {
        [Part { kind: PartKind::Message, free: false, usage, .. }]
            if *usage == (Usage { web_searches: 0, ..sums }) =>
        {
            Vec::new()
        }
        _ => parts,
    }
}

/// A redeemed credit: the cache is charged as if it had been this model's before.
const fn redeem(usage: &mut Usage) {
    let written = usage.cache_write_5m.saturating_add(usage.cache_write_1h);
    usage.cache_read = usage.cache_read.saturating_add(written);
    (usage.cache_write_5m, usage.cache_write_1h) = (0, 0);
}

/// The tokens of both.
pub(super) const fn plus(one: Usage, other: &Usage) -> Usage {
    Usage {
        input: one.input.saturating_add(other.input),
        output: one.output.saturating_add(other.output),
        cache_write_5m: one.cache_write_5m.saturating_add(other.cache_write_5m),
        cache_write_1h: one.cache_write_1h.saturating_add(other.cache_write_1h),
        cache_read: one.cache_read.saturating_add(other.cache_read),
        ..one
    }
}

/// The tokens of one without those of the other.
pub(super) const fn less(one: Usage, other: &Usage) -> Usage {
    Usage {
        input: one.input.saturating_sub(other.input),
        output: one.output.saturating_sub(other.output),
        cache_write_5m: one.cache_write_5m.saturating_sub(other.cache_write_5m),
        cache_write_1h: one.cache_write_1h.saturating_sub(other.cache_write_1h),
        cache_read: one.cache_read.saturating_sub(other.cache_read),
        reasoning: one.reasoning.saturating_sub(other.reasoning),
        ..one
    }
}
