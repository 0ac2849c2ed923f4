//! Whether a native request asks for thinking: the service refuses it beside some other fields.

use super::generation::{ClaudeGeneration, Mode};
use super::message_write;
use crate::formats::conversation::request::ReasoningMode;
use crate::formats::conversation::{Effort, Part, Request, Role, Rule, Rules, ToolChoice};

/// The service's minimum budget.
const MIN_BUDGET: u64 = 1024;

/// Whether to think.
pub(super) enum ThinkingMode {
    /// The request says nothing.
    Unset,
    /// Not.
    Off,
    /// Up to this many tokens.
    On(u64),
    /// As much as the model decides.
    Adaptive(Effort),
    /// The request says nothing, but how much effort the answer is worth.
    Effort(Effort),
}

impl ThinkingMode {
    /// The word for `output_config.effort`.
    pub(super) const fn effort(&self) -> Option<Effort> {
        match self {
            Self::Adaptive(effort) | Self::Effort(effort) => Some(*effort),
            Self::Unset | Self::Off | Self::On(_) => None,
        }
    }
}

/// Decides for a model of this generation.
pub(super) fn of(
    request: &Request<'_>,
    max_tokens: u64,
    generation: ClaudeGeneration,
    rules: &mut Rules,
) -> ThinkingMode {
    match generation.is_adaptive() {
        true => decide_adaptive(request, generation.mode, rules),
        false => decide(request, max_tokens, rules),
    }
}

/// By an effort, for the newer models. They do not require signed thinking before calls.
fn decide_adaptive(request: &Request<'_>, mode: Mode, rules: &mut Rules) -> ThinkingMode {
    let effort = match request.reasoning.effort_word() {
        None => return ThinkingMode::Unset,
        Some(Effort::None) => {
            rules.note_if(mode == Mode::Always, Rule::AdaptiveThinking);
            return match mode {
                Mode::ByDefault => ThinkingMode::Off,
                Mode::Always => ThinkingMode::Effort(Effort::Low),
                Mode::OnRequest | Mode::Budget => ThinkingMode::Unset,
            };
        }
        // The service has no such word.
        Some(Effort::Minimal) => Effort::Low,
        Some(effort) => effort,
    };
    if mode == Mode::OnRequest && is_forced(request) {
        rules.note(Rule::ThinkingOff);
        return ThinkingMode::Effort(effort);
    }
    let budget = matches!(request.reasoning.mode, ReasoningMode::Budget(_));
    rules.note_if(budget && request.reasoning.effort.is_none(), Rule::AdaptiveThinking);
    ThinkingMode::Adaptive(effort)
}

/// A tool must be called.
fn is_forced(request: &Request<'_>) -> bool {
    match &request.tool_choice {
        Some(ToolChoice::Required | ToolChoice::Tool(_) | ToolChoice::WebSearch) => true,
        Some(ToolChoice::Allowed { required, .. }) => *required,
        _ => false,
    }
}

/// With a budget, for the older models.
fn decide(request: &Request<'_>, max_tokens: u64, rules: &mut Rules) -> ThinkingMode {
    let asked = match request.reasoning.budget() {
        None => return ThinkingMode::Unset,
        Some(0) => return ThinkingMode::Off,
        Some(asked) => asked,
    };
    if is_forced(request) || max_tokens <= MIN_BUDGET || !open_calls_are_signed(request) {
        rules.note(Rule::ThinkingOff);
        return ThinkingMode::Unset;
    }
    // A quarter of the limit is kept for the answer if the budget would use all of it.
    let room = if asked < max_tokens { asked } else { max_tokens / 4 * 3 };
    let budget = room.max(MIN_BUDGET);
    rules.note_if(budget != asked, Rule::ThinkingBudget);
    ThinkingMode::On(budget)
}

/// With thinking on, the service requires the calls that are being answered to follow their signed
/// thinking.
fn open_calls_are_signed(request: &Request<'_>) -> bool {
    let [.., calls, results] = request.turns.as_slice() else { return true };
    let answers = results.parts.iter().any(|part| matches!(part, Part::ToolResult(_)));
    let has_calls = calls.parts.iter().any(|part| matches!(part, Part::ToolCall(_)));
    if results.role != Role::User || !answers || !has_calls {
        return true;
    }
    calls
        .parts
        .iter()
        .find(|part| message_write::survives(part))
        .is_some_and(|part| matches!(part, Part::Thinking(_)))
}
