//! The dense encoding: every record reads back; damaged bytes give no record or another one, and
//! never a panic.

use std::sync::Arc;

use proptest::prelude::*;
use rust_decimal::Decimal;
use uuid::Uuid;

use super::decoder::In;
use super::*;
use crate::domain::clock::Timestamp;
use crate::domain::ids::{KeyId, ProviderId, RequestId, UserId};
use crate::domain::money::NanoUsd;
use crate::domain::record::Decision;
use crate::ledger::segment::sample;

fn texts() -> BoxedStrategy<String> {
    prop_oneof![
        Just(String::new()),
        "[ -~]{0,12}",
        any::<String>(),
        Just("größer 東京 \u{10FFFF}".to_owned())
    ]
    .boxed()
}

fn shared() -> BoxedStrategy<Option<Arc<str>>> {
    proptest::option::of(texts().prop_map(Arc::from)).boxed()
}

fn numbers() -> BoxedStrategy<u64> {
    prop_oneof![0..200_u64, any::<u64>(), Just(u64::MAX), (0..64_u32).prop_map(|bit| 1 << bit)]
        .boxed()
}

fn signed() -> BoxedStrategy<i64> {
    prop_oneof![-200..200_i64, any::<i64>(), Just(i64::MIN), Just(i64::MAX)].boxed()
}

prop_compose! {
    fn usages()(n in proptest::array::uniform8(numbers()), m in proptest::array::uniform3(numbers()), t in 0..ServiceTier::ALL.len()) -> Usage {
        let [input, output, cache_write_5m, cache_write_1h, cache_read, reasoning, image_input, image_output] = n;
        let ([audio_input, audio_output, web_searches], tier) = (m, ServiceTier::ALL[t]);
        Usage {
            input, output, cache_write_5m, cache_write_1h, cache_read, reasoning, image_input, image_output, audio_input,
            audio_output, web_searches, tier, ..Usage::default()
        }
    }
}

prop_compose! {
    fn decisions()(
        id in proptest::option::of(signed()), name in texts(), step in 0..STEPS.len(), detail in shared(),
        status in proptest::option::of(any::<u16>()), at_ms in numbers(), took_ms in proptest::option::of(numbers()),
        usage in proptest::option::of(usages().boxed())
    ) -> Decision {
        let (provider_id, provider_name) = (id.map(ProviderId), name.into());
        Decision { provider_id, provider_name, step: STEPS[step], detail, status, at_ms, took_ms, usage }
    }
}

prop_compose! {
    fn parts()(
        kind in 0..PartKind::ALL.len(), names in proptest::array::uniform2(shared()), usage in usages().boxed(),
        quantity in numbers(), cached in proptest::array::uniform2(numbers()), free in any::<bool>(), cost in proptest::option::of(signed())
    ) -> Part {
        let ([model, price_model], cost) = (names, cost.map(NanoUsd));
        let usage = Usage { image_cache_read: cached[0], audio_cache_read: cached[1], ..usage };
        Part { kind: PartKind::ALL[kind], model, usage, quantity, free, cost, price_model }
    }
}

prop_compose! {
    fn records()(
        ids in (any::<u128>(), proptest::array::uniform3(proptest::option::of(signed()))),
        names in proptest::array::uniform8(shared()), (endpoint, model, error) in (texts(), texts(), shared()),
        formats in (0..4_usize, proptest::option::of(0..4_usize)), flags in any::<[bool; 2]>(),
        (status_code, outcome, attempts) in (any::<u16>(), 0..7_usize, any::<u32>()),
        usage in usages().boxed(), cost in proptest::option::of(signed()), multiplier in (any::<i128>(), 0..=28_u32),
        times in (signed(), numbers(), proptest::option::of(numbers()), numbers(), signed()),
        decisions in proptest::collection::vec(decisions().boxed(), 0..4).boxed(),
        parts in proptest::collection::vec(parts().boxed(), 0..3).boxed(),
        miss in proptest::option::of((0..CacheMissCause::ALL.len(), any::<u32>(), numbers(), signed())),
        notional in proptest::option::of(signed())
    ) -> Record {
        let [key_name, user_name, session, provider_name, upstream_model, user_agent, client_addr, price_model] = names;
        let notional_cost = notional.map(NanoUsd);
        let [key_id, user_id, provider_id] = ids.1;
        Record {
            request_id: RequestId(Uuid::from_u128(ids.0)), started_at: Timestamp(times.0), admitted_ms: times.4,
            key_id: key_id.map(KeyId), key_name, user_id: user_id.map(UserId), user_name,
            session_id: session.map(SessionId), provider_id: provider_id.map(ProviderId), provider_name,
            client_format: WireFormat::ALL[formats.0], provider_format: formats.1.map(|at| WireFormat::ALL[at]),
            endpoint: endpoint.into(), model: model.into(), upstream_model, streamed: flags[0], status_code,
            outcome: RequestOutcome::ALL[outcome], error_message: error.map(|text| text.as_ref().to_owned()), usage,
            cost: cost.map(NanoUsd), cost_multiplier: Decimal::from_i128_with_scale(multiplier.0 >> 33, multiplier.1),
            estimated: flags[1], duration_ms: times.1, first_byte_ms: times.2, overhead_us: times.3, attempts,
            decisions, user_agent, client_addr, price_model, parts, notional_cost,
            cache_miss: miss.map(|(cause, message, tokens, cost)| CacheMiss {
                cause: CacheMissCause::ALL[cause], message, tokens, cost: NanoUsd(cost),
            }),
        }
    }
}

