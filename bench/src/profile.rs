//! A profile as Callgrind writes it: what one thread executed, by function.

use std::collections::HashMap;

use anyhow::{Context, Result};

/// What a thread works on, and a part of a function's name that no other kind of thread runs.
const KINDS: [(&str, &str); 2] = [(WRITER, "sqlite3VdbeExec"), (PROXY, "pingora_proxy")];
/// The threads that serve requests.
pub const PROXY: &str = "proxy";
/// The threads that execute SQLite's statements.
pub const WRITER: &str = "sqlite";
/// All others: the runtime that feeds the writer, access lines, timers.
pub const OTHER: &str = "other";

/// Functions of the allocator that a program calls: those that give memory, those that take it back,
/// and the one in which a thread gives back what another one has.
const ALLOCATES: [&str; 6] = [
    "mi_malloc",
    "mi_malloc_aligned",
    "mi_zalloc",
    "mi_zalloc_aligned",
    "mi_realloc",
    "mi_realloc_aligned",
];
const FREES: &str = "mi_free";
const FREES_ELSEWHERE: &str = "mi_free_block_mt";

/// What a thread did, without its calls into the kernel.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Work {
    /// Instructions executed.
    pub instructions: u64,
    /// Instructions of the allocator.
    pub allocating: u64,
    /// Instructions of `memcpy` and `memmove`; a copy moves up to 32 bytes with each.
    pub copying: u64,
    /// Blocks of memory asked for, or made larger or smaller.
    pub allocations: u64,
    /// Blocks given back.
    pub frees: u64,
    /// Of these, blocks of other threads.
    pub frees_elsewhere: u64,
    /// Calls into the kernel.
    pub system_calls: u64,
}

/// One figure of [`Work`].
type Figure = fn(&Work) -> u64;

/// The figures of [`Work`] by name, in the order in which they are shown.
pub const FIGURES: [(&str, Figure); 7] = [
    ("instructions", |work| work.instructions),
    ("instructions of the allocator", |work| work.allocating),
    ("instructions of copying", |work| work.copying),
    ("allocations", |work| work.allocations),
    ("frees", |work| work.frees),
    ("frees of other threads' blocks", |work| work.frees_elsewhere),
    ("system calls", |work| work.system_calls),
];

/// The profile of one thread.
#[derive(Debug, Clone, Copy)]
pub struct Profile {
    /// One of the kinds above.
    pub kind: &'static str,
    /// What it did.
    pub work: Work,
}

impl Profile {
    /// Reads what Callgrind wrote. Names stand where they first occur, as `(7) name`, and as `(7)`
    /// from then on.
    ///
    /// # Errors
    /// When it has no totals.
    pub fn read(text: &str) -> Result<Self> {
        let mut work = Work::default();
        let mut names: HashMap<&str, &str> = HashMap::new();
        let (mut of, mut called) = ("", "");
        let mut is_call = false;
        for line in text.lines() {
            if let Some(named) = line.strip_prefix("fn=") {
                of = name(named, &mut names);
            } else if let Some(named) = line.strip_prefix("cfn=") {
                called = name(named, &mut names);
            } else if let Some(calls) = line.strip_prefix("calls=") {
                let calls = calls.split(' ').next().and_then(|calls| calls.parse().ok());
                // The line after it is the cost of these calls, which is the callee's own.
                is_call = true;
                if !of.starts_with("mi_") && !of.starts_with("_mi_") {
                    count(&mut work, called, calls.unwrap_or(0));
                } else if called == FREES_ELSEWHERE {
                    work.frees_elsewhere += calls.unwrap_or(0);
                }
            } else if line
                .starts_with(|first: char| first.is_ascii_digit() || "+-*".contains(first))
            {
                let is_own = !std::mem::take(&mut is_call);
                let cost = line.split(' ').nth(1).and_then(|cost| cost.parse::<u64>().ok());
                let cost = cost.filter(|_| is_own).unwrap_or(0);
                if of.starts_with("__memcpy") || of.starts_with("__memmove") {
                    work.copying += cost;
                } else if of.starts_with("mi_") || of.starts_with("_mi_") {
                    work.allocating += cost;
                }
            }
        }
        let totals = text.lines().rev().find_map(|line| line.strip_prefix("totals: "));
        let mut totals = totals.context("no totals")?.split(' ');
        let mut next = || totals.next().and_then(|total| total.parse().ok()).unwrap_or(0);
        (work.instructions, work.system_calls) = (next(), next());
        let kind =
            KINDS.iter().find(|(_, name)| text.contains(name)).map_or(OTHER, |(kind, _)| kind);
        Ok(Self { kind, work })
    }
}

