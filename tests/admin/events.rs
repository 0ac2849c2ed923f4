//! The stream of events: its content for each caller, and its end.

use std::time::Duration;

use reqwest::StatusCode;
use serde_json::{Value, json};
use tollgate::domain::ids::{KeyId, ProviderId, RequestId, SessionId, UserId};
use tollgate::domain::money::NanoUsd;
use tollgate::domain::record::Record;
use tollgate::limits::Admission;
use tollgate::state::NodeEvent;
use tollgate::store::Backend;

use super::gate::{Gate, NOON, Reply, TOKEN};
use crate::store::make::bare_record;
use crate::support::wait;

/// Time-out; only a broken gateway reaches it.
const TIME_LIMIT: Duration = Duration::from_secs(20);

/// A subscribed client.
pub(super) struct Watcher {
    response: reqwest::Response,
    text: String,
}

impl Watcher {
    pub(super) async fn start(gate: &Gate, credential: &str) -> Self {
        Self::of(gate.http.get(format!("{}/api/events", gate.url)).bearer_auth(credential)).await
    }

    async fn of(request: reqwest::RequestBuilder) -> Self {
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        assert_eq!(response.headers()["cache-control"], "no-store");
        Self { response, text: String::new() }
    }

    /// The next event; `None` at the end of the stream.
    async fn next(&mut self) -> Option<(String, Value)> {
        loop {
            if let Some((event, rest)) = self.text.split_once("\n\n") {
                let lines: Vec<(&str, &str)> =
                    event.lines().filter_map(|line| line.split_once(": ")).collect();
                let field = |name| {
                    lines.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned())
                };
                let (name, data) = (field("event"), field("data"));
                self.text = rest.to_owned();
                if let (Some(name), Some(data)) = (name, data) {
                    return Some((name, serde_json::from_str(&data).unwrap()));
                }
                continue;
            }
            let chunk = tokio::time::timeout(TIME_LIMIT, self.response.chunk())
                .await
                .expect("nothing came");
            self.text.push_str(std::str::from_utf8(&chunk.ok()??).unwrap());
        }
    }

    /// The data of the next event of this name that `fits`.
    pub(super) async fn until(&mut self, name: &str, fits: impl Fn(&Value) -> bool) -> Value {
        loop {
            let (found, data) = self.next().await.expect("the stream ended");
            if found == name && fits(&data) {
                return data;
            }
        }
    }

    async fn ended(&mut self) {
        while self.next().await.is_some() {}
    }
}

fn record(user: i64, key: i64, cost: i64) -> Record {
    Record {
        request_id: RequestId::new(),
        started_at: NOON,
        user_id: Some(UserId(user)),
        key_id: Some(KeyId(key)),
        cost: Some(NanoUsd(cost)),
        ..bare_record()
    }
}

#[tokio::test]
async fn administrators_see_every_request_and_users_their_own() {
    for backend in [Backend::Sqlite, Backend::Postgres] {
        let gate = Gate::start_on(backend).await;
        let (ada, bob) = (gate.person("ada", json!({})).await, gate.person("bob", json!({})).await);
        let before = record(ada.id, ada.key_id, 2_000_000_000);
        gate.store.append_records(std::slice::from_ref(&before)).await.unwrap();
        let (mut all, mut own) =
            (Watcher::start(&gate, TOKEN).await, Watcher::start(&gate, &bob.key).await);
        for watcher in [&mut all, &mut own] {
            let (name, hello) = watcher.next().await.unwrap();
            assert_eq!(name, "hello");
            assert_eq!(
                hello,
                json!({ "version": "1.2.3", "timeZone": "Asia/Shanghai", "now": NOON.to_iso() })
            );
        }
        assert_eq!(all.until("overview", |_| true).await["todayCost"], 2);
        assert_eq!(own.until("overview", |_| true).await["todayCost"], 0);

        let (of_ada, of_bob) =
            (record(ada.id, ada.key_id, 1), record(bob.id, bob.key_id, 500_000_000));
        for record in [&of_ada, &of_bob] {
            gate.events.tell(|| NodeEvent::Request(record.clone().into()));
        }
        let logged = all.until("log", |_| true).await;
        assert_eq!(
            (&logged["requestId"], &logged["userId"]),
            (&json!(of_ada.request_id.to_string()), &json!(ada.id))
        );
        let logged = all.until("log", |_| true).await;
        assert_eq!(logged["costUsd"], json!(0.5));
        assert_eq!(
            own.until("log", |_| true).await["requestId"],
            json!(of_bob.request_id.to_string())
        );
        let overview = own.until("overview", |o| o["todayRequests"] == 1).await;
        assert_eq!(overview["todayCost"], json!(0.5));
        let overview = all.until("overview", |o| o["todayRequests"] == 3).await;
        assert_eq!(overview["todayCost"], json!(2.500000001));
    }
}

