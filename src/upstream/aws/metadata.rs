//! The keys that AWS serves to an instance (IMDSv2) and to a container.

use std::time::Duration;

use http::HeaderName;
use serde_json::Value;

use super::AwsKeys;
use super::source::AwsCalls;
use crate::upstream::tokens::exchange::{TokenRequest, checked_here};
use crate::upstream::tokens::read_file;

/// The service answers at once, or is not there.
const TIME_LIMIT: Duration = Duration::from_secs(2);
const NAMES: [&str; 4] = ["AccessKeyId", "SecretAccessKey", "Token", "Expiration"];
const INSTANCE: &str = "http://169.254.169.254";
const CONTAINER: &str = "http://169.254.170.2";

/// The keys of the role of this instance.
pub(super) async fn instance(calls: &AwsCalls<'_>) -> Result<AwsKeys, String> {
    if calls
        .variable("AWS_EC2_METADATA_DISABLED")
        .is_some_and(|set| set.eq_ignore_ascii_case("true"))
    {
        return Err("there is no other source, and AWS_EC2_METADATA_DISABLED is set".to_owned());
    }
    let named = calls.variable("AWS_EC2_METADATA_SERVICE_ENDPOINT");
    let at = named.as_deref().unwrap_or(INSTANCE).trim_end_matches('/');
    let life = HeaderName::from_static("x-aws-ec2-metadata-token-ttl-seconds");
    let url = checked_here(format!("{at}/latest/api/token"));
    let url = url.map_err(|why| format!("AWS_EC2_METADATA_SERVICE_ENDPOINT: {why}"))?;
    let token = text(calls, TokenRequest::put(url).with(life, "21600".to_owned())).await?;
    let read = async |path: &str| {
        let name = HeaderName::from_static("x-aws-ec2-metadata-token");
        let url = format!("{at}/latest/meta-data/iam/security-credentials/{path}");
        text(calls, TokenRequest::get(url).with(name, token.trim().to_owned())).await
    };
    let role = read("").await?;
    let role = role.lines().next().map(str::trim).filter(|role| !role.is_empty());
    let role = role.ok_or("the instance has no role")?;
    keys(&read(role).await?)
}

/// The keys of the role of this container.
pub(super) async fn container(calls: &AwsCalls<'_>) -> Result<AwsKeys, String> {
    let relative = calls.variable("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
    let url = relative.map(|path| format!("{CONTAINER}{path}"));
    let url = url.or_else(|| calls.variable("AWS_CONTAINER_CREDENTIALS_FULL_URI"));
    let url = url.ok_or("AWS_CONTAINER_CREDENTIALS_FULL_URI is not set")?;
    let url = checked_here(url);
    let url = url.map_err(|why| format!("AWS_CONTAINER_CREDENTIALS_FULL_URI: {why}"))?;
    let token = match calls.variable("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE") {
        Some(file) => Some(read_file(&file).await?),
        None => calls.variable("AWS_CONTAINER_AUTHORIZATION_TOKEN"),
    };
    let mut call = TokenRequest::get(url);
    if let Some(token) = token {
        call = call.with(http::header::AUTHORIZATION, token.trim().to_owned());
    }
    keys(&text(calls, call).await?)
}

async fn text(calls: &AwsCalls<'_>, call: TokenRequest) -> Result<String, String> {
    let place = call.url().to_owned();
    let answer = calls.exchange.answer(&call, TIME_LIMIT).await;
    let (status, body) = answer.map_err(|why| format!("{place}: {why}"))?;
    if status != 200 {
        return Err(format!("{place} answered {status}"));
    }
    String::from_utf8(body).map_err(|_| format!("{place} did not answer text"))
}

fn keys(answer: &str) -> Result<AwsKeys, String> {
    let answer: Value = serde_json::from_str(answer).unwrap_or_default();
    AwsKeys::of_answer(&answer, NAMES)
}
