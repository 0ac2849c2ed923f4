//! The scanner's position in a document: the open containers, and which of them are of interest.
//!
//! One bit for every open container says whether it is an object; only those of interest have a
//! frame. So a prompt's deep schemas cost one bit per level, and the depth bound fixes the size.

use super::{Found, Kind, MemberKey, Node};

/// No document may nest deeper, whatever the requested limit.
const DEEPEST: usize = 1024;

/// A container of interest that is open.
#[derive(Debug)]
struct Frame<T: 'static> {
    node: &'static Node<T>,
    exact: bool,
    start: usize,
    len: usize,
    depth: usize,
}

/// A value of interest that is expected or in progress.
#[derive(Debug)]
pub(super) struct StackPlace<T: 'static> {
    pub(super) node: &'static Node<T>,
    /// The key was spelt as in the node.
    pub(super) exact: bool,
}

impl<T> Clone for StackPlace<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for StackPlace<T> {}

#[derive(Debug)]
pub(super) struct Stack<T: 'static> {
    root: &'static Node<T>,
    max_depth: usize,
    /// How many containers are open; bit `n` of `objects` says whether the `n`th is an object.
    depth: usize,
    objects: [u64; DEEPEST / 64],
    frames: Vec<Frame<T>>,
    /// The current container is the top frame's.
    inside: bool,
    /// The place of the next value, if it is of interest.
    place: Option<StackPlace<T>>,
}

impl<T: Copy> Stack<T> {
    pub(super) fn new(root: &'static Node<T>, max_depth: usize) -> Self {
        Self {
            root,
            max_depth: max_depth.min(DEEPEST),
            depth: 0,
            objects: [0; DEEPEST / 64],
            // The containers of a usual body, in one allocation.
            frames: Vec::with_capacity(6),
            inside: false,
            place: Some(StackPlace { node: root, exact: true }),
        }
    }

    pub(super) fn reset(&mut self) {
        self.depth = 0;
        self.frames.clear();
        self.inside = false;
        self.place = Some(StackPlace { node: self.root, exact: true });
    }

    #[inline]
    pub(super) const fn depth(&self) -> usize {
        self.depth
    }

    /// The current container is of interest.
    #[inline]
    pub(super) const fn inside(&self) -> bool {
        self.inside
    }

    /// Under which name the names of the current object's members are reported.
    #[inline]
    pub(super) fn names_tag(&self) -> Option<T> {
        self.frames.last().and_then(|frame| frame.node.names)
    }

    /// How much text of the current value is needed.
    pub(super) fn wanted(&self) -> usize {
        self.place.map_or(0, |p| p.node.take)
    }

    /// The name of the current value, if it is to be reported.
    pub(super) fn place_tag(&self) -> Option<T> {
        self.place.and_then(|place| place.node.tag)
    }

    /// The innermost open container that is to be reported: its name and its start.
    pub(super) fn innermost(&self) -> Option<(T, usize)> {
        self.frames.iter().rev().find_map(|frame| Some((frame.node.tag?, frame.start)))
    }

    /// A scalar is complete: its place, if it is of interest.
    #[inline]
    pub(super) const fn take_place(&mut self) -> Option<StackPlace<T>> {
        self.place.take()
    }

    #[inline]
    pub(super) const fn in_object(&self) -> bool {
        // Outermost is bit 0; at depth 0 no closing bracket is ever expected.
        let index = self.depth.wrapping_sub(1) % DEEPEST;
        self.objects[index / 64] >> (index % 64) & 1 == 1
    }

    /// A container begins at `start`. False if that is too deep.
    #[inline]
    pub(super) fn open(&mut self, start: usize, object: bool) -> bool {
        if self.depth >= self.max_depth {
            return false;
        }
        let (word, bit) = (self.depth / 64, 1 << (self.depth % 64));
        if object {
            self.objects[word] |= bit;
        } else {
            self.objects[word] &= !bit;
        }
        self.depth += 1;
        self.inside = false;
        if let Some(StackPlace { node, exact }) = self.place.take() {
            self.inside = true;
            self.frames.push(Frame { node, exact, start, len: 0, depth: self.depth });
            let items = if object { None } else { node.items };
            self.place = items.map(|node| StackPlace { node, exact: true });
        }
        true
    }

