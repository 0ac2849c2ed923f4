//! The public status page, at `/status` and `/status.json` of the administration's listener, if
//! `status_page.enabled` is set. Anyone may read it: it has the names of groups (or of providers),
//! their state and their history, and nothing else.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderValue, Request, Response, StatusCode, header};
use serde::Serialize;
use tokio::runtime::Handle;
use tokio::sync::Mutex;

use super::context::Context;
use super::dispatch;
use super::surface::Surface;
use crate::config::StatusPage;
use crate::domain::clock::Timestamp;
use crate::domain::ids::ProviderId;
use crate::domain::provider::Provider;
use crate::store::{LOOK_MS, ProviderLooks};

/// How long an answer is given again: strangers cannot make the database work.
const KEPT: Duration = Duration::from_secs(10);

/// How long it waits for the database.
const TIME_LIMIT: Duration = Duration::from_secs(5);

/// The latest answer.
pub(super) type StatusKept = Arc<Mutex<Option<Kept>>>;

/// An answer, and when it was made.
pub(super) struct Kept {
    made_at: Instant,
    of: StatusPage,
    /// `None` if it could not be made.
    status: Option<Status>,
}

/// What the page says.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Status {
    /// ISO 8601.
    at: String,
    services: Vec<Service>,
}

/// A group, or a provider.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
struct Service {
    name: String,
    /// `operational`, `degraded` (some of the providers) or `down`.
    state: &'static str,
    /// Percent of the looks of the last 24 hours at which it was up, with one digit after the point;
    /// `null` = there was none.
    last_day: Option<String>,
    /// The same of the last 90 days.
    last_90_days: Option<String>,
}

/// The page as HTML.
pub(super) async fn html(surface: State<Surface>, request: Request<Body>) -> Response<Body> {
    answer(surface, request, "text/html; charset=utf-8", |status| page(&status)).await
}

/// The page as JSON.
pub(super) async fn json(surface: State<Surface>, request: Request<Body>) -> Response<Body> {
    let written = |status: Status| serde_json::to_string(&status).unwrap_or_default();
    answer(surface, request, "application/json", written).await
}

async fn answer(
    State(surface): State<Surface>,
    request: Request<Body>,
    content_type: &'static str,
    write: impl FnOnce(Status) -> String,
) -> Response<Body> {
    let shown = surface.ctx.node.live.load().status_page();
    let Some(shown) = shown else {
        return dispatch::elsewhere(State(surface), request).await;
    };
    let (code, body) = match status(&surface, shown).await {
        Some(status) => (StatusCode::OK, write(status)),
        None => (StatusCode::SERVICE_UNAVAILABLE, String::new()),
    };
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = code;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=10"));
    response
}

async fn status(surface: &Surface, shown: StatusPage) -> Option<Status> {
    // Whoever waits gets what another one has made.
    let mut kept = Arc::clone(&surface.status).lock_owned().await;
    if let Some(last) = &*kept
        && last.of == shown
        && last.made_at.elapsed() < KEPT
    {
        return last.status.clone();
    }
    let ctx = Arc::clone(&surface.ctx);
    // A client that leaves does not end it.
    let task = Handle::current().spawn(async move {
        let status = make(&ctx, shown).await;
        *kept = Some(Kept { made_at: Instant::now(), of: shown, status: status.clone() });
        status
    });
    task.await.ok().flatten()
}

async fn make(ctx: &Context, shown: StatusPage) -> Option<Status> {
    match tokio::time::timeout(TIME_LIMIT, ctx.node.store.provider_states()).await {
        Ok(Ok(looks)) => return Some(made(ctx, shown, &looks)),
        Ok(Err(error)) => tracing::warn!(%error, "the status page could not be made"),
        Err(_) => {
            tracing::warn!("the status page could not be made: the database does not answer");
        }
    }
    None
}

/// The looks at each provider.
#[derive(Default)]
struct Looks {
    /// How many were up and down: of the day in five minutes each, or of the days.
    sums: HashMap<(ProviderId, bool), (u64, u64)>,
    /// The last one of five minutes.
    last: HashMap<ProviderId, ProviderLooks>,
}

