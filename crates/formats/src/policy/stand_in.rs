//! Whether other providers serve everything that one serves, so that disabling it leaves every
//! model of a group with a provider.
//!
//! A failing provider answers 503, and recovers without an administrator. A model without an
//! enabled provider answers 404 until an administrator acts. So the failing provider stays enabled.

use crate::domain::provider::Provider;

/// What no other provider would serve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap<'a> {
    /// Name of the group that would lose the model; `default` for a provider without groups.
    pub group: &'a str,
    /// A model's name, or a pattern that ends in `*`.
    pub model: &'a str,
}

/// The first model, by group, that none of the others serves. `others` are the enabled providers
/// without this one.
pub fn gap<'a>(provider: &'a Provider, others: &[&Provider]) -> Option<Gap<'a>> {
    provider.group_tag.effective().find_map(|group| {
        let mut served = served(provider);
        let model = served.find(|model| {
            !others.iter().any(|one| one.group_tag.has(group) && covers(one, model))
        })?;
        Some(Gap { group, model })
    })
}

/// Every name and pattern that the provider serves; `*` if it serves every model.
fn served(provider: &Provider) -> impl Iterator<Item = &str> {
    let every = provider.allowed_models.is_empty().then_some("*");
    let listed = provider.allowed_models.iter().map(String::as_str);
    every
        .into_iter()
        .chain(listed)
        .chain(provider.model_redirects.iter().map(|(from, _)| from.as_str()))
}

fn covers(provider: &Provider, model: &str) -> bool {
    match model.strip_suffix('*') {
        None => provider.supports_model(model),
        Some(prefix) => {
            let wider =
                |own: &String| own.strip_suffix('*').is_some_and(|own| prefix.starts_with(own));
            provider.allowed_models.is_empty() || provider.allowed_models.iter().any(wider)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::select::test_provider as provider;
    use super::*;
    use crate::domain::group::Groups;

    fn of(id: i64, groups: &str, models: &[&str]) -> Arc<Provider> {
        provider(id, |p| {
            p.group_tag = Groups::parse(groups);
            p.allowed_models = models.iter().map(|&model| model.to_owned()).collect();
        })
    }

    #[test]
    fn every_model_of_every_group_needs_another_provider() {
        /// Groups, and the models that are allowed.
        type Of = (&'static str, &'static [&'static str]);
        /// Groups and models of the one, of the others, and the gap.
        type Case = (
            &'static str,
            &'static [&'static str],
            &'static [Of],
            Option<(&'static str, &'static str)>,
        );
        let cases: [Case; 11] = [
            ("", &[], &[], Some(("default", "*"))),
            ("", &[], &[("", &[])], None),
            ("", &[], &[("", &["claude-*"])], Some(("default", "*"))),
            ("", &[], &[("", &["*"])], None),
            ("", &["a"], &[("", &[])], None),
            ("", &["a", "b"], &[("", &["a"])], Some(("default", "b"))),
            ("", &["a", "b"], &[("", &["a"]), ("", &["b"])], None),
            ("", &["claude-opus-*"], &[("", &["claude-*"])], None),
            ("", &["claude-*"], &[("", &["claude-opus-*"])], Some(("default", "claude-*"))),
            ("gold,silver", &["a"], &[("gold", &["a"])], Some(("silver", "a"))),
            ("gold", &["a"], &[("silver", &["a"])], Some(("gold", "a"))),
        ];
        for (groups, models, others, expected) in cases {
            let one = of(1, groups, models);
            let others: Vec<_> =
                (2..).zip(others).map(|(id, (groups, models))| of(id, groups, models)).collect();
            let others: Vec<&Provider> = others.iter().map(|other| &**other).collect();
            let found = gap(&one, &others).map(|gap| (gap.group, gap.model));
            assert_eq!(found, expected, "{groups} {models:?}");
        }
    }

    #[test]
    fn a_redirect_is_a_model_too() {
        let one = provider(1, |p| {
            p.allowed_models = vec!["a".to_owned()];
            p.model_redirects = vec![("fast".to_owned(), "a".to_owned())];
        });
        let other = of(2, "", &["a"]);
        assert_eq!(gap(&one, &[&other]), Some(Gap { group: "default", model: "fast" }));
    }
}
