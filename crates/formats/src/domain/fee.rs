//! What a hosted tool that a request names is charged for, beside the reply's tokens.

use super::price::CostKind;

/// The entry of fees for tools that no model's entry names, and of containers of the usual size.
pub const TOOLS: &str = "openai/container";
/// Sizes of containers above the usual one of `1g`, and the entry that a container of each is
/// charged by.
const LARGE: [(&str, &str); 3] = [
    ("4g", "openai/container-4g"),
    ("16g", "openai/container-16g"),
    ("64g", "openai/container-64g"),
];
/// That of a container of an unknown size: one of another size, or named by its id.
const OTHER: &str = "openai/container-other";

/// What has to be known before a tool can be charged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fee {
    /// Nothing: it costs at most tokens of the reply, or of a model that the request names.
    Free,
    /// A fee in the entry of the requested model; but for web searches also in [`TOOLS`].
    Rate(CostKind),
    /// The fee for a container, in this entry: [`TOOLS`] or one of the larger ones.
    Container(&'static str),
    /// The tokens of the model that makes images if the request names none.
    Images,
    /// It is in no price list, or no reply reports the use.
    Unknown,
}

impl Fee {
    /// Whether both are of the same tool: its containers may be of several sizes.
    pub fn is_same_tool(self, other: Self) -> bool {
        self == other || matches!((self, other), (Self::Container(_), Self::Container(_)))
    }

    /// The fee for a container that is charged by this entry; `None` if there is no such entry.
    pub fn by_entry(entry: &str) -> Option<Self> {
        let known = LARGE.iter().map(|(_, entry)| *entry).chain([TOOLS, OTHER]);
        known.into_iter().find(|known| *known == entry).map(Self::Container)
    }

    /// The fee for a container with this `memory_limit`; `None` for one that is named by its id.
    pub fn of_container(memory: Option<&str>) -> Self {
        let large = |memory: &str| LARGE.iter().find(|(size, _)| *size == memory);
        Self::Container(match memory {
            Some("1g") => TOOLS,
            memory => memory.and_then(large).map_or(OTHER, |(_, entry)| entry),
        })
    }
}
