//! A running administration surface for one test, a client for it, and a receiver of its webhooks.

use std::net::TcpListener;
use std::ops::Deref;
use std::sync::{Arc, Mutex};

use reqwest::StatusCode;
use serde_json::{Value, json};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;
use tollgate::admin::context::ProxyPlace;
use tollgate::admin::playground::Playground;
use tollgate::admin::{Context, router, serve};
use tollgate::config::Live;
use tollgate::domain::clock::{Clock, ManualClock, Timestamp};
use tollgate::domain::format::WireFormat;
use tollgate::domain::network::{Network, Networks};
use tollgate::domain::secret::Secret;
use tollgate::http_client::Webhooks;
use tollgate::jobs::{JobParts, Jobs};
use tollgate::ledger::JournalStats;
use tollgate::limits::{Asks, CounterSettings, Counters};
use tollgate::policy::reservation::Reservation;
use tollgate::state::Node;
use tollgate::store::{Backend, Store};

use super::places::slots;
use super::playground::OneAnswer;
use super::receiver::Receiver;
pub use crate::support::node::TOKEN;
use crate::support::node::node;
use crate::support::postgres;

/// 2026-11-21T04:00:00Z: noon in the gateway's time zone.
pub const NOON: Timestamp = Timestamp(1_795_233_600_000);
pub const ZONE: chrono_tz::Tz = chrono_tz::Asia::Shanghai;

/// The gateway's administration, a client, and the data plane's view.
pub struct Gate {
    pub node: Arc<Node>,
    pub url: String,
    pub http: reqwest::Client,
    pub clock: Arc<ManualClock>,
    pub jobs: Jobs,
    pub receiver: Receiver,
    pub app_url: Option<String>,
    _tasks: JoinSet<()>,
    /// Announces the stop to unbounded replies.
    pub stopping: watch::Sender<bool>,
    /// The injected figures of the journal.
    pub journal: Arc<Mutex<JournalStats>>,
    _stop: oneshot::Sender<()>,
    pub dir: tempfile::TempDir,
}

/// The response.
#[derive(Debug, Clone)]
pub struct Reply {
    pub status: StatusCode,
    pub headers: reqwest::header::HeaderMap,
    pub body: Value,
}

/// A user with a key.
#[derive(Debug, Clone)]
pub struct Person {
    pub id: i64,
    pub key_id: i64,
    pub key: String,
}

/// A sender of webhooks that may also use this machine.
pub fn webhooks() -> Webhooks {
    Webhooks::new(vec![Network::parse("127.0.0.0/8").unwrap()])
}

pub fn client() -> reqwest::Client {
    // The provider may be installed already: tests share the process.
    let _ = tokio_rustls::rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().no_proxy().build().unwrap()
}

/// An empty database of this kind, migrated.
async fn fresh_store(backend: Backend, dir: &std::path::Path) -> Store {
    let store = match backend {
        Backend::Sqlite => Store::open_sqlite(dir).await.unwrap(),
        Backend::Postgres => {
            Store::open_postgres(&Secret::new(postgres::fresh_database()), 8).await.unwrap()
        }
    };
    store.migrate().await.unwrap();
    store
}

