//! `notifications/*`: the settings of messages and their webhooks, and a test of a webhook.
//!
//! The key that signs messages can be written and never read: it is sealed like upstream
//! credentials.

use std::time::Instant;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::admin::bodies::{
    Clock, Edit, Fraction, Nothing, Patch, Sent, Text, Url, WebhookUrl, Whole,
};
use crate::admin::call::{AuditChange, Call, recorded};
use crate::admin::envelope::{ApiError, Code};
use crate::admin::operation::{Operation, Permission};
use crate::admin::reasons::Reason;
use crate::admin::records::notifications::{NotificationsRecord, WebhookTest};
use crate::crypto::vault::SealedFor;
use crate::domain::notifications::NotificationSettings;
use crate::domain::secret::Secret;
use crate::http_client::{WebhookError, WebhookMessage};
use crate::state::reseal;
use crate::store::{StoredNotifications, Tx};

/// The address of a webhook.
pub type Webhook = Url<WebhookUrl, 8, 2000>;

/// The settings of notifications.
#[derive(Debug, Default, Clone, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct NotificationFields {
    /// None is sent while this is off.
    pub enabled: Sent<bool>,
    /// Tell when a provider fails, is taken out of use, or works again.
    pub circuit_breaker_enabled: Sent<bool>,
    /// Where that is sent.
    pub circuit_breaker_webhook: Patch<Webhook>,
    /// Tell each day who used the gateway the day before.
    pub daily_leaderboard_enabled: Sent<bool>,
    /// Where that is sent.
    pub daily_leaderboard_webhook: Patch<Webhook>,
    /// `HH:MM` in the gateway's time zone.
    pub daily_leaderboard_time: Sent<Clock>,
    /// Entries of the leaderboard.
    pub daily_leaderboard_top_n: Sent<Whole<u32, 1, 100>>,
    /// Tell when a spending limit is nearly used up.
    pub cost_alert_enabled: Sent<bool>,
    /// Where that is sent.
    pub cost_alert_webhook: Patch<Webhook>,
    /// The share of a limit at which an alert is sent; 0 = at the first spending.
    pub cost_alert_threshold: Sent<Fraction<1, 2>>,
    /// Minutes between two looks.
    pub cost_alert_check_interval: Sent<Whole<u32, 1, 1440>>,
    /// Signs every message; it is not shown again. `null`: unsigned.
    pub webhook_secret: Patch<Text<16, 200>>,
}

/// Which webhook.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OfWebhook {
    /// An http or https address; only public ones are taken.
    pub webhook_url: Webhook,
}

/// The operations of this file, for the table of all.
pub fn operations() -> Vec<Operation> {
    vec![
        Operation::action(
            "actions/notifications/getNotificationSettingsAction",
            Permission::Admin,
            get_settings,
        )
        .reads()
        .doc("Which notifications are sent where."),
        Operation::action(
            "actions/notifications/updateNotificationSettingsAction",
            Permission::Admin,
            update_settings,
        )
        .updates()
        .doc("Changes what is sent, and returns the current settings.")
        .errors(&[Code::OPERATION_FAILED]),
        Operation::action(
            "actions/notifications/testWebhookAction",
            Permission::Admin,
            test_webhook,
        )
        .reads()
        .doc("Sends a test message to a webhook, signed as all are.")
        .errors(&[Code::OPERATION_FAILED]),
    ]
}

async fn get_settings(call: Call, _: Nothing) -> Result<NotificationsRecord, ApiError> {
    Ok(NotificationsRecord::new(&call.ctx.node.store.notifications().await?))
}

async fn update_settings(
    call: Call,
    body: Edit<Nothing, NotificationFields>,
) -> Result<NotificationsRecord, ApiError> {
    let sent = body.change;
    for (field, address) in sent.webhooks() {
        if let Some(address) = address {
            call.ctx.webhooks.check(&address).map_err(|error| fault(field, error))?;
        }
    }
    let mut tx = call.ctx.node.store.begin().await?;
    let before = tx.notifications().await?;
    let mut after = before.clone();
    sent.apply(&mut after.settings);
    seal_secret(&call, &mut tx, sent.webhook_secret.plain(), &mut after).await?;
    let shown = NotificationsRecord::new(&after);
    if after == before {
        return Ok(shown);
    }
    tx.save_notifications(&after).await?;
    let change = AuditChange {
        action: "notifications.updateNotificationSettingsAction",
        target: "notification settings".to_owned(),
        before: recorded(&NotificationsRecord::masked(&before))?,
        after: recorded(&NotificationsRecord::masked(&after))?,
    };
    call.audit(&mut tx, change).await?;
    call.commit(tx).await?;
    Ok(shown)
}

