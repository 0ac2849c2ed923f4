//! Fetches a page of a vendor's report, within bounds of time, size and attempts.
//!
//! A rate limit is waited for as long as the vendor asks, if that is not long; a redirect would
//! carry the administration key elsewhere and is not followed.

use std::time::Duration;

use reqwest::StatusCode;
use reqwest::header::{HeaderMap, RETRY_AFTER};

use crate::domain::clock::Timestamp;
use crate::domain::secret::Secret;
use crate::policy::retry_after::cooldown_until;

const TIME_LIMIT: Duration = Duration::from_secs(20);
const ATTEMPTS: u32 = 4;
/// The longest wait that is waited for.
const LONGEST_WAIT: Duration = Duration::from_secs(15);
const USUAL_WAIT: Duration = Duration::from_secs(1);
/// Bytes of a page: a day has a line for each model, key, tier and size of the context.
const MAX_PAGE: usize = 8 * 1024 * 1024;

/// Why there is no report; the text can be shown to an administrator.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReportError {
    /// 401 or 403.
    #[error(
        "the vendor refused the administration key ({0}): create one in the vendor's console (an \
         API key for models is none) and enter it again"
    )]
    KeyRefused(u16),
    /// 429 after all attempts.
    #[error("the vendor's rate limit is reached: try again later, or ask for fewer days")]
    RateLimited,
    /// Another status than success.
    #[error("the vendor answered {0}: check the address of the report API")]
    Status(u16),
    /// No connection, or no whole answer in time.
    #[error("the vendor's report API could not be reached: {0}")]
    Exchange(String),
    /// There are more than this many bytes.
    #[error("a page of the report is larger than {0} bytes: ask for fewer days")]
    TooLarge(usize),
}

/// The headers of a request, of which some are secret.
pub type Headers<'a> = [(&'static str, &'a Secret)];

/// The text at an address.
///
/// # Errors
/// [`ReportError`]; neither the key nor the query is part of its text.
pub async fn page(
    url: &str,
    query: &[(&'static str, String)],
    headers: &Headers<'_>,
) -> Result<String, ReportError> {
    let failed = |error| ReportError::Exchange(super::describe(error));
    let client = super::builder(TIME_LIMIT)
        .redirect(reqwest::redirect::Policy::none())
        .build()
        .map_err(failed)?;
    let mut attempt = 1;
    loop {
        let asked = reqwest::Url::parse_with_params(url, query)
            .map_err(|error| ReportError::Exchange(error.to_string()))?;
        let mut request = client.get(asked);
        for (name, value) in headers {
            request = request.header(*name, value.expose());
        }
        let (error, wait) = match request.send().await {
            Ok(answer) if answer.status().is_success() => return whole(answer).await,
            Ok(answer) => {
                let wait = retry_after(answer.headers());
                match answer.status() {
                    StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                        return Err(ReportError::KeyRefused(answer.status().as_u16()));
                    }
                    StatusCode::TOO_MANY_REQUESTS => (ReportError::RateLimited, wait),
                    status if status.is_server_error() => {
                        (ReportError::Status(status.as_u16()), wait)
                    }
                    status => return Err(ReportError::Status(status.as_u16())),
                }
            }
            Err(error) => (failed(error), None),
        };
        let wait = wait.unwrap_or(USUAL_WAIT * attempt);
        if attempt == ATTEMPTS || wait > LONGEST_WAIT {
            return Err(error);
        }
        attempt += 1;
        tokio::time::sleep(wait).await;
    }
}

async fn whole(mut answer: reqwest::Response) -> Result<String, ReportError> {
    let mut bytes = Vec::new();
    let failed = |error| ReportError::Exchange(super::describe(error));
    while let Some(chunk) = answer.chunk().await.map_err(failed)? {
        if bytes.len() + chunk.len() > MAX_PAGE {
            return Err(ReportError::TooLarge(MAX_PAGE));
        }
        bytes.extend_from_slice(&chunk);
    }
    String::from_utf8(bytes).map_err(|_| ReportError::Exchange("it is not UTF-8 text".to_owned()))
}

/// Both vendors send seconds; a date is a wait that is too long.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?;
    let until = cooldown_until(text, Timestamp(0), u64::MAX)?;
    u64::try_from(until.0).ok().map(Duration::from_millis)
}