#[tokio::test]
async fn a_read_only_key_hears_of_its_own_requests_and_sessions_only() {
    let gate = Gate::start().await;
    let provider = gate.provider("upstream").await;
    let ada = gate.person("ada", json!({})).await;
    let (id, text) = gate.key(ada.id, "machine", json!({ "canLoginWebUi": false })).await;
    let mut watcher = Watcher::start(&gate, &text).await;
    watcher.until("hello", |_| true).await;
    trip(&gate, provider);
    let (other, own) = (record(ada.id, ada.key_id, 1), record(ada.id, id, 2));
    for record in [&other, &own] {
        gate.events.tell(|| NodeEvent::Request(record.clone().into()));
    }
    // The other key's request and the circuit came before.
    loop {
        let (name, data) = watcher.next().await.unwrap();
        // Every client receives in `status` whether figures are up to date.
        assert!(["log", "sessions", "status"].contains(&name.as_str()), "{name}: {data}");
        if name == "log" {
            assert_eq!(data["requestId"], json!(own.request_id.to_string()));
            break;
        }
    }
    let snapshot = gate.state.snapshot();
    let mut permits = Vec::new();
    for key in [ada.key_id, id] {
        let caller = snapshot.key(KeyId(key)).unwrap();
        let session = SessionId::from(format!("of key {key}").as_str());
        let admission = Admission {
            request: RequestId::new(),
            now: NOON,
            key: &caller.key,
            user: &caller.user,
            session: &session,
            estimate: NanoUsd::ZERO,
            asks: &super::gate::asks(),
        };
        permits.push(gate.counters.admit(&admission).await.unwrap());
    }
    let sessions = watcher.until("sessions", |sessions| sessions != &json!([])).await;
    assert_eq!((sessions.as_array().unwrap().len(), &sessions[0]["keyId"]), (1, &json!(id)));
    // When its rights grow, the stream ends: it must subscribe again.
    gate.admin("keys/editKey", json!({ "keyId": id, "canLoginWebUi": true })).await.data();
    watcher.ended().await;
}

#[tokio::test]
async fn circuit_and_configuration_changes_are_events() {
    let gate = Gate::start().await;
    let provider = gate.provider("upstream").await;
    let ada = gate.person("ada", json!({})).await;
    let (mut all, mut own) =
        (Watcher::start(&gate, TOKEN).await, Watcher::start(&gate, &ada.key).await);
    own.until("hello", |_| true).await;
    all.until("hello", |_| true).await;
    trip(&gate, provider);
    let breaker = all.until("breaker", |_| true).await;
    assert_eq!((&breaker["providerId"], &breaker["state"]), (&json!(provider), &json!("OPEN")));
    assert_eq!(
        gate.admin("providers/resetProviderCircuit", json!({ "providerId": provider }))
            .await
            .status,
        200
    );
    assert_eq!(all.until("breaker", |_| true).await["state"], "CLOSED");
    let version = gate.store.config_version().await.unwrap();
    // The user's stream up to the same point: no circuits.
    loop {
        let (name, data) = own.next().await.unwrap();
        assert_ne!(name, "breaker");
        if name == "configuration" && data["version"] == version {
            break;
        }
    }
}

/// Opens the circuit of a provider by failures.
pub fn trip(gate: &Gate, provider: i64) {
    use tollgate::policy::breaker::Suspect;
    use tollgate::policy::classify::Counts;
    use tollgate::state::health::Setback;
    let snapshot = gate.state.snapshot();
    let provider = snapshot.provider(ProviderId(provider)).unwrap();
    for _ in 0..provider.breaker.failure_threshold {
        let ticket = gate.health.enter(provider, NOON).unwrap();
        let by = Suspect { user: 0, needed: 1 };
        let setback = Setback { counts: Counts::Yes, by, cooldown_until: None };
        gate.health.failed(provider, ticket, NOON, setback);
    }
}

