//! Why a provider's cache had less of a request than it should: judged once the usage is known.

use rust_decimal::Decimal;

use super::context::RequestContext;
use super::record::{AskedProvider, BodyFacts};
use crate::domain::cache_miss::CacheMiss;
use crate::domain::ids::KeyId;
use crate::domain::money::NanoUsd;
use crate::domain::price::Price;
use crate::domain::prompt_print::PromptPrint;
use crate::formats::usage::Bill;
use crate::policy::cache_lines::Turn;
use crate::policy::cost;

/// What a request missed, given the fingerprint of its prompt, and the entry and the multiplier of
/// its price. Notes the request for the session's next one.
pub(super) fn missed(
    ctx: &RequestContext,
    (key, body): (Option<KeyId>, &BodyFacts),
    print: PromptPrint,
    (asked, bill): (&AskedProvider, &Bill),
    (price, multiplier): (Option<&Price>, Decimal),
) -> Option<CacheMiss> {
    if bill.estimated || bill.usage.total_input() == 0 {
        return None;
    }
    let turn = Turn {
        print,
        model: asked.model.clone(),
        provider: asked.provider.id,
        format: asked.provider.kind.format(),
        usage: bill.usage,
        started: ctx.started_at,
        ended: ctx.now(),
    };
    let missed = ctx.gateway.cache_sessions.next(key, &body.session, turn)?;
    let saved = |price: &Price| cost::saved(&price.rates, &bill.usage, multiplier, missed.tokens);
    let (cause, message, tokens) = (missed.cause, missed.message, missed.tokens);
    Some(CacheMiss { cause, message, tokens, cost: price.map_or(NanoUsd::ZERO, saved) })
}

/// The line of the decision chain.
pub(super) fn explained(miss: &CacheMiss) -> String {
    let CacheMiss { cause, message, tokens, cost } = miss;
    let cause = match message {
        0 => cause.text().to_owned(),
        number => format!("message {number} changed"),
    };
    format!("not read from the prompt cache: {tokens} tokens (${}), {cause}", cost.to_decimal())
}
