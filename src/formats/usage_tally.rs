//! What a reply has told so far: token figures, whether content, an end or an error was seen. Common to all formats.
//!
//! Each format's own file names the places in its replies by [`Tag`]s, says what an event means, and turns the raw figures
//! into disjoint [`Usage`]. Of a figure that comes several times the last one counts, except that a zero never undoes a figure:
//! some upstreams repeat the usage object with the fields that they have forgotten set to zero.

use super::error::UpstreamError;
use super::scan::{Found, Kind, Node, key};

/// Raw figures, by what they mean and not by what a format calls them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Figure {
    Input,
    Output,
    Total,
    CacheRead,
    CacheWrite,
    CacheWrite5m,
    CacheWrite1h,
    Reasoning,
    ImageInput,
    ImageCached,
    ImageOutput,
    ToolInput,
}

const FIGURES: usize = Figure::ToolInput as usize + 1;

/// A place of interest in a reply or event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tag {
    /// The whole event or reply.
    Event,
    /// The event's or reply's type.
    Name,
    /// The reply's own status.
    Status,
    /// Generated text (also arguments of calls): content if it is not empty.
    Text,
    /// A generated object, such as a call's arguments: content if it is not empty.
    Part,
    /// Generated media: content, but of no use for an estimate of tokens.
    Media,
    /// The list or object that only a reply has: in a whole body it shows that it is one.
    Shape,
    /// The reason of the reply's end.
    Finish,
    Count(Figure),
    /// Figures by kind of input or output: one item's kind, its count, the item, the list.
    Modality,
    ModalityCount,
    ModalityItem,
    Modalities(Figure),
    /// An `error` member, of any type.
    Error,
    ErrorKind,
    ErrorCode,
    ErrorMessage,
    /// `code` and `message` beside the type: an error if the type says so.
    LooseCode,
    LooseMessage,
}

/// An `error` member with what any of the formats has in it.
pub(super) const ERROR: Node<Tag> = Node {
    tag: Some(Tag::Error),
    take: 1000,
    keys: &[
        key("type", Node::value(Tag::ErrorKind, 100)),
        key("status", Node::value(Tag::ErrorKind, 100)),
        key("code", Node::value(Tag::ErrorCode, 100)),
        key("message", Node::value(Tag::ErrorMessage, 2000)),
    ],
    items: None,
    rest: None,
};

/// A token figure.
pub(super) const fn count(figure: Figure) -> Node<Tag> {
    Node::value(Tag::Count(figure), 24)
}

#[derive(Debug, Default)]
pub(super) struct Tally {
    figures: [Option<u64>; FIGURES],
    pub(super) content: bool,
    pub(super) end: bool,
    /// An end's reason was given; whether that is the end depends on the format.
    pub(super) finish: bool,
    /// A whole body is a reply by its shape.
    pub(super) shape: bool,
    pub(super) error: Option<UpstreamError>,
    pub(super) output_len: usize,
    pub(super) event: EventSoFar,
}

/// What the current event has told; forgotten at its end.
#[derive(Debug, Default)]
pub(super) struct EventSoFar {
    pub(super) name: String,
    pub(super) status: String,
    pub(super) has_error: bool,
    /// Generated text or parts.
    pub(super) generated: bool,
    pub(super) finish: bool,
    loose: UpstreamError,
    told: UpstreamError,
    is_image: bool,
    modality_count: u64,
    images: u64,
}

impl Tally {
    pub(super) fn get(&self, figure: Figure) -> Option<u64> {
        self.figures[figure as usize]
    }

    /// The figure, or zero.
    pub(super) fn figure(&self, figure: Figure) -> u64 {
        self.get(figure).unwrap_or(0)
    }

    pub(super) fn has_figures(&self) -> bool {
        self.get(Figure::Input).is_some() || self.get(Figure::Output).is_some()
    }

