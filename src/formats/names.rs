//! Converts tool names and call ids to a form that every vendor accepts, and back.
//!
//! A valid name is left alone: `Bash`, `mcp__server__tool`. One that is too long, has other
//! characters or a namespace is replaced in tools, choice and history, always by the same word. So
//! a conversation keeps its names and its prompt cache. The map of one request converts the reply's
//! names back.

use std::borrow::Cow;
use std::collections::HashMap;

use sha2::{Digest, Sha256};

use super::conversation::{Part, Request, ToolChoice, ToolKind, ToolName};

/// Maximum characters of a tool's name or a call's id.
pub const MAX: usize = 64;

/// Characters of the hash that distinguishes shortened names.
const HASH: usize = 8;

/// The client's form of a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Original {
    /// The namespace; `None` if the client's name is one word.
    pub namespace: Option<String>,
    /// The client's name within the namespace.
    pub name: String,
    /// The tool takes free text.
    pub free_text: bool,
}

impl Original {
    fn of(name: &ToolName<'_>) -> Self {
        Self {
            namespace: name.namespace.as_deref().map(str::to_owned),
            name: name.name.to_string(),
            free_text: false,
        }
    }

    fn is(&self, name: &ToolName<'_>) -> bool {
        self.name == name.name && self.namespace.as_deref() == name.namespace.as_deref()
    }
}

/// The names of one request that differ between the two sides.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NameMap {
    /// By the name on the provider's side.
    originals: HashMap<String, Original>,
}

impl NameMap {
    /// The names of a request's tools, choice and history. Names that are equal on both sides are
    /// not stored.
    #[must_use]
    pub fn of(request: &Request<'_>) -> Self {
        let mut map = Self::default();
        for tool in &request.tools {
            if !matches!(tool.kind, ToolKind::WebSearch(_)) {
                map.add(&tool.name, matches!(tool.kind, ToolKind::FreeText { .. }));
            }
        }
        match &request.tool_choice {
            Some(ToolChoice::Tool(name)) => map.add(name, false),
            Some(ToolChoice::Allowed { names, .. }) => {
                names.iter().for_each(|name| map.add(name, false))
            }
            _ => {}
        }
        for part in request.turns.iter().flat_map(|turn| &turn.parts) {
            if let Part::ToolCall(call) = part {
                map.add(&call.name, false);
            }
        }
        map
    }

    fn add(&mut self, name: &ToolName<'_>, free_text: bool) {
        let wire = wire_name(name);
        if name.namespace.is_none() && !free_text && wire == name.name {
            return;
        }
        let original =
            self.originals.entry(wire.into_owned()).or_insert_with(|| Original::of(name));
        original.free_text |= free_text && original.is(name);
    }

    /// Whether any name differs.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.originals.is_empty()
    }

    /// The client's name for a name in the reply.
    #[must_use]
    pub fn restore<'a>(&self, name: ToolName<'a>) -> ToolName<'a> {
        match self.originals.get(&*name.name) {
            Some(original) if name.namespace.is_none() => ToolName {
                namespace: original.namespace.clone().map(Cow::Owned),
                name: Cow::Owned(original.name.clone()),
            },
            _ => name,
        }
    }

    /// Whether the client's tool of this name takes free text.
    #[must_use]
    pub fn is_free_text(&self, name: &ToolName<'_>) -> bool {
        let original = self.originals.get(&*wire_name(name));
        original.is_some_and(|original| original.free_text && original.is(name))
    }
}

/// The name on the provider's side.
#[must_use]
pub fn wire_name<'n>(name: &'n ToolName<'_>) -> Cow<'n, str> {
    fitting(name.flat())
}

/// The form of a call's id that every vendor accepts: unchanged if valid.
#[must_use]
pub fn call_id(id: &str) -> Cow<'_, str> {
    if id.is_empty() { Cow::Borrowed("call") } else { fitting(Cow::Borrowed(id)) }
}

/// An end user's id of at most 64 characters: a longer one is hashed.
#[must_use]
pub fn user_id(user: &str) -> Cow<'_, str> {
    if user.chars().count() <= MAX { Cow::Borrowed(user) } else { Cow::Owned(hash(user, MAX)) }
}

fn fitting(name: Cow<'_, str>) -> Cow<'_, str> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let fits = name.len() <= MAX && name.chars().all(allowed) && !name.is_empty();
    if fits {
        return name;
    }
    let keep = MAX - HASH - 1;
    let mut short: String =
        name.chars().map(|c| if allowed(c) { c } else { '_' }).take(keep).collect();
    short.push('_');
    short.push_str(&hash(&name, HASH));
    Cow::Owned(short)
}

/// The first `length` hexadecimal digits of the text's SHA-256.
#[must_use]
pub fn hash(text: &str, length: usize) -> String {
    let digest = Sha256::digest(text.as_bytes());
    let mut digits: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    digits.truncate(length);
    digits
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::conversation::Tool;

    fn tool(name: ToolName<'static>, free: bool) -> Tool<'static> {
        let kind = if free {
            ToolKind::FreeText { format: None }
        } else {
            ToolKind::Function { schema: None, strict: None }
        };
        Tool { name, description: None, kind }
    }

    #[test]
    fn names_that_fit_stay() {
        for name in ["Bash", "NotebookEdit", "mcp__a__b", &"x".repeat(64)] {
            assert_eq!(wire_name(&ToolName::plain(name)), name);
        }
    }

    #[test]
    fn other_names_are_shortened_and_found_again() {
        let long = format!("mcp__{}", "tool".repeat(30));
        let spaced = ToolName { namespace: Some("mcp__git".into()), name: "log".into() };
        let request = Request {
            tools: vec![
                tool(ToolName::plain(long.clone()), false),
                tool(ToolName::plain("a.b"), false),
                tool(spaced.clone(), false),
                tool(ToolName::plain("apply_patch"), true),
                tool(ToolName::plain("plain"), false),
            ],
            ..Request::default()
        };
        let map = NameMap::of(&request);
        for tool in &request.tools {
            let wire = wire_name(&tool.name).into_owned();
            assert!(wire.len() <= MAX && wire.starts_with(&wire[..3]), "{wire}");
            assert_eq!(map.restore(ToolName::plain(wire)), tool.name);
        }
        assert_eq!(wire_name(&spaced), "mcp__git__log");
        assert!(map.is_free_text(&ToolName::plain("apply_patch")));
        assert!(!map.is_free_text(&ToolName::plain("plain")));
        assert_eq!(map.originals.len(), 4);
    }

    #[test]
    fn names_that_share_a_prefix_stay_apart() {
        let names: Vec<String> = (0..100).map(|i| format!("{}{i}", "p".repeat(80))).collect();
        let mut wires: Vec<String> = names
            .iter()
            .map(|name| wire_name(&ToolName::plain(name.as_str())).into_owned())
            .collect();
        wires.sort();
        wires.dedup();
        assert_eq!(wires.len(), names.len());
    }

    #[test]
    fn ids_and_users_are_bounded() {
        assert_eq!(call_id("toolu_01-a"), "toolu_01-a");
        assert_eq!(call_id(""), "call");
        assert!(call_id(&"é/".repeat(60)).len() <= MAX);
        assert_eq!(user_id(&"u".repeat(65)).len(), MAX);
    }
}
