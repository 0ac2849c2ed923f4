//! `--prune`: what a file does not name goes, and nothing else. Deleted keys stay deleted.

use serde_json::json;
use tollgate::store::Backend;

use super::{Bed, Way, on_both};

on_both!(only_sections_of_the_file_lose_records, a_deleted_key_stays_deleted_whatever_a_file_says);

const ALL: &str = "\
version: 1
providers:
  - { name: one, url: https://one.example.com, key: a-credential-of-one }
  - { name: two, url: https://two.example.com, key: a-credential-of-two }
users:
  - name: ada
    keys: [{ name: one }, { name: two }]
  - name: eve
prices:
  m: { input_cost_per_token: 0.000001 }
  n: { input_cost_per_token: 0.000001 }
words:
  - { word: one, match_type: contains }
  - { word: two, match_type: exact }
error_rules:
  - { pattern: one, match_type: contains, category: invalid_request }
  - { builtin: prompt_too_long, removed: true }
  - { builtin: context_length_code, pattern: another, match_type: exact, category: prompt_limit }
";

/// A file without most of the records of [`ALL`], and what applying it with `--prune` prints.
const LESS: &str = "
version: 1
providers:
  - { name: two, url: https://two.example.com }
users:
  - name: ada
prices: {}
words: []
error_rules: []
";
const PRUNED: [&str; 8] = [
    "- provider \"one\"\n",
    "- user \"eve\"\n",
    "- price \"m\"\n",
    "- word \"two\"\n",
    "- error rule \"one\"\n",
    "+ error rule \"prompt_too_long\"\n",
    "~ error rule \"context_length_code\"\n",
    "Plan: 1 to add, 1 to change, 8 to remove.",
];

async fn only_sections_of_the_file_lose_records(backend: Backend) {
    let bed = Bed::start(backend).await;
    let seeded =
        bed.gateway.admin("model-prices/getModelPrices", json!({})).await.as_array().unwrap().len();
    bed.apply(Way::Api, ALL, &[]);
    let full = bed.export(Way::Api);

    let said = bed.apply(Way::Api, "version: 1\nusers:\n  - name: ada\n", &[]);
    assert!(said.contains("No changes"), "without --prune nothing goes: {said}");
    assert_eq!(bed.export(Way::Api), full);

    let said = bed.apply(
        Way::Api,
        "version: 1\nusers:\n  - name: ada\n    keys: [{ name: two }]\n",
        &["--prune", "--dry-run"],
    );
    assert!(
        said.contains("- user \"eve\"\n") && said.contains("- key \"eve/default\"\n"),
        "{said}"
    );
    assert!(
        said.contains("- key \"ada/one\"\n")
            && said.contains("Plan: 0 to add, 0 to change, 3 to remove."),
        "{said}"
    );
    assert_eq!(bed.export(Way::Api), full);

    let said = bed.apply(Way::Api, LESS, &["--prune"]);
    for line in PRUNED {
        assert!(said.contains(line), "{line:?} in {said}");
    }
    let said = bed.apply(Way::Database, LESS, &["--prune"]);
    assert!(said.contains("No changes"), "{said}");
    let rules = bed.gateway.client.post(format!("{}/api/ui/error-rules/list", bed.gateway.admin));
    let rules: serde_json::Value = rules
        .bearer_auth(crate::support::gateway::ADMIN_TOKEN)
        .send()
        .await
        .unwrap()
        .json()
        .await
        .unwrap();
    assert!(
        rules["data"].as_array().unwrap().iter().all(|rule| rule["isEdited"] == false),
        "{rules}"
    );
    let prices = bed.gateway.admin("model-prices/getModelPrices", json!({})).await;
    assert_eq!(prices.as_array().unwrap().len(), seeded, "the program's prices stay");
    let users = bed.users().await;
    assert_eq!(
        (users.len(), users[0]["keys"].as_array().unwrap().len()),
        (1, 2),
        "keys of a user without `keys` stay"
    );
    bed.assert_stable(Way::Api);
}

/// No state follows "deleted". A file that is applied again, by a timer for instance, must not make
/// a key usable that was deleted because it had leaked.
async fn a_deleted_key_stays_deleted_whatever_a_file_says(backend: Backend) {
    let bed = Bed::start(backend).await;
    bed.apply(
        Way::Api,
        "version: 1\nusers:\n  - name: ada\n    keys: [{ name: one }, { name: two }]\n",
        &[],
    );
    let full = bed.export(Way::Api);
    let ids = |users: &[serde_json::Value]| {
        users[0]["keys"]
            .as_array()
            .unwrap()
            .iter()
            .map(|key| key["id"].as_i64().unwrap())
            .collect::<Vec<_>>()
    };
    let before = ids(&bed.users().await);
    // A key that a file renames, or gives to another user, stays that key: it was not deleted.
    let said = bed.apply(Way::Api, &full.replace("name: two", "name: deux"), &["--prune"]);
    assert!(said.contains("- key \"ada/two\"") && said.contains("+ key \"ada/deux\""), "{said}");
    assert_eq!(ids(&bed.users().await), before);
    let said = bed.refused(Way::Api, &full, &[]);
    assert!(
        said.contains("is the text of the key \"deux\"") && said.contains("--prune removes"),
        "{said}"
    );
    let moved = full.replace("name: ada", "name: grace");
    bed.apply(Way::Api, &moved, &["--prune"]);
    assert_eq!(ids(&bed.users().await), before);
    bed.apply(Way::Api, &full, &["--prune"]);
    assert_eq!((ids(&bed.users().await), bed.export(Way::Api)), (before.clone(), full.clone()));

    bed.gateway.admin("keys/removeKey", json!({"keyId": before[1]})).await;
    for way in [Way::Api, Way::Database] {
        for more in [&[][..], &["--prune"], &["--dry-run"]] {
            let said = bed.refused(way, &full, more);
            let place = said.contains("users[0].keys[1]: is a key that was deleted (id ");
            assert!(place && said.contains("does not come back"), "{said}");
        }
    }
    // Under another name, and as the text of a key that stays, too.
    let renamed = full.replace("name: two", "name: new");
    assert!(bed.refused(Way::Api, &renamed, &[]).contains("does not come back"));
    assert_eq!(ids(&bed.users().await), before[..1]);
    // Those that went with their user, too.
    bed.apply(Way::Api, "version: 1\nusers: []\n", &["--prune"]);
    assert!(bed.users().await.is_empty());
    let said = bed.refused(Way::Api, &full, &[]);
    assert_eq!(said.matches("does not come back").count(), 2, "each is told: {said}");
}
