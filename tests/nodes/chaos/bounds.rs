//! The limits: what callers got, and the most that the documents allow.
//!
//! Without a fault that touches the counters, a limit holds over all nodes. While Redis is lost
//! it holds for each node (docs/several-nodes.md, "What happens when"), so that all nodes together
//! may reach it once each. A rebuild starts sessions and requests per minute from those in flight,
//! which may be reached once more for each rebuild. What the requests of a killed or frozen node
//! held is given back after the lease, though they may go on or be recorded already. A node whose
//! clock is set while it counts for itself starts its minutes and sessions again from zero.

use std::collections::HashSet;
use std::time::Duration;

use super::cluster::NODES;
use super::counted::Counted;
use super::faults::{Fault, Outage};
use super::ledger::{Row, Seen, cost};
use super::load::{Asked, Caller, Kind};
use super::upstream::Visit;

/// A node sends what it counted within five milliseconds; on a busy machine within this.
const UNSENT: Duration = Duration::from_secs(1);
/// After it is connected to Redis again, a node has what others spent within this.
const CAUGHT_UP: Duration = Duration::from_secs(6);
/// `session.ttl` of the nodes, less what two clocks and a busy machine may differ.
const LIVE: Duration = Duration::from_millis(1_700);

/// Requests per minute of a caller.
pub const RPM: i64 = 20;
/// Money of a caller, in cents.
pub const CENTS: i64 = 30;
/// Concurrent sessions of a caller.
pub const SESSIONS: i64 = 4;
/// What the first provider may spend in each step, in cents.
pub const ROOM: i64 = 50;
/// Clients of a caller at each node.
pub const CLIENTS: i64 = 2;
/// A cent in nano-dollars.
const CENT: i64 = 10_000_000;

/// The limits that are used up during one step.
pub struct Cohort {
    /// Its number, from 1.
    pub step: usize,
    pub began: Duration,
    pub faults: Vec<Fault>,
    pub callers: Vec<Caller>,
    /// Clients at each node, of all callers that are used at one time.
    pub clients: i64,
    pub before: Counted,
    pub after: Counted,
    /// The first provider's limit, and what it had spent afterwards, in nano-dollars.
    pub provider: (i64, i64),
}

/// What was found for one limit.
#[derive(Debug)]
pub struct Found {
    pub step: usize,
    pub name: &'static str,
    /// In requests, nano-dollars or sessions.
    pub observed: i64,
    /// The limit as it is configured.
    pub limit: i64,
    /// The most that the documents allow.
    pub bound: i64,
    /// A node counted for itself for a while.
    pub lossy: bool,
    /// How often the counters in Redis were rebuilt.
    pub rebuilds: i64,
}

impl Cohort {
    /// Whether a node may have counted for itself.
    fn lossy(&self) -> bool {
        let (before, after) = (&self.before, &self.after);
        let differs = |(node, (after, before)): (usize, (&f64, &f64))| {
            let killed = self.faults.contains(&Fault::KillNode(node));
            if killed { *after > 0.0 } else { after > before }
        };
        self.faults.iter().any(|fault| fault.is_of_redis())
            || after.late > before.late
            || after.lost.iter().zip(&before.lost).enumerate().any(differs)
    }

    /// How many nodes were declared dead though no fault of this step says so: a
    /// machine that is busy for longer than the lease does it.
    fn stalled(&self) -> i64 {
        let faults = self
            .faults
            .iter()
            .filter(|fault| matches!(fault, Fault::KillNode(_) | Fault::FreezeNode(_)))
            .count();
        let buried = self.after.buried - self.before.buried;
        i64::try_from(buried.saturating_sub(faults)).unwrap()
    }

    /// How often the clock of a node was set: each fault sets it, and sets it back.
    fn set_clocks(&self) -> i64 {
        let of_clock = |fault: &&Fault| matches!(fault, Fault::StepClock(..));
        2 * i64::try_from(self.faults.iter().filter(of_clock).count()).unwrap()
    }

    fn rebuilds(&self) -> i64 {
        i64::try_from(self.after.rebuilds - self.before.rebuilds).unwrap()
    }

    /// A loss of Redis that no fault of this step explains. Steps with a fault of a node are left
    /// out.
    pub fn lost_without_a_fault(&self) -> Option<String> {
        let explained = self.faults.iter().any(|fault| fault.is_of_node() || fault.is_of_redis());
        let lost = !explained && self.after.losses != self.before.losses;
        let (step, faults) = (self.step, &self.faults);
        lost.then(|| format!("step {step}, {faults:?}: a node lost Redis without a fault"))
    }

    /// What the first provider spent shortly before the step: a node that found Redis again then
    /// may not have it yet.
    fn unheard(&self, visits: &[Visit]) -> i64 {
        let late = |visit: &&Visit| {
            let ended = visit.ended.unwrap_or(visit.began);
            visit.provider == "metered" && ended <= self.began && ended + CAUGHT_UP > self.began
        };
        visits.iter().filter(late).map(|visit| cost(visit.number, visit.provider)).sum()
    }

