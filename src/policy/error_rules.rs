//! Which error rule, if any, decides about an upstream's error: priority first, then age.
//!
//! A rule is asked about the error's message, type and code, each as its own text: `contains` and
//! `regex` look within them, `exact` wants one of them whole. Letter case never counts. A rule that
//! matches makes the error the client's own: it goes back at once, nobody else is asked, and
//! nothing is counted against the provider. They are asked before the gateway's own knowledge of
//! such errors ([`super::client_error`]).

use std::sync::{Arc, OnceLock};

use regex::Regex;

use super::builtin_rules::BUILTIN_RULES;
use super::classify::ErrorReply;
use super::fold::fold;
use super::pattern;
use crate::domain::error_rule::{ErrorRule, OverrideResponse};
use crate::domain::matching::MatchType;

/// A client error's status where neither the rule nor the upstream has one.
const DEFAULT_STATUS: u16 = 400;

/// The rules in effect, in the order in which they are asked.
#[derive(Debug, Default)]
pub struct ErrorRules {
    source: Vec<ErrorRule>,
    enabled: Vec<Arc<ReadyRule>>,
    faults: Vec<String>,
}

/// An enabled rule, ready to be asked.
#[derive(Debug)]
pub struct ReadyRule {
    pub rule: ErrorRule,
    pub response: Option<OverrideResponse>,
    matcher: Matcher,
}

#[derive(Debug)]
enum Matcher {
    Contains(String),
    Exact(String),
    Regex(Compiled),
}

/// A regular expression. Those of the program's own rules are known to be sound and are compiled
/// when the first error has to be looked at: together they take 2 MB, which a gateway whose
/// providers answer need not have.
#[derive(Debug)]
struct Compiled {
    pattern: String,
    regex: OnceLock<Option<Regex>>,
}

/// An error's texts without letter case, made once for all rules.
struct Texts<'e> {
    plain: Vec<&'e str>,
    folded: Vec<String>,
}

impl ErrorRules {
    /// Compiles the enabled ones of `source`. A rule that cannot be is left out and named in
    /// [`ErrorRules::faults`].
    #[must_use]
    pub fn compile(source: Vec<ErrorRule>) -> Self {
        let mut rules = Self { source, ..Self::default() };
        for rule in rules.source.iter().filter(|rule| rule.is_enabled && rule.deleted_at.is_none()) {
            match ReadyRule::compile(rule) {
                Ok(ready) => rules.enabled.push(Arc::new(ready)),
                Err(why) => rules.faults.push(format!("error rule {}: {why}", rule.id)),
            }
        }
        rules.enabled.sort_by_key(|ready| (ready.rule.priority, ready.rule.id));
        rules
    }

    /// What these were made from, disabled rules included.
    #[must_use]
    pub fn all(&self) -> &[ErrorRule] {
        &self.source
    }

    /// What could not be put in effect, and why.
    #[must_use]
    pub fn faults(&self) -> &[String] {
        &self.faults
    }

    /// The rules that match, in their order: the first one decides.
    pub fn matching<'r>(&'r self, error: &'r ErrorReply<'_>) -> impl Iterator<Item = &'r Arc<ReadyRule>> {
        let texts = Texts::of(error);
        let asked = self.enabled.iter().filter(|ready| ready.rule.applies_to.covers(error.status));
        asked.filter(move |ready| ready.matches(&texts))
    }

    /// The rule that decides, if one does.
    #[must_use]
    pub fn decide(&self, error: &ErrorReply<'_>) -> Option<Arc<ReadyRule>> {
        self.matching(error).next().map(Arc::clone)
    }
}

impl<'e> Texts<'e> {
    fn of(error: &'e ErrorReply<'_>) -> Self {
        let plain: Vec<&str> = [error.message, error.kind, error.code].into_iter().flatten().collect();
        Self { folded: plain.iter().map(|text| fold(text)).collect(), plain }
    }
}

impl Compiled {
    fn new(pattern: &str) -> Result<Self, String> {
        let known = BUILTIN_RULES.iter().any(|rule| rule.match_type == MatchType::Regex && rule.pattern == pattern);
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
        let response = rule.override_response.as_deref().map(OverrideResponse::parse).transpose()?;
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
    #[must_use]
    pub fn status(&self, upstream: u16) -> u16 {
        match self.rule.override_status {
            Some(status) => status,
            None if (400..500).contains(&upstream) => upstream,
            None => DEFAULT_STATUS,
        }
    }

    /// For the decision chain.
    #[must_use]
    pub fn label(&self) -> String {
        format!("error rule {}, {}", self.rule.id, self.rule.category.as_str())
    }
}
