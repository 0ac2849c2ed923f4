//! What a provider says that it did with the reasoning of earlier turns (`input_transformations`):
//! left out, or kept although it does not fit. native and responses name a reason for each piece.

use super::tag::UsageTag;
use crate::formats::scan::{Found, Node, key};

/// Reasons that are told apart. The services know about six.
const MOST: usize = 8;

/// The list, in a reply or an event.
pub(super) const CHANGES: Node<UsageTag> = Node::array(&CHANGE).tagged(UsageTag::Changes);
static CHANGE: Node<UsageTag> = Node::object(&[
    key("type", Node::value(UsageTag::ChangeType, 40)),
    key("reason", Node::value(UsageTag::ChangeReason, 40)),
])
.tagged(UsageTag::ChangeEnd);

/// One reason, and how many pieces of reasoning it concerns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputChange {
    /// Whether the pieces were left out; else they were kept.
    pub is_removal: bool,
    /// The service's word, such as `prefix_binding_mismatch`.
    pub reason: Box<str>,
    /// Pieces of reasoning.
    pub pieces: u32,
}

/// The lists of a reply, as far as they are read. A later one replaces an earlier one.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Changes {
    is_kept: bool,
    reason: Option<Box<str>>,
    reported: Vec<InputChange>,
    pub(super) known: Vec<InputChange>,
}

impl Changes {
    pub(super) fn found(&mut self, found: &Found<'_, UsageTag>) {
        match found.tag {
            UsageTag::ChangeType => self.is_kept = found.text == b"thinking_mismatch_allowed",
            UsageTag::ChangeReason => self.reason = found.as_str().map(Into::into),
            UsageTag::ChangeEnd => self.ends(),
            _ if !self.reported.is_empty() => self.known = std::mem::take(&mut self.reported),
            _ => {}
        }
    }

    fn ends(&mut self) {
        let is_removal = !std::mem::take(&mut self.is_kept);
        let reason = self.reason.take().unwrap_or_else(|| "no reason given".into());
        let is_same = |c: &&mut InputChange| c.is_removal == is_removal && c.reason == reason;
        let has_room = self.reported.len() < MOST;
        match self.reported.iter_mut().find(is_same) {
            Some(change) => change.pieces = change.pieces.saturating_add(1),
            None if has_room => {
                self.reported.push(InputChange { is_removal, reason, pieces: 1 });
            }
            None => {}
        }
    }
}

/// A line for the decision chain; `None` without changes.
pub fn describe(changes: &[InputChange]) -> Option<String> {
    if changes.is_empty() {
        return None;
    }
    let side = |is_removal: bool, what: &str| {
        let of = changes.iter().filter(|change| change.is_removal == is_removal);
        let words: Vec<String> =
            of.map(|change| format!("{} ({})", change.reason, change.pieces)).collect();
        (!words.is_empty()).then(|| format!("{what}: {}", words.join(", ")))
    };
    let removed = side(true, "the provider left out reasoning of earlier turns");
    let kept = side(false, "the provider kept reasoning of earlier turns that does not fit");
    let lines: Vec<String> = [removed, kept].into_iter().flatten().collect();
    (!lines.is_empty()).then(|| lines.join("; "))
}