    /// The findings for each caller and for the first provider.
    pub fn found(&self, seen: &Seen<'_>, rows: &[Row]) -> Vec<Found> {
        let last = seen.asked.last().map_or(1, |asked| asked.number);
        let most = cost(last, "spare");
        // The input is paid too, and no reservation covers it.
        let input = 2 * i64::try_from(last).unwrap();
        let of_caller = |caller: &Caller| {
            let own: Vec<&Asked> = seen.asked.iter().filter(|a| a.key == caller.key).collect();
            let (lossy, rebuilds) = (self.lossy(), self.rebuilds());
            let uncertain = uncertain(&own, seen.outages) + self.stalled() * CLIENTS;
            let nodes = if lossy { NODES as i64 } else { 1 };
            let times = nodes + rebuilds + if lossy { self.set_clocks() } else { 0 };
            let (observed, limit, bound) = match caller.kind {
                Kind::Rpm => (within_a_minute(&own, seen.visits), RPM, RPM * times + uncertain),
                Kind::Sessions => {
                    let bound = SESSIONS * times + uncertain;
                    (most_at_once(&own, seen.visits), SESSIONS, bound)
                }
                Kind::Money | Kind::Free => {
                    let of_key = rows.iter().filter(|row| row.key == caller.key);
                    let limit = CENTS * CENT;
                    let paid = input * own.len() as i64;
                    let bound = (limit + most) * nodes + uncertain * most + paid;
                    (of_key.filter_map(|row| row.cost).sum(), limit, bound)
                }
            };
            let (step, name) = (self.step, caller.kind.limit());
            Found { step, name, observed, limit, bound, lossy, rebuilds }
        };
        let mut found: Vec<Found> = self.callers.iter().map(of_caller).collect();
        found.push(self.of_provider(seen, (most, input)));
        found
    }

    /// The finding for the first provider. `most`: what the dearest request costs without its
    /// input. `input`: what the input of one request costs at most.
    fn of_provider(&self, seen: &Seen<'_>, (most, input): (i64, i64)) -> Found {
        let (lossy, rebuilds) = (self.lossy(), self.rebuilds());
        let nodes = if lossy { NODES as i64 } else { 1 };
        let at_provider: HashSet<u64> =
            seen.visits.iter().filter(|v| v.provider == "metered").map(|v| v.number).collect();
        let own: Vec<&Asked> =
            seen.asked.iter().filter(|asked| at_provider.contains(&asked.number)).collect();
        let of_step: Vec<Outage> =
            seen.outages.iter().filter(|outage| outage.step == self.step).copied().collect();
        let (limit, observed) = self.provider;
        let unheard = if lossy { NODES as i64 * self.unheard(seen.visits) } else { 0 };
        let more = (nodes - 1) * (ROOM * CENT + most)
            + most * (uncertain(&own, &of_step) + self.stalled() * self.clients)
            + unheard;
        let bound = limit + most + more + input * ROOM * NODES as i64;
        let (step, name) = (self.step, "provider_total");
        Found { step, name, observed, limit, bound, lossy, rebuilds }
    }
}

/// How many of the requests a killed or frozen node had in its hands.
fn uncertain(own: &[&Asked], outages: &[Outage]) -> i64 {
    let held = |asked: &&&Asked| {
        outages.iter().any(|outage| {
            matches!(outage.fault, Fault::KillNode(_) | Fault::FreezeNode(_))
                && outage.node == asked.node
                && asked.began <= outage.from
                && asked.ended + UNSENT >= outage.from
        })
    };
    i64::try_from(own.iter().filter(held).count()).unwrap()
}

/// The most requests that providers received within any minute.
fn within_a_minute(own: &[&Asked], visits: &[Visit]) -> i64 {
    let mut times: Vec<Duration> = first_visits(own, visits).map(|visit| visit.began).collect();
    times.sort();
    let within =
        |n: usize| times[n..].iter().take_while(|at| (**at - times[n]).as_secs() < 60).count();
    i64::try_from((0..times.len()).map(within).max().unwrap_or(0)).unwrap()
}

/// Each request's first visit at a provider.
fn first_visits<'a>(own: &'a [&Asked], visits: &'a [Visit]) -> impl Iterator<Item = &'a Visit> {
    let mut seen = std::collections::HashSet::new();
    visits
        .iter()
        .filter(|visit| own.binary_search_by_key(&visit.number, |asked| asked.number).is_ok())
        .filter(move |visit| seen.insert(visit.number))
}

/// The most sessions that were live at one time: each request has its own, which is live from its
/// admission, thus at least from its visit, and for the time to live after its end.
fn most_at_once(own: &[&Asked], visits: &[Visit]) -> i64 {
    let mut changes: Vec<(Duration, i64)> = first_visits(own, visits)
        .flat_map(|visit| [(visit.began, 1), (visit.ended.unwrap_or(visit.began) + LIVE, -1)])
        .collect();
    changes.sort();
    let (mut now, mut most) = (0, 0);
    for (_, change) in changes {
        now += change;
        most = most.max(now);
    }
    most
}
