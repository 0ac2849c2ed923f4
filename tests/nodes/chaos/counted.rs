//! What bounds depend on: what the nodes report of their connections to each Redis server, and of
//! the counters there.

use std::time::Duration;

use chrono::DateTime;
use serde_json::Value;

use super::cluster::{Cluster, TIMEOUT};

/// The state of the nodes, for each Redis server.
#[derive(Debug, Clone, Default)]
pub struct Counted {
    /// Per node: losses of the server and late answers since the node's start.
    pub lost: Vec<f64>,
    /// Per node: losses alone.
    pub losses: Vec<f64>,
    /// Rebuilds of its counters since the beginning.
    pub rebuilds: usize,
    /// How often a node needed longer than `redis.timeout` to follow rebuilt counters.
    pub late: usize,
    /// Nodes that were declared dead there since the beginning.
    pub buried: usize,
}

impl Cluster {
    /// What the nodes report now of each server.
    pub async fn counted(&self) -> Vec<Counted> {
        let mut counted = vec![Counted::default(); self.redis.len()];
        for node in &self.nodes {
            let figures = node.gateway.scrape().await;
            let lines: Vec<Value> =
                node.gateway.log().lines().filter_map(|l| serde_json::from_str(l).ok()).collect();
            for (place, of_server) in counted.iter_mut().enumerate() {
                let of = |what| self.figure(&figures, place, what);
                of_server.losses.push(of("losses"));
                of_server.lost.push(["losses", "slow", "errors"].map(of).iter().sum());
                let of = |line: &&Value| line["server"] == place + 1;
                let own: Vec<&Value> = lines.iter().filter(of).collect();
                let said = |text: &str| own.iter().filter(|line| message(line) == text).count();
                of_server.rebuilds += said("rebuilding the shared counters from the ledger");
                of_server.buried +=
                    own.iter().filter(|line| message(line).starts_with(DEAD)).count();
                of_server.late += followed_late(&own);
            }
        }
        counted
    }

    /// A figure of a server, by a node's metrics.
    fn figure(&self, figures: &str, place: usize, what: &str) -> f64 {
        let sample = if self.redis.len() == 1 {
            format!("tollgate_redis_{what}_total ")
        } else {
            format!("tollgate_redis_server_{what}_total{{server=\"{}\"}} ", place + 1)
        };
        let value = figures.lines().find_map(|line| line.strip_prefix(&sample));
        value.unwrap_or_else(|| panic!("no metric {sample}:\n{figures}")).parse().unwrap()
    }
}

/// Begins the line about a node that was declared dead.
const DEAD: &str = "a node sent no heartbeat for the lease";

fn message(line: &Value) -> &str {
    line["message"].as_str().unwrap_or_default()
}

/// How often, by a node's log about a server, it counted under a new name only after [`TIMEOUT`]:
/// requests wait no longer, and are counted by the node itself.
fn followed_late(lines: &[&Value]) -> usize {
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
