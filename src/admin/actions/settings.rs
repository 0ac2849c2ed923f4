//! `system-config/*`: settings that administrators change at run time, and the clean-up of the
//! request log.
//!
//! Settings are part of the snapshot, so a save is in effect when it is answered. The time zone is
//! configuration: shown, not saved.

use crate::admin::call::{Call, Change, recorded};
use crate::admin::envelope::{ApiError, Code};
use crate::admin::fields::{Body, Field, Form, Kind, Values};
use crate::admin::records::settings::{CleanupRecord, SettingsRecord};
use crate::admin::table::{Operation, Permission};
use crate::domain::limits::TimeOfDay;
use crate::domain::settings::SystemSettings;

pub const SETTINGS: &[Field] = &[
    Field::new("siteTitle", Kind::text(1, 128), "The name in the web UI's title."),
    Field::new(
        "allowGlobalUsageView",
        Kind::Boolean,
        "Let users see figures of everybody, by user, model and provider, in overview and statistics. Keys of others are never named.",
    ),
    Field::new(
        "currencyDisplay",
        Kind::text(1, 16),
        "The symbol shown before amounts; nothing is converted, amounts are in USD.",
    ),
    Field::new("enableAutoCleanup", Kind::Boolean, "Remove old entries of the request log each day."),
    Field::new(
        "cleanupRetentionDays",
        Kind::Integer { min: 1, max: 365 },
        "How far the request log goes back. Costs and statistics are kept for ever.",
    ),
    Field::new(
        "cleanupSchedule",
        Kind::Text { min: 4, max: 5, form: Form::TimeOfDay },
        "When it is cleaned up each day, `HH:MM` in the gateway's time zone.",
    ),
    Field::new(
        "enableClientVersionCheck",
        Kind::Boolean,
        "Turn away coding clients older than the newest version that several users run.",
    ),
];

pub fn operations() -> Vec<Operation> {
    vec![
        Operation::action("actions/system-config/fetchSystemSettings", Permission::Admin, Body::EMPTY, fetch)
            .doc("The system settings."),
        Operation::action(
            "actions/system-config/saveSystemSettings",
            Permission::Admin,
            Body::edit(&[], SETTINGS),
            save,
        )
        .doc("Changes what is sent, and answers the settings in force."),
        Operation::action("actions/system-config/runCleanup", Permission::Admin, Body::EMPTY, run_cleanup)
            .doc("Starts to remove old entries of the request log; ask getCleanupStatus how far it is.")
            .errors(&[Code::OPERATION_FAILED]),
        Operation::action("actions/system-config/getCleanupStatus", Permission::Admin, Body::EMPTY, cleanup_status)
            .doc("How far cleaning up the request log is, or how it ended."),
    ]
}

async fn fetch(call: Call) -> Result<SettingsRecord, ApiError> {
    Ok(SettingsRecord::new(&call.ctx.state.snapshot().settings, call.ctx.time_zone, (call.ctx.unpriced)()))
}

async fn save(call: Call) -> Result<SettingsRecord, ApiError> {
    let mut tx = call.ctx.store.begin().await?;
    let before = tx.settings().await?;
    let mut after = before.clone();
    apply(&call.values, &mut after);
    tx.save_settings(&after).await?;
    let shown = |settings| SettingsRecord::new(settings, call.ctx.time_zone, (call.ctx.unpriced)());
    let change = Change {
        action: "system-config.saveSystemSettings",
        target: "system settings".to_owned(),
        before: recorded(&shown(&before))?,
        after: recorded(&shown(&after))?,
    };
    call.audit(&mut tx, change).await?;
    call.commit(tx).await?;
    Ok(shown(&after))
}

/// Puts every field that was sent into the settings.
pub(in crate::admin) fn apply(values: &Values, settings: &mut SystemSettings) {
    values.text("siteTitle").apply_set(&mut settings.site_title);
    values.boolean("allowGlobalUsageView").apply_set(&mut settings.allow_global_usage_view);
    values.text("currencyDisplay").apply_set(&mut settings.currency_display);
    values.boolean("enableAutoCleanup").apply_set(&mut settings.enable_auto_cleanup);
    values.count("cleanupRetentionDays").apply_set(&mut settings.cleanup_retention_days);
    values.word("cleanupSchedule", TimeOfDay::parse).apply_set(&mut settings.cleanup_schedule);
    values.boolean("enableClientVersionCheck").apply_set(&mut settings.enable_client_version_check);
}

async fn run_cleanup(call: Call) -> Result<CleanupRecord, ApiError> {
    let mut tx = call.ctx.store.begin().await?;
    let target = "request log".to_owned();
    let change = Change { action: "system-config.runCleanup", target, before: None, after: None };
    call.audit(&mut tx, change).await?;
    tx.commit().await?;
    if !call.ctx.jobs.start_cleanup().await? {
        return Err(ApiError::new(Code::OPERATION_FAILED, "the request log is being cleaned up already"));
    }
    cleanup_status(call).await
}

async fn cleanup_status(call: Call) -> Result<CleanupRecord, ApiError> {
    Ok(CleanupRecord::new(call.ctx.jobs.cleanup().await?))
}
