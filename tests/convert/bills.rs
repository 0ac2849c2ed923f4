//! The same provider bytes give the same bill, whatever the client's format and however they are
//! cut.

use proptest::prelude::*;
use tollgate::domain::format::WireFormat;
use tollgate::domain::usage::Usage;
use tollgate::formats::convert::{self, StreamConverter};
use tollgate::formats::usage::UsageReader;

use super::golden::{Source, reply_context, sources};

/// What is billed, and whether the figures are final.
type Bill = (Usage, bool);

/// Of a request whose input is estimated at 77 tokens.
fn bill(reader: &UsageReader) -> Bill {
    (reader.estimate(77), reader.final_figures())
}

fn streams() -> Vec<&'static Source> {
    sources().iter().filter(|source| source.kind == "stream").collect()
}

fn passed(source: &Source, pieces: &[&[u8]]) -> Bill {
    let mut reader = UsageReader::new(source.format, true);
    pieces.iter().for_each(|piece| reader.feed(piece));
    reader.finish();
    bill(&reader)
}

fn converted(source: &Source, to: WireFormat, pieces: &[&[u8]]) -> Bill {
    let mut context = reply_context(&source.dir, to, source.format);
    // A stream is converted to its own format only if the client requires the wrapper.
    context.wrapped |= to == source.format;
    let mut converter = StreamConverter::new(source.format, to, context);
    let mut out = Vec::new();
    for piece in pieces {
        // A stream that cannot be converted further is billed nevertheless.
        let _ = converter.feed(piece, &mut out);
    }
    let _ = converter.finish(&mut out);
    bill(converter.usage())
}

fn pieces<'b>(mut rest: &'b [u8], sizes: &[usize]) -> Vec<&'b [u8]> {
    let mut parts = Vec::new();
    for size in sizes.iter().cycle() {
        let (part, tail) = rest.split_at((*size).min(rest.len()));
        parts.push(part);
        rest = tail;
        if rest.is_empty() {
            break;
        }
    }
    parts
}

#[test]
fn every_whole_stream_is_billed_by_final_figures_and_the_same_for_everyone() {
    let mut checked = 0;
    for source in streams().into_iter().filter(|source| source.case != "stream_error") {
        let (usage, is_final) = passed(source, &[&source.bytes]);
        assert!(is_final && usage.total() > 0, "{} {}: {usage:?}", source.case, source.format);
        checked += 1;
        for to in WireFormat::ALL {
            assert_eq!(
                converted(source, to, &[&source.bytes]),
                (usage, true),
                "{} {} to {to}",
                source.case,
                source.format
            );
        }
    }
    assert!(checked > 20, "only {checked} streams");
}

#[test]
fn every_complete_reply_reports_the_billed_usage() {
    for source in sources().iter().filter(|source| source.kind == "reply") {
        let mut reader = UsageReader::new(source.format, false);
        reader.feed(&source.bytes);
        reader.finish();
        let Ok(reply) = convert::read_reply(source.format, &source.bytes) else { continue };
        assert_eq!((reply.usage, true), bill(&reader), "{} {}", source.case, source.format);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn a_stream_costs_the_same_for_all_formats_wherever_it_is_cut(
        which in any::<prop::sample::Index>(), end in any::<prop::sample::Index>(), sizes in prop::collection::vec(1usize..300, 1..5),
    ) {
        let all = streams();
        let source = all[which.index(all.len())];
        let end = end.index(source.bytes.len() + 1);
        let parts = pieces(&source.bytes[..end], &sizes);
        let whole = passed(source, &[&source.bytes[..end]]);
        prop_assert_eq!(passed(source, &parts), whole);
        for to in WireFormat::ALL {
            prop_assert_eq!(converted(source, to, &parts), whole, "{} {} to {}", source.case, source.format, to);
        }
    }

    #[test]
    fn a_part_of_a_stream_costs_no_less_than_its_provider_reported(
        which in any::<prop::sample::Index>(), end in any::<prop::sample::Index>(),
    ) {
        let all = streams();
        let source = all[which.index(all.len())];
        let mut reader = UsageReader::new(source.format, true);
        reader.feed(&source.bytes[..end.index(source.bytes.len() + 1)]);
        let (billed, reported) = (reader.estimate(77), reader.usage().unwrap_or_default());
        prop_assert!(billed.output >= reported.output && billed.reasoning >= reported.reasoning, "{billed:?} {reported:?}");
        prop_assert!(billed.total_input() >= reported.total_input() && billed.total_input() > 0, "{billed:?} {reported:?}");
    }
}
