//! Reads the dense encoding of records; see the module for its form.

use std::sync::Arc;

use rust_decimal::Decimal;
use uuid::Uuid;

use super::{
    DENSE, GROUP, LEAST_DECISION, LEAST_PART, MORE, STEPS, WITH_CACHE_MISS, WITH_NOTIONAL_COST,
    WITH_PARTS, cause_number, format_number, outcome_number, part_number, step_number, tier_number,
};
use crate::domain::cache_miss::{CacheMiss, CacheMissCause};
use crate::domain::clock::Timestamp;
use crate::domain::format::WireFormat;
use crate::domain::ids::{KeyId, ProviderId, RequestId, SessionId, UserId};
use crate::domain::money::NanoUsd;
use crate::domain::part::{Part, PartKind};
use crate::domain::record::{Decision, Record, RequestOutcome};
use crate::domain::usage::{ServiceTier, Usage};

/// Reads payloads, one after the other, and shares the memory of a text that repeats from record to
/// record.
#[derive(Default)]
pub(in super::super) struct Decoder {
    last: [Option<Arc<str>>; TEXTS],
}

/// Fields whose text often repeats: their indices in [`Decoder`].
pub(super) const TEXTS: usize = 14;
const KEY: usize = 0;
const USER: usize = 1;
const SESSION: usize = 2;
const PROVIDER: usize = 3;
const ENDPOINT: usize = 4;
const MODEL: usize = 5;
const UPSTREAM_MODEL: usize = 6;
const AGENT: usize = 7;
const ADDRESS: usize = 8;
const DECIDED: usize = 9;
const DETAIL: usize = 10;
const SUCCEEDED: usize = 11;
const PRICE: usize = 12;
const PART: usize = 13;

impl Decoder {
    /// The record of a payload; `None` if it is not a record.
    pub(in super::super) fn read(&mut self, payload: &[u8]) -> Option<Record> {
        let (first, rest) = payload.split_first()?;
        if ![DENSE, WITH_PARTS, WITH_CACHE_MISS, WITH_NOTIONAL_COST].contains(first) {
            return None;
        }
        let mut input = In { rest, last: &mut self.last };
        let mut record = input.record()?;
        if *first != DENSE {
            record.usage.image_cache_read = input.number()?;
            record.usage.audio_cache_read = input.number()?;
            record.parts = input.parts()?;
        }
        if *first == WITH_NOTIONAL_COST {
            record.notional_cost = Some(NanoUsd(input.signed()?));
            record.cache_miss = input.maybe(In::cache_miss)?;
        }
        if *first == WITH_CACHE_MISS {
            record.cache_miss = Some(input.cache_miss()?);
        }
        input.rest.is_empty().then_some(record)
    }
}

pub(super) struct In<'a> {
    pub(super) rest: &'a [u8],
    pub(super) last: &'a mut [Option<Arc<str>>; TEXTS],
}

impl<'a> In<'a> {
    fn record(&mut self) -> Option<Record> {
        Some(Record {
            request_id: RequestId(Uuid::from_u64_pair(self.number()?, self.number()?)),
            started_at: Timestamp(self.signed()?),
            key_id: self.maybe(Self::signed)?.map(KeyId),
            key_name: self.maybe(|input| input.shared(KEY))?,
            user_id: self.maybe(Self::signed)?.map(UserId),
            user_name: self.maybe(|input| input.shared(USER))?,
            session_id: self.maybe(|input| input.shared(SESSION))?.map(SessionId),
            provider_id: self.maybe(Self::signed)?.map(ProviderId),
            provider_name: self.maybe(|input| input.shared(PROVIDER))?,
            client_format: self.format()?,
            provider_format: self.maybe(Self::format)?,
            endpoint: self.shared(ENDPOINT)?,
            model: self.shared(MODEL)?,
            upstream_model: self.maybe(|input| input.shared(UPSTREAM_MODEL))?,
            streamed: self.flag()?,
            status_code: self.number()?.try_into().ok()?,
            outcome: self.one_of(RequestOutcome::ALL, outcome_number)?,
            error_message: self.maybe(|input| input.text().map(str::to_owned))?,
            usage: self.usage()?,
            cost: self.maybe(Self::signed)?.map(NanoUsd),
            cost_multiplier: self.text()?.parse::<Decimal>().ok()?,
            estimated: self.flag()?,
            duration_ms: self.number()?,
            first_byte_ms: self.maybe(Self::number)?,
            overhead_us: self.number()?,
            attempts: self.number()?.try_into().ok()?,
            decisions: self.decisions()?,
            user_agent: self.maybe(|input| input.shared(AGENT))?,
            client_addr: self.maybe(|input| input.shared(ADDRESS))?,
            // Fields are read in the order of this expression: these are the last.
            price_model: self.maybe(|input| input.shared(PRICE))?,
            admitted_ms: self.signed()?,
            parts: Vec::new(),
            cache_miss: None,
            notional_cost: None,
        })
    }

