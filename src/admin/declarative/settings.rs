//! The section `settings`: the system settings, whole.

use super::form::{self, Form};
use super::plan::PlanStep;
use super::work::Work;
use crate::admin::actions::settings::SettingsFields;
use crate::admin::bodies::Shape;
use crate::admin::envelope::ApiError;
use crate::domain::settings::SystemSettings;

pub(super) fn form_of(settings: &SystemSettings) -> Result<Form, ApiError> {
    form::of(settings, Shape::of::<SettingsFields>())
}

pub(super) async fn apply(work: &mut Work<'_>, entry: Form) -> Result<(), ApiError> {
    let Some(fields) = work.read::<SettingsFields>(&entry, "/settings")? else { return Ok(()) };
    let mut wanted = SystemSettings::default();
    fields.apply(&mut wanted);
    if wanted == work.stored.settings {
        return Ok(());
    }
    if work.is_sound() {
        work.tx.save_settings(&wanted).await?;
    }
    let step = PlanStep {
        kind: "settings",
        name: String::new(),
        target: "system settings".to_owned(),
        before: Some(form_of(&work.stored.settings)?),
        after: Some(form_of(&wanted)?),
        secret: None,
    };
    work.note(step, &Form::new());
    Ok(())
}
