//! Strict mocks of Anthropic's and OpenAI's report APIs: another method, header or parameter than
//! those that the vendor documents is refused.

use std::collections::HashMap;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{Method, Response, StatusCode};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tollgate::domain::clock::Timestamp;

pub const KEY: &str = "sk-ant-admin01-of-the-vendor-0123456789";
const DAY_MS: i64 = 86_400_000;

/// What is wrong with the vendor.
#[derive(Debug, Clone, Default)]
pub struct Trouble {
    /// So many requests are answered with 429 and this `Retry-After`.
    pub limited: (usize, &'static str),
    /// Pages do not end.
    pub is_endless: bool,
    /// Every request gets this answer.
    pub answer: Option<(u16, String)>,
}

#[derive(Default)]
struct Inner {
    /// Results by path and day.
    results: Mutex<HashMap<(String, i64), Vec<Value>>>,
    trouble: Mutex<Trouble>,
    asked: Mutex<Vec<String>>,
}

#[derive(Clone)]
pub struct Vendor {
    pub url: String,
    inner: Arc<Inner>,
}

pub const USAGE: &str = "/v1/organizations/usage_report/messages";
pub const COSTS: &str = "/v1/organizations/cost_report";
pub const OPENAI_USAGE: &str = "/v1/organization/usage/completions";
pub const OPENAI_COSTS: &str = "/v1/organization/costs";

impl Vendor {
    pub fn start(tasks: &mut JoinSet<()>) -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let inner = Arc::new(Inner::default());
        let app = Router::new().fallback(answer).with_state(Arc::clone(&inner));
        tasks.spawn(async move {
            axum::serve(tokio::net::TcpListener::from_std(listener).unwrap(), app).await.unwrap();
        });
        Self { url, inner }
    }

    /// Adds a result to a day of a report.
    pub fn has(&self, path: &str, day: Timestamp, result: Value) {
        self.inner.results.lock().entry((path.to_owned(), day.0)).or_default().push(result);
    }

    pub fn trouble(&self, trouble: Trouble) {
        *self.inner.trouble.lock() = trouble;
    }

    /// Paths and queries so far.
    pub fn asked(&self) -> Vec<String> {
        self.inner.asked.lock().clone()
    }

    /// Anthropic's tokens of a key.
    pub fn anthropic_usage(&self, day: Timestamp, key: Value, model: &str, tokens: [i64; 5]) {
        let [input, read, write_5m, write_1h, output] = tokens;
        let result = json!({
            "uncached_input_tokens": input, "cache_read_input_tokens": read,
            "cache_creation": {
                "ephemeral_5m_input_tokens": write_5m, "ephemeral_1h_input_tokens": write_1h,
            },
            "output_tokens": output, "server_tool_use": { "web_search_requests": 0 },
            "api_key_id": key, "workspace_id": null, "model": model, "service_tier": "standard",
            "context_window": "0-200k", "inference_geo": null,
        });
        self.has(USAGE, day, result);
    }

    /// Anthropic's charge for output, in cents.
    pub fn anthropic_cost(&self, day: Timestamp, model: &str, cents: &str) {
        let result = json!({
            "currency": "USD", "amount": cents, "workspace_id": null,
            "description": format!("{model} Usage - Output Tokens"), "cost_type": "tokens",
            "context_window": "0-200k", "model": model, "service_tier": "standard",
            "token_type": "output_tokens", "inference_geo": null,
        });
        self.has(COSTS, day, result);
    }
}

fn reply(status: u16, body: String) -> Response<Body> {
    Response::builder().status(status).body(Body::from(body)).unwrap()
}

fn refused(status: StatusCode, why: &str) -> Response<Body> {
    reply(status.as_u16(), json!({ "type": "error", "error": { "message": why } }).to_string())
}

