//! claude-code-hub: its tables, and what they are here. Its limits have the same windows, and its
//! spending is a row per request, so both carry over as they are.

use std::collections::{BTreeMap, HashMap};

use rust_decimal::Decimal;
use serde_json::{Value, json};

use super::model::{
    Form, Mapped, MappedKey, MappedLimits, MappedProvider, MappedUser, Names, Spent, key_of_text, moment, nanos,
    positive, shortened, texts,
};
use crate::domain::clock::Timestamp;
use crate::store::peer::{Only, PeerData, PeerRow, PeerSchema, PeerSpendTable, PeerTable};

/// What is read.
pub(super) const SCHEMA: PeerSchema = PeerSchema {
    tables: &[
        PeerTable {
            name: "users",
            required: &["id", "name", "role", "rpm_limit", "daily_limit_usd"],
            optional: &[
                "description",
                "provider_group",
                "tags",
                "limit_5h_usd",
                "limit_weekly_usd",
                "limit_monthly_usd",
                "limit_total_usd",
                "limit_concurrent_sessions",
                "daily_reset_mode",
                "daily_reset_time",
                "is_enabled",
                "expires_at",
                "allowed_clients",
                "blocked_clients",
                "allowed_models",
                "cost_reset_at",
                "deleted_at",
            ],
            may_lack: false,
        },
        PeerTable {
            name: "keys",
            required: &["id", "user_id", "key", "name"],
            optional: &[
                "is_enabled",
                "expires_at",
                "can_login_web_ui",
                "limit_5h_usd",
                "limit_daily_usd",
                "limit_weekly_usd",
                "limit_monthly_usd",
                "limit_total_usd",
                "limit_concurrent_sessions",
                "daily_reset_mode",
                "daily_reset_time",
                "provider_group",
                "cache_ttl_preference",
                "cost_reset_at",
                "deleted_at",
            ],
            may_lack: false,
        },
        PeerTable {
            name: "providers",
            required: &["id", "name", "url", "key"],
            optional: &[
                "description",
                "is_enabled",
                "weight",
                "priority",
                "cost_multiplier",
                "group_tag",
                "provider_type",
                "preserve_client_ip",
                "model_redirects",
                "allowed_models",
                "allowed_clients",
                "blocked_clients",
                "active_time_start",
                "limit_5h_usd",
                "limit_daily_usd",
                "limit_weekly_usd",
                "limit_monthly_usd",
                "limit_total_usd",
                "limit_concurrent_sessions",
                "daily_reset_mode",
                "daily_reset_time",
                "total_cost_reset_at",
                "max_retry_attempts",
                "circuit_breaker_failure_threshold",
                "circuit_breaker_open_duration",
                "circuit_breaker_half_open_success_threshold",
                "proxy_url",
                "proxy_fallback_to_direct",
                "custom_headers",
                "first_byte_timeout_streaming_ms",
                "streaming_idle_timeout_ms",
                "request_timeout_non_streaming_ms",
                "cache_ttl_preference",
                "codex_instructions_strategy",
                "context_1m_preference",
                "mcp_passthrough_type",
                "join_claude_pool",
                "group_priorities",
                "deleted_at",
            ],
            may_lack: false,
        },
        PeerTable {
            name: "model_prices",
            required: &["id", "model_name", "price_data"],
            optional: &["source"],
            may_lack: true,
        },
        PeerTable {
            name: "sensitive_words",
            required: &["id", "word", "match_type"],
            optional: &["description", "is_enabled"],
            may_lack: true,
        },
    ],
    spend: &[
        PeerSpendTable {
            name: "usage_ledger",
            holders: &["user_id", "key", "final_provider_id", "provider_id"],
            at: "created_at",
            amount: "cost_usd",
            only: &[Only::IsNot("blocked_by", "warmup")],
        },
        PeerSpendTable {
            name: "message_request",
            holders: &["user_id", "key", "final_provider_id", "provider_id"],
            at: "created_at",
            amount: "cost_usd",
            only: &[Only::IsNull("deleted_at"), Only::IsNot("blocked_by", "warmup")],
        },
    ],
};