    fn set(&mut self, figure: Figure, value: u64) {
        let place = &mut self.figures[figure as usize];
        if value > 0 || place.is_none() {
            *place = Some(value);
        }
    }

    pub(super) fn found(&mut self, found: &Found<'_, Tag>) {
        match found.tag {
            Tag::Count(figure) => {
                if let Some(value) = found.as_u64() {
                    self.set(figure, value);
                }
            }
            Tag::Text if found.kind == Kind::String => self.generated(found.span.len() - 2),
            Tag::Part if found.len > 0 => self.generated(found.span.len()),
            Tag::Media => self.event.generated |= found.kind == Kind::Object,
            Tag::Shape => self.shape |= matches!(found.kind, Kind::Array | Kind::Object),
            Tag::Finish => self.event.finish |= found.kind == Kind::String,
            Tag::Name => text(found, &mut self.event.name),
            Tag::Status => text(found, &mut self.event.status),
            Tag::Modality => self.event.is_image = found.text.eq_ignore_ascii_case(b"IMAGE"),
            Tag::ModalityCount => self.event.modality_count = found.as_u64().unwrap_or(0),
            Tag::ModalityItem => {
                if std::mem::take(&mut self.event.is_image) {
                    self.event.images += self.event.modality_count;
                }
                self.event.modality_count = 0;
            }
            Tag::Modalities(figure) => {
                let images = std::mem::take(&mut self.event.images);
                self.set(figure, images);
            }
            Tag::Event | Tag::Text | Tag::Part => {}
            _ => self.error_part(found),
        }
    }

    fn error_part(&mut self, found: &Found<'_, Tag>) {
        let event = &mut self.event;
        match found.tag {
            Tag::Error => {
                event.has_error |= match found.kind {
                    Kind::Object => found.len > 0,
                    Kind::String => found.span.len() > 2,
                    _ => false,
                };
                if found.kind == Kind::String {
                    text(found, &mut event.told.message);
                }
            }
            Tag::ErrorKind if found.kind == Kind::String => event.told.kind = word(found),
            Tag::ErrorCode if event.told.code.is_none() => event.told.code = word(found),
            Tag::ErrorMessage => text(found, &mut event.told.message),
            Tag::LooseCode => event.loose.code = word(found),
            Tag::LooseMessage => text(found, &mut event.loose.message),
            _ => {}
        }
    }

    fn generated(&mut self, len: usize) {
        self.output_len += len;
        self.event.generated |= len > 0;
    }

    /// Makes the event's error the reply's error: its `error` member, or else its own code and message.
    pub(super) fn fail(&mut self) {
        let event = &mut self.event;
        let told = std::mem::take(if event.has_error { &mut event.told } else { &mut event.loose });
        if self.error.is_none() {
            self.error = Some(told.cleaned());
        }
    }

    /// Forgets the event; called at its end, whether it could be read or not.
    pub(super) fn next_event(&mut self) {
        let event = &mut self.event;
        event.name.clear();
        event.status.clear();
        event.has_error = false;
        event.generated = false;
        event.finish = false;
        event.is_image = false;
        event.modality_count = 0;
        event.images = 0;
        for error in [&mut event.told, &mut event.loose] {
            error.kind = None;
            error.code = None;
            error.message.clear();
        }
    }
}

fn text(found: &Found<'_, Tag>, into: &mut String) {
    into.clear();
    match found.as_str() {
        Some(text) => into.push_str(&text),
        // A text that was cut is good enough for a message.
        None if found.kind == Kind::String => into.push_str(&String::from_utf8_lossy(found.text)),
        None => {}
    }
}

fn word(found: &Found<'_, Tag>) -> Option<String> {
    match found.kind {
        Kind::String => found.as_str().filter(|t| !t.is_empty()).map(std::borrow::Cow::into_owned),
        Kind::Number => std::str::from_utf8(found.text).ok().map(str::to_owned),
        _ => None,
    }
}
