//! The dense encoding of a record: the payload of a journal frame. Pure.
//!
//! ```text
//! 03 │ the fields of a record, in the order of `write` below, without names
//! 04 │ the same, and the parts of its cost
//! 05 │ the same, and its cache miss
//! 06 │ as 04, and its notional cost, and its cache miss, if it has one
//! number: six bits in each byte but the last, lowest first, each with 80 added; seven in the last
//! signed number: zigzag, then as a number          text: its length in bytes, then UTF-8
//! what may be missing: 0, or 1 and then it                           flag: 0 or 1
//! ```
//!
//! No byte above BF comes from a number and none above F4 from a text. So nothing in a payload can
//! look like the mark at the start of a frame, and after damage the next complete frame is found by
//! it.
//!
//! It does not protect against damage: the frame's checksum does. Reading is nevertheless bounded
//! by the available bytes.
//!
//! See docs/decisions/29-dense-journal-records.md.

mod decoder;

pub(super) use self::decoder::Decoder;

use rust_decimal::Decimal;

use crate::domain::cache_miss::{CacheMiss, CacheMissCause};
use crate::domain::format::WireFormat;
use crate::domain::ids::SessionId;
use crate::domain::part::{Part, PartKind};
use crate::domain::record::{DecisionStep, Record, RequestOutcome};
use crate::domain::usage::{ServiceTier, Usage};

/// First byte of a payload: the version of this encoding. A change of the fields below needs a new
/// one.
const DENSE: u8 = 3;
/// The version of records with what [`DENSE`] cannot hold: parts, newer tiers. All others are
/// written without, so that releases before it can read them.
const WITH_PARTS: u8 = 4;
/// The version of records with a cache miss.
const WITH_CACHE_MISS: u8 = 5;
/// The version of records with a notional cost.
const WITH_NOTIONAL_COST: u8 = 6;
/// Bits of a number in every byte but its last, and the flag of such a byte.
const GROUP: u32 = 6;
const MORE: u8 = 0x80;
/// Minimum bytes of a decision: bounds the number of decisions by the remaining bytes.
const LEAST_DECISION: usize = 8;
/// The same, of a part.
const LEAST_PART: usize = 20;

/// Steps by their numbers in the journal, which never change: new ones are appended.
const STEPS: [DecisionStep; 20] = [
    DecisionStep::OtherGroup,
    DecisionStep::Disabled,
    DecisionStep::ModelNotSupported,
    DecisionStep::FormatNotConvertible,
    DecisionStep::CircuitOpen,
    DecisionStep::Cooldown,
    DecisionStep::LimitReached,
    DecisionStep::SessionCapReached,
    DecisionStep::Candidate,
    DecisionStep::ChosenForSession,
    DecisionStep::Chosen,
    DecisionStep::Retried,
    DecisionStep::AttemptFailed,
    DecisionStep::ClientError,
    DecisionStep::Succeeded,
    DecisionStep::Refused,
    DecisionStep::Exhausted,
    DecisionStep::Checked,
    DecisionStep::Hedged,
    DecisionStep::HedgeLost,
];

const fn step_number(step: DecisionStep) -> u64 {
    match step {
        DecisionStep::OtherGroup => 0,
        DecisionStep::Disabled => 1,
        DecisionStep::ModelNotSupported => 2,
        DecisionStep::FormatNotConvertible => 3,
        DecisionStep::CircuitOpen => 4,
        DecisionStep::Cooldown => 5,
        DecisionStep::LimitReached => 6,
        DecisionStep::SessionCapReached => 7,
        DecisionStep::Candidate => 8,
        DecisionStep::ChosenForSession => 9,
        DecisionStep::Chosen => 10,
        DecisionStep::Retried => 11,
        DecisionStep::AttemptFailed => 12,
        DecisionStep::ClientError => 13,
        DecisionStep::Succeeded => 14,
        DecisionStep::Refused => 15,
        DecisionStep::Exhausted => 16,
        DecisionStep::Checked => 17,
        DecisionStep::Hedged => 18,
        DecisionStep::HedgeLost => 19,
    }
}

