//! Decides the answer to a request: according to the directive, else the default behaviour.
//!
//! Default: a request `use tool NAME {json}` for an offered tool becomes a call (several requests:
//! parallel calls); tool results are quoted; a required schema gets its smallest valid value;
//! anything else a short fixed answer.

use serde_json::Value;

use super::ask::MockAsk;
use super::directive::{CallSpec, Directive, Finish};
use super::path::Route;
use super::reply::{MockCall, MockPart, MockReply, words};
use super::schema;
use tollgate_formats::domain::usage::Usage;

const WISH: &str = "use tool ";
/// Letters that count as one token in computed usage.
const LETTERS_PER_TOKEN: u64 = 4;

/// The reply to `asked`. `text` is the user's tail text without its marker.
pub(super) fn compose(
    route: &Route,
    asked: &MockAsk,
    directive: &Directive,
    request: Value,
    serial: u64,
) -> MockReply {
    let calls = calls(asked, directive, serial);
    let mut parts = Vec::new();
    let unasked = (asked.thinks && !calls.is_empty()).then(|| "A tool was asked for.".to_owned());
    if let Some(thinking) = directive.thinking.clone().or(unasked) {
        parts.push(MockPart::Thinking(thinking));
    }
    if let Some(text) = text(asked, directive, calls.is_empty()) {
        parts.push(MockPart::Text(text));
    }
    let has_calls = !calls.is_empty();
    parts.extend(calls.into_iter().map(MockPart::MockCall));
    let finish =
        directive.finish.unwrap_or(if has_calls { Finish::ToolCalls } else { Finish::Stop });
    let usage = (!directive.no_usage)
        .then(|| directive.usage.map_or_else(|| computed_usage(asked, &parts), Usage::from));
    MockReply {
        serial,
        model: asked.model.clone(),
        parts,
        finish,
        usage,
        include_usage: asked.include_usage,
        prompt_filter: directive.prompt_filter,
        deltas: directive.events,
        pings: directive.pings,
        verdict: directive.safeguards,
        wrapped: route.wrapped,
        sse: false,
        request,
    }
}

fn calls(asked: &MockAsk, directive: &Directive, serial: u64) -> Vec<MockCall> {
    let wished;
    let specs = if directive.tools.is_empty() && asked.results.is_empty() && !speaks(directive) {
        wished = wishes(asked);
        &wished
    } else {
        &directive.tools
    };
    specs.iter().enumerate().map(|(index, spec)| call(spec, serial, index)).collect()
}

/// Whether the directive defines the text.
const fn speaks(directive: &Directive) -> bool {
    directive.text.is_some() || directive.words.is_some() || directive.echo
}

fn call(spec: &CallSpec, serial: u64, index: usize) -> MockCall {
    let (arguments, text) = match &spec.arguments {
        Value::Null => (Value::Object(serde_json::Map::new()), "{}".to_owned()),
        Value::String(raw) => (serde_json::from_str(raw).unwrap_or(Value::Null), raw.clone()),
        other => (other.clone(), other.to_string()),
    };
    MockCall {
        id: spec.id.clone().unwrap_or_else(|| format!("mock{serial:06}x{index}")),
        own_id: spec.id.is_some(),
        name: spec.name.clone(),
        arguments,
        text,
    }
}

/// Every `use tool NAME {json}` in the user's text whose tool is offered.
fn wishes(asked: &MockAsk) -> Vec<CallSpec> {
    let mut found = Vec::new();
    for (at, _) in asked.user_text.match_indices(WISH) {
        let rest = &asked.user_text[at + WISH.len()..];
        let (name, after) = rest.split_at(rest.find(char::is_whitespace).unwrap_or(rest.len()));
        if !asked.offered.iter().any(|offered| offered == name) {
            continue;
        }
        let arguments = serde_json::Deserializer::from_str(after).into_iter::<Value>().next();
        let arguments =
            arguments.and_then(Result::ok).filter(Value::is_object).unwrap_or(Value::Null);
        found.push(CallSpec { name: name.to_owned(), arguments, id: None });
    }
    found
}

