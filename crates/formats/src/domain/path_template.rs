//! The path of calls to a provider, with placeholders.

/// The placeholder of the model's name.
const MODEL: &str = "{model}";
/// The placeholder of the call's own path without its version, such as `chat/completions`.
const PATH: &str = "{path}";

/// What a template gives for a call of this path (without `/` before it) and model. `None` if the
/// template names the model and the call has none.
pub fn filled(template: &str, path: &str, model: Option<&str>) -> Option<String> {
    let template = match model {
        Some(model) => template.replace(MODEL, model),
        None if template.contains(MODEL) => return None,
        None => template.to_owned(),
    };
    // The path comes last: a model's name has its braces encoded, and so is no placeholder.
    Some(template.replace(PATH, path))
}

/// Whether it has the model's name.
pub fn names_model(template: &str) -> bool {
    template.contains(MODEL)
}

/// Whether it has the call's own path, without which different calls would be one, begins with `/`
/// and has only visible ASCII without `?` and `#`, known placeholders,
/// and no empty or dot segments.
pub fn is_valid(template: &str) -> bool {
    let plain = template.replace(MODEL, "m").replace(PATH, "p");
    let is_path = |byte: u8| byte.is_ascii_graphic() && !b"?#{}\\\"<>^`|%".contains(&byte);
    template.contains(PATH)
        && plain.strip_prefix('/').is_some_and(|rest| {
            plain.bytes().all(is_path)
                && rest.split('/').all(|part| !matches!(part, "" | "." | ".."))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_have_known_placeholders_only() {
        for good in ["/{path}", "/deployments/{model}/{path}", "/{model}:{path}"] {
            assert!(is_valid(good), "{good}");
        }
        for bad in [
            "",
            "{path}",
            "/",
            "/responses",
            "/v1/{model}:invoke",
            "/{path}/",
            "/a//{path}",
            "/../{path}",
            "/{path}?b",
            "/{path}#b",
            "/{deployment}/{path}",
            "/{/{path}",
            "/ü/{path}",
            "/a b/{path}",
        ] {
            assert!(!is_valid(bad), "{bad}");
        }
        let template = "/deployments/{model}/{path}";
        let filled_in = filled(template, "chat/completions", Some("gpt"));
        assert_eq!(filled_in.as_deref(), Some("/deployments/gpt/chat/completions"));
        assert_eq!(filled(template, "models", None), None);
        assert_eq!(filled("/{path}", "models", None).as_deref(), Some("/models"));
    }
}
