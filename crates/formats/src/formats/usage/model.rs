//! The model that a reply says made it, without memory of its own.

use super::tag::UsageTag;
use crate::formats::scan::Found;

/// The name of a model. Names that are longer than any in a price table are none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModelName {
    len: u8,
    text: [u8; Self::MOST],
}

impl Default for ModelName {
    fn default() -> Self {
        Self { len: 0, text: [0; Self::MOST] }
    }
}

impl ModelName {
    /// Most bytes of a name.
    pub(super) const MOST: usize = 95;

    pub(super) fn of(found: &Found<'_, UsageTag>) -> Self {
        let mut name = Self::default();
        if found.whole
            && !found.escaped
            && let Some(text) = name.text.get_mut(..found.text.len())
            && let Ok(len) = u8::try_from(found.text.len())
        {
            text.copy_from_slice(found.text);
            name.len = len;
        }
        name
    }

    /// The name; `None` if the reply has none.
    pub fn as_str(&self) -> Option<&str> {
        let text = self.text.get(..self.len.into())?;
        std::str::from_utf8(text).ok().filter(|name| !name.is_empty())
    }
}
