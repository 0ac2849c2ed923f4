//! LiteLLM's database: its tables, and what they are here. Keys are hashes already. A key of a team
//! counts against the team's budget at the peer, so here a team is a user, and holds these keys.

use std::collections::{BTreeMap, HashMap, HashSet};

use rust_decimal::Decimal;
use serde_json::Value;

use super::counters::{self, Counter, SpentAt};
use super::litellm_budget::{Budget, WindowPlace, budgets};
use super::model::{
    Form, Mapped, MappedKey, MappedUser, Spent, UniqueNames, key_of_text, moment, texts,
};
use crate::domain::key::KeyHash;
use crate::domain::money::NanoUsd;
use crate::store::peer::{PeerData, PeerRow, PeerSchema, PeerSpendTable, PeerTable};

const TOKENS: &str = "LiteLLM_VerificationToken";
const USERS: &str = "LiteLLM_UserTable";
const TEAMS: &str = "LiteLLM_TeamTable";
pub(super) const BUDGETS: &str = "LiteLLM_BudgetTable";
const MODELS: &str = "LiteLLM_ProxyModelTable";
const DELETED: &str = "LiteLLM_DeletedVerificationToken";
const MEMBERS: &str = "LiteLLM_TeamMembership";
/// The team of the keys that logins to LiteLLM's own pages make.
const DASHBOARD: &str = "litellm-dashboard";

const HOLDER: &[&str] = &[
    "max_budget",
    "budget_duration",
    "budget_reset_at",
    "rpm_limit",
    "tpm_limit",
    "max_parallel_requests",
    "models",
    "model_max_budget",
    "spend",
];

/// What is read.
pub(super) const SCHEMA: PeerSchema = PeerSchema {
    tables: &[
        PeerTable {
            name: TOKENS,
            required: &["token", "spend", "user_id", "team_id", "max_budget"],
            optional: &[
                "key_name",
                "key_alias",
                "expires",
                "models",
                "blocked",
                "budget_duration",
                "budget_reset_at",
                "budget_id",
                "rpm_limit",
                "tpm_limit",
                "max_parallel_requests",
                "model_max_budget",
                "allowed_routes",
            ],
            may_lack: false,
        },
        PeerTable {
            name: USERS,
            required: &["user_id", "spend", "max_budget"],
            optional: &[
                "user_alias",
                "user_email",
                "user_role",
                "budget_duration",
                "budget_reset_at",
                "rpm_limit",
                "tpm_limit",
                "max_parallel_requests",
                "models",
                "model_max_budget",
            ],
            may_lack: false,
        },
        PeerTable {
            name: TEAMS,
            required: &["team_id", "spend", "max_budget"],
            optional: &[
                "team_alias",
                "blocked",
                "budget_duration",
                "budget_reset_at",
                "rpm_limit",
                "tpm_limit",
                "max_parallel_requests",
                "models",
                "model_max_budget",
            ],
            may_lack: true,
        },
        PeerTable { name: BUDGETS, required: &["budget_id"], optional: HOLDER, may_lack: true },
        PeerTable {
            name: MODELS,
            required: &["model_id", "model_name"],
            optional: &[],
            may_lack: true,
        },
        PeerTable { name: DELETED, required: &["id", "token"], optional: &[], may_lack: true },
        PeerTable {
            name: MEMBERS,
            required: &["user_id", "team_id"],
            optional: &["budget_id"],
            may_lack: true,
        },
    ],
    spend: &[PeerSpendTable {
        name: "LiteLLM_SpendLogs",
        holders: &["api_key", "user", "team_id"],
        at: "startTime",
        amount: "spend",
        only: &[],
    }],
};

/// Who holds a key.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Owner {
    User(String),
    Team(String),
    Nobody,
}

/// A holder's position in [`Mapped`], and its counter.
#[derive(Debug, Clone, Copy)]
struct HolderCounter {
    user: usize,
    counter: Counter,
}

/// A key's counter, and the text of its hash.
struct KeyCounter {
    counter: Counter,
    token: String,
}

/// Maps what was read, as of `place.now`.
pub(super) fn map(data: &PeerData, place: WindowPlace) -> Mapped {
    let mut mapped = Mapped::default();
    let budgets = budgets(data.rows(BUDGETS));
    let (mut owners, mut owner_names) = owners(data, place, &mut mapped);
    let mut names: HashMap<usize, UniqueNames> = HashMap::new();
    let mut keys: HashMap<usize, Vec<KeyCounter>> = HashMap::new();
    let mut logins = 0;
    for row in data.rows(TOKENS) {
        let Some(token) = row.text("token") else { continue };
        let owner = match (row.text("team_id"), row.text("user_id")) {
            (Some(DASHBOARD), _) => {
                logins += 1;
                continue;
            }
            (Some(team), _) => Owner::Team(team.to_owned()),
            (None, Some(user)) => Owner::User(user.to_owned()),
            (None, None) => Owner::Nobody,
        };
        let user = owner_of(owner, &mut owners, &mut owner_names, &mut mapped);
        let budget = Budget::of_key(row, &budgets);
        let (key, counter) =
            key(row, token, &budget, place, &mut mapped, user, names.entry(user).or_default());
        mapped.users[user].keys.push(key);
        keys.entry(user).or_default().push(KeyCounter { counter, token: token.to_owned() });
    }
    if logins > 0 {
        let why = "keys of logins to LiteLLM's own pages are of no use here";
        mapped.notes.add(why, format!("{logins} keys"));
    }
    for row in data.rows(DELETED) {
        mapped.gone.extend(row.text("token").map(|token| hash(token).0));
    }
    leftovers(data, &mut mapped);
    spent(data, &mut mapped, &owners, &keys);
    mapped
}

