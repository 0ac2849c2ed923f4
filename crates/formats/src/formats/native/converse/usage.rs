//! The figures of `Converse` as those of the native format. Both count cached tokens beside the
//! input.

use serde::Deserialize;

use crate::formats::conversation::json::Object;
use crate::formats::conversation::{Str, number};

/// `usage` of a reply, or of the event `metadata`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct WireUsage<'a> {
    #[serde(default, deserialize_with = "number::whole")]
    input_tokens: Option<u64>,
    #[serde(default, deserialize_with = "number::whole")]
    output_tokens: Option<u64>,
    #[serde(default, deserialize_with = "number::whole")]
    cache_read_input_tokens: Option<u64>,
    #[serde(default, deserialize_with = "number::whole")]
    cache_write_input_tokens: Option<u64>,
    #[serde(borrow)]
    cache_details: Option<Vec<CacheDetail<'a>>>,
}

/// What was written for one lifetime.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CacheDetail<'a> {
    #[serde(borrow)]
    ttl: Str<'a>,
    #[serde(default, deserialize_with = "number::whole")]
    input_tokens: Option<u64>,
}

impl WireUsage<'_> {
    /// Writes `usage`, with the figures that there are.
    pub(super) fn write(&self, o: &mut Object<'_>) {
        o.object("usage", |o| {
            for (name, figure) in [
                ("input_tokens", self.input_tokens),
                ("output_tokens", self.output_tokens),
                ("cache_read_input_tokens", self.cache_read_input_tokens),
                ("cache_creation_input_tokens", self.cache_write_input_tokens),
            ] {
                if let Some(figure) = figure {
                    o.uint(name, figure);
                }
            }
            let Some(details) = &self.cache_details else { return };
            o.object("cache_creation", |o| {
                for (ttl, name) in
                    [("5m", "ephemeral_5m_input_tokens"), ("1h", "ephemeral_1h_input_tokens")]
                {
                    let its = details.iter().filter(|detail| &*detail.ttl == ttl);
                    let figures = its.filter_map(|detail| detail.input_tokens);
                    o.uint(name, figures.fold(0, u64::saturating_add));
                }
            });
        });
    }
}
