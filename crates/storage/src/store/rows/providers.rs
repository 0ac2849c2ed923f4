//! Provider rows. The upstream credential is stored sealed; this module neither seals nor opens it.
//! A removed provider's row stays, without its credential.

use serde::{Deserialize, Serialize};
use sqlx::any::AnyRow;
use sqlx::{AnyConnection, AssertSqlSafe};

use super::{features, limits};
use crate::domain::cloud::ClaudeCloud;
use crate::domain::group::Groups;
use crate::domain::ids::ProviderId;
use crate::domain::key::CacheTtl;
use crate::domain::provider::{
    AnthropicHost, BreakerSettings, InstructionsStrategy, Provider, ProviderTimeouts, ProviderType,
};
use crate::domain::provider_auth::ProviderAuth;
use crate::domain::provider_tls::ProviderTls;
use crate::domain::secret::Secret;
use crate::store::engine::column::{Fields, Values};
use crate::store::engine::error::StoreError;
use crate::store::engine::sql;
use crate::store::engine::tx::Tx;

/// A provider as stored: its `key` is empty, the sealed one is a separate field.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct StoredProvider {
    /// The provider; its `key` is empty.
    pub provider: Provider,
    /// The credential, sealed by `crypto`; empty for a removed provider.
    pub key_cipher: String,
}

/// Every column but the sealed key, which is written only when it changes.
const COLUMNS: &[&str] = limits::columns!(
    [
        "name",
        "url",
        "kind",
        "auth",
        "query",
        "path_template",
        "credentials",
        "quota_guard",
        "is_enabled",
        "weight",
        "priority",
        "cost_multiplier",
        "group_tag",
        "allowed_models",
        "model_redirects",
        "allowed_features",
        "denied_features"
    ],
    [
        "max_retry_attempts",
        "breaker_failure_threshold",
        "breaker_open_duration_ms",
        "breaker_half_open_successes",
        "first_byte_streaming_ms",
        "streaming_idle_ms",
        "streaming_content_ms",
        "request_non_streaming_ms",
        "cache_ttl",
        "instructions",
        "preserve_client_ip",
        "anthropic_host",
        "websocket",
        "probe_interval",
        "probe_model",
        "proxy_url",
        "tls_ca",
        "tls_client_certificate",
        "note",
        "health_since",
        "switched_off",
        "created_at",
        "updated_at",
        "deleted_at"
    ]
);

fn columns_with_key() -> Vec<&'static str> {
    COLUMNS.iter().copied().chain(["key_cipher"]).collect()
}

fn bind(provider: &Provider) -> Values {
    let mut values = Values::default();
    values
        .text(&provider.name)
        .text(&provider.url)
        .text(provider.kind.as_str())
        .text(provider.auth.as_str())
        .json(&provider.query)
        .opt_text(provider.path_template.as_deref())
        .json(&provider.credentials)
        .opt_count_of(provider.quota_guard.map(u64::from))
        .flag(provider.is_enabled);
    values.int(i64::from(provider.weight)).int(i64::from(provider.priority));
    values.text(&provider.cost_multiplier.to_string()).text(&provider.group_tag.to_string());
    values.json(&provider.allowed_models).json(&provider.model_redirects);
    values.json(&provider.features.allowed).json(&provider.features.denied);
    limits::bind(&mut values, &provider.limits);
    values.int(i64::from(provider.max_retry_attempts));
    values.int(i64::from(provider.breaker.failure_threshold));
    values.count_of(provider.breaker.open_duration_ms);
    values.int(i64::from(provider.breaker.half_open_success_threshold));
    let timeouts = provider.timeouts;
    values.opt_count_of(timeouts.first_byte_streaming_ms).opt_count_of(timeouts.streaming_idle_ms);
    values
        .opt_count_of(timeouts.streaming_content_ms)
        .opt_count_of(timeouts.request_non_streaming_ms);
    values.text(provider.cache_ttl.as_str()).text(provider.instructions.as_str());
    values
        .flag(provider.preserve_client_ip)
        .text(provider.anthropic_host.as_str())
        .flag(provider.websocket)
        .opt_count_of(provider.probe_interval.map(u64::from))
        .opt_text(provider.probe_model.as_deref())
        .opt_text(provider.proxy_url.as_deref())
        .opt_text(provider.tls.ca.as_deref())
        .opt_text(provider.tls.client_certificate.as_deref())
        .text(&provider.note);
    values.time(provider.health_since);
    let switched_off =
        provider.switched_off.as_ref().and_then(|why| serde_json::to_string(why).ok());
    values.opt_text(switched_off.as_deref());
    values.time(provider.created_at).time(provider.updated_at).opt_time(provider.deleted_at);
    values
}

fn timeouts(fields: &Fields<'_>) -> Result<ProviderTimeouts, StoreError> {
    Ok(ProviderTimeouts {
        first_byte_streaming_ms: fields.opt_number("first_byte_streaming_ms")?,
        streaming_idle_ms: fields.opt_number("streaming_idle_ms")?,
        streaming_content_ms: fields.opt_number("streaming_content_ms")?,
        request_non_streaming_ms: fields.opt_number("request_non_streaming_ms")?,
    })
}

