//! The lists of batches and files: those of the calling key alone, as their providers described
//! them last.

use pingora::proxy::Session;
use serde_json::{Value, json};

use crate::domain::format::WireFormat;
use crate::formats::batch::google;
use crate::formats::route::{self, Collection};
use crate::proxy::context::RequestContext;
use crate::proxy::held;
use crate::proxy::reply::answer::Answer;
use crate::proxy::reply::refusal::Refusal;
use crate::proxy::request::identify::Identified;
use crate::proxy::request::{query, screen};
use crate::store::ObjectPage;

/// Items of a page, if the client names no number.
const USUAL: u32 = 20;
/// The most items of a page of batches, and of files.
const MOST: u32 = 1_000;
const MOST_FILES: u32 = 10_000;

/// The page that the query asks for.
///
/// # Errors
/// When the client is not on a non-empty list, or the limit is not a number that may be asked for;
/// when the database does not answer.
pub(super) async fn answer(
    session: &Session,
    ctx: &RequestContext,
    identified: &Identified,
    collection: &'static Collection,
) -> Result<Answer, Refusal> {
    screen::client(ctx, identified)?;
    let asked = session.req_header().uri.query().unwrap_or_default();
    let value = |name| query::values(asked, name).next();
    let is_files = *collection == route::FILES;
    let is_google = collection.format == WireFormat::AltCli;
    let limit = limit(asked, is_files, is_google)?;
    let (after, before) = match collection.format {
        WireFormat::AltCli => (value("pageToken").filter(|token| !token.is_empty()), None),
        WireFormat::Native => (value("after_id"), value("before_id")),
        _ => (value("after"), None),
    };
    let purpose = value("purpose").filter(|_| is_files);
    let page = ObjectPage {
        collection: collection.name,
        from: None,
        is_before: before.is_some(),
        ascending: is_files && value("order").as_deref() == Some("asc"),
        // One more shows whether there are more.
        most: if purpose.is_some() { MOST_FILES } else { limit } + 1,
    };
    let bodies = match identified.caller.key_id() {
        Some(key) => held::list(&ctx.gateway, key, after.or(before), page).await?,
        None => Vec::new(),
    };
    let parsed = bodies.iter().filter_map(|body| serde_json::from_str::<Value>(body).ok());
    let is_wanted =
        |item: &Value| purpose.as_ref().is_none_or(|purpose| item["purpose"] == **purpose);
    let mut items: Vec<Value> = parsed.filter(is_wanted).collect();
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let has_more = items.len() > limit;
    match page.is_before {
        true => drop(items.drain(..items.len().saturating_sub(limit))),
        false => items.truncate(limit),
    }
    if is_google {
        return Ok(Answer::ok(google_page(collection, items, has_more).to_string()));
    }
    let id = |item: Option<&Value>| item.map_or(Value::Null, |item| item["id"].clone());
    let mut list = json!({
        "first_id": id(items.first()), "last_id": id(items.last()), "has_more": has_more,
    });
    if collection.format != WireFormat::Native {
        list["object"] = "list".into();
    }
    list["data"] = items.into();
    Ok(Answer::ok(list.to_string()))
}

/// How many items are asked for.
fn limit(asked: &str, is_files: bool, is_google: bool) -> Result<u32, Refusal> {
    let (name, most, usual) = match is_google {
        true => ("pageSize", MOST, USUAL),
        false if is_files => ("limit", MOST_FILES, MOST_FILES),
        false => ("limit", MOST, USUAL),
    };
    let Some(text) = query::values(asked, name).next() else { return Ok(usual) };
    let number = text.parse().ok().filter(|limit| (1..=most).contains(limit));
    number.ok_or_else(|| {
        Refusal::BadRequest(format!("{name}: a number from 1 to {most} is expected"))
    })
}

/// A page of Google's form. Its token is the id of the last item.
fn google_page(collection: &Collection, items: Vec<Value>, has_more: bool) -> Value {
    let last = items.last().and_then(google::id_of).filter(|_| has_more).map(str::to_owned);
    let member = if collection.is_of_batches() { "operations" } else { "files" };
    let mut page = json!({ member: items });
    if let Some(last) = last {
        page["nextPageToken"] = last.into();
    }
    page
}