    fn cache_miss(&mut self) -> Option<CacheMiss> {
        Some(CacheMiss {
            cause: self.one_of(CacheMissCause::ALL, cause_number)?,
            message: self.number()?.try_into().ok()?,
            tokens: self.number()?,
            cost: NanoUsd(self.signed()?),
        })
    }

    fn parts(&mut self) -> Option<Vec<Part>> {
        let count = usize::try_from(self.number()?).ok()?;
        if count > self.rest.len() / LEAST_PART {
            return None;
        }
        (0..count).map(|_| self.part()).collect()
    }

    fn part(&mut self) -> Option<Part> {
        Some(Part {
            kind: self.one_of(PartKind::ALL, part_number)?,
            model: self.maybe(|input| input.shared(PART))?,
            usage: self.usage_with_cached_media()?,
            quantity: self.number()?,
            free: self.flag()?,
            cost: self.maybe(Self::signed)?.map(NanoUsd),
            price_model: self.maybe(|input| input.shared(PART))?,
        })
    }

    fn decisions(&mut self) -> Option<Vec<Decision>> {
        let count = usize::try_from(self.number()?).ok()?;
        if count > self.rest.len() / LEAST_DECISION {
            return None;
        }
        (0..count)
            .map(|at| self.decision(if at + 1 == count { SUCCEEDED } else { DECIDED }))
            .collect()
    }

    fn decision(&mut self, name: usize) -> Option<Decision> {
        Some(Decision {
            provider_id: self.maybe(Self::signed)?.map(ProviderId),
            provider_name: self.shared(name)?,
            step: self.one_of(&STEPS, step_number)?,
            detail: self.maybe(|input| input.shared(DETAIL))?,
            status: self.maybe(|input| input.number()?.try_into().ok())?,
            at_ms: self.number()?,
            took_ms: self.maybe(Self::number)?,
            usage: self.maybe(Self::usage)?,
        })
    }

    pub(super) fn number(&mut self) -> Option<u64> {
        let (mut value, mut shift) = (0_u64, 0);
        loop {
            let (byte, rest) = self.rest.split_first()?;
            self.rest = rest;
            let part = u64::from(byte & if *byte < MORE { 0x7F } else { 0x3F });
            let placed = part.checked_shl(shift)?;
            // No bits may be shifted out at the top.
            if placed >> shift != part {
                return None;
            }
            value |= placed;
            if *byte < MORE {
                return Some(value);
            }
            shift += GROUP;
        }
    }

    fn signed(&mut self) -> Option<i64> {
        let value = self.number()?;
        Some((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    fn flag(&mut self) -> Option<bool> {
        match self.number()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    /// The outer `None` = unreadable.
    #[expect(clippy::option_option, reason = "unreadable and missing are two things")]
    fn maybe<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<Option<T>> {
        if self.flag()? { read(self).map(Some) } else { Some(None) }
    }

    fn text(&mut self) -> Option<&'a str> {
        let length = usize::try_from(self.number()?).ok()?;
        let (text, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        std::str::from_utf8(text).ok()
    }

    /// A text, shared with the last record's if they are equal.
    fn shared(&mut self, at: usize) -> Option<Arc<str>> {
        let text = self.text()?;
        let last = self.last.get_mut(at)?;
        if last.as_deref() != Some(text) {
            *last = Some(text.into());
        }
        last.clone()
    }

    fn format(&mut self) -> Option<WireFormat> {
        self.one_of(&WireFormat::ALL, format_number)
    }

    fn one_of<T: Copy>(&mut self, all: &[T], number_of: impl Fn(T) -> u64) -> Option<T> {
        let number = self.number()?;
        all.iter().copied().find(|one| number_of(*one) == number)
    }

    fn usage_with_cached_media(&mut self) -> Option<Usage> {
        let usage = self.usage()?;
        let (image_cache_read, audio_cache_read) = (self.number()?, self.number()?);
        Some(Usage { image_cache_read, audio_cache_read, ..usage })
    }

    fn usage(&mut self) -> Option<Usage> {
        Some(Usage {
            input: self.number()?,
            output: self.number()?,
            cache_write_5m: self.number()?,
            cache_write_1h: self.number()?,
            cache_read: self.number()?,
            reasoning: self.number()?,
            image_input: self.number()?,
            image_output: self.number()?,
            audio_input: self.number()?,
            audio_output: self.number()?,
            web_searches: self.number()?,
            tier: self.one_of(&ServiceTier::ALL, tier_number)?,
            image_cache_read: 0,
            audio_cache_read: 0,
        })
    }
}