#[tokio::test]
async fn the_stream_ends_with_its_credential() {
    let gate = Gate::start().await;
    let ada = gate.person("ada", json!({})).await;
    gate.key(ada.id, "another", json!({})).await;
    let admin = gate.person("grace", json!({ "role": "admin" })).await;

    let login = Reply::of(gate.post("auth/login").json(&json!({ "key": ada.key }))).await;
    let cookie =
        login.headers["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned();
    let watch = gate.http.get(format!("{}/api/events", gate.url)).header("cookie", &cookie);
    let mut by_session = Watcher::of(watch).await;
    by_session.until("hello", |_| true).await;
    assert_eq!(Reply::of(gate.post("auth/logout").header("cookie", &cookie)).await.status, 200);
    by_session.ended().await;

    let mut by_key = Watcher::start(&gate, &ada.key).await;
    by_key.until("hello", |_| true).await;
    let disabled =
        gate.admin("keys/toggleKeyEnabled", json!({ "keyId": ada.key_id, "enabled": false })).await;
    assert_eq!(disabled.status, 200, "{:?}", disabled.body);
    by_key.ended().await;

    let mut by_role = Watcher::start(&gate, &admin.key).await;
    by_role.until("hello", |_| true).await;
    assert_eq!(
        gate.admin("users/editUser", json!({ "userId": admin.id, "role": "user" })).await.status,
        200
    );
    by_role.ended().await;
}

#[tokio::test]
async fn the_stream_ends_when_the_process_stops() {
    let gate = Gate::start().await;
    let mut watcher = Watcher::start(&gate, TOKEN).await;
    watcher.until("hello", |_| true).await;
    gate.stopping.send(true).unwrap();
    watcher.ended().await;
}

#[tokio::test]
async fn one_user_has_so_many_places_and_gets_them_back() {
    let gate = Gate::start().await;
    let ada = gate.person("ada", json!({})).await;
    let mut watchers = Vec::new();
    for _ in 0..16 {
        watchers.push(Watcher::start(&gate, &ada.key).await);
    }
    let request = || gate.http.get(format!("{}/api/events", gate.url)).bearer_auth(&ada.key);
    let refused = Reply::of(request()).await;
    assert_eq!(refused.failure(), (429, "TOO_MANY_ATTEMPTS"));
    assert!(refused.headers.contains_key("retry-after"));
    // Another key of the user has no places of its own.
    let (_, reading) = gate.key(ada.id, "reading", json!({"canLoginWebUi": false})).await;
    let request_of = gate.http.get(format!("{}/api/events", gate.url)).bearer_auth(&reading);
    assert_eq!(Reply::of(request_of).await.failure(), (429, "TOO_MANY_ATTEMPTS"));
    Watcher::start(&gate, TOKEN).await;
    drop(watchers);
    let again = async || {
        let answer = request().send().await.unwrap();
        (answer.status() == StatusCode::OK).then_some(())
    };
    assert!(wait::within(TIME_LIMIT, again).await.is_some(), "no place came free");
}

#[tokio::test]
async fn a_client_that_is_too_slow_is_notified_of_missed_events() {
    let gate = Gate::start().await;
    let ada = gate.person("ada", json!({})).await;
    let mut watcher = Watcher::start(&gate, TOKEN).await;
    watcher.until("hello", |_| true).await;
    let total = 2_000;
    for _ in 0..total {
        let record = record(ada.id, ada.key_id, 1);
        gate.events.tell(|| NodeEvent::Request(record.into()));
    }
    let (mut shown, mut missed) = (0, 0);
    while shown + missed < total {
        let (name, data) = watcher.next().await.unwrap();
        match name.as_str() {
            "log" => shown += 1,
            "missed" => missed += data["count"].as_u64().unwrap(),
            _ => {}
        }
    }
    assert!(missed > 0 && shown > 0, "{shown} shown, {missed} missed");
}