/// From when on minutes must be told apart: the oldest reset of a holder's costs.
pub(super) fn oldest_reset(tables: &BTreeMap<&'static str, Vec<PeerRow>>) -> Option<Timestamp> {
    let of = |table: &str, column: &'static str| {
        let rows = tables.get(table).map_or(&[][..], Vec::as_slice);
        rows.iter().filter_map(move |row| row.time(column)).min()
    };
    [of("users", "cost_reset_at"), of("keys", "cost_reset_at"), of("providers", "total_cost_reset_at")]
        .into_iter()
        .flatten()
        .min()
}

/// Maps what was read.
pub(super) fn map(data: &PeerData) -> Mapped {
    let mut mapped = Mapped::default();
    let mut names = Names::default();
    for row in data.rows("users").iter().filter(|row| row.time("deleted_at").is_none()) {
        let user = user(row, &mut names, &mut mapped);
        mapped.users.push(user);
    }
    let live: Vec<&PeerRow> = data.rows("users").iter().filter(|row| row.time("deleted_at").is_none()).collect();
    let users: HashMap<&str, usize> =
        live.iter().enumerate().filter_map(|(at, row)| Some((row.text("id")?, at))).collect();
    let mut keys: HashMap<&str, (usize, usize)> = HashMap::new();
    let mut of_user: HashMap<usize, Names> = HashMap::new();
    for row in data.rows("keys") {
        let Some(text) = row.text("key") else { continue };
        let owner = row.text("user_id").and_then(|id| users.get(id)).copied();
        match owner.filter(|_| row.time("deleted_at").is_none()) {
            None => mapped.gone.push(key_of_text(text).0),
            Some(owner) => {
                let group = live[owner].text("provider_group").unwrap_or_default();
                let key = key(row, text, group, of_user.entry(owner).or_default());
                keys.insert(text, (owner, mapped.users[owner].keys.len()));
                mapped.users[owner].keys.push(key);
            }
        }
    }
    let providers = providers(data, &mut mapped);
    prices(data, &mut mapped);
    words(data, &mut mapped);
    spent(data, &mut mapped, &Holders { live: &live, users, keys, providers });
    mapped
}

fn limits(row: &PeerRow, daily: &str) -> MappedLimits {
    let of = |column: &str| positive(row.decimal(column));
    MappedLimits {
        five_hours: of("limit_5h_usd"),
        daily: of(daily),
        weekly: of("limit_weekly_usd"),
        monthly: of("limit_monthly_usd"),
        total: of("limit_total_usd"),
        sessions: row.int("limit_concurrent_sessions").unwrap_or(0).max(0),
    }
}

fn put(form: &mut Form, field: &str, value: impl Into<Value>) {
    form.insert(field.to_owned(), value.into());
}

fn put_reset(form: &mut Form, row: &PeerRow) {
    if row.text("daily_reset_mode") == Some("rolling") {
        put(form, "daily_reset_mode", "rolling");
    }
    let time = row.text("daily_reset_time").and_then(crate::domain::limits::TimeOfDay::parse);
    if let Some(time) = time {
        put(form, "daily_reset_time", time.to_string());
    }
}

fn user(row: &PeerRow, names: &mut Names, mapped: &mut Mapped) -> MappedUser {
    let id = row.text("id").unwrap_or_default();
    let name = names.unique(row.text("name").unwrap_or_default(), id);
    let mut form = Form::new();
    put(&mut form, "note", shortened(row.text("description").unwrap_or_default(), 200));
    put(&mut form, "role", if row.text("role") == Some("admin") { "admin" } else { "user" });
    put(&mut form, "is_enabled", row.flag("is_enabled").unwrap_or(true));
    if let Some(at) = row.time("expires_at") {
        put(&mut form, "expires_at", moment(at));
    }
    put(&mut form, "rpm", row.int("rpm_limit").unwrap_or(0).clamp(0, 1_000_000));
    put_reset(&mut form, row);
    let tags: Vec<String> = texts(row.json("tags")).iter().map(|tag| shortened(tag, 32)).take(20).collect();
    put(&mut form, "tags", tags);
    put(&mut form, "allowed_models", texts(row.json("allowed_models")));
    put(&mut form, "allowed_clients", texts(row.json("allowed_clients")));
    if !texts(row.json("blocked_clients")).is_empty() {
        mapped.notes.add("tollgate has lists of allowed clients and none of blocked ones", format!("user {name:?}"));
    }
    MappedUser { name, form, limits: limits(row, "daily_limit_usd"), keys: Vec::new() }
}

