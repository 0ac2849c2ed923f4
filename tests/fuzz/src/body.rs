//! Requests and complete replies, from any format to any.

use serde::de::IgnoredAny;

use crate::domain::format::WireFormat;
use crate::domain::key::CacheTtl;
use crate::domain::provider::InstructionsStrategy;
use crate::formats::convert::{self, RequestOptions, proofs};
use crate::formats::responses::instructions::Official;
use crate::input::Input;

/// Maximum bytes that a writer may add for each byte read, and in total. Conversion renames things
/// and may repeat a name for each call, but a small request must not become a large one.
const GROWTH: (usize, usize) = (64, 16 * 1024);

fn must_be_json(body: &[u8]) {
    if let Err(error) = serde_json::from_slice::<IgnoredAny>(body) {
        panic!("no JSON was written: {error}\n{}", String::from_utf8_lossy(body));
    }
}

fn must_not_explode(given: usize, made: usize) {
    assert!(made <= given * GROWTH.0 + GROWTH.1, "{given} bytes became {made}");
}

/// A request is refused, or converted into one that the target's own reader accepts.
///
/// Switches: 0 streamed, 1 a prompt cache's key, 2 a cache lifetime, 3 and 4 the instructions.
pub fn request(input: &Input<'_>) {
    let official = Official { short: Some("Be short."), long: Some("Be long.") };
    let strategy = if input.flag(4) { InstructionsStrategy::ForceOfficial } else { InstructionsStrategy::Auto };
    let model = if input.to == WireFormat::AltCli { "gemini-3-pro" } else { "upstream-1" };
    let options = RequestOptions {
        cache_key: input.flag(1).then_some("session-1"),
        cache_ttl: if input.flag(2) { CacheTtl::OneHour } else { CacheTtl::Inherit },
        instructions: input.flag(3).then_some((strategy, official)),
        ..RequestOptions::new(model, input.flag(0))
    };
    if let Some(clean) = proofs::strip_foreign(input.from, input.body) {
        must_be_json(&clean);
        assert!(clean.len() < input.body.len());
    }
    let Ok(done) = convert::request(input.from, input.to, input.body, &options) else { return };
    must_be_json(&done.body);
    must_not_explode(input.body.len(), done.body.len());
    // Wrapped alt-cli for alt-cli is unwrapped, not read: its content is not checked.
    if input.from == WireFormat::AltCli && input.to == input.from && done.reply.wrapped {
        return;
    }
    // The address of a file is the client's own: alt-cli's reader refuses those that only its
    // vendor can fetch.
    if let Err(problem) = convert::request(input.to, input.to, &done.body, &options)
        && !problem.field.ends_with("fileUri")
    {
        panic!("{} is refused: {}\n{}", input.to, problem.message, String::from_utf8_lossy(&done.body));
    }
}

/// A reply is rejected, or converted into one that the client's format's own reader accepts.
///
/// Switches: 0 to 3 the context.
pub fn reply(input: &Input<'_>) {
    let context = input.context();
    let usage = convert::read_usage(input.from, input.body);
    let Ok(made) = convert::reply(input.from, input.to, input.body, usage, &context) else { return };
    must_be_json(&made);
    must_not_explode(input.body.len(), made.len());
    if let Err(problem) = convert::read_reply(input.to, &made) {
        panic!("{} cannot be read: {problem}\n{}", input.to, String::from_utf8_lossy(&made));
    }
}
