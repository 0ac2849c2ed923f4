//! Converts tool names and call ids to a form that the provider accepts, and back.
//!
//! A valid name is left alone: `Bash`, `mcp__server__tool`. One that is too long, has other
//! characters, a first character that the provider refuses or a namespace is replaced in tools,
//! choice and history, always by the same word. So a conversation keeps its names and its prompt
//! cache. The map of one request converts the reply's names back.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use sha2::{Digest, Sha256};

use super::conversation::{Part, Request, Text, ToolChoice, ToolKind, ToolName};
use crate::domain::format::WireFormat;

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

/// The names of one request that differ between the two sides, and the ids of its calls.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NameMap {
    /// Whether the provider's names follow the alt-cli format's grammar.
    to_alt_cli: bool,
    /// By the name on the provider's side.
    originals: HashMap<String, Original>,
    /// The ids of the calls in the history of a client that tells calls by their id alone: a call
    /// in the reply gets another one.
    used_ids: HashSet<String>,
}

impl NameMap {
    /// The names of a request's tools, choice and history for a provider of the format `to`. Names
    /// that are equal on both sides are not stored. `request` is as the client sent it.
    pub fn of(request: &Request<'_>, from: WireFormat, to: WireFormat) -> Self {
        let mut map = Self { to_alt_cli: to == WireFormat::AltCli, ..Self::default() };
        for tool in request.all_tools() {
            if !matches!(tool.kind, ToolKind::WebSearch(_)) {
                map.add(&tool.name, matches!(tool.kind, ToolKind::FreeText { .. }), to);
            }
        }
        match &request.tool_choice {
            Some(ToolChoice::Tool(name)) => map.add(name, false, to),
            Some(ToolChoice::Allowed { names, .. }) => {
                names.iter().for_each(|name| map.add(name, false, to))
            }
            _ => {}
        }
        for part in request.turns.iter().flat_map(|turn| &turn.parts) {
            if let Part::ToolCall(call) = part {
                map.add(&call.name, false, to);
                if from == WireFormat::Native {
                    map.used_ids.insert(call.id.to_string());
                }
            }
        }
        map
    }

    fn add(&mut self, name: &ToolName<'_>, free_text: bool, to: WireFormat) {
        let wire = wire_name(name, to);
        if name.namespace.is_none() && !free_text && wire == name.name {
            return;
        }
        let original =
            self.originals.entry(wire.into_owned()).or_insert_with(|| Original::of(name));
        original.free_text |= free_text && original.is(name);
    }

    /// The client's name for a name in the reply.
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
    pub fn is_free_text(&self, name: &ToolName<'_>) -> bool {
        let original = self.originals.get(&*fitting(name.flat(), self.to_alt_cli));
        original.is_some_and(|original| original.free_text && original.is(name))
    }
}

/// The name for a provider of the format `to`.
pub fn wire_name<'n>(name: &'n ToolName<'_>, to: WireFormat) -> Cow<'n, str> {
    fitting(name.flat(), to == WireFormat::AltCli)
}

/// The form of a call's id that every vendor accepts: unchanged if valid.
pub fn call_id(id: &str) -> Cow<'_, str> {
    bounded_id(Cow::Borrowed(id))
}

fn bounded_id(id: Cow<'_, str>) -> Cow<'_, str> {
    if id.is_empty() { Cow::Borrowed("call") } else { fitting(id, false) }
}

/// The ids that calls of one conversation or one reply have so far.
#[derive(Debug, Clone, Default)]
pub struct CallIds<'a> {
    /// Each with the number that the next call with this id gets.
    given: HashMap<Text<'a>, u64>,
}

