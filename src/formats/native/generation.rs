//! What the vendor's models accept, by the generation in their name.

/// Whether the model decides itself how much to think, and takes neither a budget nor sampling:
/// Claude from 4.7 on, by whatever name a cloud or a relay gives it.
#[must_use]
pub(super) fn is_adaptive(model: &str) -> bool {
    let Some((_, name)) = model.rsplit_once("claude-") else { return false };
    let mut words = name.split(|letter: char| !letter.is_ascii_alphanumeric());
    let family = words.next().unwrap_or_default();
    if family.is_empty() || !family.bytes().all(|letter| letter.is_ascii_alphabetic()) {
        // Of the third generation the number came first.
        return false;
    }
    // A date has more digits.
    let mut number = || words.next().filter(|word| word.len() <= 2)?.parse::<u8>().ok();
    let Some(major) = number() else { return false };
    (major, number().unwrap_or(0)) >= (4, 7)
}

#[cfg(test)]
mod tests {
    use super::is_adaptive;

    #[test]
    fn the_generation_is_in_the_name() {
        for model in [
            "claude-opus-4-7",
            "claude-opus-4-7-20260416",
            "anthropic/claude-opus-4.8",
            "us.anthropic.claude-opus-4-7-v1:0",
            "claude-sonnet-5",
            "claude-sonnet-5-20260901",
            "claude-haiku-5-5@20261001",
        ] {
            assert!(is_adaptive(model), "{model}");
        }
        for model in [
            "claude-opus-4-6",
            "claude-opus-4-6-20260205",
            "claude-sonnet-4",
            "claude-sonnet-4-20250514",
            "claude-haiku-4-5@20251001",
            "claude-3-7-sonnet-20250219",
            "claude-mythos-preview",
            "claude-2.1",
            "claude-",
            "gpt-5.6",
        ] {
            assert!(!is_adaptive(model), "{model}");
        }
    }
}
