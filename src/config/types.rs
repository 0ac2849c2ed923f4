//! The configuration as the program uses it: typed, validated, immutable. Built only by
//! [`super::load`].

use std::path::PathBuf;

use super::forms::{Place, Zone};
use super::section::settings;
use super::sections::{
    Admin, Auth, Database, DatabaseTarget, Instructions, Ledger, Limits, Live, Log, Metrics,
    Prices, Proxy, Redis, Session, Shutdown, Telemetry, Webhooks,
};
use super::setting::at;
use super::values::SettingValues;

settings! {
    /// Every setting of one process.
    pub struct Config {
        /// The folder of the embedded database, the journal and generated secrets.
        data_dir: Place = at("data_dir").or("data");
        /// Of calendar windows, and of times that clients send without an offset.
        time_zone: Zone = at("time_zone").or("UTC").env("TZ");
    } with {
        /// The listener for model clients (`proxy.*`).
        pub proxy: Proxy,
        /// The administration listener (`admin.*`).
        pub admin: Admin,
        /// The listener of metrics and health checks (`metrics.*`).
        pub metrics: Metrics,
        /// Which database, and how many connections (`database.*`).
        pub database: Database,
        /// `None`: this process counts on its own.
        pub redis: Option<Redis>,
        /// The gateway's own credentials (`auth.*`).
        pub auth: Auth,
        /// Sessions, and their stored messages (`session.*`).
        pub session: Session,
        /// The journal and its writer (`ledger.*`).
        pub ledger: Ledger,
        /// How limits are counted (`limits.*`).
        pub limits: Limits,
        /// The price table's sources (`prices.*`).
        pub prices: Prices,
        /// Which addresses webhooks may have (`webhooks.*`).
        pub webhooks: Webhooks,
        /// Files with official instructions (`instructions.*`).
        pub instructions: Instructions,
        /// The log's form (`log.*`).
        pub log: Log,
        /// How the process ends (`shutdown.*`).
        pub shutdown: Shutdown,
        /// OTLP: what is sent to collectors (`telemetry.*`).
        pub telemetry: Telemetry,
        /// The settings that a reload may change.
        pub live: Live,
        /// Every value with its origin: for printing and for comparing two loads.
        pub(super) values: SettingValues,
    }
}

impl Config {
    /// The database that the process uses.
    #[must_use]
    pub fn database_target(&self) -> DatabaseTarget<'_> {
        match &self.database.url {
            Some(url) => DatabaseTarget::Postgres(url),
            None => DatabaseTarget::Sqlite { dir: &self.data_dir },
        }
    }

    /// Most records in one transaction. SQLite writes fewer pages for large ones. PostgreSQL does
    /// not, and other nodes wait for the rows of sums that a transaction has changed.
    #[must_use]
    pub fn batch_rows(&self) -> usize {
        let usual = if self.database.url.is_some() { 500 } else { 2_000 };
        self.ledger.batch_rows.unwrap_or(usual)
    }

    /// Unix socket over which a new process takes over the listeners.
    #[must_use]
    pub fn upgrade_socket(&self) -> PathBuf {
        let named = self.proxy.upgrade_socket.clone();
        named.unwrap_or_else(|| self.data_dir.join("upgrade.sock"))
    }

    /// Whether login cookies carry `Secure`: unless it is configured, if the administration is
    /// served over HTTPS. The clients' listener may serve it too.
    #[must_use]
    pub fn secure_cookies(&self) -> bool {
        let (admin, proxy) = (&self.admin, &self.proxy);
        admin.secure_cookies.unwrap_or_else(|| {
            admin.tls().is_some()
                || (proxy.expose_admin && proxy.tls().is_some())
                || admin.app_url.as_ref().is_some_and(|url| url.starts_with("https://"))
        })
    }
}
