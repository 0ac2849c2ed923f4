//! Redis: its answer, what it does when its memory is full, its clock, and the nodes' shared time
//! zone.

use super::database::clock;
use crate::config::Config;
use crate::limits::{self, RedisFacts};
use crate::setup::finding::{Finding, bytes};

const PART: &str = "redis";
/// Redis takes part in every request: above this, each waits noticeably.
const SLOW_MS: u128 = 5;

/// Looks at Redis, if the configuration names one.
pub(super) async fn look(config: &Config) -> Vec<Finding> {
    let Some(redis) = &config.redis else {
        return vec![Finding::note(PART, "none is configured: this gateway counts alone")];
    };
    let examined = match redis.server() {
        Ok(server) => limits::examine(&server, &redis.prefix).await,
        Err(error) => Err(error.to_string()),
    };
    match examined {
        Ok(facts) => about(config, &facts),
        Err(error) => {
            let advice = "Start Redis, or correct redis.url. limits.on_redis_loss says what \
                gateways do meanwhile (docs/several-nodes.md).";
            vec![Finding::fault(PART, format!("cannot be used: {error}"), advice)]
        }
    }
}

fn about(config: &Config, facts: &RedisFacts) -> Vec<Finding> {
    let server = &facts.server;
    let took = server.took.as_millis();
    let version = server.version.as_deref().unwrap_or("a server that hides its version");
    let place = facts.in_cluster.as_ref().map(|place| format!(" ({place})")).unwrap_or_default();
    let text = format!("{version}{place}, answers within {took} ms and runs scripts");
    let mut findings = vec![match took {
        0..=SLOW_MS => Finding::ok(PART, text),
        _ => Finding::warning(
            PART,
            text,
            "Every request waits for Redis once: put it nearer, or relieve it.",
        ),
    }];
    if let Some(policy) = server.eviction.as_deref().filter(|policy| *policy != "noeviction") {
        let text = format!(
            "maxmemory-policy is {policy}: counters may be dropped when its memory is full"
        );
        findings.push(Finding::fault(PART, text, "Set maxmemory-policy to noeviction."));
    }
    if let (Some(used), Some(most)) = (server.used_bytes, server.most_bytes)
        && most > 0
        && used > most / 5 * 4
    {
        let text = format!("{} of {} are in use", bytes(used), bytes(most));
        findings.push(Finding::warning(
            PART,
            text,
            "Raise maxmemory: a full Redis takes no counts.",
        ));
    }
    findings.push(clock("Redis'", server.off_ms));
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
