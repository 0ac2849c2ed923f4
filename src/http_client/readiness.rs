//! Queries the readiness of a running gateway.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use serde_json::Value;

const TIME_LIMIT: Duration = Duration::from_secs(5);

/// The answer of `/readyz` on the metrics listener.
#[derive(Debug)]
pub struct ReadyzAnswer {
    /// Whether the gateway should receive requests.
    pub ready: bool,
    /// Parts with a problem, and its text; empty if all are fine.
    pub faults: Vec<(String, String)>,
}

/// Queries the gateway whose metrics listener has this address; for an unspecified address, on
/// loopback.
///
/// # Errors
/// A text, if there is no answer within five seconds, or not one of a gateway.
pub async fn ask(metrics: SocketAddr) -> Result<ReadyzAnswer, String> {
    let address = SocketAddr::new(reachable(metrics.ip()), metrics.port());
    let client = super::builder(TIME_LIMIT).build().map_err(super::describe)?;
    let answer =
        client.get(format!("http://{address}/readyz")).send().await.map_err(super::describe)?;
    let body: Value = answer.json().await.map_err(super::describe)?;
    read(&body).ok_or_else(|| format!("{address} does not answer as tollgate does"))
}

/// `None` if it is not an answer of `/readyz`.
fn read(body: &Value) -> Option<ReadyzAnswer> {
    let parts = body["parts"].as_object()?;
    let state = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let faults = parts
        .iter()
        .map(|(name, value)| (name.clone(), state(value)))
        .filter(|(_, state)| state != "ok");
    Some(ReadyzAnswer { ready: body["ready"].as_bool()?, faults: faults.collect() })
}

fn reachable(ip: IpAddr) -> IpAddr {
    match ip {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        other => other,
    }
}
