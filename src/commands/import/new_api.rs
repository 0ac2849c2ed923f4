//! new-api and one-api: their tables, and what they are here. Both store amounts as quota. A
//! holder's quota that is left and the one that is used make its total limit.

use std::collections::{BTreeMap, HashMap};

use rust_decimal::Decimal;
use serde_json::Value;

use super::channels;
use super::counters::{self, Counter, SpentAt};
use super::model::{
    Form, Mapped, MappedKey, MappedLimits, MappedUser, Spent, UniqueNames, csv, key_of_text,
    moment, shortened,
};
use crate::domain::clock::Timestamp;
use crate::domain::money::NanoUsd;
use crate::store::peer::{Only, PeerData, PeerRow, PeerSchema, PeerSpendTable, PeerTable};

/// What is read.
pub(super) const SCHEMA: PeerSchema = PeerSchema {
    tables: &[
        PeerTable {
            name: "users",
            required: &["id", "username", "role", "status", "quota"],
            optional: &["display_name", "used_quota", "group", "deleted_at"],
            may_lack: false,
        },
        PeerTable {
            name: "tokens",
            required: &[
                "id",
                "user_id",
                "key",
                "status",
                "name",
                "expired_time",
                "remain_quota",
                "unlimited_quota",
            ],
            optional: &[
                "used_quota",
                "model_limits_enabled",
                "model_limits",
                "allow_ips",
                "group",
                "models",
                "subnet",
                "deleted_at",
            ],
            may_lack: false,
        },
        PeerTable {
            name: "channels",
            required: &["id", "type", "key", "status", "name", "base_url", "models"],
            optional: &[
                "weight",
                "group",
                "model_mapping",
                "priority",
                "header_override",
                "param_override",
                "setting",
                "settings",
                "system_prompt",
                "openai_organization",
                "open_ai_organization",
                "status_code_mapping",
                "channel_info",
            ],
            may_lack: false,
        },
        PeerTable { name: "options", required: &["key", "value"], optional: &[], may_lack: true },
    ],
    spend: &[PeerSpendTable {
        name: "logs",
        holders: &["user_id", "token_id", "token_name"],
        at: "created_at",
        amount: "quota",
        // Consumption; the other types are top-ups and messages.
        only: &[Only::Is("type", "2")],
    }],
};

/// Quota of one USD, unless the peer says otherwise.
const QUOTA_PER_USD: i64 = 500_000;
const DELETED: i64 = 3;

/// The peer's options by name.
fn options(data: &PeerData) -> HashMap<&str, &str> {
    data.rows("options")
        .iter()
        .filter_map(|row| Some((row.text("key")?, row.text("value")?)))
        .collect()
}

/// Maps what was read; `is_new_api` or one-api.
pub(super) fn map(data: &PeerData, is_new_api: bool) -> Mapped {
    let mut mapped = Mapped::default();
    let options = options(data);
    let unit = options.get("QuotaPerUnit").and_then(|text| text.parse::<Decimal>().ok());
    let unit = unit.filter(|unit| *unit > Decimal::ZERO).unwrap_or(Decimal::from(QUOTA_PER_USD));
    let usd = |quota: Decimal| quota.checked_div(unit).unwrap_or_default();
    let mut names = UniqueNames::default();
    let mut users: HashMap<&str, usize> = HashMap::new();
    let mut rows: Vec<&PeerRow> = Vec::new();
    for row in
        data.rows("users").iter().filter(|row| is_there(row) && row.int("status") != Some(DELETED))
    {
        users.insert(row.text("id").unwrap_or_default(), mapped.users.len());
        rows.push(row);
        let user = user(row, &mut names);
        mapped.users.push(user);
    }
    let mut keys: HashMap<usize, Vec<&PeerRow>> = HashMap::new();
    let mut of_user: HashMap<usize, UniqueNames> = HashMap::new();
    for row in data.rows("tokens") {
        let Some(text) = row.text("key").map(full_text) else { continue };
        match row.text("user_id").and_then(|id| users.get(id)).filter(|_| is_there(row)) {
            None => mapped.gone.push(key_of_text(&text).0),
            Some(user) => {
                let group = rows[*user].text("group").unwrap_or_default();
                let mut key =
                    key(row, &text, group, &mut mapped, *user, of_user.entry(*user).or_default());
                key.limits.money.total = total(row).map(usd);
                mapped.users[*user].keys.push(key);
                keys.entry(*user).or_default().push(row);
            }
        }
    }
    spent(data, &mut mapped, &rows, &keys, &usd);
    channels::map(data.rows("channels"), &options, is_new_api, &mut mapped);
    prices(&options, unit, &mut mapped);
    mapped
}

