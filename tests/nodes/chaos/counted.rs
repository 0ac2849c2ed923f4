//! What bounds depend on: what the nodes report of their connections to Redis, and of the counters
//! there.

use std::time::Duration;

use chrono::DateTime;
use serde_json::Value;

use super::cluster::{Cluster, TIMEOUT};

/// The state of the nodes.
#[derive(Debug, Clone, Default)]
pub struct Counted {
    /// Per node: losses of Redis and late answers since the node's start.
    pub lost: Vec<f64>,
    /// Per node: losses alone.
    pub losses: Vec<f64>,
    /// Rebuilds of the counters since the beginning.
    pub rebuilds: usize,
    /// How often a node needed longer than `redis.timeout` to follow rebuilt counters.
    pub late: usize,
    /// Nodes that were declared dead since the beginning.
    pub buried: usize,
}

impl Cluster {
    /// What the nodes report now.
    pub async fn counted(&self) -> Counted {
        let mut counted = Counted::default();
        for node in &self.nodes {
            let figures = node.gateway.scrape().await;
            let lines: Vec<Value> =
                node.gateway.log().lines().filter_map(|l| serde_json::from_str(l).ok()).collect();
            let of = |what| figure(&figures, what);
            counted.losses.push(of("losses"));
            counted.lost.push(["losses", "slow", "errors"].map(of).iter().sum());
            let said = |text: &str| lines.iter().filter(|l| message(l).starts_with(text)).count();
            counted.rebuilds += said("rebuilding the shared counters from the ledger");
            counted.buried += said("a node sent no heartbeat for the lease");
            counted.late += followed_late(&lines);
        }
        counted
    }
}

/// A figure by a node's metrics.
fn figure(figures: &str, what: &str) -> f64 {
    let sample = format!("tollgate_redis_{what}_total ");
    let value = figures.lines().find_map(|line| line.strip_prefix(&sample));
    value.unwrap_or_else(|| panic!("no metric {sample}:\n{figures}")).parse().unwrap()
}

fn message(line: &Value) -> &str {
    line["message"].as_str().unwrap_or_default()
}

/// How often, by a node's log, it counted under a new name only after [`TIMEOUT`]:
/// requests wait no longer, and are counted by the node itself.
fn followed_late(lines: &[Value]) -> usize {
    let mut moved = None;
    let mut late = 0;
    for line in lines {
        let at = line["timestamp"].as_str().and_then(|at| DateTime::parse_from_rfc3339(at).ok());
        if message(line).starts_with("another node rebuilt the shared counters, or") {
            moved = moved.or(at);
        } else if message(line).starts_with("counting in Redis")
            && let (Some(from), Some(to)) = (moved.take(), at)
        {
            let took: Duration = (to - from).abs().to_std().unwrap();
            late += usize::from(took > TIMEOUT * 4 / 5);
        }
    }
    late
}