fn written(record: &Record) -> Vec<u8> {
    let mut bytes = Vec::new();
    write(record, &mut bytes);
    bytes
}

proptest! {
    #[test]
    fn any_record_reads_back(first in records().boxed(), second in records().boxed()) {
        let mut decoder = Decoder::default();
        for record in [&first, &second, &second, &first] {
            let bytes = written(record);
            prop_assert!(bytes.iter().all(|byte| *byte < 0xFE), "looks like a frame's mark");
            let back = decoder.read(&bytes);
            prop_assert_eq!(back.as_ref(), Some(record));
        }
    }

    #[test]
    fn any_bytes_are_read_without_a_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = Decoder::default().read(&bytes);
        bytes.insert(0, DENSE);
        let _ = Decoder::default().read(&bytes);
    }
}

#[test]
fn every_shorter_payload_and_every_longer_one_is_no_record() {
    let mut bytes = written(&sample(7));
    for cut in 0..bytes.len() {
        assert_eq!(Decoder::default().read(&bytes[..cut]), None, "cut at {cut}");
    }
    bytes.push(0);
    assert_eq!(Decoder::default().read(&bytes), None);
}

#[test]
fn every_damaged_byte_is_read_as_nothing_or_as_something_else() {
    let (mut bytes, record) = (written(&sample(7)), sample(7));
    for at in 0..bytes.len() {
        for damage in [0x01, 0x20, 0x80, 0xFF] {
            bytes[at] ^= damage;
            assert_ne!(
                Decoder::default().read(&bytes).as_ref(),
                Some(&record),
                "byte {at} ^ {damage:#x}"
            );
            bytes[at] ^= damage;
        }
    }
}

#[test]
fn numbers_in_the_journal_never_change() {
    for (at, step) in STEPS.into_iter().enumerate() {
        assert_eq!(step_number(step), at as u64);
    }
    for (at, tier) in ServiceTier::ALL.into_iter().enumerate() {
        assert_eq!(tier_number(tier), at as u64);
    }
    // Such bytes exist in journals on disk.
    let golden = include_bytes!("../../../../../tests/ledger/dense.bin");
    assert_eq!(Decoder::default().read(golden), Some(sample(7)));
    assert_eq!(written(&sample(7)), golden);
    let other = [&[1], &golden[1..]].concat();
    assert_eq!(Decoder::default().read(&other), None, "another version's");
}

#[test]
fn a_number_that_is_too_large_is_no_number() {
    let mut last = Default::default();
    let mut read = |bytes: &[u8]| In { rest: bytes, last: &mut last }.number();
    assert_eq!(read(&[[0xBF; 10].as_slice(), &[0x0F]].concat()), Some(u64::MAX));
    assert_eq!(read(&[[0xBF; 10].as_slice(), &[0x1F]].concat()), None);
    assert_eq!(read(&[[0x80; 11].as_slice(), &[0x01]].concat()), None);
    assert_eq!(read(&[0x80; 40]), None);
}

#[test]
fn a_text_that_repeats_is_one_text() {
    let mut decoder = Decoder::default();
    let [first, second] = [1, 2].map(|number| decoder.read(&written(&sample(number))).unwrap());
    assert!(
        Arc::ptr_eq(&first.model, &second.model) && Arc::ptr_eq(&first.endpoint, &second.endpoint)
    );
}
