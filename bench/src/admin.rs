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
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nauthorization: Bearer {token}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    exchange(addr, &[head.as_bytes(), body.as_bytes()].concat())
}

/// Status and body of the reply to a request that asks for the end of the connection.
///
/// # Errors
/// When there is no reply.
pub fn exchange(addr: SocketAddr, request: &[u8]) -> Result<(u16, String)> {
    let mut stream = TcpStream::connect_timeout(&addr, TIME_LIMIT)?;
    stream.set_read_timeout(Some(TIME_LIMIT))?;
    stream.write_all(request)?;
    let mut text = Vec::new();
    stream.read_to_end(&mut text)?;
    let end = memchr::memmem::find(&text, b"\r\n\r\n").context("no head")?;
    let (head, body) = (String::from_utf8_lossy(&text[..end]).to_lowercase(), &text[end + 4..]);
    let status =
        head.get(9..12).and_then(|status| status.parse().ok()).context("no status line")?;
    let body =
        if head.contains("transfer-encoding: chunked") { joined(body) } else { body.to_vec() };
    Ok((status, String::from_utf8_lossy(&body).into_owned()))
}

/// A body without the lines that give the sizes of its chunks.
fn joined(mut chunked: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(line) = memchr::memmem::find(chunked, b"\r\n") {
        let size = std::str::from_utf8(&chunked[..line]).unwrap_or_default();
        let size = usize::from_str_radix(size.split(';').next().unwrap_or_default(), 16);
        let Some(chunk) = chunked.get(line + 2..line + 2 + size.unwrap_or(0)) else { break };
        body.extend_from_slice(chunk);
        chunked = chunked.get(line + 4 + chunk.len()..).unwrap_or_default();
    }
    body
}

/// Calls one action; returns its data.
///
/// # Errors
/// When the action is refused.
pub fn action(addr: SocketAddr, token: &str, name: &str, body: &Value) -> Result<Value> {
    let (status, reply) =
        http(addr, "POST", &format!("/api/actions/{name}"), token, &body.to_string())?;
    let value: Value =
        serde_json::from_str(&reply).with_context(|| format!("{name}: {status} {reply}"))?;
    if value["ok"] != true {
        bail!("{name}: {status} {reply}");
    }
    Ok(value["data"].clone())
}