fn is_there(row: &PeerRow) -> bool {
    row.text("deleted_at").is_none()
}

/// Clients send `sk-` before what is stored.
fn full_text(key: &str) -> String {
    if key.starts_with("sk-") { key.to_owned() } else { format!("sk-{key}") }
}

fn user(row: &PeerRow, names: &mut UniqueNames) -> MappedUser {
    let id = row.text("id").unwrap_or_default();
    let name = names.unique(row.text("username").unwrap_or_default(), id);
    let mut form = Form::new();
    let mut put = |field: &str, value: Value| drop(form.insert(field.to_owned(), value));
    let shown = row.text("display_name").filter(|shown| *shown != name).unwrap_or_default();
    put("note", shortened(shown, 200).into());
    put("role", if row.int("role").unwrap_or(1) >= 10 { "admin" } else { "user" }.into());
    put("is_enabled", (row.int("status").unwrap_or(1) == 1).into());
    MappedUser { name, form, limits: MappedLimits::default(), keys: Vec::new() }
}

/// What a token may use ever, as quota; `None` = no limit.
fn total(row: &PeerRow) -> Option<Decimal> {
    let unlimited = row.flag("unlimited_quota") == Some(true);
    (!unlimited).then(|| quota(row, "remain_quota").max(Decimal::ZERO) + used(row))
}

fn quota(row: &PeerRow, column: &str) -> Decimal {
    row.decimal(column).unwrap_or_default()
}

fn used(row: &PeerRow) -> Decimal {
    quota(row, "used_quota").max(Decimal::ZERO)
}

fn key(
    row: &PeerRow,
    text: &str,
    group: &str,
    mapped: &mut Mapped,
    user: usize,
    names: &mut UniqueNames,
) -> MappedKey {
    let name =
        names.unique(row.text("name").unwrap_or_default(), row.text("id").unwrap_or_default());
    let label = format!("key \"{}/{name}\"", mapped.users[user].name);
    let (hash, mut form) = key_of_text(text);
    let mut put = |field: &str, value: Value| drop(form.insert(field.to_owned(), value));
    // Exhausted and expired tokens are limited by their quota and their time.
    put("is_enabled", matches!(row.int("status"), Some(1 | 3 | 4)).into());
    put("can_login_web_ui", false.into());
    match row.int("expired_time").filter(|at| *at > 0) {
        Some(at) => put("expires_at", moment(Timestamp(at.saturating_mul(1_000)))),
        None if row.int("status") == Some(3) => put("is_enabled", false.into()),
        None => {}
    }
    let own = row.text("group").unwrap_or(group);
    put("provider_group", if own == "auto" { group } else { own }.into());
    if own == "auto" {
        mapped.notes.add("tollgate has no automatic group: the key has its user's", label.clone());
    }
    let models = match row.flag("model_limits_enabled") {
        Some(true) => csv(row.text("model_limits")),
        _ => csv(row.text("models")),
    };
    if !models.is_empty() {
        let why = "tollgate limits models per user, not per key: set the user's allowed models";
        mapped.notes.add(why, format!("{label}: {}", models.join(", ")));
    }
    if row.text("allow_ips").or(row.text("subnet")).is_some() {
        mapped.notes.add("tollgate's keys have no list of client addresses", label);
    }
    MappedKey { name, hash, form, limits: MappedLimits::default() }
}