fn key(row: &PeerRow, text: &str, group: &str, names: &mut Names) -> MappedKey {
    let name = names.unique(row.text("name").unwrap_or_default(), row.text("id").unwrap_or_default());
    let (hash, mut form) = key_of_text(text);
    put(&mut form, "is_enabled", row.flag("is_enabled").unwrap_or(true));
    put(&mut form, "can_login_web_ui", row.flag("can_login_web_ui").unwrap_or(false));
    if let Some(at) = row.time("expires_at") {
        put(&mut form, "expires_at", moment(at));
    }
    put_reset(&mut form, row);
    put(&mut form, "provider_group", row.text("provider_group").unwrap_or(group));
    if let Some(ttl) = row.text("cache_ttl_preference").filter(|ttl| matches!(*ttl, "5m" | "1h")) {
        put(&mut form, "cache_ttl_preference", ttl);
    }
    MappedKey { name, hash, form, limits: limits(row, "limit_daily_usd") }
}

fn kind(row: &PeerRow) -> Result<&'static str, &'static str> {
    match row.text("provider_type").unwrap_or("claude") {
        "claude" => Ok("native"),
        "claude-auth" => Ok("native-auth"),
        "codex" => Ok("responses"),
        "openai-compatible" => Ok("chat-compatible"),
        "gemini" => Ok("alt-cli"),
        "gemini-cli" => Err("its credential is a Google login, which tollgate does not renew"),
        _ => Err("tollgate does not have this type of provider"),
    }
}

/// The positions of the providers by the peer's ids.
fn providers<'d>(data: &'d PeerData, mapped: &mut Mapped) -> HashMap<&'d str, usize> {
    let mut names = Names::default();
    let mut positions = HashMap::new();
    for row in data.rows("providers").iter().filter(|row| row.time("deleted_at").is_none()) {
        let id = row.text("id").unwrap_or_default();
        let name = names.unique(row.text("name").unwrap_or_default(), id);
        let credential = row.text("key").unwrap_or_default();
        let kind = kind(row).and_then(|kind| match credential.starts_with('{') || credential.starts_with("ya29.") {
            true => Err("its credential is a Google login, which tollgate does not renew"),
            false => Ok(kind),
        });
        match kind {
            Err(why) => mapped.notes.add(why, format!("provider {name:?}")),
            Ok(kind) => {
                positions.insert(id, mapped.providers.len());
                let form = provider(row, kind, &name, mapped);
                mapped.providers.push(MappedProvider { name, form, limits: limits(row, "limit_daily_usd") });
            }
        }
    }
    positions
}

fn provider(row: &PeerRow, kind: &str, name: &str, mapped: &mut Mapped) -> Form {
    let mut form = Form::new();
    let int = |column: &str, default: i64, min: i64, max: i64| row.int(column).unwrap_or(default).clamp(min, max);
    put(&mut form, "url", row.text("url").unwrap_or_default());
    put(&mut form, "key", row.text("key").unwrap_or_default());
    put(&mut form, "provider_type", kind);
    put(&mut form, "is_enabled", row.flag("is_enabled").unwrap_or(true));
    put(&mut form, "weight", int("weight", 1, 1, 100));
    put(&mut form, "priority", int("priority", 0, -1_000, 1_000_000));
    let multiplier = row.decimal("cost_multiplier").unwrap_or(Decimal::ONE).clamp(Decimal::ZERO, Decimal::ONE_THOUSAND);
    put(&mut form, "cost_multiplier", multiplier.round_dp(4).normalize().to_string());
    put(&mut form, "group_tag", row.text("group_tag").unwrap_or_default());
    put_reset(&mut form, row);
    put(&mut form, "max_retry_attempts", int("max_retry_attempts", 2, 1, 10));
    put(&mut form, "circuit_breaker_failure_threshold", int("circuit_breaker_failure_threshold", 5, 0, 1_000));
    let open = int("circuit_breaker_open_duration", 1_800_000, 1_000, 86_400_000);
    put(&mut form, "circuit_breaker_open_duration", open);
    let successes = int("circuit_breaker_half_open_success_threshold", 2, 1, 100);
    put(&mut form, "circuit_breaker_half_open_success_threshold", successes);
    for column in ["first_byte_timeout_streaming_ms", "streaming_idle_timeout_ms", "request_timeout_non_streaming_ms"] {
        put(&mut form, column, int(column, 0, 0, 3_600_000));
    }
    if let Some(ttl) = row.text("cache_ttl_preference").filter(|ttl| matches!(*ttl, "5m" | "1h")) {
        put(&mut form, "cache_ttl_preference", ttl);
    }
    put(&mut form, "preserve_client_ip", row.flag("preserve_client_ip").unwrap_or(false));
    put(&mut form, "note", shortened(row.text("description").unwrap_or_default(), 200));
    models(row, &mut form, name, mapped);
    proxy(row, &mut form, name, mapped);
    leftovers(row, name, mapped);
    form
}

