//! What a native provider's model accepts inside of a conversation.

use super::generation::ClaudeGeneration;
use crate::domain::format::WireFormat;
use crate::formats::conversation::{Part, Request, TargetModel};

/// Without it the service refuses `thinking.block_binding`.
const BINDING: &str = "thinking-binding-controls-2026-08-01";
/// Both are needed for a tool that is defined in a message.
const TOOL_CHANGES: &str = "mid-conversation-tool-changes-2026-07-01";
const INLINE_TOOLS: &str = "inline-tools-2026-09-15";

/// What a model takes in the middle of a conversation; nothing in other formats.
#[derive(Debug, Clone, Copy, Default)]
pub struct Accepts {
    /// Messages of the role `system`.
    pub instructions: bool,
    /// New tools. Then the list of tools before the conversation never changes, which would make
    /// the thinking of earlier turns void.
    pub new_tools: bool,
}

/// What the provider's model accepts.
#[must_use]
pub fn accepts(to: WireFormat, model: &TargetModel<'_>) -> Accepts {
    if to != WireFormat::Native {
        return Accepts::default();
    }
    let generation = ClaudeGeneration::of(model);
    Accepts {
        instructions: generation.takes_instructions_inside,
        new_tools: generation.binds_thinking,
    }
}

impl Accepts {
    /// The betas for the header of a converted request.
    #[must_use]
    pub fn betas(self, request: &Request<'_>) -> &'static [&'static str] {
        let mut parts = request.turns.iter().flat_map(|turn| &turn.parts);
        match (self.new_tools, parts.any(|part| matches!(part, Part::NewTools(_)))) {
            (false, _) => &[],
            (true, false) => &[BINDING],
            (true, true) => &[BINDING, TOOL_CHANGES, INLINE_TOOLS],
        }
    }
}
