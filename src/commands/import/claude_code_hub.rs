//! claude-code-hub: its tables, and what they are here. Its limits have the same windows, and its
//! spending is a row per request, so both carry over as they are.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Value, json};

use super::hub_providers;
use super::model::{
    Form, Mapped, MappedKey, MappedLimits, MappedUser, Spent, UniqueNames, key_of_text, moment,
    nanos, positive, shortened, texts,
};
use crate::domain::clock::Timestamp;
use crate::domain::limits::ByPeriod;
use crate::store::peer::{Only, PeerData, PeerRow, PeerSchema, PeerSpendTable, PeerTable};

/// Columns with those of the limits; the column of a user's daily limit has another name.
macro_rules! with_limits {
    ($($column:literal),+ $(,)?) => {
        &[
            $($column,)+
            "limit_5h_usd",
            "limit_weekly_usd",
            "limit_monthly_usd",
            "limit_total_usd",
            "limit_concurrent_sessions",
            "daily_reset_mode",
            "daily_reset_time",
        ]
    };
}

/// What is read.
pub(super) const SCHEMA: PeerSchema = PeerSchema {
    tables: &[
        PeerTable {
            name: "users",
            required: &["id", "name", "role", "rpm_limit", "daily_limit_usd"],
            optional: with_limits![
                "description",
                "provider_group",
                "tags",
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
            optional: with_limits![
                "limit_daily_usd",
                "is_enabled",
                "expires_at",
                "can_login_web_ui",
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
            optional: with_limits![
                "limit_daily_usd",
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

/// From when on minutes must be separate: the oldest reset of a holder's costs.
pub(super) fn oldest_reset(tables: &BTreeMap<&'static str, Vec<PeerRow>>) -> Option<Timestamp> {
    let of = |table: &str, column: &'static str| {
        let rows = tables.get(table).map_or(&[][..], Vec::as_slice);
        rows.iter().filter_map(move |row| row.time(column)).min()
    };
    [
        of("users", "cost_reset_at"),
        of("keys", "cost_reset_at"),
        of("providers", "total_cost_reset_at"),
    ]
    .into_iter()
    .flatten()
    .min()
}

/// Maps what was read.
pub(super) fn map(data: &PeerData) -> Mapped {
    let mut mapped = Mapped::default();
    let mut names = UniqueNames::default();
    for row in data.rows("users").iter().filter(|row| row.time("deleted_at").is_none()) {
        let user = user(row, &mut names, &mut mapped);
        mapped.users.push(user);
    }
    let live: Vec<&PeerRow> =
        data.rows("users").iter().filter(|row| row.time("deleted_at").is_none()).collect();
    let users: HashMap<&str, usize> =
        live.iter().enumerate().filter_map(|(at, row)| Some((row.text("id")?, at))).collect();
    let mut keys: HashMap<&str, (usize, usize)> = HashMap::new();
    let mut of_user: HashMap<usize, UniqueNames> = HashMap::new();
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
    let providers = hub_providers::map(data, &mut mapped);
    prices(data, &mut mapped);
    words(data, &mut mapped);
    spent(data, &mut mapped, &Holders { live: &live, users, keys, providers });
    mapped
}

/// The limits of a row; `daily` is the daily one's column.
pub(super) fn limits(row: &PeerRow, daily: &str) -> MappedLimits {
    let of = |column: &str| positive(row.decimal(column));
    let money = ByPeriod::of(|period| of(period.field()));
    MappedLimits {
        money: ByPeriod { daily: of(daily), ..money },
        sessions: row.int("limit_concurrent_sessions").unwrap_or(0).max(0),
    }
}

/// Sets a field of a record.
pub(super) fn put(form: &mut Form, field: &str, value: impl Into<Value>) {
    form.insert(field.to_owned(), value.into());
}

/// Sets when the day begins.
pub(super) fn put_reset(form: &mut Form, row: &PeerRow) {
    if row.text("daily_reset_mode") == Some("rolling") {
        put(form, "daily_reset_mode", "rolling");
    }
    let time = row.text("daily_reset_time").and_then(crate::domain::limits::TimeOfDay::parse);
    if let Some(time) = time {
        put(form, "daily_reset_time", time.to_string());
    }
}

fn user(row: &PeerRow, names: &mut UniqueNames, mapped: &mut Mapped) -> MappedUser {
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
    let tags: Vec<String> =
        texts(row.json("tags")).iter().map(|tag| shortened(tag, 32)).take(20).collect();
    put(&mut form, "tags", tags);
    put(&mut form, "allowed_models", texts(row.json("allowed_models")));
    put(&mut form, "allowed_clients", texts(row.json("allowed_clients")));
    if !texts(row.json("blocked_clients")).is_empty() {
        mapped.notes.add(
            "tollgate has lists of allowed clients and none of blocked ones",
            format!("user {name:?}"),
        );
    }
    MappedUser { name, form, limits: limits(row, "daily_limit_usd"), keys: Vec::new() }
}

fn key(row: &PeerRow, text: &str, group: &str, names: &mut UniqueNames) -> MappedKey {
    let name =
        names.unique(row.text("name").unwrap_or_default(), row.text("id").unwrap_or_default());
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

/// Entries made by hand; the newest of a model counts.
fn prices(data: &PeerData, mapped: &mut Mapped) {
    let mut newest: BTreeMap<&str, (i64, &PeerRow)> = BTreeMap::new();
    for row in data.rows("model_prices") {
        let (Some(model), id) = (row.text("model_name"), row.int("id").unwrap_or(0)) else {
            continue;
        };
        let entry = newest.entry(model).or_insert((id, row));
        if id >= entry.0 {
            *entry = (id, row);
        }
    }
    for (model, (_, row)) in newest {
        if let Some(data) = row.json("price_data").filter(|_| row.text("source") == Some("manual"))
        {
            mapped.prices.insert(model.to_owned(), data);
        }
    }
}

fn words(data: &PeerData, mapped: &mut Mapped) {
    let mut seen = std::collections::HashSet::new();
    for row in data.rows("sensitive_words") {
        let (Some(word), Some(how)) = (row.text("word"), row.text("match_type")) else { continue };
        if !matches!(how, "contains" | "exact" | "regex") || !seen.insert((word, how)) {
            mapped.notes.add(
                "the word has no known way of matching, or is there twice",
                "a sensitive word".to_owned(),
            );
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
    let resets =
        |table: &str, id: &'static str, column: &'static str| -> HashMap<String, Timestamp> {
            let rows = data.rows(table).iter();
            rows.filter_map(|row| Some((row.text(id)?.to_owned(), row.time(column)?))).collect()
        };
    let of_key = resets("keys", "key", "cost_reset_at");
    let of_provider = resets("providers", "id", "total_cost_reset_at");
    for row in &data.spend {
        let [user_id, key_text, last, first] = row.holders.as_slice() else { continue };
        // The minute of a reset counts.
        let counts = |reset: Option<&Timestamp>| {
            reset.is_none_or(|reset| {
                row.minute.is_some_and(|minute| minute.plus_ms(60_000) > *reset)
            })
        };
        let user = user_id.as_deref().and_then(|id| holders.users.get(id)).copied();
        let user_reset = user.and_then(|at| holders.live[at].time("cost_reset_at"));
        let user = user.filter(|_| counts(user_reset.as_ref()));
        let key = key_text.as_deref().and_then(|text| holders.keys.get(text)).copied();
        let key_reset = key_text.as_ref().and_then(|text| of_key.get(text));
        let key =
            key.filter(|(owner, _)| Some(*owner) == user && counts(key_reset)).map(|(_, at)| at);
        let provider_id = last.as_deref().or(first.as_deref());
        let provider = provider_id.and_then(|id| holders.providers.get(id)).copied();
        let provider = provider.filter(|_| counts(provider_id.and_then(|id| of_provider.get(id))));
        let cost = nanos(row.amount);
        if cost.0 != 0 && (user.is_some() || provider.is_some()) {
            mapped.spent.push(Spent { user, key, provider, at: row.minute, cost });
        }
    }
}

#[cfg(test)]
mod tests {
    use rust_decimal::Decimal;

    use super::*;
    use crate::store::peer::PeerSpend;

    fn row(values: &[(&'static str, &str)]) -> PeerRow {
        values.iter().map(|(name, text)| (*name, (*text).to_owned())).collect()
    }

    fn spend(key: &str, seconds: i64, usd: i64) -> PeerSpend {
        let holders =
            ["1", key, "", "9"].map(|text| Some(text.to_owned()).filter(|text| !text.is_empty()));
        let minute = (seconds > 0).then_some(Timestamp(seconds * 1_000));
        PeerSpend { holders: holders.to_vec(), minute, amount: Decimal::from(usd) }
    }

    #[test]
    fn costs_before_a_reset_do_not_count_for_its_holder() {
        let mut data = PeerData::default();
        let user = row(&[("id", "1"), ("name", "ada"), ("cost_reset_at", "6000")]);
        let keys = vec![
            row(&[("id", "1"), ("user_id", "1"), ("key", "sk-first-0000000000"), ("name", "a")]),
            row(&[
                ("id", "2"),
                ("user_id", "1"),
                ("key", "sk-other-0000000000"),
                ("name", "b"),
                ("cost_reset_at", "12000"),
            ]),
        ];
        data.tables = BTreeMap::from([("users", vec![user]), ("keys", keys)]);
        assert_eq!(oldest_reset(&data.tables), Some(Timestamp(6_000_000)));
        data.spend = vec![
            spend("sk-first-0000000000", 0, 1),
            spend("sk-first-0000000000", 3_000, 2),
            spend("sk-first-0000000000", 9_000, 3),
            spend("sk-other-0000000000", 9_000, 4),
            spend("sk-other-0000000000", 15_000, 5),
        ];
        let spent = map(&data).spent;
        let reported: Vec<_> =
            spent.iter().map(|s| (s.user, s.key, s.cost.0 / 1_000_000_000)).collect();
        assert_eq!(reported, [(Some(0), Some(0), 3), (Some(0), None, 4), (Some(0), Some(1), 5)]);
    }
}
