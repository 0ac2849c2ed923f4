//! Which requests have spans.

use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive as _;

use crate::config::Sampler;
use crate::domain::trace::{SpanContext, TraceId};

/// A sampler with its share.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sampling {
    sampler: Sampler,
    /// Of 2^63, as OpenTelemetry's `TraceIdRatioBased` compares it with a trace id's low bits.
    share: u64,
}

impl Sampling {
    /// `ratio`: from 0 to 1.
    pub(super) fn new(sampler: Sampler, ratio: Decimal) -> Self {
        let share = ratio * Decimal::from(1_u64 << 63);
        Self { sampler, share: share.to_u64().unwrap_or(u64::MAX) }
    }

    /// Whether a request has spans. `parent`: the client's span, from its `traceparent`.
    pub(super) fn admits(&self, trace_id: TraceId, parent: Option<SpanContext>) -> bool {
        let by_parent = matches!(
            self.sampler,
            Sampler::ParentAlwaysOn | Sampler::ParentAlwaysOff | Sampler::ParentRatio
        );
        match parent {
            Some(parent) if by_parent => parent.sampled,
            _ => self.admits_root(trace_id),
        }
    }

    /// The same for a request without a parent, or with one that must not decide.
    pub(super) fn admits_root(&self, trace_id: TraceId) -> bool {
        match self.sampler {
            Sampler::AlwaysOn | Sampler::ParentAlwaysOn => true,
            Sampler::AlwaysOff | Sampler::ParentAlwaysOff => false,
            Sampler::Ratio | Sampler::ParentRatio => {
                // The low 63 bits of the 128.
                let low = u64::try_from(trace_id.0 & u128::from(u64::MAX >> 1)).unwrap_or(u64::MAX);
                low < self.share
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::trace::SpanId;

    #[test]
    fn a_parent_decides_only_where_the_sampler_lets_it() {
        let parent =
            |sampled| Some(SpanContext { trace_id: TraceId(1), span_id: SpanId(1), sampled });
        // Sampler; without a parent, with one that is sampled, with one that is not.
        for (sampler, wanted) in [
            (Sampler::AlwaysOn, [true, true, true]),
            (Sampler::AlwaysOff, [false, false, false]),
            (Sampler::Ratio, [false, false, false]),
            (Sampler::ParentAlwaysOn, [true, true, false]),
            (Sampler::ParentAlwaysOff, [false, true, false]),
            (Sampler::ParentRatio, [false, true, false]),
        ] {
            let sampling = Sampling::new(sampler, Decimal::ZERO);
            let found = [None, parent(true), parent(false)]
                .map(|parent| sampling.admits(TraceId(1), parent));
            assert_eq!(found, wanted, "{sampler:?}");
        }
    }

    #[test]
    fn a_share_of_ids_is_sampled() {
        for (ratio, least, most) in
            [("0", 0, 0), ("1", 10_000, 10_000), ("0.1", 900, 1_100), ("0.01", 60, 140)]
        {
            let sampling = Sampling::new(Sampler::Ratio, ratio.parse().unwrap());
            let mut random = fastrand::Rng::with_seed(7);
            let count =
                (0..10_000).filter(|_| sampling.admits(TraceId(random.u128(1..)), None)).count();
            assert!((least..=most).contains(&count), "{ratio}: {count}");
        }
    }
}
