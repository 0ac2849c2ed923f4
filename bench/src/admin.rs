//! Calls to the gateway's administration API, one connection each: enough to set a fixture.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::Value;

const TIME_LIMIT: Duration = Duration::from_secs(10);

/// Status and body of one request.
///
/// # Errors
/// When there is no reply.
pub fn http(
    addr: SocketAddr,
    method: &str,
    path: &str,
    token: &str,
    body: &str,
) -> Result<(u16, String)> {
    let mut stream = TcpStream::connect_timeout(&addr, TIME_LIMIT)?;
    stream.set_read_timeout(Some(TIME_LIMIT))?;
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nauthorization: Bearer {token}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())?;
    let mut text = Vec::new();
    stream.read_to_end(&mut text)?;
    let text = String::from_utf8_lossy(&text);
    let status =
        text.get(9..12).and_then(|status| status.parse().ok()).context("no status line")?;
    let body = text.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    Ok((status, body.to_owned()))
}

/// Calls one action; returns its data.
///
/// # Errors
/// When the action is refused.
pub fn action(addr: SocketAddr, token: &str, name: &str, body: &Value) -> Result<Value> {
    let (status, reply) =
        http(addr, "POST", &format!("/api/actions/{name}"), token, &body.to_string())?;
    // A chunked body has its size lines around the JSON.
    let json = reply
        .find('{')
        .and_then(|start| Some(&reply[start..=reply.rfind('}')?]))
        .unwrap_or_default();
    let value: Value =
        serde_json::from_str(json).with_context(|| format!("{name}: {status} {reply}"))?;
    if value["ok"] != true {
        bail!("{name}: {status} {reply}");
    }
    Ok(value["data"].clone())
}
