//! What this gateway accepts of a peer's groups, models and redirects. The rest is left out, or
//! renamed, and noted.

use serde_json::Value;

use super::model::{Form, Notes};
use crate::admin::bodies::spoils_names;

/// In a list that would be empty without it, which allows every model.
const NO_MODEL: &str = "no-model-of-the-list";

/// Adds the fields of the record `subject`.
pub(super) fn fill(form: &mut Form, fields: &Form, subject: &str, notes: &mut Notes) {
    for (field, value) in fields {
        let value = match (field.as_str(), value) {
            ("group_tag" | "provider_group", Value::String(text)) => groups(text, subject, notes),
            ("allowed_models", Value::Array(models)) => allowed(models, subject, notes),
            ("model_redirects", Value::Object(all)) => redirects(all, subject, notes),
            _ => value.clone(),
        };
        form.insert(field.clone(), value);
    }
}

/// Names that differ there must not become the same, or empty.
fn groups(text: &str, subject: &str, notes: &mut Notes) -> Value {
    if text.contains(spoils_names) {
        let why =
            "a group's name has characters that names cannot have here: `_` is in their place";
        notes.add(why, format!("{subject}: {text:?}"));
    }
    text.replace(spoils_names, "_").into()
}

/// A star counts only at the end. What a peer takes for a pattern, or for the star itself, stands
/// for nothing here.
fn allowed(models: &[Value], subject: &str, notes: &mut Notes) -> Value {
    let mut kept: Vec<&str> = Vec::new();
    for model in models.iter().filter_map(Value::as_str).map(str::trim) {
        if model.strip_suffix('*').unwrap_or(model).contains('*') {
            let why = "a model's name has a star before its end: it is not allowed";
            notes.add(why, format!("{subject}: {model:?}"));
        } else {
            kept.push(model);
        }
    }
    if kept.is_empty() && !models.is_empty() {
        kept.push(NO_MODEL);
    }
    kept.into()
}

fn redirects(all: &Form, subject: &str, notes: &mut Notes) -> Value {
    let mut kept = Form::new();
    for (from, to) in all {
        if from.contains('*') || to.as_str().is_some_and(|to| to.contains('*')) {
            notes.add("a redirect with a star is left out", format!("{subject}: {from:?}"));
        } else {
            kept.insert(from.clone(), to.clone());
        }
    }
    kept.into()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn nothing_becomes_more_than_it_was_and_each_change_is_noted() {
        let of = |field: &str, value: Value| {
            let (mut form, mut notes) = (Form::new(), Notes::default());
            let fields = Form::from_iter([(field.to_owned(), value)]);
            fill(&mut form, &fields, "user \"u\"", &mut notes);
            let noted: usize = notes.into_lines().iter().map(|(_, subjects)| subjects.len()).sum();
            (form.remove(field).unwrap(), noted)
        };
        for (models, kept, noted) in [
            (json!(["a", " gpt-* ", "*"]), json!(["a", "gpt-*", "*"]), 0),
            (json!(["**", "a"]), json!(["a"]), 1),
            (json!(["a*b", "gpt-**"]), json!([NO_MODEL]), 2),
            (json!([]), json!([]), 0),
        ] {
            assert_eq!(of("allowed_models", models.clone()), (kept, noted), "{models}");
        }
        let redirects = json!({"a": "b", "c*": "d", "e": "f*"});
        assert_eq!(of("model_redirects", redirects), (json!({"a": "b"}), 2));
        assert_eq!(of("group_tag", json!("a,\u{200b}*,\u{7}")), (json!("a,_*,_"), 1));
        assert_eq!(of("note", json!("\u{7}*a*")), (json!("\u{7}*a*"), 0));
    }
}
