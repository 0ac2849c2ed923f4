//! Google's uploads of files in several calls: the first is answered with an address, and the others
//! go to it, without a credential. So the client gets an address at the gateway, which has in it,
//! sealed, for which key the upload is and which account takes it. Any node can open it.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::header::{CONTENT_ENCODING, HOST};
use http::{HeaderMap, HeaderValue, Uri};
use pingora::proxy::Session;

use super::endpoint_body::BatchPlaces;
use super::identify::Identified;
use super::intake::Inbound;
use super::plan::Plan;
use super::received;
use super::{query, screen, stored};
use crate::crypto::vault::{SealedFor, Vault};
use crate::domain::endpoint::{ApiEndpoint, EndpointAsk};
use crate::domain::secret::Secret;
use crate::formats::batch::{BatchRequests, google};
use crate::formats::peek::PeekLimits;
use crate::formats::route::{GOOGLE_FILES, UploadCall};
use crate::proxy::blocking::by_size;
use crate::proxy::body_budget::BodyReservation;
use crate::proxy::coding::Coding;
use crate::proxy::context::RequestContext;
use crate::proxy::reply::refusal::Refusal;

/// The path of uploads, and the parameter that has what is sealed.
pub(in crate::proxy) const PATH: &str = "/upload/v1beta/files";
const PARAMETER: &str = "upload_id";
/// What is sealed opens for nothing else.
const PURPOSE: &str = "the address of an upload";
/// The header in which the address is told, and the one of what a call is.
pub(in crate::proxy) const ADDRESS: &str = "x-goog-upload-url";
const COMMAND: &str = "x-goog-upload-command";
const OFFSET: &str = "x-goog-upload-offset";

/// The upload that the query continues; `None` if it continues none.
///
/// # Errors
/// The address is not one that this gateway gave.
pub(super) fn continued(
    ctx: &RequestContext,
    asked: Option<&str>,
) -> Result<Option<UploadCall>, Refusal> {
    let Some(sealed) = asked.and_then(|asked| query::values(asked, PARAMETER).next()) else {
        return Ok(None);
    };
    let vault = ctx.gateway.node.state.vault();
    let text = URL_SAFE_NO_PAD.decode(sealed).ok().and_then(|text| String::from_utf8(text).ok());
    let opened = text.and_then(|text| vault.open(SealedFor::exported(PURPOSE), &text).ok());
    let call = opened.and_then(|text| serde_json::from_str(text.expose()).ok());
    let unknown = || Refusal::UnknownReply { item: "Upload", id: "of this address".to_owned() };
    call.map(Some).ok_or_else(unknown)
}

/// The address of an upload at this gateway, as the client reached it; `None` if it cannot be made.
pub(in crate::proxy) fn address(
    session: &Session,
    ctx: &RequestContext,
    call: &UploadCall,
) -> Option<HeaderValue> {
    let ring = ctx.gateway.node.state.vault().ring();
    let text = Secret::new(serde_json::to_string(call).ok()?);
    let sealed = Vault::seal(ring.newest()?, SealedFor::exported(PURPOSE), &text).ok()?;
    let sealed = URL_SAFE_NO_PAD.encode(sealed);
    let head = session.req_header();
    let text = |name: &str| head.headers.get(name).and_then(|value| value.to_str().ok());
    let host = text(HOST.as_str()).or_else(|| head.uri.authority().map(|host| host.as_str()))?;
    let has_tls = session.digest().is_some_and(|digest| digest.ssl_digest.is_some());
    // Only the client itself gets the address.
    let is_secure = has_tls || text("x-forwarded-proto") == Some("https");
    let scheme = if is_secure { "https" } else { "http" };
    let address = format!("{scheme}://{host}{PATH}?{PARAMETER}={sealed}&upload_protocol=resumable");
    HeaderValue::from_str(&address).ok()
}

/// Path and query of a provider's address, if it is at this authority.
pub(in crate::proxy) fn target_of(address: &HeaderValue, authority: &str) -> Option<String> {
    let uri: Uri = address.to_str().ok()?.parse().ok()?;
    let is_its = uri.authority().is_some_and(|own| {
        let own = match own.port_u16() {
            Some(443 | 80) => own.host(),
            _ => own.as_str(),
        };
        own.eq_ignore_ascii_case(authority)
    });
    is_its.then(|| uri.path_and_query().map(ToString::to_string)).flatten()
}

