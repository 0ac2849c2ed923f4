//! What the repository ships: the schema, and the page's example.

use serde_json::Value;
use tollgate::admin::declarative::schema;
use tollgate::store::Backend;

use super::{Bed, Way, on_both};
use crate::admin::schema::faults;

const SCHEMA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/conf/gateway.schema.json");

on_both!(the_example_is_applied_and_fits_the_schema);

#[test]
fn the_shipped_schema_is_the_one_of_the_code() {
    let text = serde_json::to_string_pretty(&schema()).unwrap() + "\n";
    #[expect(clippy::disallowed_methods, reason = "a switch of the tests, not of the gateway")]
    let update = std::env::var_os("UPDATE").is_some();
    if update {
        std::fs::write(SCHEMA, &text).unwrap();
    }
    let shipped = std::fs::read_to_string(SCHEMA).unwrap_or_default();
    assert!(shipped == text, "the schema changed: run the tests with UPDATE=1 to record it");
}

fn example() -> String {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/declarative.md"))
        .unwrap();
    let begin = page.find("```yaml\n").unwrap() + 8;
    page[begin..][..page[begin..].find("```").unwrap()].to_owned()
}

/// Everything that is wrong with a YAML text by the schema.
fn wrong(text: &str) -> Vec<String> {
    let mut schema = schema();
    schema.as_object_mut().unwrap().remove("$schema");
    let value: Value = serde_yaml_ng::from_str(text).unwrap();
    faults(&schema, &schema, &value)
}

async fn the_example_is_applied_and_fits_the_schema(backend: Backend) {
    let mut bed = Bed::start(backend).await;
    for (name, value) in [
        ("ALERT_WEBHOOK", "https://hooks.example.com/services/T000/secret"),
        ("ANTHROPIC_API_KEY", "the-credential-of-anthropic"),
        ("ADA_OLD_KEY", "sk-of-the-old-gateway-0123456789"),
    ] {
        bed.gateway.set(name, value);
    }
    bed.write("webhook-secret", "the-signing-secret-of-webhooks\n");
    bed.write("team-key", "the-credential-of-the-team\n");
    assert_eq!(wrong(&example()), Vec::<String>::new());
    let said = bed.apply(Way::Api, &example(), &[]);
    assert!(
        said.contains("Plan: 12 to add, 3 to change, 1 to remove.") && said.contains("Applied."),
        "{said}"
    );
    let made = said.split("New keys, shown this once:\n").nth(1).unwrap();
    let names: Vec<&str> =
        made.lines().map(|line| line.trim().rsplit_once("  ").unwrap().0).collect();
    assert_eq!(names, ["ada/default", "ada/laptop", "grace/default"]);
    assert!(bed.apply(Way::Database, &example(), &[]).contains("No changes"));
    bed.assert_stable(Way::Api);
    assert_eq!(wrong(&bed.export(Way::Api)), Vec::<String>::new());
    assert!(!wrong("version: 1\nusers:\n  - { name: a, rmp: 5 }\n").is_empty());
    assert_eq!(
        bed.done(Way::Database, &["export", "--schema"]),
        std::fs::read_to_string(SCHEMA).unwrap()
    );
}
