//! The queries, and the time to their replies.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::{Value, json};
use tollgate_bench::admin::{action, http};
use tollgate_bench::process::pause;

use super::TOKEN;
use super::fill::{Filled, KEYS, PROVIDERS, USERS};

/// The goal for every answer.
const GOAL: Duration = Duration::from_millis(100);

/// Whether an earlier run has created them.
pub fn is_peopled(addr: SocketAddr) -> Result<bool> {
    let users = action(addr, TOKEN, "users/getUsers", &json!({}))?;
    Ok(users.as_array().is_some_and(|users| !users.is_empty()))
}

/// Users 1 to `USERS` with two keys each, and providers: the ids that the rows name.
pub fn people(addr: SocketAddr) -> Result<()> {
    for n in 1..=PROVIDERS {
        let body = json!({ "name": format!("provider-{n}"), "url": "http://127.0.0.1:9", "key": "none-0123456789" });
        action(addr, TOKEN, "providers/addProvider", &body)?;
    }
    for n in 1..=USERS {
        action(addr, TOKEN, "users/addUser", &json!({ "name": format!("user-{n}") }))?;
    }
    for n in 1..=KEYS - USERS {
        action(
            addr,
            TOKEN,
            "keys/addKey",
            &json!({ "userId": n, "name": "second", "canLoginWebUi": true }),
        )?;
    }
    Ok(())
}

/// A query of the administration.
pub struct Question {
    /// What it is called in the tables.
    pub name: String,
    /// The user's key; else the administrator's token.
    as_user: bool,
    operation: &'static str,
    body: Value,
}

/// Removes rows that are older than so many days, by the settings of the clean-up, and reads pages
/// at the same time. Prints the times.
pub fn clean(addr: SocketAddr, days: u32) -> Result<()> {
    let settings = json!({ "cleanupRetentionDays": days });
    action(addr, TOKEN, "system-config/saveSystemSettings", &settings)?;
    action(addr, TOKEN, "system-config/runCleanup", &json!({}))?;
    let (began, mut times) = (Instant::now(), Vec::new());
    let end = loop {
        let asked = Instant::now();
        action(addr, TOKEN, "usage-logs/getUsageLogs", &json!({ "userId": 1 }))?;
        times.push(asked.elapsed());
        let status = action(addr, TOKEN, "system-config/getCleanupStatus", &json!({}))?;
        if status["running"] == false {
            break status;
        }
        pause(Duration::from_millis(20));
    };
    times.sort_unstable();
    println!(
        "\n\
         Cleaning up what is older than {days} days: {} rows in {:.1} s; a user's page meanwhile, {} times: {:.1} ms at \
         the 95th percentile, worst {:.1}.\n",
        end["removed"],
        began.elapsed().as_secs_f32(),
        times.len(),
        at(&times, 95).as_secs_f32() * 1000.0,
        at(&times, 100).as_secs_f32() * 1000.0
    );
    Ok(())
}

fn at(sorted: &[Duration], percent: usize) -> Duration {
    sorted[(sorted.len() * percent).div_ceil(100).max(1) - 1]
}

/// A new key of user 1, who is the busiest: choices are uneven towards low numbers.
pub fn user_key(addr: SocketAddr) -> Result<String> {
    let name = format!("bench {}", fastrand::u32(..));
    let body = json!({ "userId": 1, "name": name, "canLoginWebUi": true });
    let key = action(addr, TOKEN, "keys/addKey", &body)?;
    Ok(key["generatedKey"].as_str().context("no key")?.to_owned())
}

/// Sends a query, and waits for its reply.
pub fn send(addr: SocketAddr, question: &Question, key: &str) -> Result<()> {
    let credential = if question.as_user { key } else { TOKEN };
    let path = format!("/api/actions/{}", question.operation);
    let (status, reply) = http(addr, "POST", &path, credential, &question.body.to_string())?;
    anyhow::ensure!(status == 200, "{}: {status} {reply}", question.name);
    Ok(())
}

/// Sends all queries whose name has this prefix, and prints a table.
pub fn all(addr: SocketAddr, filled: &Filled, repeats: usize, only: &str) -> Result<()> {
    let key = user_key(addr)?;
    println!("| question | p50 ms | p95 ms | worst ms | first ms |\n|---|---|---|---|---|");
    let mut slow = Vec::new();
    for question in questions(filled).into_iter().filter(|question| question.name.starts_with(only))
    {
        let mut times = Vec::with_capacity(repeats);
        for _ in 0..=repeats {
            let began = Instant::now();
            send(addr, &question, &key)?;
            times.push(began.elapsed());
        }
        let first = times.remove(0);
        times.sort_unstable();
        let at = |percent: usize| at(&times, percent);
        let ms = |time: Duration| format!("{:.1}", time.as_secs_f32() * 1000.0);
        println!(
            "| {} | {} | {} | {} | {} |",
            question.name,
            ms(at(50)),
            ms(at(95)),
            ms(at(100)),
            ms(first)
        );
        if at(95) > GOAL {
            slow.push(question.name);
        }
    }
    match slow.is_empty() {
        true => println!("\nEach within {} ms (p95).\n", GOAL.as_millis()),
        false => println!("\nAbove {} ms (p95): {}.\n", GOAL.as_millis(), slow.join("; ")),
    }
    Ok(())
}

