//! Single sign-on (IAM Identity Center): the access token that `aws sso login` keeps in a file, for
//! the keys of a role.

use http::HeaderName;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use serde_json::Value;

use super::profile::at_home;
use super::source::AwsCalls;
use super::{AwsKeys, time};
use crate::upstream::tokens::exchange::{TIME_LIMIT, TokenRequest, checked};
use crate::upstream::tokens::read_file;

const NAMES: [&str; 4] = ["accessKeyId", "secretAccessKey", "sessionToken", "expiration"];

/// What a profile says of single sign-on.
#[derive(Debug)]
pub(super) struct SsoSettings {
    /// The name of the session, or the address of the portal: the file's name is its SHA-1.
    pub cached_as: String,
    pub region: String,
    pub account: String,
    pub role: String,
}

/// The keys of the profile's role.
pub(super) async fn keys(calls: &AwsCalls<'_>, sso: &SsoSettings) -> Result<AwsKeys, String> {
    let name = hex::encode(digest(&SHA1_FOR_LEGACY_USE_ONLY, sso.cached_as.as_bytes()));
    let file = at_home(calls.environment, &format!(".aws/sso/cache/{name}.json"));
    let file = file.ok_or("HOME is not set")?;
    let login = "run `aws sso login` again";
    let text = read_file(&file.to_string_lossy()).await;
    let text = text.map_err(|error| format!("{error}; {login}"))?;
    let cached: Value = serde_json::from_str(&text).unwrap_or_default();
    let token = cached["accessToken"].as_str().filter(|token| !token.is_empty());
    let token = token.ok_or_else(|| format!("{} has no accessToken; {login}", file.display()))?;
    if cached["expiresAt"].as_str().and_then(time).is_none_or(|at| at <= calls.now) {
        return Err(format!("the token of single sign-on has expired; {login}"));
    }
    let named = calls.variable("AWS_ENDPOINT_URL_SSO");
    let portal =
        named.unwrap_or_else(|| format!("https://portal.sso.{}.amazonaws.com", sso.region));
    let portal = checked(portal)
        .map_err(|_| "the address of single sign-on must begin with https://".to_owned())?;
    let part = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
    let url = format!(
        "{}/federation/credentials?role_name={}&account_id={}",
        portal.trim_end_matches('/'),
        part(&sso.role),
        part(&sso.account)
    );
    let name = HeaderName::from_static("x-amz-sso_bearer_token");
    let call = TokenRequest::get(url).with(name, token.to_owned());
    let answer = calls.exchange.answer(&call, TIME_LIMIT).await;
    let (status, body) = answer.map_err(|why| format!("single sign-on: {why}"))?;
    if status != 200 {
        return Err(format!("single sign-on answered {status}; {login}"));
    }
    let answer: Value = serde_json::from_slice(&body).unwrap_or_default();
    AwsKeys::of_answer(&answer["roleCredentials"], NAMES)
}
