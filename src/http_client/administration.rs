//! Asks a running gateway's administration API, as `tollgate apply` and `tollgate export` do.

use std::time::Duration;

use serde_json::Value;

use crate::domain::secret::Secret;

/// Longer than the gateway itself takes for an action.
const TIME_LIMIT: Duration = Duration::from_secs(90);

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// It answered with a refusal: its envelope.
    #[error("{}", .0["error"].as_str().unwrap_or("the gateway refused"))]
    Refused(Value),
    /// There was no answer, or not one of the administration API; the text can be shown.
    #[error("{0}")]
    Exchange(String),
}

/// The data that an operation of the gateway at `base` answers.
///
/// # Errors
/// It refused, or did not answer as a gateway does.
pub async fn ask(
    base: &str,
    operation: &str,
    token: &Secret,
    body: &Value,
) -> Result<Value, AskError> {
    let failed = |error| AskError::Exchange(super::describe(error));
    let url = format!("{}/api/actions/{operation}", base.trim_end_matches('/'));
    // A redirect would carry the token, and all that is in the body, elsewhere.
    let client = super::builder(TIME_LIMIT)
        .redirect(reqwest::redirect::Policy::none())
        .build()
        .map_err(failed)?;
    let answer =
        client.post(url).bearer_auth(token.expose()).json(body).send().await.map_err(failed)?;
    let status = answer.status();
    let mut envelope: Value = answer.json().await.map_err(|_| {
        AskError::Exchange(format!(
            "it answered {status}, and not as tollgate's administration does"
        ))
    })?;
    match envelope["ok"].as_bool() {
        Some(true) => Ok(envelope["data"].take()),
        Some(false) => Err(AskError::Refused(envelope)),
        None => Err(AskError::Exchange(format!(
            "it answered {status}, and not as tollgate's administration does"
        ))),
    }
}
