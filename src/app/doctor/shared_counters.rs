//! Redis: its answer, what it does when its memory is full, its clock, and the nodes' shared time
//! zone.

use super::database::clock;
use super::finding::{Finding, bytes};
use crate::config::{Config, Redis};
use crate::limits::{self, RedisFacts};

const PART: &str = "redis";
/// Redis takes part in every request: above this, each waits noticeably.
const SLOW_MS: u128 = 5;

/// Looks at Redis, if the configuration names one.
pub(super) async fn look(config: &Config) -> Vec<Finding> {
    let Some(redis) = &config.redis else {
        return vec![Finding::note(PART, "none is configured: this gateway counts alone")];
    };
    let facts = match redis.servers() {
        Ok(servers) => limits::examine(&servers, &redis.prefix).await,
        Err(error) => vec![Err(error.to_string())],
    };
    let which = |at: usize| match Redis::which(at, facts.len()) {
        which if which.is_empty() => String::new(),
        which => format!("{}: ", which.trim_start_matches(", ")),
    };
    let each = facts.iter().enumerate().map(|(at, facts)| match facts {
        Ok(facts) => about(config, facts, &which(at)),
        Err(error) => {
            let setting = redis.setting();
            let advice = format!(
                "Start Redis, or correct {setting}. limits.on_redis_loss says what gateways do \
                 meanwhile (docs/several-nodes.md)."
            );
            vec![Finding::fault(PART, format!("{}cannot be used: {error}", which(at)), advice)]
        }
    });
    each.flatten().collect()
}

/// `which`: the beginning of each text, if there are several servers.
fn about(config: &Config, facts: &RedisFacts, which: &str) -> Vec<Finding> {
    let took = facts.took.as_millis();
    let version = facts.version.as_deref().unwrap_or("a server that hides its version");
    let whose = match which.trim_end_matches(": ") {
        "" => "Redis'".to_owned(),
        which => format!("Redis' ({which})"),
    };
    let place = facts.in_cluster.as_ref().map(|place| format!(" ({place})")).unwrap_or_default();
    let text = format!("{which}{version}{place}, answers within {took} ms and runs scripts");
    let mut findings = vec![match took {
        0..=SLOW_MS => Finding::ok(PART, text),
        _ => Finding::warning(
            PART,
            text,
            "Every request waits for Redis once: put it nearer, or relieve it.",
        ),
    }];
    if let Some(policy) = facts.eviction.as_deref().filter(|policy| *policy != "noeviction") {
        let text = format!(
            "{which}maxmemory-policy is {policy}: counters may be dropped when its memory is full"
        );
        findings.push(Finding::fault(PART, text, "Set maxmemory-policy to noeviction."));
    }
    if let (Some(used), Some(most)) = (facts.used_bytes, facts.most_bytes)
        && most > 0
        && used > most / 5 * 4
    {
        let text = format!("{which}{} of {} are in use", bytes(used), bytes(most));
        findings.push(Finding::warning(
            PART,
            text,
            "Raise maxmemory: a full Redis takes no counts.",
        ));
    }
    findings.extend(list(facts.is_of_others, which));
    findings.push(clock(&whose, facts.off_ms));
    findings.push(match facts.zone {
        Some(zone) if zone != config.time_zone => Finding::warning(
            "time zone",
            format!("{}, and the other gateways have {}", config.time_zone.name(), zone.name()),
            "Give all gateways the same TZ: calendar windows are in the zone of the others.",
        ),
        _ => Finding::ok("time zone", config.time_zone.name()),
    });
    findings
}

/// Whether the gateways that count there have this gateway's list of servers.
fn list(is_of_others: Option<bool>, which: &str) -> Option<Finding> {
    match is_of_others {
        Some(false) => None,
        Some(true) => {
            let text = format!("{which}gateways count there that have another list of servers");
            let advice = "Give all gateways the same redis.urls, in the same order, and the same \
                redis.cluster_parts. This one counts for itself until the others are gone \
                (docs/several-nodes.md).";
            Some(Finding::fault(PART, text, advice))
        }
        None => {
            let text = format!("{which}the list of servers of its gateways could not be read");
            Some(Finding::warning(PART, text, "Run tollgate doctor again."))
        }
    }
}
