//! The errors of a configuration: every problem at once, each with its path and its remedy.

use std::fmt;

use super::setting::ValueFault;

/// One error of the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigProblem {
    /// The setting's path (`proxy.addr`), or the file's name.
    pub path: String,
    /// The environment variable that the value came from, if any.
    pub variable: Option<String>,
    /// The value as written; never that of a secret.
    pub found: Option<String>,
    /// What is wrong; completes a sentence that begins with the path or the value.
    pub wrong: String,
    /// What to do about it, as an instruction.
    pub remedy: String,
}

impl fmt::Display for ConfigProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.path)?;
        if let Some(variable) = &self.variable {
            write!(f, " (from {variable})")?;
        }
        f.write_str(": ")?;
        if let Some(found) = &self.found {
            write!(f, "`{found}` ")?;
        }
        write!(f, "{}; {}", self.wrong, self.remedy)
    }
}

/// Everything that is wrong, in the order of the settings. Never empty as an error.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Problems(pub Vec<ConfigProblem>);

impl Problems {
    pub(super) fn add(&mut self, path: &str, wrong: impl Into<String>, remedy: impl Into<String>) {
        self.of(path, None, None, ValueFault { wrong: wrong.into(), remedy: remedy.into() });
    }

    /// What is wrong with the value of a setting. `found`: as it was written.
    pub(super) fn of(
        &mut self,
        path: &str,
        variable: Option<String>,
        found: Option<String>,
        ValueFault { wrong, remedy }: ValueFault,
    ) {
        self.0.push(ConfigProblem { path: path.to_owned(), variable, found, wrong, remedy });
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.0.len();
        let noun = if count == 1 { "problem" } else { "problems" };
        write!(f, "the configuration has {count} {noun}")?;
        for problem in &self.0 {
            write!(f, "\n  - {problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}

/// The candidate that `text` was most likely meant to be, if one is similar enough.
#[must_use]
pub fn nearest<'a>(text: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let near = candidates.map(|candidate| (distance(text, candidate), candidate)).min()?;
    (near.0 <= 2.max(text.len() / 4)).then_some(near.1)
}

/// Levenshtein distance over bytes.
fn distance(left: &str, right: &str) -> usize {
    let right = right.as_bytes();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (i, a) in left.bytes().enumerate() {
        let mut diagonal = i;
        row[0] = i + 1;
        for (j, b) in right.iter().enumerate() {
            let replaced = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_found_but_nothing_far() {
        let names = ["proxy.addr", "proxy.threads", "admin.addr"];
        assert_eq!(nearest("proxy.thread", names.into_iter()), Some("proxy.threads"));
        assert_eq!(nearest("proxy.adr", names.into_iter()), Some("proxy.addr"));
        assert_eq!(nearest("quota.per_team", names.into_iter()), None);
    }
}