fn name<'t>(text: &'t str, names: &mut HashMap<&'t str, &'t str>) -> &'t str {
    match text.split_once(' ') {
        Some((id, name)) => {
            names.insert(id, name);
            name
        }
        None => names.get(text).copied().unwrap_or(""),
    }
}

fn count(work: &mut Work, called: &str, calls: u64) {
    if ALLOCATES.contains(&called) {
        work.allocations += calls;
    } else if called == FREES {
        work.frees += calls;
    }
}

/// The work of the threads of one kind.
pub fn sum(profiles: &[Profile], kind: &str) -> Work {
    let of = profiles.iter().filter(|profile| profile.kind == kind);
    of.fold(Work::default(), |sum, Profile { work, .. }| sum.and(work))
}

impl Work {
    /// Both, each figure combined.
    fn with(self, other: &Self, combine: fn(u64, u64) -> u64) -> Self {
        Self {
            instructions: combine(self.instructions, other.instructions),
            allocating: combine(self.allocating, other.allocating),
            copying: combine(self.copying, other.copying),
            allocations: combine(self.allocations, other.allocations),
            frees: combine(self.frees, other.frees),
            frees_elsewhere: combine(self.frees_elsewhere, other.frees_elsewhere),
            system_calls: combine(self.system_calls, other.system_calls),
        }
    }

    /// Both together.
    #[must_use]
    pub fn and(self, other: &Self) -> Self {
        self.with(other, u64::saturating_add)
    }

    /// What is left without `other`.
    #[must_use]
    pub fn without(self, other: &Self) -> Self {
        self.with(other, u64::saturating_sub)
    }

    /// What each of `requests` adds, if this has so many more than `other`; rounded.
    #[must_use]
    pub fn each(self, other: &Self, requests: u64) -> Self {
        let more = self.without(other);
        let requests = requests.max(1);
        let of = |figure: fn(&Self) -> u64| (figure(&more) + requests / 2) / requests;
        Self {
            instructions: of(|work| work.instructions),
            allocating: of(|work| work.allocating),
            copying: of(|work| work.copying),
            allocations: of(|work| work.allocations),
            frees: of(|work| work.frees),
            frees_elsewhere: of(|work| work.frees_elsewhere),
            system_calls: of(|work| work.system_calls),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "events: Ir sysCount sysTime\nfn=(1) tollgate::serve::{closure#0}\n46 7\n\
        cfn=(2) mi_malloc_aligned\ncalls=3 +7\n46 90\ncfn=(3) __memcpy_avx_unaligned_erms\n\
        calls=2 9\n+1 80\nfn=(2)\n9 90\ncfn=(4) mi_malloc\ncalls=3 1\n9 30\nfn=(3)\n1 80\n\
        fn=(5) mi_free\n7 1\ncfn=(6) mi_free_block_mt\ncalls=1 1\n7 3\nfn=(1)\ncfn=(5)\ncalls=2 7\n46 4\n\
        totals: 1234 5 6\n";

    #[test]
    fn a_profile_says_what_its_thread_did() {
        let Profile { kind, work } = Profile::read(TEXT).unwrap();
        let expected = Work {
            instructions: 1234,
            allocating: 91,
            copying: 80,
            allocations: 3,
            frees: 2,
            frees_elsewhere: 1,
            system_calls: 5,
        };
        assert_eq!((kind, work), (OTHER, expected));
        assert!(Profile::read("events: Ir\n").is_err());
    }
}