/// Lists of models: as texts, or (in newer versions) as rules that match a name or its beginning.
fn models(row: &PeerRow, form: &mut Form, name: &str, mapped: &mut Mapped) {
    let mut refuse = |what: &str| {
        let why = "tollgate's lists of models have whole names and names with a trailing * only";
        mapped.notes.add(why, format!("provider {name:?}: {what}"));
    };
    let mut allowed = Vec::new();
    for entry in row.json("allowed_models").and_then(|list| list.as_array().cloned()).unwrap_or_default() {
        let pattern = entry["pattern"].as_str().or(entry.as_str()).unwrap_or_default();
        match entry["matchType"].as_str().unwrap_or("exact") {
            "exact" if !pattern.is_empty() => allowed.push(pattern.to_owned()),
            "prefix" if !pattern.is_empty() => allowed.push(format!("{pattern}*")),
            _ => refuse(&format!("allowed model {pattern:?}")),
        }
    }
    let mut redirects = Form::new();
    match row.json("model_redirects") {
        Some(Value::Object(map)) => redirects = map.into_iter().filter(|(_, to)| to.is_string()).collect(),
        Some(Value::Array(rules)) => {
            for rule in rules {
                let (from, to) = (rule["source"].as_str().unwrap_or_default(), rule["target"].clone());
                match rule["matchType"].as_str().unwrap_or("exact") {
                    "exact" if to.is_string() => put(&mut redirects, from, to),
                    _ => refuse(&format!("redirect of {from:?}")),
                }
            }
        }
        _ => {}
    }
    put(form, "allowed_models", allowed);
    put(form, "model_redirects", redirects);
}

fn proxy(row: &PeerRow, form: &mut Form, name: &str, mapped: &mut Mapped) {
    let Some(proxy) = row.text("proxy_url") else { return };
    if proxy.starts_with("http://") && !proxy.contains('@') {
        put(form, "proxy_url", proxy.trim_end_matches('/'));
    } else {
        // Without the proxy its address would be shown to the upstream.
        put(form, "is_enabled", false);
        let why = "the proxy is not one of the form http://host:port; the provider is disabled until you set one";
        mapped.notes.add(why, format!("provider {name:?}"));
    }
    if row.flag("proxy_fallback_to_direct") == Some(true) {
        mapped.notes.add("tollgate never goes round a proxy that is down", format!("provider {name:?}"));
    }
}

fn leftovers(row: &PeerRow, name: &str, mapped: &mut Mapped) {
    let lists = |column: &str| row.json(column).is_some_and(|v| v.as_array().is_some_and(|list| !list.is_empty()));
    let is = |column: &str, unset: &[&str]| row.text(column).is_some_and(|text| !unset.contains(&text));
    for (is_set, what, why) in [
        (lists("allowed_clients") || lists("blocked_clients"), "lists of clients", "tollgate lists clients per user"),
        (is("active_time_start", &[]), "active hours", "tollgate's providers have no hours"),
        (is("custom_headers", &["{}", "null"]), "custom headers", "tollgate sets headers in its settings"),
        (is("mcp_passthrough_type", &["none"]), "MCP passthrough", "tollgate has no MCP passthrough"),
        (is("context_1m_preference", &["inherit"]), "1M context preference", "tollgate passes the client's header on"),
        (is("group_priorities", &["{}", "null"]), "priorities per group", "tollgate's providers have one priority"),
        (row.flag("join_claude_pool") == Some(true), "claude pool", "tollgate converts formats by itself"),
    ] {
        if is_set {
            mapped.notes.add(why, format!("provider {name:?}: {what}"));
        }
    }
}

