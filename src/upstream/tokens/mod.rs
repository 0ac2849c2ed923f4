//! Access tokens of clouds: a provider's credential is exchanged for one, which its requests carry,
//! or for keys, which sign them.
//!
//! A token is fetched once for all requests that need it, and renewed before it expires: one
//! request fetches the next one while the others use the present one. One that the provider refuses
//! is dropped.
//!
//! See docs/decisions/44-access-tokens-with-ring.md.

mod access_token;
mod entra;
pub(in crate::upstream) mod exchange;
mod federation;
mod google;
mod jwt;
mod machine;

use std::sync::Arc;
use std::time::{Duration, Instant};

use http::HeaderValue;
use parking_lot::Mutex;
use tokio::time::timeout;

pub use self::access_token::AccessToken;
use self::entra::Entra;
use self::exchange::Exchange;
use self::google::Google;
pub(in crate::upstream) use self::jwt::read as read_file;
use crate::config::process_env;
use crate::domain::clock::Timestamp;
use crate::domain::provider::Provider;
use crate::domain::provider_auth::ProviderAuth;
use crate::domain::secret::Secret;
use crate::upstream::aws::{AwsCredential, Environment};

/// How long before its end a token is renewed; half of its life, if that is shorter.
const EARLY_MS: i64 = 300_000;
/// How long the present token is used after it could not be renewed, before the next try.
const PAUSE_MS: i64 = 30_000;
/// How long a request waits for a token while the present one is good.
const EARLY_WAIT: Duration = Duration::from_secs(2);
/// For all steps to a token: those who need one wait for it.
const WHOLE: Duration = Duration::from_secs(15);
/// How long a failure stands for requests that need a token.
const FAILURE_LIFE: Duration = Duration::from_secs(5);

/// Where a token comes from.
enum Grant {
    Google(Google),
    Entra(Entra),
    Aws(Box<AwsCredential>),
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
    token: Option<KnownToken>,
    /// The last failure, and when it was.
    failed: Option<(Instant, String)>,
}

#[derive(Clone)]
struct KnownToken {
    value: AccessToken,
    renew_at: Timestamp,
    expires_at: Timestamp,
}

/// Whether a token can be asked for with this credential.
///
/// # Errors
/// Why it cannot; the text can be shown.
pub fn check(provider: &Provider, key: &Secret) -> Result<(), String> {
    Grant::of(provider, key, &process()).map_or(Ok(()), |grant| grant.map(|_| ()))
}

/// The environment of this process.
fn process() -> Environment {
    Arc::new(process_env)
}

impl Grant {
    fn of(
        provider: &Provider,
        key: &Secret,
        environment: &Environment,
    ) -> Option<Result<Self, String>> {
        match provider.auth {
            ProviderAuth::GcpServiceAccount => Some(Google::read(key).map(Self::Google)),
            ProviderAuth::AzureEntra => Some(Entra::read(key).map(Self::Entra)),
            ProviderAuth::AwsSigv4 => {
                let read = AwsCredential::read(provider, key, environment);
                Some(read.map(Box::new).map(Self::Aws))
            }
            _ => None,
        }
    }

    async fn fetch(&self, exchange: &Exchange, now: Timestamp) -> Result<KnownToken, String> {
        let issued = match self {
            Self::Google(google) => google.token(exchange, google::CLOUD, now).await?,
            Self::Entra(entra) => entra.token(exchange, now).await?,
            Self::Aws(credential) => {
                let (signer, expires_at) = credential.signer(exchange, now).await?;
                let value = AccessToken::Signer(Arc::new(signer));
                return Ok(KnownToken::until(
                    value,
                    expires_at.unwrap_or(Timestamp(i64::MAX)),
                    now,
                ));
            }
        };
        let value = HeaderValue::from_str(&format!("Bearer {}", issued.text));
        let mut value = value.map_err(|_| "the access token cannot be sent in a header")?;
        value.set_sensitive(true);
        let expires_at = now.plus_ms(issued.life_ms);
        Ok(KnownToken::until(AccessToken::Header(value), expires_at, now))
    }
}

impl TokenSource {
    /// The source of a provider's tokens; `None` if its credential is sent as it is.
    ///
    /// # Errors
    /// The credential is not of the form that the provider's `auth` needs.
    pub fn of(provider: &Provider) -> Option<Result<Self, String>> {
        Self::within(provider, &process())
    }

    /// The same, with another environment.
    ///
    /// # Errors
    /// As [`TokenSource::of`].
    pub fn within(provider: &Provider, environment: &Environment) -> Option<Result<Self, String>> {
        let source = |grant| Self {
            grant,
            exchange: Exchange::of(provider),
            state: Mutex::default(),
            flight: tokio::sync::Mutex::default(),
        };
        Some(Grant::of(provider, &provider.key, environment)?.map(source))
    }

    /// The present token.
    ///
    /// # Errors
    /// Why there is no token; the text has no credential.
    pub async fn token(&self, now: Timestamp) -> Result<AccessToken, String> {
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
        // Meanwhile another request may have renewed or dropped it.
        let is_same =
            |present: &KnownToken| present.value == token.value && now >= present.renew_at;
        if !self.known(now).as_ref().is_some_and(is_same) {
            return Ok(self.known(now).map_or(token.value, |present| present.value));
        }
        // Also if the client of this request goes away: the next one does not try again at once.
        let renew_at = now.plus_ms(PAUSE_MS);
        self.state.lock().token = Some(KnownToken { renew_at, ..token.clone() });
        let late = |_| Err("the token endpoint did not answer in time".to_owned());
        let renewed = timeout(EARLY_WAIT, self.renew(now)).await.unwrap_or_else(late);
        Ok(renewed.unwrap_or_else(|why| {
            tracing::warn!(why, "an access token could not be renewed; the present one is used");
            token.value
        }))
    }

    /// Drops the token if it is this one: the provider refused it.
    pub fn forget(&self, refused: &AccessToken) {
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
    fn known(&self, now: Timestamp) -> Option<KnownToken> {
        self.state.lock().token.clone().filter(|token| now < token.expires_at)
    }

    async fn renew(&self, now: Timestamp) -> Result<AccessToken, String> {
        let late = |_| Err("the token endpoint did not answer in time".to_owned());
        let fetch = timeout(WHOLE, self.grant.fetch(&self.exchange, now));
        let fetched = fetch.await.unwrap_or_else(late);
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
}

impl KnownToken {
    fn until(value: AccessToken, expires_at: Timestamp, now: Timestamp) -> Self {
        let life_ms = expires_at.since(now).max(0);
        let renew_at = now.plus_ms(life_ms - EARLY_MS.min(life_ms / 2));
        Self { value, renew_at, expires_at }
    }
}

/// A credential as JSON.
pub(in crate::upstream) fn read_json<T: serde::de::DeserializeOwned>(
    key: &Secret,
    what: &str,
) -> Result<T, String> {
    // An error of serde may quote the text.
    let fault = |error: serde_json::Error| match error.classify() {
        serde_json::error::Category::Data if error.to_string().starts_with("missing field") => {
            format!(
                "{what} lacks a member: {}",
                error.to_string().split(" at ").next().unwrap_or("")
            )
        }
        _ if error.to_string().starts_with("unknown field") => {
            let known = error.to_string();
            let known = known.split("expected one of ").nth(1).unwrap_or_default();
            let known = known.split(" at line").next().unwrap_or_default();
            format!("{what} has a member that is none of {known}")
        }
        _ => format!("{what} must be a JSON object with members of text"),
    };
    serde_json::from_str(key.expose()).map_err(fault)
}