impl NotificationFields {
    /// Puts every field that was sent into the settings; the secret is the caller's business.
    pub fn apply(&self, settings: &mut NotificationSettings) {
        self.enabled.apply(&mut settings.enabled);
        self.circuit_breaker_enabled.apply(&mut settings.circuit_breaker_enabled);
        self.circuit_breaker_webhook.plain().apply_option(&mut settings.circuit_breaker_webhook);
        self.daily_leaderboard_enabled.apply(&mut settings.daily_leaderboard_enabled);
        self.daily_leaderboard_webhook
            .plain()
            .apply_option(&mut settings.daily_leaderboard_webhook);
        self.daily_leaderboard_time.apply(&mut settings.daily_leaderboard_time);
        self.daily_leaderboard_top_n.apply(&mut settings.daily_leaderboard_top_n);
        self.cost_alert_enabled.apply(&mut settings.cost_alert_enabled);
        self.cost_alert_webhook.plain().apply_option(&mut settings.cost_alert_webhook);
        self.cost_alert_threshold.apply(&mut settings.cost_alert_threshold);
        self.cost_alert_check_interval.apply(&mut settings.cost_alert_check_interval);
    }

    /// The fields that hold addresses, and those that were sent.
    pub fn webhooks(&self) -> [(&'static str, Option<String>); 3] {
        [
            ("circuitBreakerWebhook", self.circuit_breaker_webhook.plain().set()),
            ("dailyLeaderboardWebhook", self.daily_leaderboard_webhook.plain().set()),
            ("costAlertWebhook", self.cost_alert_webhook.plain().set()),
        ]
    }
}

async fn seal_secret(
    call: &Call,
    tx: &mut Tx,
    secret: Patch<String>,
    stored: &mut StoredNotifications,
) -> Result<(), ApiError> {
    match secret {
        Patch::Keep => {}
        Patch::Clear => stored.secret_cipher = None,
        Patch::Set(secret) => {
            let vault = call.ctx.node.state.vault();
            let sealed =
                reseal::seal(vault, tx, SealedFor::WebhookSecret, &Secret::new(secret)).await;
            stored.secret_cipher = Some(sealed?);
        }
    }
    Ok(())
}

/// What is wrong with a webhook: with its address, which is that of a field, or with its answer.
fn fault(field: &str, error: WebhookError) -> ApiError {
    let bad = |reason| ApiError::because(Code::INVALID_FORMAT, reason).field(field);
    let failed = |reason| ApiError::because(Code::OPERATION_FAILED, reason);
    match error {
        WebhookError::NotAnAddress => bad(Reason::WebhookNoAddress),
        WebhookError::Credentials => bad(Reason::WebhookHasCredentials),
        WebhookError::NotPublic { address, why } => bad(Reason::WebhookNotPublic)
            .with("address", address.to_string().into())
            .with("detail", why.into()),
        WebhookError::Unresolved { host, why } => {
            failed(Reason::WebhookUnresolved).with("host", host.into()).with("detail", why.into())
        }
        WebhookError::Exchange(why) => {
            failed(Reason::WebhookUnreachable).with("detail", why.into())
        }
        WebhookError::Status(status) => {
            failed(Reason::WebhookAnswered).with("status", status.into())
        }
    }
}

async fn test_webhook(call: Call, body: OfWebhook) -> Result<WebhookTest, ApiError> {
    let address = body.webhook_url.0;
    let stored = call.ctx.node.store.notifications().await?;
    let open = |cipher: &String| call.ctx.node.state.vault().open(SealedFor::WebhookSecret, cipher);
    let secret = stored.secret_cipher.as_ref().map(open).transpose().map_err(ApiError::internal)?;
    let message = json!({
        "event": "test",
        "title": "A test message",
        "level": "info",
        "timestamp": call.now.to_iso(),
        "data": { "siteTitle": call.ctx.node.state.snapshot().settings.site_title },
    });
    let (id, body) = (uuid::Uuid::new_v4().to_string(), message.to_string());
    let began = Instant::now();
    let message = WebhookMessage { body: &body, id: &id, at: call.now, secret: secret.as_ref() };
    match call.ctx.webhooks.send(&address, message).await {
        Ok(status) => {
            let latency_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
            Ok(WebhookTest { status, latency_ms })
        }
        Err(error) => Err(fault("webhookUrl", error)),
    }
}