/// A hash as it is stored; very old versions stored texts.
fn hash(token: &str) -> (KeyHash, Form) {
    let mut bytes = [0; 32];
    match hex::decode_to_slice(token, &mut bytes) {
        Ok(()) => (KeyHash(bytes), Form::new()),
        Err(_) => key_of_text(token),
    }
}

fn owners(
    data: &PeerData,
    place: WindowPlace,
    mapped: &mut Mapped,
) -> (HashMap<Owner, HolderCounter>, UniqueNames) {
    let mut names = UniqueNames::default();
    let mut owners = HashMap::new();
    for row in data.rows(USERS) {
        let Some(id) = row.text("user_id") else { continue };
        let wanted = row.text("user_alias").or(row.text("user_email")).unwrap_or(id);
        let name = names.unique(wanted, id);
        let admin = row.text("user_role") == Some("proxy_admin");
        let held = holder(row, name, if admin { "admin" } else { "user" }, place, mapped);
        owners.insert(Owner::User(id.to_owned()), held);
    }
    for row in data.rows(TEAMS) {
        let Some(id) = row.text("team_id").filter(|id| *id != DASHBOARD) else { continue };
        let name = names.unique(row.text("team_alias").unwrap_or(id), id);
        let held = holder(row, name, "user", place, mapped);
        owners.insert(Owner::Team(id.to_owned()), held);
    }
    (owners, names)
}

/// Adds a user or a team.
fn holder(
    row: &PeerRow,
    name: String,
    role: &str,
    place: WindowPlace,
    mapped: &mut Mapped,
) -> HolderCounter {
    let label = format!("user {name:?}");
    let mut form = Form::new();
    let mut put = |field: &str, value: Value| drop(form.insert(field.to_owned(), value));
    put("role", role.into());
    put("is_enabled", (row.flag("blocked") != Some(true)).into());
    put("rpm", row.int("rpm_limit").unwrap_or(0).clamp(0, 1_000_000).into());
    if row.text("team_alias").is_some() || row.text("team_id").is_some() {
        put("note", "A team of LiteLLM".into());
    }
    let models = texts(row.json("models"));
    match models.iter().any(|model| model == "no-default-models") {
        // Personal keys of such a user work for no model.
        true => put("allowed_models", vec!["no-default-models"].into()),
        false => put("allowed_models", names_of_models(models, &label, mapped).into()),
    }
    let (limits, counter) = Budget::of(row).map_to(row, place, &label, &mut mapped.notes);
    note_rates(row, &label, false, mapped);
    let user = mapped.users.len();
    mapped.users.push(MappedUser { name, form, limits, keys: Vec::new() });
    HolderCounter { user, counter }
}

/// Names with a trailing star at most; all models are an empty list.
fn names_of_models(models: Vec<String>, label: &str, mapped: &mut Mapped) -> Vec<String> {
    if models
        .iter()
        .any(|model| matches!(model.as_str(), "all-proxy-models" | "all-team-models" | "*"))
    {
        return Vec::new();
    }
    for model in models.iter().filter(|model| model.trim_end_matches('*').contains('*')) {
        let why = "tollgate's lists of models have whole names and names with a trailing * only";
        mapped.notes.add(why, format!("{label}: {model}"));
    }
    models
}

/// The holder of a key, made where the peer has none.
fn owner_of(
    owner: Owner,
    owners: &mut HashMap<Owner, HolderCounter>,
    names: &mut UniqueNames,
    mapped: &mut Mapped,
) -> usize {
    if let Some(held) = owners.get(&owner) {
        return held.user;
    }
    let name = match &owner {
        Owner::User(id) | Owner::Team(id) => names.unique(id, id),
        Owner::Nobody => names.unique("LiteLLM keys without a user", "litellm"),
    };
    let user = mapped.users.len();
    mapped.users.push(MappedUser {
        name,
        form: Form::new(),
        limits: Default::default(),
        keys: Vec::new(),
    });
    owners.insert(
        owner,
        HolderCounter { user, counter: Counter { amount: Decimal::ZERO, since: None } },
    );
    user
}

