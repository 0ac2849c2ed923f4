//! AWS' Security Token Service: temporary keys of a role.

use http::header::AUTHORIZATION;
use http::{HeaderName, Uri};

use super::profile::AssumedRole;
use super::sigv4::{Signable, authorization, date, sha256_hex};
use super::source::AwsCalls;
use super::{AwsKeys, time};
use crate::domain::secret::Secret;
use crate::upstream::tokens::exchange::{TIME_LIMIT, TokenRequest, checked};
use crate::upstream::tokens::read_file;

const FORM: &str = "application/x-www-form-urlencoded";
const VERSION: &str = "2011-06-15";
/// The name of the session in AWS' logs.
const SESSION: &str = "tollgate";

/// The keys of a role that is assumed with other keys.
pub(super) async fn assume(
    calls: &AwsCalls<'_>,
    keys: &AwsKeys,
    role: &AssumedRole,
) -> Result<AwsKeys, String> {
    let mut form = fields("AssumeRole", role);
    form.extend(role.external_id.clone().map(|id| ("ExternalId", id)));
    let endpoint = endpoint(calls)?;
    let mut call = TokenRequest::form(&endpoint, form);
    let uri: Uri = endpoint.parse().map_err(|_| "the address of STS is invalid")?;
    let host = uri.authority().map(ToString::to_string).unwrap_or_default();
    let (date, body) = (date(calls.now), sha256_hex(&[call.body()]));
    let token = keys.token.as_ref().map(Secret::expose);
    let mut headers = vec![("content-type", FORM), ("host", &*host), ("x-amz-date", &*date)];
    headers.extend(token.map(|token| ("x-amz-security-token", token)));
    let what = Signable {
        method: "POST",
        target: uri.path(),
        headers: &headers,
        body: &body,
        region: calls.region,
        service: "sts",
    };
    let signed = authorization(keys, &date, &what);
    call = call.with(AUTHORIZATION, signed);
    call = call.with(HeaderName::from_static("x-amz-date"), date.clone());
    if let Some(token) = token {
        call = call.with(HeaderName::from_static("x-amz-security-token"), token.to_owned());
    }
    answer(calls, call).await
}

/// The keys of a role that the token in this file allows to assume.
pub(super) async fn web_identity(
    calls: &AwsCalls<'_>,
    role: &AssumedRole,
    file: &str,
) -> Result<AwsKeys, String> {
    let token = read_file(file).await?;
    let mut form = fields("AssumeRoleWithWebIdentity", role);
    form.push(("WebIdentityToken", token.trim().to_owned()));
    answer(calls, TokenRequest::form(&endpoint(calls)?, form)).await
}

fn fields(action: &str, role: &AssumedRole) -> Vec<(&'static str, String)> {
    let session = role.session_name.as_deref().unwrap_or(SESSION);
    let (action, version, session) = (action.to_owned(), VERSION.to_owned(), session.to_owned());
    vec![
        ("Action", action),
        ("Version", version),
        ("RoleArn", role.arn.clone()),
        ("RoleSessionName", session),
    ]
}

fn endpoint(calls: &AwsCalls<'_>) -> Result<String, String> {
    let named = calls.sts_endpoint.map(str::to_owned);
    let named = named.or_else(|| calls.variable("AWS_ENDPOINT_URL_STS"));
    let end = if calls.region.starts_with("cn-") { ".cn" } else { "" };
    let usual = || format!("https://sts.{}.amazonaws.com{end}/", calls.region);
    let endpoint = named.unwrap_or_else(usual);
    checked(endpoint).map_err(|_| "the address of STS must begin with https://".to_owned())
}

async fn answer(calls: &AwsCalls<'_>, call: TokenRequest) -> Result<AwsKeys, String> {
    let answer = calls.exchange.answer(&call, TIME_LIMIT).await;
    let (status, body) = answer.map_err(|why| format!("STS: {why}"))?;
    let xml = String::from_utf8_lossy(&body);
    if !(200..300).contains(&status) {
        let said = [element(&xml, "Code"), element(&xml, "Message")].map(Option::unwrap_or_default);
        let said = call.said(&said.join(" "));
        return Err(format!("STS answered {status} {said}").trim_end().to_owned());
    }
    let wanted = |name: &str| {
        let found = element(&xml, name).filter(|text| !text.is_empty());
        found.ok_or_else(|| format!("the answer of STS has no {name}"))
    };
    Ok(AwsKeys {
        id: wanted("AccessKeyId")?.to_owned(),
        secret: Secret::new(wanted("SecretAccessKey")?),
        token: Some(Secret::new(wanted("SessionToken")?)),
        expires_at: element(&xml, "Expiration").and_then(time),
    })
}

/// The text of the first element of this name. What is read has no escapes: base64 and times.
fn element<'a>(xml: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = xml.split_once(&format!("<{name}>"))?;
    Some(rest.split_once(&format!("</{name}>"))?.0.trim())
}
