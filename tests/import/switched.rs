//! After an import the peers' keys work, their limits hold from the first request, and another
//! import has nothing to do.

use std::cell::Cell;

use serde_json::json;
use tollgate::store::Backend;

use super::{Bed, execute};
use crate::support::redis::Redis;
use crate::support::wait;

/// Imports, imports again, and starts the gateway.
async fn switch(bed: &mut Bed, peer: &str, from: &str) -> String {
    let before = bed.state().await;
    let planned = bed.import(peer, from, &["--dry-run"]);
    assert!(
        !planned.contains("Applied.") && bed.state().await == before,
        "a dry run changes nothing: {planned}"
    );
    let said = bed.import(peer, from, &[]);
    assert_eq!(said.replace("Applied.\n", ""), planned, "the dry run prints what the import does");
    let after = bed.state().await;
    let again = bed.import(peer, from, &[]);
    assert!(again.contains("No changes: everything is as the peer has it."), "{again}");
    assert!(again.contains("Plan: 0 to add, 0 to change, 0 to remove."), "{again}");
    assert_eq!(bed.state().await, after);
    bed.serve().await;
    said
}

fn notes(said: &str, expected: &[&str]) {
    for part in expected {
        assert!(said.contains(part), "{part} in:\n{said}");
    }
}

const HUB_KEYS: [(&str, u16); 7] = [
    ("sk-ada-00000000000000000001", 200),
    ("sk-grace-000000000000000001", 429),
    ("sk-grace-000000000000000002", 429),
    ("sk-ada-00000000000000000002", 401),
    // Its user has used the day's limit up, with a key that is deleted since.
    ("sk-other-000000000000000001", 429),
    ("sk-other-000000000000000002", 401),
    ("sk-gone-0000000000000000001", 401),
];