fn key(
    row: &PeerRow,
    token: &str,
    budget: &Budget,
    place: WindowPlace,
    mapped: &mut Mapped,
    user: usize,
    names: &mut UniqueNames,
) -> (MappedKey, Counter) {
    let (hash, mut form) = hash(token);
    let shown = row.text("key_name").unwrap_or_default();
    let last: String = shown.rsplit('.').next().unwrap_or_default().chars().take(8).collect();
    let id = token.get(..8).unwrap_or(token);
    let wanted =
        row.text("key_alias").or(row.text("key_name").filter(|_| hash.0 != [0; 32])).unwrap_or(id);
    let name = names.unique(wanted, id);
    let label = format!("key \"{}/{name}\"", mapped.users[user].name);
    let mut put = |field: &str, value: Value| drop(form.insert(field.to_owned(), value));
    if shown.starts_with("sk-...") {
        put("prefix", "sk-".into());
        put("last_four", last.into());
    }
    put("is_enabled", (row.flag("blocked") != Some(true)).into());
    put("can_login_web_ui", false.into());
    if let Some(at) = row.time("expires") {
        put("expires_at", moment(at));
    }
    let (limits, counter) = budget.map_to(row, place, &label, &mut mapped.notes);
    let models = texts(row.json("models"));
    if models
        .iter()
        .any(|model| !matches!(model.as_str(), "all-proxy-models" | "all-team-models" | "*"))
    {
        let why = "tollgate limits models per user, not per key: set the user's allowed models";
        mapped.notes.add(why, format!("{label}: {}", models.join(", ")));
    }
    note_rates(row, &label, true, mapped);
    if !texts(row.json("allowed_routes")).is_empty() {
        mapped.notes.add("tollgate's keys have no list of routes", label);
    }
    (MappedKey { name, hash, form, limits }, counter)
}

fn note_rates(row: &PeerRow, label: &str, is_key: bool, mapped: &mut Mapped) {
    let mut note = |column: &str, why: &str| {
        if let Some(limit) = row.int(column) {
            mapped.notes.add(why, format!("{label}: {column} {limit}"));
        }
    };
    note("tpm_limit", "tollgate has no limit of tokens per minute");
    note("max_parallel_requests", "tollgate limits concurrent sessions, not parallel requests");
    if is_key {
        note(
            "rpm_limit",
            "tollgate limits requests per minute per user, not per key: set the user's",
        );
    }
    if row.text("model_max_budget").is_some_and(|text| !matches!(text, "{}" | "null")) {
        mapped.notes.add("tollgate has no budget per model", label.to_owned());
    }
}

fn leftovers(data: &PeerData, mapped: &mut Mapped) {
    for row in data.rows(MODELS) {
        let why = "LiteLLM has encrypted the model's credential: add the provider by hand, or \
                   import config.yaml";
        mapped.notes.add(why, format!("model {:?}", row.text("model_name").unwrap_or_default()));
    }
    for row in data.rows(MEMBERS).iter().filter(|row| row.text("budget_id").is_some()) {
        let (user, team) =
            (row.text("user_id").unwrap_or_default(), row.text("team_id").unwrap_or_default());
        mapped.notes.add(
            "tollgate has no budget per member of a team",
            format!("user {user:?} in team {team:?}"),
        );
    }
}

/// The rows of keys; then for each holder the rows of keys that are gone, and the rest of its
/// counter.
fn spent(
    data: &PeerData,
    mapped: &mut Mapped,
    owners: &HashMap<Owner, HolderCounter>,
    keys: &HashMap<usize, Vec<KeyCounter>>,
) {
    let known: HashSet<&str> = keys.values().flatten().map(|key| key.token.as_str()).collect();
    let mut of_key: HashMap<&str, Vec<SpentAt>> = HashMap::new();
    let mut of_owner: BTreeMap<usize, Vec<SpentAt>> = BTreeMap::new();
    for row in &data.spend {
        let [token, user, team] = row.holders.as_slice() else { continue };
        let spent = SpentAt { at: row.minute, amount: row.amount };
        let token = token.as_deref().unwrap_or_default();
        if known.contains(token) {
            of_key.entry(token).or_default().push(spent);
            continue;
        }
        let owner = match (team.as_deref().filter(|team| !team.is_empty()), user.as_deref()) {
            (Some(team), _) => Owner::Team(team.to_owned()),
            (None, user) => Owner::User(user.unwrap_or_default().to_owned()),
        };
        if let Some(held) = owners.get(&owner) {
            of_owner.entry(held.user).or_default().push(spent);
        }
    }
    let counters: HashMap<usize, Counter> =
        owners.values().map(|held| (held.user, held.counter)).collect();
    for user in 0..mapped.users.len() {
        let of =
            Spent { user: Some(user), key: None, provider: None, at: None, cost: NanoUsd::ZERO };
        let mut rows = Vec::new();
        for (at, KeyCounter { counter, token }) in
            keys.get(&user).map_or(&[][..], Vec::as_slice).iter().enumerate()
        {
            let found = of_key.remove(token.as_str()).unwrap_or_default();
            rows.extend(counters::rows(
                *counter,
                NanoUsd::ZERO,
                &found,
                Spent { key: Some(at), ..of },
            ));
        }
        if let Some(counter) = counters.get(&user) {
            let given = counters::since(&rows, counter.since);
            let found = of_owner.remove(&user).unwrap_or_default();
            rows.extend(counters::rows(*counter, given, &found, of));
        }
        mapped.spent.append(&mut rows);
    }
}
