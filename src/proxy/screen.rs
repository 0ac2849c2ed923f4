//! What this caller may ask for: the user's lists of models and of clients.

use super::exchange::{Caller, Exchange};
use super::refusal::Refusal;
use crate::domain::provider::model_matches;

/// Checks the allow-lists of the key's owner.
///
/// # Errors
/// When the model or the client is not in a list that is not empty.
pub fn screen(x: &Exchange) -> Result<(), Refusal> {
    let (Some(Caller::Key { user, .. }), Some(inbound)) = (&x.caller, &x.inbound) else { return Ok(()) };
    if !user.allowed_models.is_empty() && !model_matches(&user.allowed_models, &inbound.model) {
        return Err(Refusal::ModelNotAllowed { model: inbound.model.to_string() });
    }
    if !user.allowed_clients.is_empty() {
        let agent = x.user_agent.as_deref().unwrap_or_default().to_ascii_lowercase();
        if !user.allowed_clients.iter().any(|name| agent.contains(&name.to_ascii_lowercase())) {
            return Err(Refusal::ClientNotAllowed);
        }
    }
    Ok(())
}
