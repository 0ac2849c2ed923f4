//! Claims of the documents about the code: each test and file that docs/threat-model.md names
//! exists.

use std::collections::HashSet;
use std::path::Path;

/// All functions of the tests and of the unit tests in `src`.
fn functions() -> HashSet<String> {
    let mut found = HashSet::new();
    for folder in ["tests", "src", "admin/tests", "admin/src"] {
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
        ["tests/", "src/", "scripts/", "docs/", "conf/"]
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
        missing("`tests/none.rs` `no_test_has_this_name`", &functions),
        ["tests/none.rs", "no_test_has_this_name"]
    );
}