/// The address of a public price list with one model in it.
fn price_list(dir: &std::path::Path) -> String {
    let file = dir.join("public-list.json");
    std::fs::write(&file, r#"{"listed": {"input_cost_per_token": 2e-6}}"#).unwrap();
    format!("file://{}", file.display())
}

/// What requests that the tests count ask for.
pub fn asks() -> Asks {
    Asks { model: "latest".into(), format: WireFormat::Native }
}

fn counters(time_zone: chrono_tz::Tz) -> Counters {
    Counters::new(CounterSettings {
        session_ttl_ms: 300_000,
        reservation: Reservation::Expected,
        time_zone,
    })
}

/// Serves until `stopped`; returns the address.
fn serve_api(context: Context, stopped: oneshot::Receiver<()>, tasks: &mut JoinSet<()>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let until = async move { stopped.await.unwrap_or_default() };
    tasks.spawn(async move {
        serve(listener, None, router(Arc::new(context)), slots(), until).await.unwrap()
    });
    url
}

/// What the administration shares with the data plane.
impl Deref for Gate {
    type Target = Node;

    fn deref(&self) -> &Node {
        &self.node
    }
}

impl Gate {
    /// Trusts these reverse proxies; none at first.
    pub fn trust(&self, proxies: &[&str]) {
        let trusted_proxies = Networks::parse(proxies).unwrap();
        let live = Live { trusted_proxies, ..(**self.live.load()).clone() };
        self.live.store(Arc::new(live));
    }

    pub async fn start() -> Self {
        Self::start_on(Backend::Sqlite).await
    }

    pub async fn start_on(backend: Backend) -> Self {
        Self::start_as(backend, None, false).await
    }

    pub async fn start_as(backend: Backend, app_url: Option<&str>, secure_cookies: bool) -> Self {
        Self::start_in(ZONE, backend, app_url, secure_cookies).await
    }

    pub async fn start_in(
        time_zone: chrono_tz::Tz,
        backend: Backend,
        app_url: Option<&str>,
        secure_cookies: bool,
    ) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = fresh_store(backend, dir.path()).await;
        let clock = Arc::new(ManualClock::at(NOON));
        let node = node(store, counters(time_zone), Arc::clone(&clock) as Arc<dyn Clock>).await;
        let jobs = Jobs::new(JobParts { node: Arc::clone(&node), by_server: false, time_zone });
        let (stopping, watching) = watch::channel(false);
        let journal = Arc::new(Mutex::new(JournalStats::default()));
        let look = Arc::clone(&journal);
        let context = Context {
            node: Arc::clone(&node),
            store_messages: true,
            session_header: None,
            playground: Playground::new(Arc::new(OneAnswer)),
            journal: Arc::new(move || *look.lock().unwrap()),
            jobs: jobs.clone(),
            webhooks: webhooks(),
            price_list: price_list(dir.path()),
            has_own_seed: false,
            time_zone,
            app_url: app_url.map(str::to_owned),
            secure_cookies,
            version: "1.2.3",
            stop: watching,
            proxy: ProxyPlace { port: 8080, tls: false },
        };
        let ((stop, stopped), mut tasks) = (oneshot::channel::<()>(), JoinSet::new());
        let url = serve_api(context, stopped, &mut tasks);
        tasks.spawn(jobs.clone().run(std::future::pending()));
        let receiver = Receiver::start(&mut tasks);
        Self {
            node,
            url,
            http: client(),
            clock,
            jobs,
            receiver,
            app_url: app_url.map(str::to_owned),
            _tasks: tasks,
            stopping,
            journal,
            _stop: stop,
            dir,
        }
    }

    pub fn post(&self, operation: &str) -> reqwest::RequestBuilder {
        self.http.post(format!("{}/api/{operation}", self.url))
    }

    /// Calls an action with a Bearer credential.
    pub async fn call(&self, operation: &str, credential: &str, body: Value) -> Reply {
        let request = self.post(&format!("actions/{operation}")).bearer_auth(credential);
        Reply::of(request.json(&body)).await
    }

    /// Calls an action as the administrator.
    pub async fn admin(&self, operation: &str, body: Value) -> Reply {
        self.call(operation, TOKEN, body).await
    }

    /// Adds a user named `name`, with the additional `fields`.
    pub async fn person(&self, name: &str, fields: Value) -> Person {
        let mut body = json!({ "name": name });
        body.as_object_mut().unwrap().extend(fields.as_object().cloned().unwrap_or_default());
        let data = self.admin("users/addUser", body).await.data();
        Person {
            id: data["user"]["id"].as_i64().unwrap(),
            key_id: data["defaultKey"]["id"].as_i64().unwrap(),
            key: data["defaultKey"]["key"].as_str().unwrap().to_owned(),
        }
    }

    /// Adds a key to a user: its id and its text.
    pub async fn key(&self, user: i64, name: &str, fields: Value) -> (i64, String) {
        let mut body = json!({ "userId": user, "name": name });
        body.as_object_mut().unwrap().extend(fields.as_object().cloned().unwrap_or_default());
        let data = self.admin("keys/addKey", body).await.data();
        (data["id"].as_i64().unwrap(), data["generatedKey"].as_str().unwrap().to_owned())
    }

    pub async fn provider(&self, name: &str) -> i64 {
        let body = json!({ "name": name, "url": "https://up.example", "key": "upstream-credential-0123456789" });
        self.admin("providers/addProvider", body).await.data()["id"].as_i64().unwrap()
    }

    /// The record of one key, as the administrator sees it.
    pub async fn key_record(&self, user: i64, key: i64) -> Value {
        let keys = self.admin("keys/getKeys", json!({ "userId": user })).await.data();
        keys.as_array().unwrap().iter().find(|k| k["id"] == key).cloned().unwrap_or_default()
    }

    /// The record of one user, as the administrator sees it.
    pub async fn user_record(&self, user: i64) -> Value {
        let users = self.admin("users/getUsers", json!({})).await.data();
        users.as_array().unwrap().iter().find(|u| u["id"] == user).cloned().unwrap_or_default()
    }

    /// Puts system settings into effect.
    pub async fn settings(&self, changed: Value) {
        let mut tx = self.store.begin().await.unwrap();
        let mut settings = serde_json::to_value(&self.state.snapshot().settings).unwrap();
        settings.as_object_mut().unwrap().extend(changed.as_object().cloned().unwrap());
        tx.save_settings(&serde_json::from_value(settings).unwrap()).await.unwrap();
        tx.commit().await.unwrap();
        self.state.publish().await.unwrap();
    }

    /// Whether the data plane accepts this key now.
    pub fn works(&self, key: &str) -> bool {
        let snapshot = self.state.snapshot();
        let caller = snapshot.caller(&tollgate::crypto::key_text::hash(key));
        caller.is_some_and(|c| {
            c.key.is_usable(self.clock.now()) && c.user.is_active(self.clock.now())
        })
    }
}