    /// A comma in the current container. True when it is an object.
    #[inline]
    pub(super) fn comma(&mut self) -> bool {
        if self.in_object() {
            return true;
        }
        if self.inside
            && let Some(frame) = self.frames.last_mut()
        {
            frame.len += 1;
            self.place = frame.node.items.map(|node| StackPlace { node, exact: true });
        }
        false
    }

    /// A member of the current object of interest begins; `None` if its name is too long to match.
    pub(super) fn member(&mut self, name: Option<&[u8]>) {
        if let Some(frame) = self.frames.last_mut() {
            frame.len += 1;
            let keys = frame.node.keys;
            let named = name.and_then(|name| {
                keys.iter()
                    .find_map(|key| matched(key, name))
                    .or_else(|| matched_by_fold(keys, name))
            });
            self.place =
                named.or_else(|| frame.node.rest.map(|node| StackPlace { node, exact: true }));
        }
    }

    /// The current container ends before `end`; returns what is to be reported.
    #[inline]
    pub(super) fn close(
        &mut self,
        end: usize,
        kind: Kind,
        empty: bool,
    ) -> Option<Found<'static, T>> {
        let frame = if self.inside { self.frames.pop() } else { None };
        self.place = None;
        self.depth -= 1;
        self.inside = self.frames.last().is_some_and(|f| f.depth == self.depth);
        let frame = frame?;
        // In an array the commas were counted.
        let len = frame.len + usize::from(kind == Kind::Array && !empty);
        let (tag, span) = (frame.node.tag?, frame.start..end);
        Some(Found {
            tag,
            kind,
            span,
            text: &[],
            whole: true,
            escaped: false,
            len,
            exact: frame.exact,
        })
    }
}

#[inline]
fn matched<T>(key: &'static MemberKey<T>, name: &[u8]) -> Option<StackPlace<T>> {
    let wanted = key.name.as_bytes();
    // Most keys already differ in length or in their last letter.
    if wanted.len() != name.len() {
        return None;
    }
    if let (Some(a), Some(b)) = (wanted.last(), name.last())
        && (a ^ b) & !0x20 != 0
    {
        return None;
    }
    let exact = wanted == name;
    let matches = exact || (key.any_case && wanted.eq_ignore_ascii_case(name));
    matches.then_some(StackPlace { node: &key.node, exact })
}

/// Other letters than those of ASCII may fold to the same name: the long s, the Kelvin sign,
/// ligatures.
#[inline]
fn matched_by_fold<T>(keys: &'static [MemberKey<T>], name: &[u8]) -> Option<StackPlace<T>> {
    if name.is_ascii() {
        return None;
    }
    let name = folded(std::str::from_utf8(name).ok()?);
    keys.iter()
        .find(|key| key.any_case && key.name.eq_ignore_ascii_case(&name))
        .map(|key| StackPlace { node: &key.node, exact: false })
}

/// The name as the most lenient parser would read it. Upper case first: it unifies special letters
/// with the usual ones.
#[cold]
fn folded(name: &str) -> String {
    let upper = name.chars().flat_map(char::to_uppercase);
    // A dotted capital I becomes an i and a dot above, which is left out.
    upper.flat_map(char::to_lowercase).filter(|c| *c != '\u{307}').collect()
}

#[cfg(test)]
mod tests {
    use super::folded;

    #[test]
    fn odd_letters_fold_to_usual_ones() {
        for (odd, usual) in [
            ("ſtream", "stream"),
            ("ﬆream_options", "stream_options"),
            ("max_toKens", "max_tokens"),
            ("STREAM_OPTİONS", "stream_options"),
            ("ınput", "input"),
            ("meßages", "messages"),
            ("ſtream_optıonſ", "stream_options"),
        ] {
            assert_eq!(folded(odd), usual);
        }
    }
}
