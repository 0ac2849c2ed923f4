//! References in a file: `${NAME}` in any text is the environment's, and a secret may be
//! `file:PATH`.
//!
//! They are resolved where the command runs, not in the gateway. `$${` stands for a plain `${`.

use std::path::Path;

use serde_json::Value;

use super::yaml::{Mark, Yaml, YamlFault};

/// No secret is as long: a wrong path should not fill the memory.
const MAX_BYTES: u64 = 64 << 10;
const FILE: &str = "file:";

/// Puts what references name in their place. Paths are taken from `folder`.
///
/// # Errors
/// Every reference that leads nowhere.
pub(super) fn resolve(
    yaml: &mut Yaml,
    folder: &Path,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<(), Vec<YamlFault>> {
    let mut value = std::mem::take(&mut yaml.value);
    let mut wrong = Vec::new();
    walk(&mut value, "", &mut |pointer, text| {
        let resolved = expand(text, env).and_then(|text| match text.strip_prefix(FILE) {
            Some(path) if is_pem(pointer) => whole(&folder.join(path)),
            Some(path) if is_secret(pointer) => content(&folder.join(path)),
            _ => Ok(text),
        });
        match resolved {
            Ok(new) => *text = new,
            Err(what) => wrong.push((pointer.to_owned(), what)),
        }
    });
    yaml.value = value;
    let located = |(pointer, message): (String, String)| {
        let mark: Mark = yaml.mark(&pointer);
        let name = pointer.rsplit('/').next().unwrap_or_default();
        YamlFault { mark, message: format!("{name}: {message}") }
    };
    if wrong.is_empty() { Ok(()) } else { Err(wrong.into_iter().map(located).collect()) }
}

/// Texts as they are to stand in a file, so that none is a reference.
pub(super) fn escape(value: &mut Value) {
    walk(value, "", &mut |_, text| *text = text.replace("${", "$${"));
}

fn walk(value: &mut Value, at: &str, change: &mut dyn FnMut(&str, &mut String)) {
    match value {
        Value::String(text) => change(at, text),
        Value::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                walk(item, &format!("{at}/{index}"), change);
            }
        }
        Value::Object(map) => {
            for (name, item) in map.iter_mut() {
                walk(item, &format!("{at}/{}", name.replace('~', "~0").replace('/', "~1")), change);
            }
        }
        _ => {}
    }
}

/// Whether a value may be in a separate file.
fn is_secret(pointer: &str) -> bool {
    match pointer.split('/').skip(1).collect::<Vec<_>>()[..] {
        ["providers", _, "key"] | ["users", _, "keys", _, "key"] => true,
        ["notifications", name] => name == "webhook_secret" || name.ends_with("_webhook"),
        _ => false,
    }
}

/// Whether a value is certificates or a key, which have several lines.
fn is_pem(pointer: &str) -> bool {
    matches!(
        pointer.split('/').skip(1).collect::<Vec<_>>()[..],
        ["providers", _, "tls_ca" | "tls_client_certificate" | "tls_client_key"]
    )
}

fn expand(text: &str, env: &dyn Fn(&str) -> Option<String>) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        let (before, after) = (&rest[..at], &rest[at + 2..]);
        if let Some(plain) = before.strip_suffix('$') {
            out.push_str(plain);
            out.push_str("${");
            rest = after;
            continue;
        }
        out.push_str(before);
        let (name, behind) = after.split_once('}').unwrap_or((after, ""));
        let letters = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        if !letters
            || name.is_empty()
            || name.starts_with(|c: char| c.is_ascii_digit())
            || !after.contains('}')
        {
            return Err(
                "`${` begins the name of a variable and `}` ends it; for a plain `${` write `$${`"
                    .to_owned(),
            );
        }
        match env(name) {
            Some(value) if !value.is_empty() => out.push_str(&value),
            _ => return Err(format!("the environment variable {name} is not set")),
        }
        rest = behind;
    }
    out.push_str(rest);
    Ok(out)
}

/// The secret in a file; one line end at the end is not part of it.
fn content(path: &Path) -> Result<String, String> {
    let text = whole(path)?;
    let text = text
        .strip_suffix('\n')
        .map_or(text.as_str(), |line| line.strip_suffix('\r').unwrap_or(line));
    if text.trim().is_empty() || text.contains('\n') {
        return Err(format!("the file {} must hold the secret and nothing else", path.display()));
    }
    Ok(text.to_owned())
}

/// The text of a file.
fn whole(path: &Path) -> Result<String, String> {
    let named = |what: &str| format!("the file {} {what}", path.display());
    let unreadable = |error: std::io::Error| named(&format!("cannot be read: {error}"));
    let about = std::fs::metadata(path).map_err(unreadable)?;
    if !about.is_file() || about.len() > MAX_BYTES {
        return Err(named(&format!("is not a file of at most {} KiB", MAX_BYTES >> 10)));
    }
    let bytes = std::fs::read(path).map_err(unreadable)?;
    String::from_utf8(bytes).map_err(|_| named("holds bytes that are not text"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_put_in_and_a_plain_dollar_stays() {
        let env = |name: &str| (name == "A").then(|| "1".to_owned());
        for (text, expected) in [
            ("x", "x"),
            ("${A}", "1"),
            ("<${A}${A}>", "<11>"),
            ("$A $ {A} $", "$A $ {A} $"),
            ("$${A}", "${A}"),
            ("$$${A}", "$${A}"),
        ] {
            assert_eq!(expand(text, &env).as_deref(), Ok(expected), "{text}");
        }
        for text in ["${B}", "${A", "${}", "${1}", "${A B}", "${A:-x}"] {
            assert!(expand(text, &env).is_err(), "{text}");
        }
    }

    #[test]
    fn what_is_escaped_is_no_reference() {
        for text in ["${A}", "$${A}", "$$$${", "a${b${c", "$", "${", "$}{"] {
            let mut value = Value::from(text);
            escape(&mut value);
            let back = expand(value.as_str().unwrap(), &|_| None);
            assert_eq!(back.as_deref(), Ok(text), "{value}");
        }
    }
}
