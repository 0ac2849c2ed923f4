//! `notifications/*`: the settings of messages and their webhooks, and a test of a webhook.
//!
//! The key that signs messages can be written and never read: it is sealed like upstream
//! credentials.

use std::time::Instant;

use serde_json::json;

use crate::admin::call::{Call, Change, recorded};
use crate::admin::envelope::{ApiError, Code};
use crate::admin::fields::{Body, Field, Form, Kind, Patch, Values};
use crate::admin::records::notifications::{NotificationsRecord, WebhookTest};
use crate::admin::table::{Operation, Permission};
use crate::crypto::vault::Place;
use crate::domain::limits::TimeOfDay;
use crate::domain::notifications::NotificationSettings;
use crate::domain::secret::Secret;
use crate::http_client::{Message, WebhookError};
use crate::state::reseal;
use crate::store::{StoredNotifications, Tx};

const WEBHOOK: Kind = Kind::Text { min: 8, max: 2000, form: Form::Webhook };

pub const SETTINGS: &[Field] = &[
    Field::new("enabled", Kind::Boolean, "None is sent while this is off."),
    Field::new(
        "circuitBreakerEnabled",
        Kind::Boolean,
        "Tell when a provider fails, is taken out of use, or works again.",
    ),
    Field::new("circuitBreakerWebhook", WEBHOOK, "").nullable(),
    Field::new("dailyLeaderboardEnabled", Kind::Boolean, "Tell each day who used the gateway the day before."),
    Field::new("dailyLeaderboardWebhook", WEBHOOK, "").nullable(),
    Field::new(
        "dailyLeaderboardTime",
        Kind::Text { min: 4, max: 5, form: Form::TimeOfDay },
        "`HH:MM` in the gateway's time zone.",
    ),
    Field::new("dailyLeaderboardTopN", Kind::Integer { min: 1, max: 100 }, "Entries of the leaderboard."),
    Field::new("costAlertEnabled", Kind::Boolean, "Tell when a spending limit is nearly used up."),
    Field::new("costAlertWebhook", WEBHOOK, "").nullable(),
    Field::new(
        "costAlertThreshold",
        Kind::Decimal { max: 1, places: 2 },
        "The share of a limit from which on it is told.",
    ),
    Field::new("costAlertCheckInterval", Kind::Integer { min: 1, max: 1440 }, "Minutes between two looks."),
    Field::new("webhookSecret", Kind::text(16, 200), "Signs every message; it is not shown again. `null`: unsigned.")
        .nullable(),
];

/// The fields that hold addresses.
pub const WEBHOOKS: [&str; 3] = ["circuitBreakerWebhook", "dailyLeaderboardWebhook", "costAlertWebhook"];

pub const WEBHOOK_URL: &[Field] =
    &[Field::new("webhookUrl", WEBHOOK, "An http or https address; only public ones are taken.").required()];

pub fn operations() -> Vec<Operation> {
    vec![
        Operation::action(
            "actions/notifications/getNotificationSettingsAction",
            Permission::Admin,
            Body::EMPTY,
            get_settings,
        )
        .doc("Which notifications are sent where."),
        Operation::action(
            "actions/notifications/updateNotificationSettingsAction",
            Permission::Admin,
            Body::edit(&[], SETTINGS),
            update_settings,
        )
        .doc("Changes what is sent, and answers the settings in force.")
        .errors(&[Code::OPERATION_FAILED]),
        Operation::action(
            "actions/notifications/testWebhookAction",
            Permission::Admin,
            Body::of(WEBHOOK_URL, &[]),
            test_webhook,
        )
        .doc("Sends a test message to a webhook, signed as all are.")
        .errors(&[Code::OPERATION_FAILED]),
    ]
}

async fn get_settings(call: Call) -> Result<NotificationsRecord, ApiError> {
    Ok(NotificationsRecord::new(&call.ctx.store.notifications().await?))
}

