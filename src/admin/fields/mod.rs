//! Bodies as tables: a field's name, its allowed values, and whether it is required.
//!
//! One table drives both the check of a request ([`check()`](fn@check::check)) and its JSON schema
//! ([`schema`]), so the two cannot differ. Rules that need more than one field, or stored data, are
//! part of the actions.

pub mod check;
pub mod moment;
pub mod schema;
pub mod values;

pub use check::{check, check_fields};
pub use values::{Patch, Value, Values};

use super::envelope::Code;

/// One field of a body.
#[derive(Debug, Clone, Copy)]
pub struct Field {
    pub name: &'static str,
    pub kind: Kind,
    pub need: Need,
    /// `null` is accepted: in an edit it clears the field, elsewhere it equals omitting the field.
    pub nullable: bool,
    pub doc: &'static str,
}

/// The allowed values of a field. Bounds are inclusive.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// A whole number; a string of digits is accepted too.
    Integer {
        min: i64,
        max: i64,
    },
    /// 0 … `max` with at most `places` digits after the point; a decimal string is accepted too.
    Decimal {
        max: i64,
        places: u32,
    },
    /// Text without surrounding blanks; lengths in characters.
    Text {
        min: usize,
        max: usize,
        form: Form,
    },
    Boolean,
    /// A date or time; see [`moment::parse`]. An empty string equals omitting the field.
    Moment(DayEdge),
    /// One of these words.
    Choice(&'static [&'static str]),
    /// Values of one kind; more than `max` are refused with the code `excess`.
    List {
        item: &'static Kind,
        min: usize,
        max: usize,
        excess: Code,
    },
    /// Text to text, both 1 … `text_max` characters.
    Map {
        max: usize,
        text_max: usize,
    },
    /// Any JSON object, of at most `max` bytes as text.
    Document {
        max: usize,
    },
    /// A nested table, of which at least one field must be sent.
    Object(&'static [Field]),
}

/// The required form of a text beyond its length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    Any,
    /// `HH:MM`
    TimeOfDay,
    /// An `http` or `https` address without credentials, query or fragment.
    BaseUrl,
    /// The `http://host:port` of a CONNECT proxy.
    ProxyUrl,
    /// An `http` or `https` address, which may have a query. The action checks its destination.
    Webhook,
}

/// Which end of the day a bare date means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DayEdge {
    Start,
    End,
}

/// Whether a field is required.
#[derive(Debug, Clone, Copy)]
pub enum Need {
    Required,
    Optional,
    /// The default if it is omitted.
    Preset(Preset),
}

/// The default of a field.
#[derive(Debug, Clone, Copy)]
pub enum Preset {
    Boolean(bool),
    Integer(i64),
    Text(&'static str),
}

impl Field {
    /// An optional field that does not accept `null`.
    pub const fn new(name: &'static str, kind: Kind, doc: &'static str) -> Self {
        Self { name, kind, need: Need::Optional, nullable: false, doc }
    }

    pub const fn required(self) -> Self {
        Self { need: Need::Required, ..self }
    }

    pub const fn nullable(self) -> Self {
        Self { nullable: true, ..self }
    }

    pub const fn or_integer(self, value: i64) -> Self {
        Self { need: Need::Preset(Preset::Integer(value)), ..self }
    }

    pub const fn or_true(self) -> Self {
        Self { need: Need::Preset(Preset::Boolean(true)), ..self }
    }

    pub const fn or_false(self) -> Self {
        Self { need: Need::Preset(Preset::Boolean(false)), ..self }
    }

    pub const fn or_text(self, value: &'static str) -> Self {
        Self { need: Need::Preset(Preset::Text(value)), ..self }
    }
}

impl Kind {
    /// USD with cents.
    pub const fn usd(max: i64) -> Self {
        Self::Decimal { max, places: 2 }
    }

    pub const fn text(min: usize, max: usize) -> Self {
        Self::Text { min, max, form: Form::Any }
    }

    pub const fn list(item: &'static Self, max: usize) -> Self {
        Self::List { item, min: 0, max, excess: Code::MAX_LENGTH }
    }

    /// The id of a stored record.
    pub const ID: Self = Self::Integer { min: 1, max: i64::MAX };
}

/// The body of one operation: the fields that name the target, and the fields that carry the data.
#[derive(Debug, Clone, Copy)]
pub struct Body {
    /// Fields that identify the record.
    pub target: &'static [Field],
    pub data: &'static [Field],
    /// A partial update: every data field may be omitted (and then stays unchanged), but not all of
    /// them.
    pub partial: bool,
}

impl Body {
    pub const EMPTY: Self = Self { target: &[], data: &[], partial: false };

    /// A body with all fields as declared.
    pub const fn of(target: &'static [Field], data: &'static [Field]) -> Self {
        Self { target, data, partial: false }
    }

    /// A partial update of the record that `target` identifies.
    pub const fn edit(target: &'static [Field], data: &'static [Field]) -> Self {
        Self { target, data, partial: true }
    }

    /// Every field in the form for this body: in a partial update data fields are optional and have
    /// no default.
    pub fn fields(&self) -> impl Iterator<Item = Field> {
        let partial = self.partial;
        let data = self.data.iter().map(move |field| match partial {
            true => Field { need: Need::Optional, ..*field },
            false => *field,
        });
        self.target.iter().copied().chain(data)
    }

    /// Whether anything must be sent at all.
    pub fn is_required(&self) -> bool {
        self.partial || self.fields().any(|f| matches!(f.need, Need::Required))
    }
}
