//! Chaos: three nodes under a mixed load, while one thing after the other breaks in a seeded random
//! order. Afterwards the ledger, the limits, the requests that failed and the shared counters are
//! checked.
//!
//! Without settings it is a short test. `make chaos` sets `CHAOS_SECONDS`, how long things break,
//! and `CHAOS_SEED`, which repeats the order, the places and the times of the faults. `CHAOS_FAULT`
//! leaves only the faults whose name begins so. docs/several-nodes.md says what holds.

mod bounds;
mod cluster;
mod counted;
mod end;
mod failures;
mod faults;
mod ledger;
mod load;
mod upstream;

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use rust_decimal::Decimal;
use serde_json::json;

use bounds::{CENTS, CLIENTS, Cohort, Found, ROOM, RPM, SESSIONS};
use cluster::Cluster;
use faults::{Outage, Plan, Step};
use ledger::Seen;
use load::{Board, Caller, Kind, Load, now, pass};

/// How long things break without a setting.
const SHORT: Duration = Duration::from_secs(7);
/// Steps of the shortest run, however slow the machine is.
const FEWEST_STEPS: usize = 3;
/// Callers without limits.
const FREE: usize = 2;
/// How long a client pauses after a reply: of a caller without limits, and of one with limits.
const PAUSES: [Duration; 2] = [Duration::from_millis(60), Duration::from_millis(80)];
/// Violations that are printed.
const SHOWN: usize = 30;

#[expect(clippy::disallowed_methods, reason = "the settings of this test")]
fn text(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|text| !text.is_empty())
}

fn setting(name: &str) -> Option<u64> {
    Some(text(name)?.parse().unwrap_or_else(|e| panic!("{name}: {e}")))
}

/// The run so far.
struct Run {
    cluster: Cluster,
    board: Arc<Board>,
    /// Every caller that was used.
    callers: Vec<Caller>,
    cohorts: Vec<Cohort>,
    outages: Vec<Outage>,
    wrong: Vec<String>,
}

impl Run {
    async fn start() -> Self {
        let cluster = Cluster::start().await;
        let proxies = cluster.nodes.iter().map(|node| node.gateway.proxy.clone()).collect();
        let mut callers = Vec::new();
        for _ in 0..FREE {
            callers.push(cluster.caller(Kind::Free, json!(null)).await);
        }
        cluster.agreed().await;
        Self {
            cluster,
            board: Board::new(proxies),
            callers,
            cohorts: Vec::new(),
            outages: Vec::new(),
            wrong: Vec::new(),
        }
    }

    /// One step, with callers that use their limits up meanwhile.
    async fn step(&mut self, step: &Step) {
        let number = self.cohorts.len() + 1;
        let cluster = &mut self.cluster;
        let limits = [(Kind::Rpm, RPM), (Kind::Money, CENTS), (Kind::Sessions, SESSIONS)];
        let mut callers = Vec::new();
        for (kind, limit) in limits {
            let usd = json!(Decimal::new(limit, 2));
            let limit = if kind == Kind::Money { usd } else { json!(limit) };
            callers.push(cluster.caller(kind, limit).await);
        }
        let (began, limit) = (now(), cluster.refill(ROOM).await);
        cluster.agreed().await;
        let before = cluster.counted().await;
        let load = Load::start(&self.board, &callers, CLIENTS, PAUSES[1]);
        pass(step.lead).await;
        println!(
            "{:7.2} s  step {number}: {:?} for {:?}, then {:?} of peace",
            now().as_secs_f64(),
            step.faults,
            step.lasts,
            step.pause
        );
        let outages = cluster.suffer(number, step).await;
        match cluster.whole("providers").await {
            Ok(took) => println!("           whole again after {took:.2?}"),
            Err(why) => self.wrong.push(format!("step {number}: {why}")),
        }
        pass(step.pause).await;
        load.end().await;
        let after = cluster.counted().await;
        let provider = (limit, cluster.spent(0, 0).await);
        let (faults, step) = (step.faults.clone(), number);
        let free = self.callers.iter().filter(|caller| caller.kind == Kind::Free).count();
        let clients = i64::try_from(free + callers.len()).unwrap() * CLIENTS;
        self.callers.extend(callers.iter().cloned());
        self.outages.extend(outages);
        self.cohorts.push(Cohort {
            step,
            began,
            faults,
            callers,
            clients,
            before,
            after,
            provider,
        });
    }