async fn answer(State(inner): State<Arc<Inner>>, request: Request) -> Response<Body> {
    let (path, query) =
        (request.uri().path().to_owned(), request.uri().query().unwrap_or("").to_owned());
    inner.asked.lock().push(format!("{path}?{query}"));
    if let Some((status, body)) = inner.trouble.lock().answer.clone() {
        let mut answer = reply(status, body);
        answer.headers_mut().insert("location", "/elsewhere".parse().unwrap());
        return answer;
    }
    if request.method() != Method::GET {
        return refused(StatusCode::BAD_REQUEST, "the method");
    }
    let header =
        |name: &str| request.headers().get(name).and_then(|v| v.to_str().ok()).unwrap_or("");
    let is_anthropic = path == USAGE || path == COSTS;
    let key = match is_anthropic {
        true => header("x-api-key").to_owned(),
        false => header("authorization").strip_prefix("Bearer ").unwrap_or("").to_owned(),
    };
    if is_anthropic && header("anthropic-version") != "2023-06-01" {
        return refused(StatusCode::BAD_REQUEST, "anthropic-version");
    }
    if key != KEY {
        return refused(StatusCode::UNAUTHORIZED, "invalid x-api-key");
    }
    {
        let mut trouble = inner.trouble.lock();
        if trouble.limited.0 > 0 {
            trouble.limited.0 -= 1;
            let mut answer = refused(StatusCode::TOO_MANY_REQUESTS, "rate limit");
            let wait = trouble.limited.1;
            answer.headers_mut().insert("retry-after", wait.parse().unwrap());
            return answer;
        }
    }
    match page(&inner, &path, &query) {
        Ok(page) => reply(200, page.to_string()),
        Err(why) => refused(StatusCode::BAD_REQUEST, &why),
    }
}

/// One bucket for each page.
fn page(inner: &Inner, path: &str, query: &str) -> Result<Value, String> {
    let pairs: Vec<(String, String)> = reqwest::Url::parse(&format!("http://h/?{query}"))
        .unwrap()
        .query_pairs()
        .into_owned()
        .collect();
    let (groups, group, from, until): (&[&str], _, _, _) = match path {
        USAGE => (
            &["api_key_id", "model", "service_tier", "context_window"],
            "group_by[]",
            "starting_at",
            "ending_at",
        ),
        COSTS => (&["description"], "group_by[]", "starting_at", "ending_at"),
        OPENAI_USAGE => (&["model", "api_key_id"], "group_by", "start_time", "end_time"),
        OPENAI_COSTS => (&["line_item", "api_key_id"], "group_by", "start_time", "end_time"),
        _ => return Err(format!("there is no {path}")),
    };
    for (name, value) in &pairs {
        let is_known = match name.as_str() {
            name if name == group => groups.contains(&value.as_str()),
            "bucket_width" => value == "1d",
            "limit" => value.parse().is_ok_and(|n: i64| (1..=31).contains(&n)),
            name => name == from || name == until || name == "page",
        };
        if !is_known {
            return Err(format!("{name}={value}"));
        }
    }
    let get = |name: &str| pairs.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str());
    let time = |name: &str| -> Result<i64, String> {
        let text = get(name).ok_or(format!("{name} is missing"))?;
        match group {
            "group_by" => text.parse::<i64>().map(|s| s * 1000).map_err(|e| e.to_string()),
            _ => chrono::DateTime::parse_from_rfc3339(text)
                .map(|t| t.timestamp_millis())
                .map_err(|e| e.to_string()),
        }
    };
    let (from, until) = (time(from)?, time(until)?);
    let at: i64 = match get("page") {
        None => 0,
        Some(page) => page.strip_prefix("page_").and_then(|n| n.parse().ok()).ok_or("the page")?,
    };
    let day = from + at * DAY_MS;
    if day >= until || day % DAY_MS != 0 {
        return Err("no such page".to_owned());
    }
    Ok(bucket(inner, (path, group), (day, until), at))
}

/// The page of a day.
fn bucket(inner: &Inner, (path, group): (&str, &str), (day, until): (i64, i64), at: i64) -> Value {
    let results = inner.results.lock().get(&(path.to_owned(), day)).cloned().unwrap_or_default();
    let is_endless = inner.trouble.lock().is_endless;
    let has_more = is_endless || day + DAY_MS < until;
    let next =
        if is_endless { format!("page_{}", fastrand::u8(..2)) } else { format!("page_{}", at + 1) };
    let bucket = match group {
        "group_by" => json!({
            "object": "bucket", "start_time": day / 1000, "end_time": (day + DAY_MS) / 1000,
            "results": results,
        }),
        _ => json!({
            "starting_at": Timestamp(day).to_iso(), "ending_at": Timestamp(day + DAY_MS).to_iso(),
            "results": results,
        }),
    };
    json!({
        "data": [bucket], "has_more": has_more, "next_page": has_more.then_some(next),
    })
}
