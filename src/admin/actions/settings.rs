//! `system-config/*`: settings that administrators change at run time, and the clean-up of the
//! request log.
//!
//! Settings are part of the snapshot, so a save is in effect when it is answered. The time zone is
//! configuration: shown, not saved.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::admin::bodies::{Clock, Edit, GroupFields, List, Nothing, Patch, Sent, Text, Whole};
use crate::admin::call::{AuditChange, Call, recorded};
use crate::admin::envelope::{ApiError, Code};
use crate::admin::operation::{Operation, Permission};
use crate::admin::reasons::Reason;
use crate::admin::records::settings::{CleanupRecord, SettingsRecord};
use crate::domain::settings::{GroupFeatures, SystemSettings};

/// The system settings.
#[derive(Debug, Default, Clone, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct SettingsFields {
    /// The name in the web UI's title.
    pub site_title: Sent<Text<1, 128>>,
    /// Let users see the figures of all users, by user, model and provider, in overview and
    /// statistics. Keys of others are never named.
    pub allow_global_usage_view: Sent<bool>,
    /// The symbol shown before amounts; nothing is converted, amounts are in USD.
    pub currency_display: Sent<Text<1, 16>>,
    /// Remove old entries of the request log each day.
    pub enable_auto_cleanup: Sent<bool>,
    /// How far the request log goes back. Costs and statistics are kept permanently.
    pub cleanup_retention_days: Sent<Whole<u32, 1, 365>>,
    /// When it is cleaned up each day, `HH:MM` in the gateway's time zone.
    pub cleanup_schedule: Sent<Clock>,
    /// Refuse coding clients older than the newest version that several users run.
    pub enable_client_version_check: Sent<bool>,
    /// What requests of the keys of each group may use; groups that are left out say nothing.
    pub group_features: Patch<List<GroupFields, 0, 200>>,
}

/// The operations of this file, for the table of all.
pub fn operations() -> Vec<Operation> {
    vec![
        Operation::action("actions/system-config/fetchSystemSettings", Permission::Admin, fetch)
            .reads()
            .doc("The system settings."),
        Operation::action("actions/system-config/saveSystemSettings", Permission::Admin, save)
            .updates()
            .doc("Changes what is sent, and returns the current settings."),
        Operation::action("actions/system-config/runCleanup", Permission::Admin, run_cleanup)
            .doc(
                "Starts to remove old entries of the request log; getCleanupStatus reports the \
                 progress.",
            )
            .errors(&[Code::OPERATION_FAILED]),
        Operation::action(
            "actions/system-config/getCleanupStatus",
            Permission::Admin,
            cleanup_status,
        )
        .reads()
        .doc("The progress or the result of cleaning up the request log."),
    ]
}

async fn fetch(call: Call, _: Nothing) -> Result<SettingsRecord, ApiError> {
    Ok(SettingsRecord::new(
        &call.ctx.node.state.snapshot().settings,
        call.ctx.time_zone,
        call.ctx.node.live.load().unpriced,
    ))
}

async fn save(call: Call, body: Edit<Nothing, SettingsFields>) -> Result<SettingsRecord, ApiError> {
    let mut tx = call.ctx.node.store.begin().await?;
    let before = tx.settings().await?;
    let mut after = before.clone();
    body.change.apply(&mut after);
    let shown = |settings| {
        SettingsRecord::new(settings, call.ctx.time_zone, call.ctx.node.live.load().unpriced)
    };
    if after == before {
        return Ok(shown(&after));
    }
    tx.save_settings(&after).await?;
    let change = AuditChange {
        action: "system-config.saveSystemSettings",
        target: "system settings".to_owned(),
        before: recorded(&shown(&before))?,
        after: recorded(&shown(&after))?,
    };
    call.audit(&mut tx, change).await?;
    call.commit(tx).await?;
    Ok(shown(&after))
}

impl SettingsFields {
    /// Puts every field that was sent into the settings.
    pub fn apply(&self, settings: &mut SystemSettings) {
        self.site_title.apply(&mut settings.site_title);
        self.allow_global_usage_view.apply(&mut settings.allow_global_usage_view);
        self.currency_display.apply(&mut settings.currency_display);
        self.enable_auto_cleanup.apply(&mut settings.enable_auto_cleanup);
        self.cleanup_retention_days.apply(&mut settings.cleanup_retention_days);
        self.cleanup_schedule.apply(&mut settings.cleanup_schedule);
        self.enable_client_version_check.apply(&mut settings.enable_client_version_check);
        let groups = self.group_features.plain().map(GroupFeatures::merged);
        groups.apply(&mut settings.group_features);
    }
}

/// The audit record comes after the refusal of a second run and before the first removal.
async fn run_cleanup(call: Call, _: Nothing) -> Result<CleanupRecord, ApiError> {
    let jobs = &call.ctx.jobs;
    if !jobs.take_cleanup().await? {
        return Err(ApiError::because(Code::OPERATION_FAILED, Reason::CleanupRuns));
    }
    if let Err(refusal) = audit_cleanup(&call).await {
        jobs.give_up_cleanup().await;
        return Err(refusal);
    }
    jobs.start_cleanup();
    cleanup_status(call, Nothing {}).await
}

async fn audit_cleanup(call: &Call) -> Result<(), ApiError> {
    let mut tx = call.ctx.node.store.begin().await?;
    let target = "request log".to_owned();
    let change =
        AuditChange { action: "system-config.runCleanup", target, before: None, after: None };
    call.audit(&mut tx, change).await?;
    Ok(tx.commit().await?)
}

async fn cleanup_status(call: Call, _: Nothing) -> Result<CleanupRecord, ApiError> {
    Ok(CleanupRecord::new(call.ctx.jobs.cleanup().await?))
}