    /// Every check, once nothing is broken and the load has ended. Returns the summary.
    async fn check(&mut self) -> String {
        let wrong = &mut self.wrong;
        wrong.extend(end::delivered(&self.cluster).await);
        println!("{:7.2} s  journals and queues are empty", now().as_secs_f64());
        let (under_load, _) = ledger::read(&self.cluster.database).await;
        wrong.extend(end::counters(&self.cluster, &self.callers, &under_load).await);
        let number = self.board.asked.lock().iter().map(|asked| asked.number).max().unwrap_or(0);
        println!("{:7.2} s  counters are compared", now().as_secs_f64());
        let held = end::nothing_held(&self.cluster, &self.board, &self.callers).await;
        wrong.extend(held);
        wrong.extend(end::delivered(&self.cluster).await);
        let (rows, sums) = ledger::read(&self.cluster.database).await;
        let mut asked = self.board.asked.lock().clone();
        asked.sort_by_key(|asked| asked.number);
        let visits = self.cluster.visits.lock().clone();
        let names = ["metered", "narrow", "spare"];
        let ids = self.cluster.providers.iter().map(|(id, _)| *id);
        let providers: HashMap<_, _> = names.into_iter().zip(ids).collect();
        let (outages, providers) = (self.outages.as_slice(), &providers);
        let seen = Seen { asked: &asked, visits: &visits, outages, providers };
        let (of_ledger, lost) = ledger::check(&seen, &rows, sums);
        wrong.extend(of_ledger);
        let (of_requests, ends) = failures::check(&asked, &self.callers, &self.outages);
        wrong.extend(of_requests);
        let mut summary = format!(
            "{} requests: {ends:?}; {} records, {} visits at providers, {lost} answers of providers \
             lost with a killed node\n",
            asked.len(),
            rows.len(),
            visits.len()
        );
        wrong.extend(self.cohorts.iter().filter_map(Cohort::lost_without_a_fault));
        // Without the requests for which limits were raised.
        let under = asked.partition_point(|asked| asked.number <= number);
        let seen = Seen { asked: &asked[..under], ..seen };
        wrong.extend(limits(&self.cohorts, &seen, &under_load, &mut summary));
        summary
    }
}

/// Compares each limit with its bound, for the summary. Returns those that were exceeded.
fn limits(
    cohorts: &[Cohort],
    seen: &Seen<'_>,
    rows: &[ledger::Row],
    summary: &mut String,
) -> Vec<String> {
    let (mut wrong, mut checked, mut exact) = (Vec::new(), 0, 0);
    for cohort in cohorts {
        for found in cohort.found(seen, rows) {
            let Found { step, name, observed, limit, bound, lossy, rebuilds } = &found;
            let line = format!(
                "step {step:3}  {name:24} limit {limit:12}  bound {bound:12}  observed \
                 {observed:12}  alone: {lossy}, rebuilds: {rebuilds}"
            );
            writeln!(summary, "{line}").unwrap();
            checked += 1;
            exact += usize::from(!lossy && *rebuilds == 0);
            if observed > bound {
                wrong.push(format!("a limit was exceeded: {line}"));
            }
        }
    }
    writeln!(
        summary,
        "{} steps, {checked} limits; {exact} of them held over all nodes together",
        cohorts.len()
    )
    .unwrap();
    wrong
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_breaks_the_ledger_is_exact_and_limits_hold_and_no_request_fails_in_vain() {
    let long = setting("CHAOS_SECONDS").map(Duration::from_secs);
    let seed = setting("CHAOS_SEED").unwrap_or_else(|| fastrand::u64(..1_000_000));
    println!("CHAOS_SEED={seed}, {:?} of faults", long.unwrap_or(SHORT));
    let mut plan = Plan::new(seed, &text("CHAOS_FAULT").unwrap_or_default());
    let (lasts, pause) =
        if long.is_some() { ([200, 6_000], [300, 3_000]) } else { ([200, 1_200], [200, 600]) };
    now();
    let mut run = Run::start().await;
    let free = Load::start(&run.board, &run.callers, CLIENTS, PAUSES[0]);
    pass(Duration::from_millis(500)).await;
    let until = now() + long.unwrap_or(SHORT);
    while (now() < until || run.cohorts.len() < FEWEST_STEPS) && run.wrong.is_empty() {
        let step = plan.step(lasts, pause);
        run.step(&step).await;
    }
    free.end().await;
    // Only a success ends the report of a failing provider. One at its limit, and one that only
    // stands in for others, gets no request: an administrator ends the report.
    run.cluster.reset_providers().await;
    if let Err(why) = run.cluster.whole("").await {
        run.wrong.push(why);
    }
    println!("{:7.2} s  the load has ended", now().as_secs_f64());
    let summary = run.check().await;
    println!("{summary}took {:.1?}", now());
    let shown: Vec<&String> = run.wrong.iter().take(SHOWN).collect();
    assert!(
        shown.is_empty(),
        "CHAOS_SEED={seed}: {} violations\n{shown:#?}\nfaults by step: {:#?}\n{summary}",
        run.wrong.len(),
        run.outages
    );
}
