//! Errors as the services write them, and what clients of each format are told.

use super::{Cause, cause};
use crate::domain::format::WireFormat;
use crate::domain::format::WireFormat::{AltCli, Chat, Native, Responses};
use crate::formats::error::{UpstreamError, body, read};

fn said(message: &str) -> UpstreamError {
    UpstreamError { message: message.to_owned(), ..UpstreamError::default() }
}

#[test]
fn causes_are_read_from_the_services_own_words() {
    let long = |figures| Some(Cause::InputTooLong { figures });
    let reply = |input, reply, most| Some(Cause::ReplyTooLong { input, reply, most });
    for (message, expected) in [
        ("prompt is too long: 250000 tokens > 200000 maximum", long(Some((250_000, 200_000)))),
        (
            "input length and `max_tokens` exceed context limit: 180000 + 128000 > 200000, \
             decrease input length or `max_tokens` and try again",
            reply(180_000, 128_000, 200_000),
        ),
        (
            "This model's maximum context length is 128000 tokens. However, your messages resulted \
             in 130000 tokens. Please reduce the length of the messages.",
            long(Some((130_000, 128_000))),
        ),
        (
            "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens \
             (7000 in the messages, 2000 in the completion).",
            reply(7000, 2000, 8192),
        ),
        (
            "This model's maximum context length is 8192 tokens. However, you requested 12000 \
             tokens (10000 in the messages, 2000 in the completion).",
            long(Some((10_000, 8192))),
        ),
        (
            "Your input exceeds the context window of this model. Please adjust your input and try \
             again.",
            long(None),
        ),
        (
            "The input token count (1,200,000) exceeds the maximum number of tokens allowed \
             (1048575).",
            long(Some((1_200_000, 1_048_575))),
        ),
        ("Input is too long for requested model gpt-4-0613.", long(None)),
        (
            "messages.0.content.1.image.source.base64: image exceeds 5 MB maximum: 6123456 bytes > \
             5242880 bytes",
            Some(Cause::ImageTooLarge),
        ),
        ("Could not process image", Some(Cause::ImageUnreadable)),
        (
            "The image data you provided does not represent a valid image.",
            Some(Cause::ImageUnreadable),
        ),
        ("max_tokens: 200000 > 128000, which is the maximum allowed number of output tokens", None),
        ("Invalid 'input[0].content': string too long. Expected at most 1048576.", None),
        ("Rate limit reached. Please try again in 2s.", None),
    ] {
        assert_eq!(cause(&said(message)), expected, "{message}");
    }
}

#[test]
fn a_code_names_the_cause_and_the_message_the_time_to_wait() {
    for (message, wait_s) in [
        (
            "Rate limit reached for gpt-6: Limit 30000, Used 29000. Please try again in 1.5s.",
            Some(2),
        ),
        ("Please try again in 20ms.", Some(1)),
        ("Please try again in 6m0s.", Some(360)),
        ("Please try again in 3 seconds.", Some(3)),
        ("You exceeded your current quota. Please retry in 34.07s.", Some(35)),
        ("Slow down.", None),
    ] {
        let code = Some("rate_limit_exceeded".to_owned());
        let error = UpstreamError { code, ..said(message) };
        assert_eq!(cause(&error), Some(Cause::RateLimited { wait_s }), "{message}");
    }
}

const LONG: Cause = Cause::InputTooLong { figures: Some((250_000, 200_000)) };
const UNKNOWN: Cause = Cause::InputTooLong { figures: None };
const REPLY: Cause = Cause::ReplyTooLong { input: 180_000, reply: 128_000, most: 200_000 };
const WAITS: Cause = Cause::RateLimited { wait_s: Some(12) };

type Told = (Cause, WireFormat, u16, Option<&'static str>, &'static str);

const TOLD: &[Told] = &[
    (LONG, Native, 400, None, "prompt is too long: 250000 tokens > 200000 maximum"),
    (UNKNOWN, Native, 400, None, "prompt is too long: Too much."),
    (
        LONG,
        Responses,
        400,
        Some("context_length_exceeded"),
        "Your input exceeds the context window of this model. Please adjust your input and try \
             again. It has 250000 tokens, and the model takes 200000.",
    ),
    (
        LONG,
        Chat,
        400,
        Some("context_length_exceeded"),
        "This model's maximum context length is 200000 tokens. However, your messages resulted \
             in 250000 tokens. Please reduce the length of the messages.",
    ),
    (
        LONG,
        AltCli,
        400,
        None,
        "The input token count (250000) exceeds the maximum number of tokens allowed (200000).",
    ),
    (
        REPLY,
        Native,
        400,
        None,
        "input length and `max_tokens` exceed context limit: 180000 + 128000 > 200000, decrease \
             input length or `max_tokens` and try again",
    ),
    (
        REPLY,
        Chat,
        400,
        Some("context_length_exceeded"),
        "This model's maximum context length is 200000 tokens. However, you requested 308000 \
             tokens (180000 in the messages, 128000 in the completion). Please reduce the length of \
             the messages or completion.",
    ),
    (Cause::ImageTooLarge, Native, 400, None, "image exceeds the maximum: Too much."),
    (Cause::ImageUnreadable, Native, 400, None, "Could not process image: Too much."),
    (
        Cause::ImageTooLarge,
        Responses,
        400,
        Some("invalid_value"),
        "The image data you provided does not represent a valid image. Too much.",
    ),
    (Cause::ImageTooLarge, AltCli, 400, None, "Unable to process input image. Too much."),
    (WAITS, Native, 429, None, "Too much. Please try again in 12s."),
    (WAITS, Responses, 429, Some("rate_limit_exceeded"), "Too much. Please try again in 12s."),
];

#[test]
fn each_formats_clients_are_told_in_their_services_words() {
    for (cause, format, status, code, message) in TOLD {
        let words = cause.words(*format, "Too much.");
        assert_eq!(
            (words.status, words.code, words.message.as_str()),
            (*status, *code, *message),
            "{cause:?} {format}"
        );
    }
}

#[test]
fn the_words_are_recognised_where_they_came_from() {
    for format in WireFormat::ALL {
        for one in [LONG, REPLY] {
            let words = one.words(format, "x");
            let error = read(format, 400, &body(format, &words.reply(&words.extra())));
            assert_eq!(cause(&error), Some(one), "{format}");
        }
    }
}
