//! Why a provider's cache had less of a request than it should: judged once the usage is known.
//! Anthropic is asked for its own opinion, on a sample.

use std::sync::Arc;

use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive as _;

use super::context::RequestContext;
use super::record::{AskedProvider, BodyFacts};
use crate::domain::cache_miss::CacheMiss;
use crate::domain::format::WireFormat;
use crate::domain::ids::{KeyId, RequestId};
use crate::domain::money::NanoUsd;
use crate::domain::price::Price;
use crate::domain::prompt_print::PromptPrint;
use crate::domain::provider::Provider;
use crate::formats::usage::Bill;
use crate::policy::cache_lines::Turn;
use crate::policy::cost;

/// What the missed tokens are priced by.
pub(super) struct MissRates<'a> {
    /// The entry of the reply; `None` if it has none.
    pub price: Option<&'a Price>,
    /// The provider's.
    pub multiplier: Decimal,
}

/// What a request missed, given the fingerprint of its prompt, and the entry and the multiplier of
/// its price. Notes the request for the session's next one.
pub(super) fn missed(
    ctx: &RequestContext,
    key: Option<KeyId>,
    body: &BodyFacts,
    print: PromptPrint,
    asked: &AskedProvider,
    bill: &Bill,
    rates: MissRates<'_>,
) -> Option<CacheMiss> {
    if bill.estimated || bill.usage.total_input() == 0 {
        return None;
    }
    let turn = Turn {
        print,
        model: asked.model.clone(),
        reply: asked.reply.clone(),
        provider: asked.provider.id,
        format: asked.provider.kind.format(),
        usage: bill.usage,
        started: ctx.started_at,
        ended: ctx.now(),
    };
    let missed = ctx.gateway.cache_sessions.next(key, &body.session, turn)?;
    let MissRates { price, multiplier } = rates;
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

/// The id of the reply that a request goes on from, if the provider of this attempt gave it and is
/// to be asked what its cache did with the prompt since then.
pub(super) fn asks_about(
    ctx: &RequestContext,
    provider: &Provider,
    model: &str,
) -> Option<Arc<str>> {
    let record = ctx.record.as_ref()?;
    let body = record.body.as_ref()?;
    let print = body.print.as_ref()?;
    if ctx.format != WireFormat::Native
        || !is_in_sample(ctx.id, ctx.live.cache_diagnosis)
        || !provider.is_anthropics_own()
    {
        return None;
    }
    let (key, sessions) = (record.caller.key_id(), &ctx.gateway.cache_sessions);
    sessions.last_reply(key, &body.session, print, model, provider.id)
}

/// Whether a request is in a sample of this share, from 0 to 1. The low bits of its id are random.
fn is_in_sample(id: RequestId, share: Decimal) -> bool {
    if share.is_zero() {
        return false;
    }
    let below = (share * Decimal::from(1_u64 << 32)).to_u128().unwrap_or_default();
    id.0.as_u128() % (1 << 32) < below
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_has_its_share_of_the_requests() {
        let count = |share| {
            let share = Decimal::new(share, 2);
            (0..2000).filter(|_| is_in_sample(RequestId::new(), share)).count()
        };
        assert_eq!((count(0), count(100)), (0, 2000));
        let tenth = count(10);
        assert!((100..320).contains(&tenth), "{tenth}");
    }
}
