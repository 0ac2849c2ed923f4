//! A bad file is refused whole: each fault with its line and column, and nothing changed.

use serde_json::json;
use tollgate::store::Backend;

use super::{Bed, Way, on_both};

on_both!(every_fault_is_named_with_its_place, rules_that_need_stored_records_are_kept);

const BAD: &str = "\
version: 1
setings: {}
settings:
  cleanup_retention_days: 1000
providers:
  - name: good
    url: https://llm.example.com
    key: a-credential-of-some-length
  - name: bad
    url: ftp://llm.example.com
    weight: 500
    key: x
  - name: no credential
    url: https://llm.example.com
  - name: good
    url: https://llm.example.com
    key: y
users:
  - name: ada
    limit_daly_usd: 5
    isEnabled: false
  - limit_daily_usd: 5
  - name: eve
    limit_daily_usd: 5
    keys:
      - { name: one, limit_daily_usd: 6 }
      - { name: one }
      - { name: two, hash: nonsense-nonsense-nonsense-nonsense-nonsense-nonsense-nonsense-no }
      - { name: 7 }
  - name: nth
    nth: 3
prices:
  free: {}
words:
  - { word: \"(\", match_type: regex }
  - { word: Same, match_type: contains }
  - { word: same, match_type: contains }
error_rules:
  - { pattern: x, match_type: contains, category: odd }
  - { builtin: nobody_knows, removed: true }
  - { pattern: prompt is too long, match_type: contains, category: prompt_limit }
";

const EXPECTED: [&str; 21] = [
    "gateway.yaml:2:1: setings: there is no such field; did you mean `settings`?",
    "gateway.yaml:4:3: settings.cleanup_retention_days: must be at most 365",
    "gateway.yaml:10:5: providers[1].url: must be an http or https address",
    "gateway.yaml:11:5: providers[1].weight: must be at most 100",
    "gateway.yaml:13:5: providers[2].key: is required for a new provider",
    "gateway.yaml:15:5: providers[3].name: \"good\" is there already, at providers[0]",
    "gateway.yaml:20:5: users[0].limit_daly_usd: there is no such field; did you mean \
     `limit_daily_usd`?",
    "gateway.yaml:21:5: users[0].isEnabled: there is no such field; did you mean `is_enabled`?",
    "gateway.yaml:22:5: users[1].name: is required",
    "gateway.yaml:26:9: users[2].keys[0]: ",
    "gateway.yaml:27:11: users[2].keys[1].name: is there already, at users[2].keys[0]",
    "gateway.yaml:28:22: users[2].keys[2].hash: must be `sha256:` and 64 hexadecimal digits",
    "gateway.yaml:29:11: users[2].keys[3].name: must be text: put it in quotes",
    "gateway.yaml:31:5: users[3].nth: there is no number 2 of the name \"nth\" before it",
    "gateway.yaml:33:3: prices.free: ",
    "gateway.yaml:35:7: words[0].word: ",
    "gateway.yaml:37:5: words[2]: is there already, at words[1]",
    "gateway.yaml:39:41: error_rules[0].category: must be one of",
    "gateway.yaml:40:7: error_rules[1].builtin: this version has no rule \"nobody_knows\" of its own",
    "gateway.yaml:41:7: error_rules[2].pattern: is the pattern of the rule \"prompt_too_long\" of the program's own already",
    "tollgate: gateway.yaml has 20 faults; nothing was changed",
];

async fn every_fault_is_named_with_its_place(backend: Backend) {
    let bed = Bed::start(backend).await;
    let mut before = None;
    for way in [Way::Api, Way::Database] {
        let said = bed.refused(way, BAD, &[]);
        for expected in EXPECTED {
            assert!(
                said.lines().any(|line| line.starts_with(expected)),
                "{expected:?} is not in\n{said}"
            );
        }
        assert_eq!(said.lines().count(), EXPECTED.len(), "{said}");
        assert_eq!(*before.get_or_insert_with(|| said.clone()), said, "both ways print the same");
    }
    for (text, expected) in [
        ("users: [}\n", "gateway.yaml:1:9: is not valid YAML"),
        ("a: 1\na: 2\n", "gateway.yaml:2:1: a: is there already, in line 1"),
        ("- a\n", "gateway.yaml:1:1: must hold sections"),
        ("users: []\n", "gateway.yaml:1:1: version: is required: write `version: 1`"),
        ("version: 2\n", "gateway.yaml:1:1: version: must be 1"),
        ("version: 1\nusers: {}\n", "gateway.yaml:2:1: users: must be a list"),
        ("version: 1\nusers:\n  - ada\n", "gateway.yaml:3:5: users[0]: must be a mapping"),
        (
            "version: 1\nusers:\n  - name: ${NOT_SET_HERE}\n",
            "gateway.yaml:3:5: name: the environment variable NOT_SET_HERE is not set",
        ),
        (
            "version: 1\nproviders:\n  - { name: a, url: https://b.c, key: file:none }\n",
            "gateway.yaml:3:34: key: the file none cannot be read",
        ),
    ] {
        let said = bed.refused(Way::Api, text, &[]);
        assert!(said.contains(expected), "{expected:?} is not in\n{said}");
    }
    let (code, _, err) = bed.run(Way::Api, &["apply", "-f", "missing.yaml"]);
    assert!(code == Some(1) && err.contains("reading missing.yaml"), "{err}");
    bed.write("token", "not-the-token-of-the-gateway\n");
    bed.write("gateway.yaml", "version: 1\n");
    let (code, _, err) =
        bed.run(Way::Api, &["apply", "-f", "gateway.yaml", "--token-file", "token"]);
    assert!(code == Some(1) && err.contains("the gateway at http"), "{err}");
}

async fn rules_that_need_stored_records_are_kept(backend: Backend) {
    let bed = Bed::start(backend).await;
    bed.apply(
        Way::Api,
        "version: 1\nusers:\n  - name: ada\n    keys: [{ name: one, key: sk-0123456789abcdef }]\n",
        &[],
    );
    let user = |keys: &str| {
        format!(
            "version: 1\nusers:\n  - name: ada\n    keys: [{keys}]\n  - {{ name: eve, keys: [] }}\n"
        )
    };
    let last = "gateway.yaml:4:5: users[0].keys: ";
    let said = bed.refused(Way::Api, &user(""), &["--prune"]);
    assert!(said.contains(last), "{said}");
    let said = bed.refused(Way::Api, &user("{ name: one, is_enabled: false }"), &[]);
    assert!(said.contains(last), "{said}");
    // One key's text is not another's too: not of this file, not of the store.
    let said =
        bed.refused(Way::Api, &user("{ name: one }, { name: two, key: sk-0123456789abcdef }"), &[]);
    assert!(said.contains("users[0].keys[1]: is the text of the key \"one\""), "{said}");
    let twice = "{ name: two, key: sk-another-text-of-a-key }, { name: three, key: sk-another-text-of-a-key }";
    assert!(
        bed.refused(Way::Api, &user(twice), &[])
            .contains("users[0].keys[1]: is there already, at users[0].keys[0]")
    );
    // A user's limit below that of a key that the file does not name.
    let grace = |usd: u8, keys: &str| {
        format!("version: 1\nusers:\n  - {{ name: grace, limit_weekly_usd: {usd}{keys} }}\n")
    };
    bed.apply(Way::Api, &grace(10, ", keys: [{ name: one, limit_weekly_usd: 9 }]"), &[]);
    let said = bed.refused(Way::Api, &grace(5, ""), &[]);
    assert!(said.contains("users[0]: the weekly limit (9) of the key \"one\" is above"), "{said}");
    bed.apply(Way::Api, &grace(5, ", keys: [{ name: one, limit_weekly_usd: 5 }]"), &[]);
    // A webhook to where none may lead.
    let said = bed.refused(
        Way::Api,
        "version: 1\nnotifications:\n  cost_alert_webhook: http://127.0.0.1/x\n",
        &[],
    );
    assert!(
        said.contains("gateway.yaml:3:3: notifications.cost_alert_webhook: leads to 127.0.0.1"),
        "{said}"
    );
    // As a user one may not.
    let key = bed.gateway.user(json!({"name": "someone"})).await.2;
    bed.write("token", &key);
    bed.write("gateway.yaml", "version: 1\n");
    let (code, _, err) =
        bed.run(Way::Api, &["apply", "-f", "gateway.yaml", "--token-file", "token"]);
    assert!(code == Some(1) && err.contains("administrator"), "{err}");
}