/// The headers of an upload's call that a provider gets.
pub(in crate::proxy) fn add_headers(session: &Session, headers: &mut HeaderMap) {
    const PASSED: [&str; 6] = [
        COMMAND,
        OFFSET,
        "x-goog-upload-file-name",
        "x-goog-upload-header-content-length",
        "x-goog-upload-header-content-type",
        PROTOCOL,
    ];
    const PROTOCOL: &str = "x-goog-upload-protocol";
    let client = session.req_header();
    for name in PASSED {
        if let Some(value) = client.headers.get(name) {
            headers.insert(name, value.clone());
        }
    }
    let asked = client.uri.query().unwrap_or_default();
    if query::values(asked, "uploadType").any(|kind| kind == "multipart") {
        headers.insert(PROTOCOL, HeaderValue::from_static("multipart"));
    }
}

/// The plan of a call that continues an upload: the account that takes it. A file that comes in one
/// piece is read here, as it may have the requests of a batch.
///
/// # Errors
/// When the provider is out of reach now, when the client is not on a non-empty list, when the body
/// cannot be taken, or a request of a batch has a sensitive word.
pub(in crate::proxy) async fn plan(
    session: &mut Session,
    ctx: &mut RequestContext,
    identified: &mut Identified,
    call: &UploadCall,
) -> pingora::Result<Plan> {
    screen::client(ctx, identified)?;
    let reservation = BodyReservation::new(&ctx.gateway.bodies, identified.caller.user_id());
    let limit = ctx.live.max_body_bytes;
    let received = received::read(session, reservation, &ctx.live, limit).await?;
    let coding = Coding::of(session.req_header().headers.get(CONTENT_ENCODING))
        .map_err(received::coding_refusal)?;
    let received = received::decode(coding, received, &ctx.live, limit).await?;
    identified.renew(ctx)?;
    let unknown = || Refusal::UnknownReply { item: "Upload", id: "of this address".to_owned() };
    let place = stored::place_of(identified, call.provider, &GOOGLE_FILES).ok_or_else(unknown)?;
    let mut inbound = Inbound::without_body(stored::session_of(ctx, &call.target));
    inbound.account = Some((call.provider, call.credential));
    inbound.take_raw(received, content_type(session));
    if is_whole(session) {
        read_requests(ctx, identified, &mut inbound).await?;
    }
    stored::note_facts(ctx, &inbound);
    Ok(Plan::to_one(Arc::new(inbound), place))
}

fn content_type(session: &Session) -> Box<str> {
    let named = session.req_header().headers.get(http::header::CONTENT_TYPE);
    named.and_then(|named| named.to_str().ok()).unwrap_or("application/octet-stream").into()
}

/// Whether the call has all of the file.
fn is_whole(session: &Session) -> bool {
    let text = |name| {
        let value = session.req_header().headers.get(name);
        value.and_then(|value| value.to_str().ok()).unwrap_or_default()
    };
    let commands: Vec<_> = text(COMMAND).split(',').map(str::trim).collect();
    let has_all = ["upload", "finalize"].iter().all(|command| commands.contains(command));
    has_all && text(OFFSET) == "0"
}

/// Reads the file as the requests of a batch. A file of another kind has none.
async fn read_requests(
    ctx: &RequestContext,
    identified: &Identified,
    inbound: &mut Inbound,
) -> Result<(), Refusal> {
    let (pieces, depth) = (inbound.body.clone(), ctx.live.max_json_depth);
    let first = pieces.iter().flatten().find(|byte| !byte.is_ascii_whitespace());
    if first != Some(&b'{') {
        return Ok(());
    }
    let length = inbound.body_len();
    let reading = by_size(length, move || {
        google::of_lines(&pieces, 0..length, PeekLimits { max_depth: depth }).ok()
    });
    let Some(read) = reading.await.ok_or(Refusal::Internal)? else { return Ok(()) };
    let BatchRequests { ask, bodies, names, .. } = read;
    inbound.batch = Some(Box::new(BatchPlaces { bodies, names }));
    let endpoint = ApiEndpoint::of(PATH).ok_or(Refusal::Internal)?;
    inbound.ask = Some(Arc::new(EndpointAsk::of_file(endpoint, ask)));
    screen::words_of_batch(ctx, identified, inbound).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_the_provider_itself_are_followed() {
        let own = "https://host.example:443/upload/v1beta/files?upload_id=a&upload_protocol=b";
        for (address, authority, target) in [
            (own, "host.example", Some("/upload/v1beta/files?upload_id=a&upload_protocol=b")),
            ("http://127.0.0.1:9/upload?id=1", "127.0.0.1:9", Some("/upload?id=1")),
            ("http://127.0.0.1:8/upload?id=1", "127.0.0.1:9", None),
            ("https://other.example/upload", "host.example", None),
            ("/upload", "host.example", None),
        ] {
            let address = HeaderValue::from_static(address);
            assert_eq!(target_of(&address, authority).as_deref(), target);
        }
    }
}