impl Reply {
    pub async fn of(request: reqwest::RequestBuilder) -> Self {
        let mut response = request.send().await.unwrap();
        let (status, headers) = (response.status(), response.headers().clone());
        let live = headers.get("content-type").is_some_and(|kind| kind == "text/event-stream");
        let text = match live {
            // For an unbounded reply: its beginning.
            true => String::from_utf8(response.chunk().await.unwrap().unwrap_or_default().to_vec())
                .unwrap(),
            false => response.text().await.unwrap(),
        };
        Self { status, headers, body: serde_json::from_str(&text).unwrap_or(Value::String(text)) }
    }

    /// The data of a success.
    pub fn data(&self) -> Value {
        assert_eq!(
            (self.status, &self.body["ok"]),
            (StatusCode::OK, &json!(true)),
            "{:?}",
            self.body
        );
        self.body["data"].clone()
    }

    pub fn code(&self) -> &str {
        self.body["errorCode"].as_str().unwrap_or("")
    }

    /// Status and code of a failure in the envelope; only the status of anything else.
    pub fn failure(&self) -> (u16, &str) {
        if self.status != StatusCode::OK {
            assert_eq!(self.body["ok"], json!(false), "{:?}", self.body);
            assert!(self.body["error"].as_str().is_some_and(|e| !e.is_empty()), "{:?}", self.body);
        }
        (self.status.as_u16(), self.code())
    }
}

/// One audit record, as stored.
#[derive(Debug)]
pub struct Audited {
    pub actor: String,
    pub action: String,
    pub before: Option<Value>,
    pub after: Option<Value>,
    pub client_addr: Option<String>,
}

/// The audit records, oldest first, read directly from the database.
pub async fn audit_entries(gate: &Gate) -> Vec<Audited> {
    use sqlx::{Connection, Row};
    sqlx::any::install_default_drivers();
    let url = format!("sqlite:{}/tollgate.db", gate.dir.path().display());
    let mut connection = sqlx::AnyConnection::connect(&url).await.unwrap();
    let rows = sqlx::query("SELECT * FROM audit_log ORDER BY id")
        .fetch_all(&mut connection)
        .await
        .unwrap();
    let json = |text: Option<String>| text.map(|text| serde_json::from_str(&text).unwrap());
    let read = |row: &sqlx::any::AnyRow| Audited {
        actor: row.get("actor"),
        action: row.get("action"),
        before: json(row.get("state_before")),
        after: json(row.get("state_after")),
        client_addr: row.get("client_addr"),
    };
    rows.iter().map(read).collect()
}