impl<'a> CallIds<'a> {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.given.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.given.is_empty()
    }

    /// The id of a call: `id` in the form that vendors accept, with a number if another call has
    /// it.
    pub fn take(&mut self, id: Text<'a>) -> Text<'a> {
        self.take_unused(id, &HashSet::new())
    }

    /// The id of a call in a reply. To a native client, which tells calls by their id alone, it is
    /// none of those in the history either.
    pub fn take_in_reply(&mut self, id: Text<'a>, names: &NameMap) -> Text<'a> {
        self.take_unused(id, &names.used_ids)
    }

    fn take_unused(&mut self, id: Text<'a>, used: &HashSet<String>) -> Text<'a> {
        let id = bounded_id(id);
        if !self.given.contains_key(&id) && !used.contains(&*id) {
            self.given.insert(id.clone(), 2);
            return id;
        }
        let mut number = self.given.get(&id).copied().unwrap_or(2);
        loop {
            let ending = format!("_{number}");
            let kept = id.len().min(MAX.saturating_sub(ending.len()));
            let numbered: Text<'a> = Cow::Owned(format!("{}{ending}", &id[..kept]));
            number += 1;
            if !self.given.contains_key(&numbered) && !used.contains(&*numbered) {
                self.given.insert(id, number);
                self.given.insert(numbered.clone(), 2);
                return numbered;
            }
        }
    }
}

/// An end user's id of at most 64 characters: a longer one is hashed.
pub fn user_id(user: &str) -> Cow<'_, str> {
    if user.chars().count() <= MAX { Cow::Borrowed(user) } else { Cow::Owned(hash(user, MAX)) }
}

/// A text of at most [`MAX`] letters, digits, `_` and `-`. `is_word`: one that begins with a letter
/// or `_`.
fn fitting(name: Cow<'_, str>, is_word: bool) -> Cow<'_, str> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let begins = |c: char| !is_word || c.is_ascii_alphabetic() || c == '_' || !allowed(c);
    let begins_well = name.chars().next().is_some_and(begins);
    if begins_well && name.len() <= MAX && name.chars().all(allowed) {
        return name;
    }
    let keep = MAX - HASH - 1;
    let letters = name.chars().map(|c| if allowed(c) { c } else { '_' });
    let mut short: String = (!begins_well).then_some('_').into_iter().chain(letters).collect();
    short.truncate(keep);
    short.push('_');
    short.push_str(&hash(&name, HASH));
    Cow::Owned(short)
}

/// The first `length` hexadecimal digits of the text's SHA-256.
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
    use WireFormat::{AltCli, Chat, Native};

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
            assert_eq!(wire_name(&ToolName::plain(name), Native), name);
        }
        assert_eq!(wire_name(&ToolName::plain("21st-century"), Chat), "21st-century");
        assert_eq!(wire_name(&ToolName::plain("_a-1"), AltCli), "_a-1");
    }

    #[test]
    fn a_name_begins_as_the_provider_demands() {
        for name in ["21st_magic", "-dash", "7", "", "é", "1.5", &"9".repeat(80)] {
            let name = ToolName::plain(name.to_owned());
            let wire = wire_name(&name, AltCli).into_owned();
            let first = wire.chars().next().unwrap();
            assert!(first.is_ascii_alphabetic() || first == '_', "{wire}");
            assert!(wire.len() <= MAX, "{wire}");
            let request = Request { tools: vec![tool(name.clone(), false)], ..Request::default() };
            let map = NameMap::of(&request, Chat, AltCli);
            assert_eq!(map.restore(ToolName::plain(wire)), name);
        }
    }

    #[test]
    fn ids_that_collide_get_a_number() {
        let mut ids = CallIds::default();
        let taken: Vec<_> = ["a", "a", "a_2", "a", "b", "", "", "é"]
            .map(|id| ids.take(id.into()).into_owned())
            .into();
        assert_eq!(taken[..7], ["a", "a_2", "a_2_2", "a_3", "b", "call", "call_2"]);
        let long = "x".repeat(MAX);
        assert_eq!(ids.take(long.clone().into()), long);
        assert_eq!(ids.take(long.into()), format!("{}_2", "x".repeat(MAX - 2)));
        assert_eq!(ids.take("y".repeat(MAX + 1).into()).len(), MAX);
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
        let map = NameMap::of(&request, Chat, Native);
        for tool in &request.tools {
            let wire = wire_name(&tool.name, Native).into_owned();
            assert!(wire.len() <= MAX && wire.starts_with(&wire[..3]), "{wire}");
            assert_eq!(map.restore(ToolName::plain(wire)), tool.name);
        }
        assert_eq!(wire_name(&spaced, Native), "mcp__git__log");
        assert!(map.is_free_text(&ToolName::plain("apply_patch")));
        assert!(!map.is_free_text(&ToolName::plain("plain")));
        assert_eq!(map.originals.len(), 4);
    }

    #[test]
    fn names_that_share_a_prefix_stay_apart() {
        let names: Vec<String> = (0..100).map(|i| format!("{}{i}", "p".repeat(80))).collect();
        let mut wires: Vec<String> = names
            .iter()
            .map(|name| wire_name(&ToolName::plain(name.as_str()), Native).into_owned())
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
