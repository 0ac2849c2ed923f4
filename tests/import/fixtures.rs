//! The peers' databases: their real schemas as statements, with a few rows.

use tollgate::domain::clock::{Clock as _, SystemClock};

use super::{Bed, execute};
use crate::support::postgres;

/// Texts that no output may have: keys, credentials, the address' password.
pub const SECRETS: [&str; 8] = [
    "sk-ada-0000",
    "sk-grace-00",
    "sk-litellm-",
    "newapiroot0",
    "oneapiroot0",
    "credential-o",
    "encrypted-credential",
    "password-of-the-address",
];

const CLAUDE_CODE_HUB: &str = include_str!("fixtures/claude-code-hub.sql");
const LITELLM: &str = include_str!("fixtures/litellm.sql");
const NEW_API_SQLITE: &str = include_str!("fixtures/new-api.sqlite.sql");
const NEW_API_MYSQL: &str = include_str!("fixtures/new-api.mysql.sql");
const ONE_API_SQLITE: &str = include_str!("fixtures/one-api.sqlite.sql");

impl Bed {
    fn filled(&self, text: &str) -> String {
        let recent = SystemClock.now().0 / 1_000 - 600;
        text.replace("@UPSTREAM@", &self.upstream.url).replace("@RECENT@", &recent.to_string())
    }

    /// claude-code-hub on PostgreSQL: its address.
    pub async fn claude_code_hub(&self) -> String {
        let url = postgres::fresh_database();
        execute(&url, &self.filled(CLAUDE_CODE_HUB)).await;
        url
    }

    /// LiteLLM on PostgreSQL: its address.
    pub async fn litellm(&self) -> String {
        let url = postgres::fresh_database();
        execute(&url, &self.filled(LITELLM)).await;
        url
    }

    /// LiteLLM's config.yaml, whose credential is in `LITELLM_CREDENTIAL`: its path.
    pub fn litellm_config(&self) -> String {
        let text = format!(
            "model_list:\n  - model_name: m\n    litellm_params:\n      model: anthropic/m\n      api_base: {}\n      \
             api_key: os.environ/LITELLM_CREDENTIAL\n      rpm: 10\n    model_info:\n      \
             input_cost_per_token: 0.000001\n      output_cost_per_token: 2.0e-06\n  - model_name: far\n    \
             litellm_params: {{model: azure/gpt, api_key: credential-other}}\ngeneral_settings:\n  \
             master_key: credential-of-master\n",
            self.upstream.url
        );
        self.file("config.yaml", &text)
    }

    /// A file in the gateway's folder: its path.
    pub fn file(&self, name: &str, text: &str) -> String {
        std::fs::write(self.path(name), text).unwrap();
        self.path(name).display().to_string()
    }

    async fn sqlite(&self, name: &str, text: &str) -> String {
        let path = self.path(name).display().to_string();
        execute(&format!("sqlite:{path}?mode=rwc"), &self.filled(text)).await;
        path
    }

    /// new-api on SQLite: its path.
    pub async fn new_api(&self) -> String {
        self.sqlite("one api's.db", NEW_API_SQLITE).await
    }

    /// new-api on PostgreSQL: its address.
    pub async fn new_api_postgres(&self) -> String {
        let url = postgres::fresh_database();
        let text = self
            .filled(NEW_API_SQLITE)
            .replace('`', "\"")
            .replace("integer PRIMARY KEY AUTOINCREMENT", "bigserial PRIMARY KEY")
            .replace("\"unlimited_quota\" numeric", "\"unlimited_quota\" boolean")
            .replace("\"model_limits_enabled\" numeric", "\"model_limits_enabled\" boolean")
            .replace("DEFAULT \"\"", "DEFAULT ''")
            .replace("datetime", "timestamptz")
            .replace(
                "CAST(strftime('%s', 'now') AS INTEGER)",
                "CAST(EXTRACT(EPOCH FROM now()) AS BIGINT)",
            );
        let text = text
            .replace("-1, 0, 1, 0, ''", "-1, 0, true, false, ''")
            .replace("-1, 0, 0, 0, ''", "-1, 0, false, false, ''")
            .replace("-1, 500000, 0, 1, 'm", "-1, 500000, false, true, 'm")
            .replace("1700000000, 0, 1, 0, ''", "1700000000, 0, true, false, ''");
        execute(&url, &text).await;
        url
    }

    /// new-api as a dump of MySQL: its path.
    pub fn new_api_dump(&self) -> String {
        self.file("new-api.sql", &self.filled(NEW_API_MYSQL))
    }

    /// one-api on SQLite: its path.
    pub async fn one_api(&self) -> String {
        self.sqlite("one-api.db", ONE_API_SQLITE).await
    }
}
