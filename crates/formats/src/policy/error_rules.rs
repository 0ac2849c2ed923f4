//! Which error rule, if any, decides about an upstream's error: by priority, then by age.
//!
//! A rule is compared with the error's message, type and code, each as a separate text: `contains`
//! and `regex` search within them, `exact` requires one of them completely. Letter case is ignored.
//! A matching rule makes the error the client's own: it is answered at once, without failover, and
//! does not count against the provider. Rules are evaluated before the built-in classification of
//! such errors ([`super::client_error`]).

use std::sync::{Arc, OnceLock};

use regex::Regex;

use super::builtin_rules::BUILTIN_RULES;
use super::error_reply::ErrorReply;
use super::fold::fold;
use super::pattern;
use crate::domain::error_rule::{ErrorRule, OverrideResponse};
use crate::domain::matching::MatchType;

/// A client error's status if neither the rule nor the upstream has one.
const DEFAULT_STATUS: u16 = 400;

/// The rules in effect, in their order of evaluation.
#[derive(Debug, Default)]
pub struct ErrorRules {
    source: Vec<ErrorRule>,
    enabled: Vec<Arc<ReadyRule>>,
    faults: Vec<String>,
}

/// An enabled rule, ready for matching.
#[derive(Debug)]
pub struct ReadyRule {
    /// The rule as stored.
    pub rule: ErrorRule,
    /// The client's error in place of the upstream's; `None` keeps the upstream's message.
    pub response: Option<OverrideResponse>,
    matcher: Matcher,
}

#[derive(Debug)]
enum Matcher {
    Contains(String),
    Exact(String),
    Regex(Compiled),
}

/// A regular expression. Those of built-in rules are known to be valid, and are compiled when the
/// first error arrives: together they take 2 MB, which a gateway without upstream errors does not
/// need.
#[derive(Debug)]
struct Compiled {
    pattern: String,
    regex: OnceLock<Option<Regex>>,
}

/// An error's texts with letter case folded, made once for all rules.
struct Texts<'e> {
    plain: Vec<&'e str>,
    folded: Vec<String>,
}

impl ErrorRules {
    /// Compiles the enabled rules of `source`. A rule that cannot be compiled is left out and
    /// listed in [`ErrorRules::faults`].
    pub fn compile(source: Vec<ErrorRule>) -> Self {
        let mut rules = Self { source, ..Self::default() };
        for rule in rules.source.iter().filter(|rule| rule.is_enabled && rule.deleted_at.is_none())
        {
            match ReadyRule::compile(rule) {
                Ok(ready) => rules.enabled.push(Arc::new(ready)),
                Err(why) => rules.faults.push(format!("error rule {}: {why}", rule.id)),
            }
        }
        rules.enabled.sort_by_key(|ready| (ready.rule.priority, ready.rule.id));
        rules
    }

    /// The source of these rules, including disabled ones.
    pub fn all(&self) -> &[ErrorRule] {
        &self.source
    }

    /// Rules that are not in effect, and why.
    pub fn faults(&self) -> &[String] {
        &self.faults
    }

    /// The rules that match, in their order: the first one decides.
    pub fn matching<'r>(
        &'r self,
        error: &'r ErrorReply<'_>,
    ) -> impl Iterator<Item = &'r Arc<ReadyRule>> {
        let texts = Texts::of(error);
        let asked = self.enabled.iter().filter(|ready| ready.rule.applies_to.covers(error.status));
        asked.filter(move |ready| ready.matches(&texts))
    }

    /// The rule that decides, if there is one.
    pub fn decide(&self, error: &ErrorReply<'_>) -> Option<Arc<ReadyRule>> {
        self.matching(error).next().map(Arc::clone)
    }
}

impl<'e> Texts<'e> {
    fn of(error: &'e ErrorReply<'_>) -> Self {
        let plain: Vec<&str> =
            [error.message, error.kind, error.code].into_iter().flatten().collect();
        Self { folded: plain.iter().map(|text| fold(text)).collect(), plain }
    }
}

impl Compiled {
    fn new(pattern: &str) -> Result<Self, String> {
        let known = BUILTIN_RULES
            .iter()
            .any(|rule| rule.match_type == MatchType::Regex && rule.pattern == pattern);
        let regex = OnceLock::new();
        if !known {
            let compiled = pattern::compile(pattern).map_err(|fault| fault.to_string())?;
            regex.get_or_init(|| Some(compiled));
        }
        Ok(Self { pattern: pattern.to_owned(), regex })
    }

    fn matches(&self, text: &str) -> bool {
        let regex = self.regex.get_or_init(|| pattern::compile(&self.pattern).ok());
        regex.as_ref().is_some_and(|regex| regex.is_match(text))
    }
}

impl ReadyRule {
    fn compile(rule: &ErrorRule) -> Result<Self, String> {
        let matcher = match rule.match_type {
            MatchType::Contains => Matcher::Contains(fold(&rule.pattern)),
            MatchType::Exact => Matcher::Exact(fold(rule.pattern.trim())),
            MatchType::Regex => Matcher::Regex(Compiled::new(&rule.pattern)?),
        };
        let response =
            rule.override_response.as_deref().map(OverrideResponse::parse).transpose()?;
        Ok(Self { rule: rule.clone(), response, matcher })
    }

    fn matches(&self, texts: &Texts<'_>) -> bool {
        match &self.matcher {
            Matcher::Contains(part) => texts.folded.iter().any(|text| text.contains(part.as_str())),
            Matcher::Exact(whole) => texts.folded.iter().any(|text| text.trim() == whole),
            Matcher::Regex(regex) => texts.plain.iter().any(|text| regex.matches(text)),
        }
    }

    /// The status for the client of an error that came with `upstream`.
    pub fn status(&self, upstream: u16) -> u16 {
        match self.rule.override_status {
            Some(status) => status,
            None if (400..500).contains(&upstream) => upstream,
            None => DEFAULT_STATUS,
        }
    }

    /// The text in the decision chain.
    pub fn label(&self) -> String {
        format!("error rule {}, {}", self.rule.id, self.rule.category.as_str())
    }
}