/// All queries.
pub fn questions(filled: &Filled) -> Vec<Question> {
    let mut questions = Vec::new();
    let mut ask = |name: &str, as_user: bool, operation: &'static str, body: Value| {
        let who = if as_user { " (a user)" } else { "" };
        questions.push(Question { name: format!("{name}{who}"), as_user, operation, body });
    };
    for as_user in [false, true] {
        ask("overview", as_user, "overview/getOverviewData", json!({}));
        for range in ["hour", "day", "week", "month"] {
            ask(
                &format!("statistics, {range}"),
                as_user,
                "statistics/getUserStatistics",
                json!({ "timeRange": range }),
            );
        }
        ask("model list", as_user, "usage-logs/getModelList", json!({}));
        ask("status list", as_user, "usage-logs/getStatusCodeList", json!({}));
        ask("active sessions", as_user, "active-sessions/getActiveSessions", json!({}));
        ask("keys with statistics", as_user, "keys/getKeysWithStatistics", json!({ "userId": 1 }));
    }
    for by in ["key", "model", "provider"] {
        for range in ["week", "month"] {
            let body = json!({ "timeRange": range, "groupBy": by });
            ask(
                &format!("statistics by {by}, {range}"),
                false,
                "statistics/getUserStatistics",
                body,
            );
        }
    }
    ask(
        "session",
        false,
        "active-sessions/getSessionDetails",
        json!({ "sessionId": filled.session }),
    );
    for (name, as_user, body) in pages(filled) {
        ask(&format!("logs: {name}"), as_user, "usage-logs/getUsageLogs", body);
    }
    questions
}

/// Pages of the log: each filter alone, typical pairs, deep pages, and no filter.
fn pages(filled: &Filled) -> Vec<(&'static str, bool, Value)> {
    const DAY: i64 = 24 * 3_600_000;
    let ago = |days: i64| tollgate::domain::clock::Timestamp(filled.now - days * DAY).to_iso();
    let cursor = &filled.cursor;
    vec![
        ("all", false, json!({})),
        ("all, page 20", false, json!({ "page": 20 })),
        ("all, deep by cursor", false, json!({ "cursor": cursor })),
        ("since yesterday", false, json!({ "startDate": ago(1) })),
        ("last 30 days", false, json!({ "startDate": ago(30) })),
        ("30 days half a year ago", false, json!({ "startDate": ago(210), "endDate": ago(180) })),
        ("model", false, json!({ "model": "model-3" })),
        ("model, rare", false, json!({ "model": "model-11" })),
        ("status 200", false, json!({ "statusCode": 200 })),
        ("status 429", false, json!({ "statusCode": 429 })),
        ("not 200", false, json!({ "excludeStatusCode200": true })),
        ("user", false, json!({ "userId": 1 })),
        ("user, quiet", false, json!({ "userId": 199 })),
        ("key", false, json!({ "keyId": 1 })),
        ("provider", false, json!({ "providerId": 2 })),
        ("session", false, json!({ "sessionId": filled.session })),
        (
            "endpoint, last 30 days",
            false,
            json!({ "endpoint": "/v1/chat/completions", "startDate": ago(30) }),
        ),
        ("endpoint", false, json!({ "endpoint": "/v1/chat/completions" })),
        ("retried, last day", false, json!({ "minRetryCount": 1, "startDate": ago(1) })),
        ("retried", false, json!({ "minRetryCount": 1 })),
        ("user and model", false, json!({ "userId": 1, "model": "model-3" })),
        ("user and 429", false, json!({ "userId": 1, "statusCode": 429 })),
        ("model and 500", false, json!({ "model": "model-3", "statusCode": 500 })),
        ("provider and model", false, json!({ "providerId": 2, "model": "model-3" })),
        (
            "provider and model, 300 days",
            false,
            json!({ "providerId": 2, "model": "model-3", "startDate": ago(300) }),
        ),
        (
            "user and model, 300 days",
            false,
            json!({ "userId": 1, "model": "model-3", "startDate": ago(300) }),
        ),
        ("last 300 days", false, json!({ "startDate": ago(300) })),
        ("user, deep by cursor", false, json!({ "userId": 1, "cursor": cursor })),
        (
            "user, model, 30 days",
            false,
            json!({ "userId": 1, "model": "model-3", "startDate": ago(30) }),
        ),
        ("own", true, json!({})),
        ("own, model", true, json!({ "model": "model-3" })),
        ("own, last 30 days", true, json!({ "startDate": ago(30) })),
        ("own, not 200", true, json!({ "excludeStatusCode200": true })),
        ("nothing: no such model", false, json!({ "model": "none" })),
        ("nothing: no such session", false, json!({ "sessionId": "none" })),
        ("nothing: retried 50 times", false, json!({ "minRetryCount": 50 })),
        (
            "nothing: user and a model of others",
            false,
            json!({ "userId": 199, "model": "model-12", "statusCode": 500 }),
        ),
    ]
}
