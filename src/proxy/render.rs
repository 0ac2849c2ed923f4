//! The request as one provider gets it: path, query and body in that provider's format.
//!
//! Same format: the client's own bytes, with surgical edits. Another format: converted through the hub.

use bytes::Bytes;

use super::exchange::{Exchange, Inbound};
use super::refusal::Refusal;
use crate::domain::format::WireFormat;
use crate::domain::provider::Provider;
use crate::formats::route::Operation;
use crate::formats::{edit, peek};
use crate::upstream::Call;

/// The body was within the configured depth when it came in.
const MAX_DEPTH: usize = 1024;

/// What goes to the provider.
pub struct Rendered {
    pub body: Vec<Bytes>,
    /// The query of the call, without `?`.
    pub query: Option<String>,
    /// Whether the reply's last usage chunk must be kept from the client, who did not ask for it.
    pub hide_usage: bool,
    pub converted: bool,
}

impl Rendered {
    #[must_use]
    pub fn len(&self) -> usize {
        self.body.iter().map(Bytes::len).sum()
    }
}

/// Which formats a provider may speak for a client of another one.
#[must_use]
pub fn convertible(_operation: Option<&Operation>) -> fn(WireFormat, WireFormat) -> bool {
    |client, provider| client == provider
}

/// The call that the client's operation amounts to.
#[must_use]
pub fn call<'a>(x: &Exchange, inbound: &Inbound, model: &'a str) -> Call<'a> {
    match x.operation() {
        Some(Operation::CountTokens) => Call::CountTokens { model },
        _ => Call::Generate { model, stream: inbound.stream },
    }
}

/// Renders the request for a provider that is asked for `model`.
///
/// # Errors
/// When the provider's format cannot express the request.
pub fn render(x: &Exchange, inbound: &Inbound, provider: &Provider, model: &str) -> Result<Rendered, Refusal> {
    debug_assert_eq!(x.format, provider.kind.format());
    let mut body = inbound.body.clone();
    let mut hide_usage = false;
    let wants_usage = x.format == WireFormat::Chat && inbound.stream;
    let renamed = model != &*inbound.model && x.route.as_ref().is_some_and(|r| r.model_in_path.is_none());
    if renamed {
        body = edit::set_model(&body, &inbound.peek, model);
    }
    if wants_usage {
        // The first edit moved what lies behind it: look again, if there was one.
        let moved = if renamed { Some(peek_again(&body)?) } else { None };
        if let Some(asking) = edit::ask_for_usage(&body, moved.as_ref().unwrap_or(&inbound.peek)) {
            body = asking;
            hide_usage = true;
        }
    }
    Ok(Rendered { body, query: x.query.clone(), hide_usage, converted: false })
}

fn peek_again(body: &[Bytes]) -> Result<peek::Peek, Refusal> {
    let limits = peek::PeekLimits { max_depth: MAX_DEPTH };
    peek::peek(body, limits).map_err(|_| Refusal::Internal)
}