const fn outcome_number(outcome: RequestOutcome) -> u64 {
    match outcome {
        RequestOutcome::Completed => 0,
        RequestOutcome::Refused => 1,
        RequestOutcome::ClientError => 2,
        RequestOutcome::UpstreamFailed => 3,
        RequestOutcome::BrokenOff => 4,
        RequestOutcome::ClientAborted => 5,
        RequestOutcome::Internal => 6,
    }
}

const fn format_number(format: WireFormat) -> u64 {
    match format {
        WireFormat::Native => 0,
        WireFormat::Responses => 1,
        WireFormat::Chat => 2,
        WireFormat::AltCli => 3,
    }
}

const fn tier_number(tier: ServiceTier) -> u64 {
    match tier {
        ServiceTier::Standard => 0,
        ServiceTier::Flex => 1,
        ServiceTier::Priority => 2,
        ServiceTier::Batch => 3,
        ServiceTier::Fast => 4,
        ServiceTier::Us => 5,
        ServiceTier::FastUs => 6,
        ServiceTier::Ultrafast => 7,
        ServiceTier::OffPeak => 8,
    }
}

/// Kinds of parts by their numbers in the journal, which never change.
const fn part_number(kind: PartKind) -> u64 {
    match kind {
        PartKind::Message => 0,
        PartKind::FallbackMessage => 1,
        PartKind::AdvisorMessage => 2,
        PartKind::Compaction => 3,
        PartKind::OtherPass => 4,
        PartKind::ImageGeneration => 5,
        PartKind::CodeInterpreter => 6,
        PartKind::FileSearch => 7,
        PartKind::WebSearch => 8,
        PartKind::ImageSearch => 9,
        PartKind::Maps => 10,
        PartKind::CodeExecution => 11,
        PartKind::WebFetch => 12,
        PartKind::PartnerSearch => 13,
        PartKind::Image => 14,
        PartKind::Second => 15,
        PartKind::Character => 16,
        PartKind::Query => 17,
    }
}

/// Causes of cache misses by their numbers in the journal, which never change.
const fn cause_number(cause: CacheMissCause) -> u64 {
    match cause {
        CacheMissCause::Account => 0,
        CacheMissCause::Model => 1,
        CacheMissCause::Tools => 2,
        CacheMissCause::System => 3,
        CacheMissCause::Message => 4,
        CacheMissCause::Lifetime => 5,
        CacheMissCause::Unexplained => 6,
        CacheMissCause::FirstUse => 7,
        CacheMissCause::Unknown => 8,
    }
}

