//! Access tokens of clouds: a provider's credential is exchanged for one, which its requests carry.
//!
//! A token is fetched once for all requests that need it, and renewed before it expires: one
//! request fetches the next one while the others use the present one. One that the provider refuses
//! is dropped.
//!
//! See docs/decisions/44-access-tokens-with-ring.md.

mod entra;
mod exchange;
mod federation;
mod google;
mod jwt;
mod machine;

use std::time::{Duration, Instant};

use http::HeaderValue;
use parking_lot::Mutex;
use tokio::time::timeout;

use self::entra::Entra;
use self::exchange::Exchange;
use self::google::Google;
use crate::domain::clock::Timestamp;
use crate::domain::provider::Provider;
use crate::domain::provider_auth::ProviderAuth;
use crate::domain::secret::Secret;

/// How long before its end a token is renewed; half of its life, if that is shorter.
const EARLY_MS: i64 = 300_000;
/// How long the present token is used after it could not be renewed, before the next try.
const PAUSE_MS: i64 = 30_000;
/// How long a request waits for a token while the present one is good.
const EARLY_WAIT: Duration = Duration::from_secs(2);
/// How long a failure stands for requests that need a token.
const FAILURE_LIFE: Duration = Duration::from_secs(5);

/// Where a token comes from.
enum Grant {
    Google(Google),
    Entra(Entra),
}

/// The tokens of one provider.
pub struct TokenSource {
    grant: Grant,
    exchange: Exchange,
    state: Mutex<TokenState>,
    /// Held by the request that fetches a token.
    flight: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct TokenState {
    token: Option<AccessToken>,
    /// The last failure, and when it was.
    failed: Option<(Instant, String)>,
}

#[derive(Clone)]
struct AccessToken {
    /// `Bearer …`, marked as sensitive.
    value: HeaderValue,
    renew_at: Timestamp,
    expires_at: Timestamp,
}

/// Whether a token can be asked for with this credential.
///
/// # Errors
/// Why it cannot; the text can be shown.
pub fn check(auth: ProviderAuth, key: &Secret) -> Result<(), String> {
    Grant::of(auth, key).map_or(Ok(()), |grant| grant.map(|_| ()))
}

impl Grant {
    fn of(auth: ProviderAuth, key: &Secret) -> Option<Result<Self, String>> {
        match auth {
            ProviderAuth::GcpServiceAccount => Some(Google::read(key).map(Self::Google)),
            ProviderAuth::AzureEntra => Some(Entra::read(key).map(Self::Entra)),
            _ => None,
        }
    }
}

impl TokenSource {
    /// The source of a provider's tokens; `None` if its credential is sent as it is.
    ///
    /// # Errors
    /// The credential is not of the form that the provider's `auth` needs.
    pub fn of(provider: &Provider) -> Option<Result<Self, String>> {
        let source = |grant| Self {
            grant,
            exchange: Exchange::of(provider),
            state: Mutex::default(),
            flight: tokio::sync::Mutex::default(),
        };
        Some(Grant::of(provider.auth, &provider.key)?.map(source))
    }

    /// The value of the `Authorization` header.
    ///
    /// # Errors
    /// Why there is no token; the text has no credential.
    pub async fn token(&self, now: Timestamp) -> Result<HeaderValue, String> {
        let Some(token) = self.known(now) else {
            self.failed()?;
            let _flight = self.flight.lock().await;
            if let Some(token) = self.known(now) {
                return Ok(token.value);
            }
            self.failed()?;
            return self.renew(now).await;
        };
        if now < token.renew_at {
            return Ok(token.value);
        }
        let Ok(_flight) = self.flight.try_lock() else { return Ok(token.value) };
        // Also if the client of this request goes away: the next one does not try again at once.
        let renew_at = now.plus_ms(PAUSE_MS);
        self.state.lock().token = Some(AccessToken { renew_at, ..token.clone() });
        let late = |_| Err("the token endpoint did not answer in time".to_owned());
        let renewed = timeout(EARLY_WAIT, self.renew(now)).await.unwrap_or_else(late);
        Ok(renewed.unwrap_or_else(|why| {
            tracing::warn!(why, "an access token could not be renewed; the present one is used");
            token.value
        }))
    }

    /// Drops the token if it is this one: the provider refused it.
    pub fn forget(&self, refused: &HeaderValue) {
        let mut state = self.state.lock();
        state.token.take_if(|token| token.value == *refused);
    }

    /// A failure that is still fresh.
    fn failed(&self) -> Result<(), String> {
        let failed = self.state.lock().failed.clone();
        let fresh = failed.filter(|(at, _)| at.elapsed() < FAILURE_LIFE);
        fresh.map_or(Ok(()), |(_, why)| Err(why))
    }

    /// A token that has not expired.
    fn known(&self, now: Timestamp) -> Option<AccessToken> {
        self.state.lock().token.clone().filter(|token| now < token.expires_at)
    }

    async fn renew(&self, now: Timestamp) -> Result<HeaderValue, String> {
        let fetched = self.fetch(now).await;
        let mut state = self.state.lock();
        match fetched {
            Ok(token) => {
                let value = token.value.clone();
                *state = TokenState { token: Some(token), failed: None };
                Ok(value)
            }
            Err(why) => {
                let why = format!("no access token: {why}");
                state.failed = Some((Instant::now(), why.clone()));
                Err(why)
            }
        }
    }

    async fn fetch(&self, now: Timestamp) -> Result<AccessToken, String> {
        let issued = match &self.grant {
            Grant::Google(google) => google.token(&self.exchange, google::CLOUD, now).await?,
            Grant::Entra(entra) => entra.token(&self.exchange, now).await?,
        };
        let value = HeaderValue::from_str(&format!("Bearer {}", issued.text));
        let mut value = value.map_err(|_| "the access token cannot be sent in a header")?;
        value.set_sensitive(true);
        let life_ms = issued.life_ms;
        let early = EARLY_MS.min(life_ms / 2);
        let (renew_at, expires_at) = (now.plus_ms(life_ms - early), now.plus_ms(life_ms));
        Ok(AccessToken { value, renew_at, expires_at })
    }
}

/// A credential as JSON.
fn read_json<T: serde::de::DeserializeOwned>(key: &Secret, what: &str) -> Result<T, String> {
    // An error of serde may quote the text.
    let fault = |error: serde_json::Error| match error.classify() {
        serde_json::error::Category::Data if error.to_string().starts_with("missing field") => {
            format!(
                "{what} lacks a member: {}",
                error.to_string().split(" at ").next().unwrap_or("")
            )
        }
        _ => format!("{what} must be a JSON object with members of text"),
    };
    serde_json::from_str(key.expose()).map_err(fault)
}