/// Opening balances, and the users' limits, which depend on them.
fn spent(
    data: &PeerData,
    mapped: &mut Mapped,
    users: &[&PeerRow],
    keys: &HashMap<usize, Vec<&PeerRow>>,
    usd: &dyn Fn(Decimal) -> Decimal,
) {
    let by_id: HashMap<&str, (usize, usize)> = keys
        .iter()
        .flat_map(|(user, rows)| rows.iter().enumerate().map(move |(at, row)| (*row, (*user, at))))
        .filter_map(|(row, place)| Some((row.text("id")?, place)))
        .collect();
    let by_name: HashMap<(&str, &str), (usize, usize)> = by_id
        .values()
        .filter_map(|(user, at)| {
            let row = keys.get(user)?.get(*at)?;
            Some(((row.text("user_id")?, row.text("name")?), (*user, *at)))
        })
        .collect();
    let ids: HashMap<&str, usize> =
        users.iter().enumerate().filter_map(|(at, row)| Some((row.text("id")?, at))).collect();
    let mut of_key: HashMap<(usize, usize), Vec<SpentAt>> = HashMap::new();
    let mut of_user: BTreeMap<usize, Vec<SpentAt>> = BTreeMap::new();
    for row in &data.spend {
        let [user, token, name] = row.holders.as_slice() else { continue };
        let user = user.as_deref().unwrap_or_default();
        let token = token.as_deref().filter(|id| *id != "0");
        let spent = SpentAt { at: row.minute, amount: usd(row.amount) };
        let key = match token {
            Some(id) => by_id.get(id),
            None => name.as_deref().and_then(|name| by_name.get(&(user, name.trim()))),
        };
        match key {
            Some(key) => of_key.entry(*key).or_default().push(spent),
            None => {
                if let Some(user) = ids.get(user) {
                    of_user.entry(*user).or_default().push(spent);
                }
            }
        }
    }
    for (user, row) in users.iter().enumerate() {
        let of =
            Spent { user: Some(user), key: None, provider: None, at: None, cost: NanoUsd::ZERO };
        let counter = |row: &PeerRow| Counter { amount: usd(used(row)), since: None };
        let mut rows = Vec::new();
        for (at, key) in keys.get(&user).map_or(&[][..], Vec::as_slice).iter().enumerate() {
            let found = of_key.remove(&(user, at)).unwrap_or_default();
            let own =
                counters::rows(counter(key), NanoUsd::ZERO, &found, Spent { key: Some(at), ..of });
            limit(&mut mapped.users[user].keys[at].limits, usd(quota(key, "remain_quota")), &own);
            rows.extend(own);
        }
        let given = counters::since(&rows, None);
        let found = of_user.remove(&user).unwrap_or_default();
        rows.extend(counters::rows(counter(row), given, &found, of));
        mapped.users[user].limits.money.total = Some(Decimal::ZERO);
        limit(&mut mapped.users[user].limits, usd(quota(row, "quota")), &rows);
        mapped.spent.append(&mut rows);
    }
}

/// A total limit that leaves the peer's remaining quota, whatever the peer's own sums say.
fn limit(limits: &mut MappedLimits, left: Decimal, rows: &[Spent]) {
    if limits.money.total.is_some() {
        limits.money.total =
            Some(counters::since(rows, None).to_decimal() + left.max(Decimal::ZERO));
    }
}

/// Prices from the ratios that an administrator has saved. A model's output ratio may be in the
/// peer's program only; then the price is not known.
fn prices(options: &HashMap<&str, &str>, unit: Decimal, mapped: &mut Mapped) {
    let table = |name: &str| -> BTreeMap<String, Decimal> {
        let json: Option<Value> =
            options.get(name).and_then(|text| serde_json::from_str(text).ok());
        let Some(Value::Object(entries)) = json else { return BTreeMap::new() };
        let number = |value: &Value| {
            let text = value.to_string();
            text.parse().or_else(|_| Decimal::from_scientific(&text)).ok()
        };
        entries.iter().filter_map(|(model, value)| Some((model.clone(), number(value)?))).collect()
    };
    let (models, outputs) = (table("ModelRatio"), table("CompletionRatio"));
    let (reads, writes) = (table("CacheRatio"), table("CreateCacheRatio"));
    for (model, ratio) in &models {
        let Some(output) = outputs.get(model) else {
            let why = "its output ratio is built into the peer's program: tollgate's own price \
                       list applies";
            mapped.notes.add(why, format!("price of {model:?}"));
            continue;
        };
        let Some(input) = ratio.checked_div(unit) else { continue };
        let mut entry = Form::new();
        let mut put = |field: &str, factor: Option<&Decimal>| {
            if let Some(price) = factor.and_then(|factor| input.checked_mul(*factor)) {
                entry.insert(field.to_owned(), price.round_dp(15).normalize().to_string().into());
            }
        };
        put("input_cost_per_token", Some(&Decimal::ONE));
        put("output_cost_per_token", Some(output));
        put("cache_read_input_token_cost", reads.get(model));
        put("cache_creation_input_token_cost", writes.get(model));
        mapped.prices.insert(model.clone(), entry.into());
    }
    for model in table("ModelPrice").keys() {
        mapped.notes.add("tollgate prices tokens, not calls", format!("price of {model:?}"));
    }
}
