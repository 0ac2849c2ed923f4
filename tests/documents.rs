//! Claims of the documents about the code: each test, metric and file that docs/threat-model.md
//! names exists, and so does each alert that a document names.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// All functions of the tests and of the unit tests in the sources, and the metrics of `src`.
fn functions() -> HashSet<String> {
    let mut found = HashSet::new();
    for folder in ["tests", "src", "crates", "admin/tests", "admin/src"] {
        read_folder(Path::new(folder), &mut found);
    }
    found
}

fn read_folder(folder: &Path, found: &mut HashSet<String>) {
    for entry in std::fs::read_dir(folder).expect("a folder of the project") {
        let path = entry.expect("its entry").path();
        if path.is_dir() {
            read_folder(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs" || e == "py") {
            let text = std::fs::read_to_string(&path).expect("a source file");
            found.extend(text.split("fn ").chain(text.split("def ")).filter_map(|after| {
                let name = after.split(['(', '<']).next()?;
                name.chars()
                    .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
                    .then(|| name.to_owned())
            }));
            if path.starts_with("src") {
                let quoted = text.split('"').filter(|word| word.starts_with("tollgate_"));
                found.extend(quoted.map(str::to_owned));
            }
        }
    }
}

/// The words between backquotes.
fn code(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// Of all words in backquotes that look like a test or a file, those that do not exist.
fn missing<'a>(text: &'a str, functions: &HashSet<String>) -> Vec<&'a str> {
    let names_a_test = |word: &str| {
        word.matches('_').count() >= 3
            && word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
    };
    let names_a_file = |word: &str| {
        ["tests/", "src/", "crates/", "scripts/", "docs/", "conf/"]
            .iter()
            .any(|folder| word.starts_with(folder))
            && !word.contains(['*', ' ', '{'])
    };
    code(text)
        .filter(|word| {
            (names_a_test(word) && !functions.contains(*word))
                || (names_a_file(word) && !Path::new(word).exists())
        })
        .collect()
}

#[test]
fn what_the_threat_model_names_is_there() {
    let text = std::fs::read_to_string("docs/threat-model.md").expect("the document");
    let functions = functions();
    assert_eq!(missing(&text, &functions), Vec::<&str>::new());
    let named = code(&text).filter(|word| functions.contains(*word)).count();
    assert!(named >= 40, "the document names {named} tests");
    assert_eq!(
        missing(
            "`tests/none.rs` `no_test_has_this_name` `tollgate_no_such_metric_total`",
            &functions
        ),
        ["tests/none.rs", "no_test_has_this_name", "tollgate_no_such_metric_total"]
    );
}

/// Adds the Markdown files of a folder, with those of its folders.
fn pages(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder of the project") {
        let path = entry.expect("its entry").path();
        if path.is_dir() {
            pages(&path, found);
        } else if path.extension().is_some_and(|e| e == "md") {
            found.push(path);
        }
    }
}

/// The words of a text that look like names of alerts.
fn alerts(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| {
        word.strip_prefix("Tollgate").is_some_and(|rest| rest.starts_with(char::is_uppercase))
    })
}

#[test]
fn alerts_that_documents_name_are_in_the_rules() {
    let rules = std::fs::read_to_string("conf/prometheus/alerts.yml").expect("the rules");
    let known: HashSet<&str> =
        rules.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")).collect();
    let mut documents = vec!["README.md".into(), "ARCHITECTURE.md".into()];
    pages(Path::new("docs"), &mut documents);
    let mut named = 0;
    for document in documents {
        let text = std::fs::read_to_string(&document).expect("a document");
        for alert in alerts(&text) {
            assert!(known.contains(alert), "{}: {alert}", document.display());
            named += 1;
        }
    }
    assert!(named > 0, "no document names an alert");
    assert_eq!(alerts("*TollgateNone* of Tollgate").collect::<Vec<_>>(), ["TollgateNone"]);
}