async fn update_settings(call: Call) -> Result<NotificationsRecord, ApiError> {
    for field in WEBHOOKS {
        if let Patch::Set(address) = call.values.text(field) {
            call.ctx.webhooks.check(&address).map_err(|error| fault(field, &error))?;
        }
    }
    let mut tx = call.ctx.store.begin().await?;
    let before = tx.notifications().await?;
    let mut after = before.clone();
    apply(&call.values, &mut after.settings);
    seal_secret(&call, &mut tx, &mut after).await?;
    tx.save_notifications(&after).await?;
    let shown = NotificationsRecord::new(&after);
    let change = Change {
        action: "notifications.updateNotificationSettingsAction",
        target: "notification settings".to_owned(),
        before: recorded(&NotificationsRecord::masked(&before))?,
        after: recorded(&NotificationsRecord::masked(&after))?,
    };
    call.audit(&mut tx, change).await?;
    call.commit(tx).await?;
    Ok(shown)
}

/// Puts every field that was sent into the settings; the secret is the caller's business.
pub(in crate::admin) fn apply(values: &Values, settings: &mut NotificationSettings) {
    values.boolean("enabled").apply_set(&mut settings.enabled);
    values.boolean("circuitBreakerEnabled").apply_set(&mut settings.circuit_breaker_enabled);
    values.text("circuitBreakerWebhook").apply_option(&mut settings.circuit_breaker_webhook);
    values.boolean("dailyLeaderboardEnabled").apply_set(&mut settings.daily_leaderboard_enabled);
    values.text("dailyLeaderboardWebhook").apply_option(&mut settings.daily_leaderboard_webhook);
    values.word("dailyLeaderboardTime", TimeOfDay::parse).apply_set(&mut settings.daily_leaderboard_time);
    values.count("dailyLeaderboardTopN").apply_set(&mut settings.daily_leaderboard_top_n);
    values.boolean("costAlertEnabled").apply_set(&mut settings.cost_alert_enabled);
    values.text("costAlertWebhook").apply_option(&mut settings.cost_alert_webhook);
    values.decimal("costAlertThreshold").apply_set(&mut settings.cost_alert_threshold);
    values.count("costAlertCheckInterval").apply_set(&mut settings.cost_alert_check_interval);
}

async fn seal_secret(call: &Call, tx: &mut Tx, stored: &mut StoredNotifications) -> Result<(), ApiError> {
    match call.values.text("webhookSecret") {
        Patch::Keep => {}
        Patch::Clear => stored.secret_cipher = None,
        Patch::Set(secret) => {
            let vault = call.ctx.state.vault();
            let sealed = reseal::seal(vault, tx, Place::WebhookSecret, &Secret::new(secret)).await;
            stored.secret_cipher = Some(sealed?);
        }
    }
    Ok(())
}

fn fault(field: &str, error: &WebhookError) -> ApiError {
    ApiError::field(Code::INVALID_FORMAT, field, format!("{field}: {error}"))
}

async fn test_webhook(call: Call) -> Result<WebhookTest, ApiError> {
    let address = call.values.text("webhookUrl").set().unwrap_or_default();
    let stored = call.ctx.store.notifications().await?;
    let open = |cipher: &String| call.ctx.state.vault().open(Place::WebhookSecret, cipher);
    let secret = stored.secret_cipher.as_ref().map(open).transpose().map_err(ApiError::internal)?;
    let body = json!({
        "event": "test",
        "title": "A test message",
        "level": "info",
        "timestamp": call.now.to_iso(),
        "data": { "siteTitle": call.ctx.state.snapshot().settings.site_title },
    });
    let (id, body) = (uuid::Uuid::new_v4().to_string(), body.to_string());
    let began = Instant::now();
    let message = Message { body: &body, id: &id, at: call.now, secret: secret.as_ref() };
    match call.ctx.webhooks.send(&address, message).await {
        Ok(status) => {
            let latency_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
            Ok(WebhookTest { status, latency_ms })
        }
        Err(error) if error.is_final() => Err(fault("webhookUrl", &error)),
        Err(error) => Err(ApiError::new(Code::OPERATION_FAILED, format!("the webhook {error}"))),
    }
}