impl Looks {
    /// `all`: the oldest first.
    fn of(all: &[ProviderLooks]) -> Self {
        let mut looks = Self::default();
        for one in all {
            let (up, down) = looks.sums.entry((one.provider, one.is_day)).or_default();
            *up = up.saturating_add(one.up);
            *down = down.saturating_add(one.down);
            if !one.is_day {
                looks.last.insert(one.provider, *one);
            }
        }
        looks
    }
}

fn made(ctx: &Context, shown: StatusPage, looks: &[ProviderLooks]) -> Status {
    let (snapshot, now) = (ctx.node.state.snapshot(), ctx.node.clock.now());
    let looks = Looks::of(looks);
    let mut services: BTreeMap<String, Vec<(ProviderId, bool)>> = BTreeMap::new();
    for provider in snapshot.providers.iter().filter(|provider| provider.is_enabled) {
        let one = (provider.id, is_up(ctx, provider, &looks, now));
        let mut add = |name: &str| services.entry(name.to_owned()).or_default().push(one);
        match shown {
            StatusPage::Providers => add(&provider.name),
            StatusPage::Groups => provider.group_tag.effective().for_each(add),
        }
    }
    let of_service = |(name, providers): (String, Vec<(ProviderId, bool)>)| {
        let up = providers.iter().filter(|(_, is_up)| *is_up).count();
        let state = match up {
            0 => "down",
            up if up < providers.len() => "degraded",
            _ => "operational",
        };
        let share = |is_day: bool| {
            let all = providers.iter().filter_map(|(id, _)| looks.sums.get(&(*id, is_day)));
            let (up, down) = all.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
            percent(up, down)
        };
        Service { name, state, last_day: share(false), last_90_days: share(true) }
    };
    let services = services.into_iter().map(of_service).collect();
    Status { at: now.to_iso(), services }
}

/// What another node that probes the provider has stored last, or what this one sees.
fn is_up(ctx: &Context, provider: &Provider, looks: &Looks, now: Timestamp) -> bool {
    let last = looks.last.get(&provider.id);
    let last = last.filter(|one| now.since(one.starts_at) < 2 * LOOK_MS);
    match last {
        Some(look) if ctx.node.probed.is_elsewhere(provider, now) => look.up > 0,
        _ => ctx.node.expects_answer(provider, now),
    }
}

/// Rounded down: what was down once never shows 100.
fn percent(up: u64, down: u64) -> Option<String> {
    let tenths = up.saturating_mul(1000).checked_div(up.saturating_add(down))?;
    Some(format!("{}.{}", tenths / 10, tenths % 10))
}

/// The page: a table, without a script and without styles.
fn page(status: &Status) -> String {
    let shown = |share: &Option<String>| {
        share.as_ref().map_or_else(|| "–".to_owned(), |share| format!("{share} %"))
    };
    let row = |one: &Service| {
        let (name, state) = (escaped(&one.name), one.state);
        let (day, days) = (shown(&one.last_day), shown(&one.last_90_days));
        format!("<tr><td>{name}</td><td>{state}</td><td>{day}</td><td>{days}</td></tr>\n")
    };
    let rows: String = status.services.iter().map(row).collect();
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\">\
         <meta http-equiv=\"refresh\" content=\"60\"><title>Status</title></head>\n\
         <body><h1>Status</h1>\n<table border=\"1\" cellpadding=\"8\">\n\
         <tr><th>Service</th><th>Now</th><th>24 hours</th><th>90 days</th></tr>\n{rows}</table>\n\
         <p>{}</p></body></html>\n",
        status.at
    )
}

fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    text.replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_rounded_down() {
        for (up, down, share) in
            [(0, 0, None), (5, 0, Some("100.0")), (9999, 1, Some("99.9")), (0, 3, Some("0.0"))]
        {
            assert_eq!(percent(up, down).as_deref(), share, "{up} {down}");
        }
    }

    #[test]
    fn names_are_text() {
        let service = Service {
            name: "<script>&\"".to_owned(),
            state: "down",
            last_day: None,
            last_90_days: Some("99.9".to_owned()),
        };
        let page = page(&Status { at: "now".to_owned(), services: vec![service] });
        assert!(page.contains("<td>&lt;script&gt;&amp;&quot;</td><td>down</td><td>–</td>"));
        assert!(page.contains("99.9 %") && !page.contains("<script"));
    }
}