/// Appends a record.
pub(super) fn write(record: &Record, out: &mut Vec<u8>) {
    let Usage { tier, image_cache_read, audio_cache_read, .. } = record.usage;
    let is_newer = matches!(tier, ServiceTier::Ultrafast | ServiceTier::OffPeak)
        || image_cache_read > 0
        || audio_cache_read > 0;
    let is_notional = record.notional_cost.is_some();
    let has_more = is_notional || record.cache_miss.is_some();
    let has_parts = is_newer || has_more || !record.parts.is_empty();
    out.push(match (&record.cache_miss, has_parts) {
        _ if is_notional => WITH_NOTIONAL_COST,
        (Some(_), _) => WITH_CACHE_MISS,
        (None, true) => WITH_PARTS,
        (None, false) => DENSE,
    });
    let mut out = Out(out);
    let (high, low) = record.request_id.0.as_u64_pair();
    out.number(high).number(low).signed(record.started_at.0);
    out.signed_or_none(record.key_id.map(|id| id.0)).text_or_none(record.key_name.as_deref());
    out.signed_or_none(record.user_id.map(|id| id.0)).text_or_none(record.user_name.as_deref());
    out.text_or_none(record.session_id.as_ref().map(SessionId::as_str));
    out.signed_or_none(record.provider_id.map(|id| id.0))
        .text_or_none(record.provider_name.as_deref());
    out.number(format_number(record.client_format))
        .number_or_none(record.provider_format.map(format_number));
    out.text(&record.endpoint).text(&record.model).text_or_none(record.upstream_model.as_deref());
    out.flag(record.streamed)
        .number(record.status_code.into())
        .number(outcome_number(record.outcome));
    out.text_or_none(record.error_message.as_deref()).usage(&record.usage);
    out.signed_or_none(record.cost.map(|cost| cost.0));
    // Nearly always the same, and a decimal is slow to write.
    match record.cost_multiplier {
        one if one.scale() == 0 && one == Decimal::ONE => out.text("1"),
        other => out.text(&other.to_string()),
    };
    out.flag(record.estimated);
    out.number(record.duration_ms).number_or_none(record.first_byte_ms).number(record.overhead_us);
    out.number(record.attempts.into()).number(record.decisions.len() as u64);
    for decision in &record.decisions {
        out.signed_or_none(decision.provider_id.map(|id| id.0)).text(&decision.provider_name);
        out.number(step_number(decision.step)).text_or_none(decision.detail.as_deref());
        out.number_or_none(decision.status.map(u64::from))
            .number(decision.at_ms)
            .number_or_none(decision.took_ms);
        out.maybe(decision.usage.as_ref(), |out, usage| {
            out.usage(usage);
        });
    }
    out.text_or_none(record.user_agent.as_deref()).text_or_none(record.client_addr.as_deref());
    out.text_or_none(record.price_model.as_deref()).signed(record.admitted_ms);
    if has_parts {
        out.number(image_cache_read).number(audio_cache_read).number(record.parts.len() as u64);
        record.parts.iter().for_each(|part| out.part(part));
    }
    if let Some(cost) = record.notional_cost {
        out.signed(cost.0).flag(record.cache_miss.is_some());
    }
    if let Some(CacheMiss { cause, message, tokens, cost }) = record.cache_miss {
        out.number(cause_number(cause)).number(message.into()).number(tokens).signed(cost.0);
    }
}

struct Out<'a>(&'a mut Vec<u8>);

impl Out<'_> {
    fn number(&mut self, mut value: u64) -> &mut Self {
        while value >= 0x80 {
            self.0.push(MORE | (value as u8 & ((1 << GROUP) - 1)));
            value >>= GROUP;
        }
        self.0.push(value as u8);
        self
    }

    /// An optional value.
    fn maybe<T>(&mut self, value: Option<T>, write: impl FnOnce(&mut Self, T)) -> &mut Self {
        self.flag(value.is_some());
        if let Some(value) = value {
            write(self, value);
        }
        self
    }

    fn number_or_none(&mut self, value: Option<u64>) -> &mut Self {
        self.maybe(value, |out, value| {
            out.number(value);
        })
    }

    fn signed(&mut self, value: i64) -> &mut Self {
        self.number(((value << 1) ^ (value >> 63)) as u64)
    }

    fn signed_or_none(&mut self, value: Option<i64>) -> &mut Self {
        self.maybe(value, |out, value| {
            out.signed(value);
        })
    }

    fn flag(&mut self, value: bool) -> &mut Self {
        self.number(value.into())
    }

    fn text(&mut self, text: &str) -> &mut Self {
        self.number(text.len() as u64);
        self.0.extend_from_slice(text.as_bytes());
        self
    }

    fn text_or_none(&mut self, text: Option<&str>) -> &mut Self {
        self.maybe(text, |out, text| {
            out.text(text);
        })
    }

    fn part(&mut self, part: &Part) {
        self.number(part_number(part.kind)).text_or_none(part.model.as_deref());
        self.usage(&part.usage).number(part.usage.image_cache_read);
        self.number(part.usage.audio_cache_read).number(part.quantity).flag(part.free);
        self.signed_or_none(part.cost.map(|cost| cost.0));
        self.text_or_none(part.price_model.as_deref());
    }

    fn usage(&mut self, usage: &Usage) -> &mut Self {
        self.number(usage.input)
            .number(usage.output)
            .number(usage.cache_write_5m)
            .number(usage.cache_write_1h);
        self.number(usage.cache_read)
            .number(usage.reasoning)
            .number(usage.image_input)
            .number(usage.image_output);
        self.number(usage.audio_input).number(usage.audio_output).number(usage.web_searches);
        self.number(tier_number(usage.tier))
    }
}

#[cfg(test)]
mod tests;
