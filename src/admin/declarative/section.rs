//! What the sections have in common: how records are compared, written, removed and put into the
//! plan, and which of their fields need not be written.

use super::form::{self, Form};
use super::plan::PlanStep;
use super::work::Work;
use crate::admin::envelope::ApiError;

/// A kind of record of a document.
pub(super) trait Section: Sized + Sync {
    /// What the plan calls it.
    const KIND: &'static str;

    /// The record as the document has it, with secrets masked; `None` if it is not there.
    fn form(&self) -> Result<Option<Form>, ApiError>;

    /// What the audit log calls it: `user 12`.
    fn target(&self) -> String;

    /// A secret that is another one than before, even where both forms look the same.
    fn secret(&self, _before: Option<&Self>) -> Option<&'static str> {
        None
    }

    /// What need not be written, as it is so anyway.
    fn defaults() -> Result<Form, ApiError> {
        Ok(Form::new())
    }

    /// The form of a record of which nothing but the fields `written` is written, without these.
    fn all_but(&self, written: &[&str]) -> Result<Form, ApiError> {
        let mut form = self.form()?.unwrap_or_default();
        form.retain(|name, _| !written.contains(&name.as_str()));
        Ok(form)
    }

    /// The form without what need not be written.
    fn short(&self, defaults: &Form) -> Result<Form, ApiError> {
        Ok(form::shortened(self.form()?.unwrap_or_default(), defaults))
    }
}

/// A kind of record that is stored one by one.
pub(super) trait Row: Section + Send {
    /// Stores it, with its id if it is new.
    fn save(
        &mut self,
        work: &mut Work<'_>,
        is_new: bool,
    ) -> impl Future<Output = Result<(), ApiError>> + Send;

    /// Removes the stored record.
    fn delete(&self, work: &mut Work<'_>) -> impl Future<Output = Result<(), ApiError>> + Send;
}

/// Stores a record that is new or has changed, and notes it. Returns it as stored.
pub(super) async fn write<R: Row>(
    work: &mut Work<'_>,
    label: String,
    before: Option<&R>,
    mut after: R,
) -> Result<R, ApiError> {
    let step = step(label, before, Some(&after))?;
    if before.is_some() && step.secret.is_none() && step.before == step.after {
        return Ok(after);
    }
    if work.is_sound() {
        after.save(work, before.is_none()).await?;
    }
    // An id is known now.
    work.note(PlanStep { target: after.target(), ..step }, &R::defaults()?);
    Ok(after)
}

/// Removes a stored record, and notes it.
pub(super) async fn remove<R: Row>(
    work: &mut Work<'_>,
    label: String,
    before: &R,
) -> Result<(), ApiError> {
    if work.is_sound() {
        before.delete(work).await?;
    }
    note(work, label, Some(before), None)
}

/// Puts a change into the plan and into the audit log.
pub(super) fn note<S: Section>(
    work: &mut Work<'_>,
    label: String,
    before: Option<&S>,
    after: Option<&S>,
) -> Result<(), ApiError> {
    work.note(step(label, before, after)?, &S::defaults()?);
    Ok(())
}

/// The change of one record.
pub(super) fn step<S: Section>(
    label: String,
    before: Option<&S>,
    after: Option<&S>,
) -> Result<PlanStep, ApiError> {
    Ok(PlanStep {
        kind: S::KIND,
        name: label,
        target: after.or(before).map(S::target).unwrap_or_default(),
        before: before.map(S::form).transpose()?.flatten(),
        after: after.map(S::form).transpose()?.flatten(),
        secret: after.and_then(|after| after.secret(before)),
    })
}
