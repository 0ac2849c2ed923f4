//! The table of rules in the documentation matches the code's, and every rule is used by code.

use std::fs;
use std::path::{Path, PathBuf};

use tollgate::formats::conversation::rules;

use super::golden::updates;

const BEGIN: &str = "<!-- rules: written by the tests with UPDATE=1 -->\n";
const END: &str = "<!-- end of rules -->";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_path_buf()
}

#[test]
fn the_documentation_shows_the_codes_rules() {
    let path = root().join("docs/conversion.md");
    let text = fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once(BEGIN).expect("the table's begin mark");
    let (_table, after) = rest.split_once(END).expect("the table's end mark");
    let expected = format!("{before}{BEGIN}{}{END}{after}", rules::markdown());
    if updates() {
        fs::write(&path, expected).unwrap();
    } else {
        assert!(
            text == expected,
            "docs/conversion.md is not up to date: run the tests with UPDATE=1"
        );
    }
}

#[test]
fn every_rule_is_used_by_code() {
    let mut code = String::new();
    let mut dirs = vec![root().join("crates/formats/src/formats")];
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                dirs.push(path);
            } else if !path.ends_with("rules.rs") {
                code.push_str(&fs::read_to_string(path).unwrap());
            }
        }
    }
    for row in rules::TABLE {
        let name = format!("Rule::{:?}", row.rule);
        assert!(code.contains(&name), "{name} stands in the table, but nothing follows it");
    }
}
