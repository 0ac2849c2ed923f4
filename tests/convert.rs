//! Conversion between the wire formats: golden cases for every pair, rules of each wire,
//! properties, the table of rules.

mod agents;
pub mod any_order;
mod bills;
mod checks;
mod checks_stream;
mod conversations;
mod converse;
mod efforts;
mod generations;
mod golden;
mod mixed_blocks;
mod overlapping_calls;
mod pairs;
mod prefixes;
mod properties;
mod reported;
mod reported_values;
mod required;
mod rules;
mod search_beside;
mod services;
mod strict;
mod unusual_streams;
mod web_search;

use tollgate::domain::format::WireFormat;
use tollgate::formats::convert::{self, ReplyContext, ReplyProblem};

/// Converts a reply as the proxy does: one reader finds the usage.
fn converted_reply(
    from: WireFormat,
    to: WireFormat,
    body: &[u8],
    context: &ReplyContext,
) -> Result<Vec<u8>, ReplyProblem> {
    convert::reply(from, to, body, convert::read_usage(from, body), context)
}
