//! Lists of input and output items, as their JSON without the brackets.

use std::fmt;
use std::sync::Arc;

use serde::Deserialize;
use serde::de::{Deserializer, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// A conversation's items: pieces that longer conversations share. None of them is empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Items(Vec<Arc<str>>);

impl Items {
    /// The items of an `input`: a text is one message of the user.
    ///
    /// # Errors
    /// When it is neither a text nor a list.
    pub(super) fn of_input(input: &RawValue) -> Result<Self, &'static str> {
        let text = input.get().trim();
        let mut items = Self::default();
        if text.starts_with('"') {
            items.push(&format!(r#"{{"type":"message","role":"user","content":{text}}}"#));
        } else if let Some(inside) = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'))
        {
            items.push(inside.trim());
        } else if text != "null" {
            return Err("`input` is neither a text nor a list of items");
        }
        Ok(items)
    }

    /// Appends items, joined by commas.
    pub fn push(&mut self, items: &str) {
        if !items.is_empty() {
            self.0.push(items.into());
        }
    }

    /// Appends the items of another list.
    pub fn extend(&mut self, more: &Self) {
        self.0.extend(more.0.iter().cloned());
    }

    /// Bytes that they take.
    pub fn bytes(&self) -> usize {
        self.0.iter().map(|piece| piece.len()).sum()
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The list as JSON.
    pub fn list(&self) -> String {
        format!("[{}]", self.0.join(","))
    }

    /// Calls `each` with every item, until it returns `false`. A malformed rest is passed over: the
    /// request's own reader refuses it.
    fn each(&self, mut each: impl FnMut(&Facts<'_>) -> bool) {
        for piece in &self.0 {
            let list = format!("[{piece}]");
            let mut reader = serde_json::Deserializer::from_str(&list);
            let _malformed = reader.deserialize_seq(Each(&mut each));
        }
    }
}

/// What is read of an item.
#[derive(Deserialize)]
struct Facts<'j> {
    #[serde(default, rename = "type")]
    kind: Option<String>,
    #[serde(default)]
    role: Option<String>,
    #[serde(default, borrow)]
    encrypted_content: Option<&'j RawValue>,
}

/// Visits a list without keeping its elements.
struct Each<'f, F>(&'f mut F);

impl<'j, F: FnMut(&Facts<'_>) -> bool> Visitor<'j> for Each<'_, F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("items")
    }

    fn visit_seq<A: SeqAccess<'j>>(self, mut items: A) -> Result<(), A::Error> {
        while let Some(item) = items.next_element::<&'j RawValue>()? {
            let Ok(facts) = serde_json::from_str(item.get()) else { continue };
            if !(self.0)(&facts) {
                break;
            }
        }
        Ok(())
    }
}

/// Whether an input takes the place of the conversation so far: it has a compacted history.
/// `appended`: and for `response.append`, what only a complete history has.
pub fn replaces(input: &Items, appended: bool) -> bool {
    let mut replaces = false;
    input.each(|item| {
        let assistant = item.role.as_deref() == Some("assistant");
        replaces = match item.kind.as_deref() {
            Some("compaction" | "compaction_summary") => true,
            Some("function_call") => appended,
            _ => appended && assistant,
        };
        !replaces
    });
    replaces
}

/// Whether an output item is reasoning.
pub fn is_reasoning(item: &str) -> bool {
    let facts = serde_json::from_str::<Facts<'_>>(item).ok();
    facts.is_some_and(|facts| facts.kind.as_deref() == Some("reasoning"))
}

/// Whether an output item would be refused as input: reasoning that no provider stores, without the
/// text that takes its place.
pub fn is_needless(item: &str, is_stored: bool) -> bool {
    let facts = serde_json::from_str::<Facts<'_>>(item).ok();
    let is_open =
        |facts: Facts<'_>| facts.encrypted_content.is_none_or(|text| text.get() == "null");
    !is_stored && is_reasoning(item) && facts.is_some_and(is_open)
}

/// Whether each item is a message of the user that only has a content.
pub(super) fn are_user_messages(input: &RawValue) -> bool {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Message<'j> {
        #[serde(default, rename = "type")]
        kind: Option<String>,
        role: String,
        #[serde(borrow)]
        content: &'j RawValue,
    }
    let text = input.get();
    if text.starts_with('"') {
        return true;
    }
    let messages: Result<Vec<Message<'_>>, _> = serde_json::from_str(text);
    messages.is_ok_and(|messages| {
        !messages.is_empty()
            && messages.iter().all(|message| {
                message.role == "user"
                    && message.kind.as_deref().is_none_or(|kind| kind == "message")
                    && message.content.get().starts_with(['"', '['])
            })
    })
}
