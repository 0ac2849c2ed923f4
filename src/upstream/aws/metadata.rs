//! The keys that AWS serves to an instance (IMDSv2) and to a container.

use std::time::Duration;

use http::HeaderName;
use reqwest::Method;
use serde_json::Value;

use super::AwsKeys;
use super::source::Calls;
use crate::http_client::token::{TokenCall, is_near, send};

/// The service answers at once, or is not there.
const TIME_LIMIT: Duration = Duration::from_secs(2);
const NAMES: [&str; 4] = ["AccessKeyId", "SecretAccessKey", "Token", "Expiration"];
const INSTANCE: &str = "http://169.254.169.254";
const CONTAINER: &str = "http://169.254.170.2";

/// The keys of the role of this instance.
pub(super) async fn instance(calls: &Calls<'_>) -> Result<AwsKeys, String> {
    if calls
        .variable("AWS_EC2_METADATA_DISABLED")
        .is_some_and(|set| set.eq_ignore_ascii_case("true"))
    {
        return Err("there is no other source, and AWS_EC2_METADATA_DISABLED is set".to_owned());
    }
    let named = calls.variable("AWS_EC2_METADATA_SERVICE_ENDPOINT");
    let at = named.as_deref().unwrap_or(INSTANCE).trim_end_matches('/');
    let life = HeaderName::from_static("x-aws-ec2-metadata-token-ttl-seconds");
    let url = format!("{at}/latest/api/token");
    let call = TokenCall { method: Method::PUT, time_limit: TIME_LIMIT, ..TokenCall::get(&url) };
    let token = text(call.with_secret(life, "21600")?).await?;
    let read = async |path: &str| {
        let name = HeaderName::from_static("x-aws-ec2-metadata-token");
        let url = format!("{at}/latest/meta-data/iam/security-credentials/{path}");
        let call = TokenCall { time_limit: TIME_LIMIT, ..TokenCall::get(&url) };
        text(call.with_secret(name, &token)?).await
    };
    let role = read("").await?;
    let role = role.lines().next().map(str::trim).filter(|role| !role.is_empty());
    let role = role.ok_or("the instance has no role")?;
    keys(&read(role).await?)
}

/// The keys of the role of this container.
pub(super) async fn container(calls: &Calls<'_>) -> Result<AwsKeys, String> {
    let relative = calls.variable("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
    let url = relative.map(|path| format!("{CONTAINER}{path}"));
    let url = url.or_else(|| calls.variable("AWS_CONTAINER_CREDENTIALS_FULL_URI"));
    let url = url.ok_or("AWS_CONTAINER_CREDENTIALS_FULL_URI is not set")?;
    if !url.starts_with("https://") && !is_near(&url) {
        return Err("AWS_CONTAINER_CREDENTIALS_FULL_URI is not an address of this machine".into());
    }
    let token = match calls.variable("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE") {
        Some(file) => {
            let read = tokio::fs::read_to_string(&file).await;
            Some(read.map_err(|error| format!("the file {file} of the token: {error}"))?)
        }
        None => calls.variable("AWS_CONTAINER_AUTHORIZATION_TOKEN"),
    };
    let mut call = TokenCall { time_limit: TIME_LIMIT, ..TokenCall::get(&url) };
    if let Some(token) = token {
        call = call.with_secret(http::header::AUTHORIZATION, &token)?;
    }
    keys(&text(call).await?)
}

async fn text(call: TokenCall<'_>) -> Result<String, String> {
    let place = call.url.to_owned();
    let (status, body) = send(call).await.map_err(|why| format!("{place}: {why}"))?;
    if status != 200 {
        return Err(format!("{place} answered {status}"));
    }
    String::from_utf8(body).map_err(|_| format!("{place} did not answer text"))
}

fn keys(answer: &str) -> Result<AwsKeys, String> {
    let answer: Value = serde_json::from_str(answer).unwrap_or_default();
    AwsKeys::of_answer(&answer, NAMES)
}
