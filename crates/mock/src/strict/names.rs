//! Simple checks of several services: names, ids, base64, numbers in a range.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use serde_json::Value;

/// Letters, digits, `_` and `-`, 1 to `longest` of them.
pub(super) fn is_name(text: &str, longest: usize) -> bool {
    (1..=longest).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
}

/// As [`is_name`], but dots and colons too, and a letter or `_` first.
pub(super) fn is_alt_name(text: &str) -> bool {
    let starts_well = text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    starts_well && is_name(&text.replace(['.', ':'], "_"), 64)
}

/// Standard alphabet, padded.
pub(super) fn is_base64(text: &str) -> bool {
    STANDARD.decode(text).is_ok()
}

/// Either alphabet.
pub(super) fn is_any_base64(text: &str) -> bool {
    is_base64(text) || URL_SAFE.decode(text).is_ok()
}

/// The media types of images that every service takes, as they are compared there.
pub(super) const IMAGE_TYPES: [&str; 4] = ["image/jpeg", "image/png", "image/gif", "image/webp"];

/// An http address, or a data URL of an image with valid base64.
pub(super) fn is_image_url(text: &str) -> bool {
    if let Some(data) = text.strip_prefix("data:") {
        return data
            .split_once(";base64,")
            .is_some_and(|(kind, data)| IMAGE_TYPES.contains(&kind) && is_base64(data));
    }
    text.starts_with("https://") || text.starts_with("http://")
}

/// Absent, null, or a number from 0 to `most`.
pub(super) fn in_range(value: &Value, most: u32) -> bool {
    value.is_null()
        || value.as_f64().is_some_and(|number| (0.0..=f64::from(most)).contains(&number))
}

/// The elements, or none when it is not a list.
pub(super) fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// The text, or "" when it is not text.
pub(super) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The first key of `object` that is not `known`.
pub(super) fn unknown<'o>(object: &'o Value, known: &[&str]) -> Option<&'o str> {
    object.as_object()?.keys().map(String::as_str).find(|key| !known.contains(key))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn shapes() {
        assert!(
            is_name("mcp__a-b_1", 64)
                && !is_name("a.b", 64)
                && !is_name("", 64)
                && !is_name("aaa", 2)
        );
        assert!(is_alt_name("a.b:c-d") && !is_alt_name("1a") && !is_alt_name("a b"));
        assert!(is_base64("+/8=") && !is_base64("-_8=") && is_any_base64("-_8="));
        assert!(
            is_image_url("data:image/png;base64,AAAA")
                && !is_image_url("data:image/png;base64,A-_A")
                && !is_image_url("data:image/PNG;base64,AAAA")
                && !is_image_url("DATA:image/png;base64,AAAA")
        );
        assert!(is_image_url("https://x/y.png") && !is_image_url("file:///x"));
        assert!(in_range(&json!(1), 1) && in_range(&json!(null), 1) && !in_range(&json!(1.5), 1));
        assert!(!in_range(&json!("1"), 1));
    }
}