fn text(asked: &MockAsk, directive: &Directive, alone: bool) -> Option<String> {
    let mut text = directive.text.clone();
    let count = directive.words.or(directive.events.filter(|_| text.is_none() && alone));
    if let Some(count) = count {
        let words = words(count);
        text = Some(text.map_or_else(|| words.clone(), |text| format!("{text} {words}")));
    }
    if directive.echo {
        let echo = format!("You said: {}", asked.user_text);
        text = Some(text.map_or_else(|| echo.clone(), |text| format!("{text}\n{echo}")));
    }
    if text.is_some() || !alone {
        return text.filter(|text| !text.is_empty());
    }
    Some(if !asked.results.is_empty() {
        format!("The tool said: {}", asked.results.join(" | "))
    } else if let Some(wanted) = &asked.schema {
        schema::smallest(wanted).to_string()
    } else {
        format!("This is {}, the mock model.", asked.model)
    })
}

fn computed_usage(asked: &MockAsk, parts: &[MockPart]) -> Usage {
    let tokens = |text: &str| (text.chars().count() as u64).div_ceil(LETTERS_PER_TOKEN);
    let mut usage =
        Usage { input: asked.letters.div_ceil(LETTERS_PER_TOKEN).max(1), ..Usage::default() };
    for part in parts {
        match part {
            MockPart::Thinking(text) => usage.reasoning += tokens(text),
            MockPart::Text(text) => usage.output += tokens(text),
            MockPart::MockCall(call) => usage.output += tokens(&call.name) + tokens(&call.text),
        }
    }
    usage.output = (usage.output + usage.reasoning).max(1);
    usage
}

/// The request's texts in tokens, for the counting operations.
pub(super) fn count_tokens(asked: &MockAsk) -> u64 {
    asked.letters.div_ceil(LETTERS_PER_TOKEN).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::MockOperation;
    use tollgate_formats::domain::format::WireFormat;

    fn asked(text: &str) -> MockAsk {
        MockAsk {
            offered: vec!["Bash".to_owned()],
            user_text: text.to_owned(),
            ..MockAsk::default()
        }
    }

    #[test]
    fn wishes_become_calls_when_on_offer() {
        let found = wishes(&asked(
            r#"please use tool Bash {"command":"ls {}"} and use tool Bash, use tool Nope {}"#,
        ));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].arguments["command"], "ls {}");
        let two = wishes(&asked(r#"use tool Bash {"a":1} use tool Bash {"a":2}"#));
        assert_eq!(two.len(), 2);
        assert_eq!(two[1].arguments["a"], 2);
    }

    #[test]
    fn results_are_quoted_and_words_counted() {
        let mut with_result = asked("");
        with_result.results.push("42".to_owned());
        assert!(text(&with_result, &Directive::default(), true).unwrap().contains("42"));
        let five = Directive { words: Some(5), ..Directive::default() };
        assert_eq!(text(&asked("x"), &five, true).unwrap().split(' ').count(), 5);
    }

    #[test]
    fn usage_follows_lengths() {
        let asked = MockAsk { letters: 9, ..MockAsk::default() };
        let usage = computed_usage(
            &asked,
            &[MockPart::Thinking("12345".to_owned()), MockPart::Text("1234".to_owned())],
        );
        assert_eq!((usage.input, usage.output, usage.reasoning), (3, 3, 2));
    }

    #[test]
    fn a_call_begins_with_thinking_where_thinking_is_enabled() {
        let mut asked = asked("use tool look {\"at\":\"it\"}");
        asked.offered = vec!["look".to_owned()];
        let (format, operation) = (WireFormat::Native, MockOperation::Generate);
        let route = Route::plain(format, operation);
        for (thinks, parts) in [(false, 1), (true, 2)] {
            asked.thinks = thinks;
            let reply = compose(&route, &asked, &Directive::default(), Value::Null, 1);
            assert_eq!(reply.parts.len(), parts, "thinks: {thinks}");
            assert_eq!(matches!(reply.parts[0], MockPart::Thinking(_)), thinks);
        }
    }
}