async fn claude_code_hub(backend: Backend) {
    let mut bed = Bed::new(backend).await;
    let from = bed.claude_code_hub().await;
    let said = switch(&mut bed, "claude-code-hub", &from).await;
    notes(
        &said,
        &[
            "+ user \"ada\"",
            "+ key \"ada/laptop\"",
            "+ opening balance \"ada/laptop\"\n    usd: \"4.750000001\"",
            "its credential is a Google login, which tollgate does not renew (1)\n    provider \"google\"",
            "the proxy is not of a supported form (HTTP or SOCKS5); the provider is \
             disabled until you set one",
            "a key's limit cannot be above its user's here: it has its user's (1)\n    key \"ada/laptop\"",
        ],
    );
    bed.expect(&HUB_KEYS).await;
    let (exported, _) = bed.state().await;
    notes(
        &exported,
        &[
            "name: ada (3)",
            "rpm: 60",
            "limit_daily_usd: 10",
            "limit_weekly_usd: 100",
            "note: Research",
            "cost_multiplier: 1.25",
            "nick: m",
            "limit_total_usd: 1000",
            "word: project nightfall",
            "output_cost_per_token: 2",
        ],
    );
    let totals = [
        ("ada", 4_750_000_001),
        ("ada (3)", 4_250_000_000),
        ("ada/laptop", 4_750_000_001),
        ("grace", 5_500_000_000),
        ("grace/laptop", 2_500_000_000),
        ("grace/week", 3_000_000_000),
    ];
    assert_eq!(bed.balances().await, totals.map(|(name, cost)| (name.to_owned(), cost)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn claude_code_hub_to_sqlite() {
    claude_code_hub(Backend::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn claude_code_hub_to_postgres() {
    claude_code_hub(Backend::Postgres).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn litellm_with_its_file() {
    let mut bed =
        Bed::with(Backend::Postgres, &[("LITELLM_CREDENTIAL", "credential-of-upstream")]).await;
    let file = bed.litellm_config();
    let said = bed.import("litellm", &file, &[]);
    notes(
        &said,
        &[
            "provider \"127.0.0.1\"",
            "+ price \"m\"",
            "rpm 10",
            "\"azure\"",
            "general_settings.master_key",
        ],
    );
    assert!(!said.contains("credential-of-"), "{said}");
    let from = bed.litellm().await;
    let said = switch(&mut bed, "litellm", &from).await;
    notes(
        &said,
        &[
            "+ user \"ada\"",
            "+ user \"builders\"",
            "+ key \"builders/ci\"",
            "model \"secret-model\"",
            "tollgate has no limit of tokens per minute (2)",
            "keys of logins to LiteLLM's own pages",
            "tollgate limits models per user, not per key",
        ],
    );
    bed.expect(&[
        ("sk-litellm-ada-0000000001", 200),
        ("sk-litellm-grace-00000001", 429),
        ("sk-litellm-team-000000001", 429),
        ("sk-litellm-nobody-0000001", 200),
        ("sk-litellm-blocked-000001", 401),
        ("sk-litellm-login-00000001", 401),
        ("sk-litellm-deleted-000001", 401),
    ])
    .await;
    let balances = bed.balances().await;
    for (name, cost) in [
        ("ada", 7_749_990_000),
        ("ada/laptop", 1_500_000_000),
        ("builders", 5_500_000_000),
        ("grace@example.com", 3_000_000_000),
    ] {
        assert!(balances.contains(&(name.to_owned(), cost)), "{name} {cost} in {balances:?}");
    }
    // 1.24999 USD of the key's are of no known time: for the user's month LiteLLM's counter counts.
    let users = bed.gateway.admin("users/getUsers", json!({})).await;
    let ada =
        users.as_array().unwrap().iter().find(|user| user["name"] == "ada").unwrap()["id"].clone();
    let usage = bed.gateway.admin("users/getUserLimitUsage", json!({"userId": ada})).await;
    assert!(usage.to_string().contains("6.5002"), "6.5 and one request: {usage}");
    let seen = bed.upstream.requests().await;
    assert_eq!(seen.len(), 2, "{seen:?}");
}

const NEW_API_KEYS: [(&str, u16); 4] = [
    ("sk-newapiroot0000000000000000000000000000000000001", 200),
    // Used up at the peer.
    ("sk-newapiroot0000000000000000000000000000000000002", 429),
    // Its user has nothing left.
    ("sk-newapigrace000000000000000000000000000000000001", 429),
    ("sk-newapiroot0000000000000000000000000000000000005", 401),
];

async fn new_api(bed: &mut Bed, from: &str) {
    let said = switch(bed, "new-api", from).await;
    notes(
        &said,
        &[
            "+ user \"root\"",
            "role: \"admin\"",
            "+ provider \"late\"",
            "tollgate limits models per user, not per key",
            "tollgate's keys have no list of client addresses",
            "its output ratio is built into the peer's program",
            "its groups have different ratios",
            "+ opening balance \"root/laptop\"\n    usd: \"2\"",
        ],
    );
    bed.expect(&NEW_API_KEYS).await;
    let balances = bed.balances().await;
    let totals =
        [("grace", 1_400_000_000), ("grace/laptop", 1_000_000_000), ("root", 2_500_000_000)];
    for (name, cost) in totals {
        assert!(balances.contains(&(name.to_owned(), cost)), "{name} {cost} in {balances:?}");
    }
    let (exported, _) = bed.state().await;
    notes(&exported, &["limit_total_usd: 12.5", "limit_total_usd: 1.4", "priority: 7"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn new_api_from_sqlite() {
    let mut bed = Bed::new(Backend::Sqlite).await;
    let from = bed.new_api().await;
    new_api(&mut bed, &from).await;
    bed.expect(&[
        ("sk-newapiroot0000000000000000000000000000000000003", 401),
        ("sk-newapiroot0000000000000000000000000000000000004", 401),
    ])
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn new_api_from_postgres() {
    let mut bed = Bed::new(Backend::Postgres).await;
    let from = bed.new_api_postgres().await;
    new_api(&mut bed, &from).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn new_api_from_a_mysql_dump() {
    let mut bed = Bed::new(Backend::Sqlite).await;
    let from = bed.new_api_dump();
    new_api(&mut bed, &from).await;
    let (exported, _) = bed.state().await;
    notes(&exported, &["it's; \"claude\" 2"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_api_from_sqlite() {
    let mut bed = Bed::new(Backend::Sqlite).await;
    let from = bed.one_api().await;
    let said = switch(&mut bed, "one-api", &from).await;
    notes(
        &said,
        &[
            "+ user \"root\"",
            "the peer had disabled the channel by itself",
            "+ provider \"deepseek\"",
        ],
    );
    bed.expect(&[
        ("sk-oneapiroot000000000000000000000000000000000000001", 200),
        ("sk-oneapigrace00000000000000000000000000000000000001", 429),
        ("sk-oneapigone000000000000000000000000000000000000001", 401),
    ])
    .await;
    let totals = [
        ("grace", 100_000_000),
        ("grace/laptop", 100_000_000),
        ("root", 500_000_000),
        ("root/laptop", 500_000_000),
    ];
    assert_eq!(bed.balances().await, totals.map(|(name, cost)| (name.to_owned(), cost)));
    let (exported, _) = bed.state().await;
    notes(&exported, &["limit_total_usd: 4.5", "limit_total_usd: 1.5", "https://api.deepseek.com"]);
}

/// Users go on at the peer until the switch; a last import brings what they spent since.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_running_gateway_counts_what_a_later_import_brings() {
    let mut bed = Bed::new(Backend::Sqlite).await;
    let from = bed.claude_code_hub().await;
    bed.serve().await;
    bed.import("claude-code-hub", &from, &[]);
    bed.knows("ada").await;
    bed.wait_for("sk-grace-000000000000000001", 429).await;
    bed.expect(&HUB_KEYS).await;
    // The remainder of ada's 10 USD of today, on another key; and a key that the peer removes.
    let rest = "INSERT INTO keys (id, user_id, key, name) VALUES (8, 1, \
                'sk-ada-00000000000000000003', 'new'); \
                INSERT INTO message_request (provider_id, user_id, key, model, cost_usd) \
                VALUES (1, 1, 'sk-ada-00000000000000000003', 'm', 8.75)";
    execute(&from, rest).await;
    let said = bed.import("claude-code-hub", &from, &[]);
    notes(
        &said,
        &[
            "+ key \"ada/new\"",
            "+ opening balance \"ada/new\"\n    usd: \"8.75\"",
            "Plan: 2 to add, 0 to change",
        ],
    );
    bed.wait_for("sk-ada-00000000000000000001", 429).await;
    execute(&from, "UPDATE keys SET deleted_at = now() WHERE id = 1").await;
    let said = bed.import("claude-code-hub", &from, &[]);
    notes(&said, &["~ key \"laptop (id", "is_enabled: true → false"]);
    bed.wait_for("sk-ada-00000000000000000001", 401).await;
    assert!(bed.import("claude-code-hub", &from, &[]).contains("No changes"));
}

/// Nodes that count in Redis rebuild their counters.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shared_counters_have_the_opening_balances() {
    let redis = Redis::start();
    let mut bed = Bed::with(Backend::Postgres, &[("REDIS_URL", &redis.url())]).await;
    let from = bed.claude_code_hub().await;
    bed.serve().await;
    bed.gateway.log_shows("counting in Redis").await;
    bed.import("claude-code-hub", &from, &[]);
    bed.knows("ada").await;
    for (key, status) in HUB_KEYS {
        bed.wait_for(key, status).await;
    }
}

/// What was renamed here stays renamed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_import_knows_users_and_keys_by_their_keys() {
    let bed = Bed::new(Backend::Sqlite).await;
    let from = bed.claude_code_hub().await;
    bed.import("claude-code-hub", &from, &[]);
    let mut connection = bed.connect().await;
    let rename = "UPDATE users SET name = 'lovelace' WHERE name = 'ada'; \
                  UPDATE api_keys SET name = 'desk' WHERE name = 'week'; \
                  UPDATE users SET note = 'x' WHERE name = 'grace'";
    sqlx::raw_sql(rename).execute(&mut connection).await.unwrap();
    drop(connection);
    let said = bed.import("claude-code-hub", &from, &[]);
    assert!(
        said.contains("Plan: 0 to add, 1 to change, 0 to remove.")
            && said.contains("note: \"x\" → \"\""),
        "{said}"
    );
}

/// The peer knows nothing of a key that was deleted here.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_import_leaves_keys_deleted_that_were_deleted_here() {
    let mut bed = Bed::new(Backend::Sqlite).await;
    let from = bed.claude_code_hub().await;
    bed.import("claude-code-hub", &from, &[]);
    bed.serve().await;
    let users = bed.gateway.admin("users/getUsers", json!({})).await;
    let ada = users.as_array().unwrap().iter().find(|user| user["name"] == "ada").unwrap();
    let laptop = ada["keys"].as_array().unwrap().iter().find(|key| key["name"] == "laptop");
    let id = &laptop.unwrap()["id"];
    let own = json!({"userId": ada["id"], "name": "own"});
    bed.gateway.admin("keys/addKey", own).await;
    bed.gateway.admin("keys/removeKey", json!({"keyId": id})).await;
    for more in [&["--dry-run"][..], &[]] {
        let said = bed.import("claude-code-hub", &from, more);
        notes(&said, &["No changes", "was deleted here, and stays deleted", "\"ada/laptop\""]);
    }
    bed.wait_for("sk-ada-00000000000000000001", 401).await;
}

/// A limit that cannot be read would be none.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn values_that_cannot_be_read_are_named() {
    let bed = Bed::new(Backend::Sqlite).await;
    let from = bed.new_api().await;
    let damage = "UPDATE users SET quota = 'plenty' WHERE username = 'grace'";
    execute(&format!("sqlite:{from}"), damage).await;
    let said = bed.import("new-api", &from, &["--dry-run"]);
    notes(&said, &["the value cannot be read, so tollgate has none", "users 2: quota"]);
}

/// The address may be in a file.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_address_is_read_from_a_file() {
    let bed = Bed::new(Backend::Sqlite).await;
    let from = bed.claude_code_hub().await;
    let file = bed.file("address", &format!("{from}\n"));
    let (done, said) = bed.gateway.run(&["import", "claude-code-hub", "--from-file", &file]);
    assert!(done && said.contains("+ user \"ada\""), "{said}");
    let limits = bed.state().await.0;
    assert!(limits.contains("limit_5h_usd: 2"), "{limits}");
}

impl Bed {
    /// Waits until the gateway knows a user. Requests with a key that is not known yet would lock
    /// their address out.
    async fn knows(&self, name: &str) {
        let has = async || {
            let users = self.gateway.admin("users/getUsers", json!({})).await;
            users.as_array().unwrap().iter().any(|user| user["name"] == name)
        };
        wait::until(|| self.gateway.log(), has).await;
    }

    /// Waits until a key's request gets a status.
    async fn wait_for(&self, key: &str, status: u16) {
        let last = Cell::default();
        wait::until(
            || format!("{key}: {:?}\n{}", last.take(), self.gateway.log()),
            async || {
                let answer = self.ask(key, "m").await;
                let is_so = answer.0 == status;
                last.set(answer);
                is_so
            },
        )
        .await;
    }
}