/// Entries made by hand; the newest of a model counts.
fn prices(data: &PeerData, mapped: &mut Mapped) {
    let mut newest: BTreeMap<&str, (i64, &PeerRow)> = BTreeMap::new();
    for row in data.rows("model_prices") {
        let (Some(model), id) = (row.text("model_name"), row.int("id").unwrap_or(0)) else { continue };
        let entry = newest.entry(model).or_insert((id, row));
        if id >= entry.0 {
            *entry = (id, row);
        }
    }
    for (model, (_, row)) in newest {
        if let Some(data) = row.json("price_data").filter(|_| row.text("source") == Some("manual")) {
            mapped.prices.insert(model.to_owned(), data);
        }
    }
}

fn words(data: &PeerData, mapped: &mut Mapped) {
    let mut seen = std::collections::HashSet::new();
    for row in data.rows("sensitive_words") {
        let (Some(word), Some(how)) = (row.text("word"), row.text("match_type")) else { continue };
        if !matches!(how, "contains" | "exact" | "regex") || !seen.insert((word, how)) {
            mapped.notes.add("the word has no known way of matching, or is there twice", "a sensitive word".to_owned());
            continue;
        }
        let description = shortened(row.text("description").unwrap_or_default(), 200);
        let enabled = row.flag("is_enabled").unwrap_or(true);
        mapped.words.push(json!({
            "word": word, "match_type": how, "description": description, "is_enabled": enabled,
        }));
    }
}

struct Holders<'d> {
    live: &'d [&'d PeerRow],
    users: HashMap<&'d str, usize>,
    keys: HashMap<&'d str, (usize, usize)>,
    providers: HashMap<&'d str, usize>,
}

/// A row counts for a holder unless the holder's costs were reset after it.
fn spent(data: &PeerData, mapped: &mut Mapped, holders: &Holders<'_>) {
    let resets = |table: &str, id: &'static str, column: &'static str| -> HashMap<String, Timestamp> {
        let rows = data.rows(table).iter();
        rows.filter_map(|row| Some((row.text(id)?.to_owned(), row.time(column)?))).collect()
    };
    let of_key = resets("keys", "key", "cost_reset_at");
    let of_provider = resets("providers", "id", "total_cost_reset_at");
    for row in &data.spend {
        let [user_id, key_text, last, first] = row.holders.as_slice() else { continue };
        // The minute of a reset counts.
        let counts = |reset: Option<&Timestamp>| {
            reset.is_none_or(|reset| row.minute.is_some_and(|minute| minute.plus_ms(60_000) > *reset))
        };
        let user = user_id.as_deref().and_then(|id| holders.users.get(id)).copied();
        let user_reset = user.and_then(|at| holders.live[at].time("cost_reset_at"));
        let user = user.filter(|_| counts(user_reset.as_ref()));
        let key = key_text.as_deref().and_then(|text| holders.keys.get(text)).copied();
        let key_reset = key_text.as_ref().and_then(|text| of_key.get(text));
        let key = key.filter(|(owner, _)| Some(*owner) == user && counts(key_reset)).map(|(_, at)| at);
        let provider_id = last.as_deref().or(first.as_deref());
        let provider = provider_id.and_then(|id| holders.providers.get(id)).copied();
        let provider = provider.filter(|_| counts(provider_id.and_then(|id| of_provider.get(id))));
        let cost = nanos(row.amount);
        if cost.0 != 0 && (user.is_some() || provider.is_some()) {
            mapped.spent.push(Spent { user, key, provider, at: row.minute, cost });
        }
    }
}
