//! The section `settings`: the system settings, whole.

use serde_json::Value;

use super::form::{self, Form};
use super::section::{self, Section};
use super::work::Work;
use crate::admin::actions::settings::SettingsFields;
use crate::admin::bodies::Shape;
use crate::admin::envelope::ApiError;
use crate::domain::settings::SystemSettings;

impl Section for SystemSettings {
    const KIND: &'static str = "settings";

    fn form(&self) -> Result<Option<Form>, ApiError> {
        form::of(self, Shape::of::<SettingsFields>()).map(Some)
    }

    fn target(&self) -> String {
        "system settings".to_owned()
    }
}

pub(super) async fn apply(work: &mut Work<'_>, section: Option<Value>) -> Result<(), ApiError> {
    let Some(entry) = work.map(section, "/settings") else { return Ok(()) };
    let Some(fields) = work.read::<SettingsFields>(&entry, "/settings")? else { return Ok(()) };
    let mut wanted = SystemSettings::default();
    fields.apply(&mut wanted);
    if wanted == work.stored.settings {
        return Ok(());
    }
    if work.is_sound() {
        work.tx.save_settings(&wanted).await?;
    }
    let stored = work.stored.settings.clone();
    section::note(work, String::new(), Some(&stored), Some(&wanted))
}