fn read(row: &AnyRow) -> Result<StoredProvider, StoreError> {
    let fields = Fields { row, table: "providers" };
    let provider = Provider {
        id: ProviderId(fields.int("id")?),
        name: fields.text("name")?,
        url: fields.text("url")?,
        key: Secret::default(),
        cloud: ClaudeCloud::None,
        kind: fields.named("kind", ProviderType::parse)?,
        auth: fields.named("auth", ProviderAuth::parse)?,
        custom_headers: Vec::new(),
        header_secrets: Vec::new(),
        query: fields.json("query")?,
        path_template: fields.opt_text("path_template")?,
        credentials: fields.json("credentials")?,
        variants: Vec::new(),
        credential: None,
        quota_guard: fields.opt_number("quota_guard")?,
        is_enabled: fields.flag("is_enabled")?,
        weight: fields.number("weight")?,
        priority: fields.number("priority")?,
        cost_multiplier: fields.parsed("cost_multiplier")?,
        group_tag: Groups::parse(&fields.text("group_tag")?),
        allowed_models: fields.json("allowed_models")?,
        model_redirects: fields.json("model_redirects")?,
        features: features::read(fields)?,
        limits: limits::read(fields)?,
        max_retry_attempts: fields.number("max_retry_attempts")?,
        breaker: BreakerSettings {
            failure_threshold: fields.number("breaker_failure_threshold")?,
            open_duration_ms: fields.number("breaker_open_duration_ms")?,
            half_open_success_threshold: fields.number("breaker_half_open_successes")?,
        },
        timeouts: timeouts(&fields)?,
        cache_ttl: fields.named("cache_ttl", CacheTtl::parse)?,
        instructions: fields.named("instructions", InstructionsStrategy::parse)?,
        preserve_client_ip: fields.flag("preserve_client_ip")?,
        anthropic_host: fields.named("anthropic_host", AnthropicHost::parse)?,
        websocket: fields.flag("websocket")?,
        probe_interval: fields.opt_number("probe_interval")?,
        probe_model: fields.opt_text("probe_model")?,
        proxy_url: fields.opt_text("proxy_url")?,
        proxy_password: Secret::default(),
        tls: ProviderTls {
            ca: fields.opt_text("tls_ca")?,
            client_certificate: fields.opt_text("tls_client_certificate")?,
            client_key: Secret::default(),
        },
        note: fields.text("note")?,
        health_since: fields.time("health_since")?,
        switched_off: match fields.opt_text("switched_off")? {
            None => None,
            Some(_) => Some(fields.json("switched_off")?),
        },
        created_at: fields.time("created_at")?,
        updated_at: fields.time("updated_at")?,
        deleted_at: fields.opt_time("deleted_at")?,
    };
    Ok(StoredProvider { provider, key_cipher: fields.text("key_cipher")? })
}

/// Every provider that is not deleted, oldest first.
pub(in crate::store) async fn all(
    connection: &mut AnyConnection,
) -> Result<Vec<StoredProvider>, StoreError> {
    let sql = sql::select("providers", &columns_with_key(), "WHERE deleted_at IS NULL ORDER BY id");
    sqlx::query(AssertSqlSafe(sql)).fetch_all(connection).await?.iter().map(read).collect()
}

impl Tx {
    /// Every provider that is not deleted, oldest first.
    pub async fn providers(&mut self) -> Result<Vec<StoredProvider>, StoreError> {
        all(&mut self.inner).await
    }

    /// The provider, unless it is deleted or does not exist.
    pub async fn provider(&mut self, id: ProviderId) -> Result<Option<StoredProvider>, StoreError> {
        let sql =
            sql::select("providers", &columns_with_key(), "WHERE deleted_at IS NULL AND id = $1");
        let row =
            sqlx::query(AssertSqlSafe(sql)).bind(id.0).fetch_optional(&mut *self.inner).await?;
        row.as_ref().map(read).transpose()
    }

    /// Adds a provider; its `id` and plain `key` are ignored. Returns the new id.
    pub async fn insert_provider(
        &mut self,
        provider: &Provider,
        key_cipher: &str,
    ) -> Result<ProviderId, StoreError> {
        let mut values = bind(provider);
        values.text(key_cipher);
        self.insert_row("providers", &columns_with_key(), values).await.map(ProviderId)
    }

    /// Overwrites every field of the provider; the sealed key only when one is given. To delete
    /// softly, set `deleted_at`: the source of its invoices goes with it.
    ///
    /// # Errors
    /// [`StoreError::Missing`] when there is no such provider.
    pub async fn update_provider(
        &mut self,
        provider: &Provider,
        key_cipher: Option<&str>,
    ) -> Result<(), StoreError> {
        if provider.deleted_at.is_some() {
            self.delete_invoice_source(provider.id).await?;
        }
        let mut values = bind(provider);
        match key_cipher {
            Some(cipher) => {
                values.text(cipher);
                self.update_row("providers", &columns_with_key(), values, provider.id.0).await
            }
            None => self.update_row("providers", COLUMNS, values, provider.id.0).await,
        }
    }

    /// Replaces only a provider's sealed key.
    ///
    /// # Errors
    /// [`StoreError::Missing`] when there is no such provider.
    pub async fn set_provider_key(
        &mut self,
        id: ProviderId,
        key_cipher: &str,
    ) -> Result<(), StoreError> {
        let mut values = Values::default();
        values.text(key_cipher);
        self.update_row("providers", &["key_cipher"], values, id.0).await
    }
}
