//! Every bound of every field, on both sides, generated from the schemas of the bodies.

use serde_json::{Map, Value, json};
use tollgate::admin::operation::Verb;
use tollgate::admin::table::operations;

use super::bodies::{self, Field, Form, Kind, required, smallest};
use super::gate::{Gate, Reply, TOKEN};

/// A value and, if it must be refused, the code.
type Case = (Value, Option<&'static str>);

fn cases(field: &Field) -> Vec<Case> {
    let mut cases = of_kind(&field.name, &field.kind);
    let null = match field.nullable {
        true => None,
        false => Some("INVALID_TYPE"),
    };
    cases.push((Value::Null, null));
    cases
}

fn of_kind(name: &str, kind: &Kind) -> Vec<Case> {
    match kind {
        Kind::Integer { min, max } => integer(*min, *max),
        Kind::Decimal { max, places } => decimal(*max, *places as usize),
        Kind::Text { min, max, form } => text(*min, *max, *form),
        Kind::Boolean => {
            vec![
                (json!(false), None),
                (json!("true"), Some("INVALID_TYPE")),
                (json!(1), Some("INVALID_TYPE")),
            ]
        }
        Kind::Moment => vec![
            (json!("2027-02-28T10:00:00+08:00"), None),
            (json!("2027-02-29"), Some("INVALID_FORMAT")),
            (json!("soon"), Some("INVALID_FORMAT")),
            (json!(1_800_000_000), Some("INVALID_TYPE")),
        ],
        Kind::Choice(words) => words
            .iter()
            .map(|word| (json!(word), None))
            .chain([
                (json!("no such word"), Some("INVALID_FORMAT")),
                (json!(3), Some("INVALID_TYPE")),
            ])
            .collect(),
        Kind::List { item, min, max } => list(name, item, *min, *max),
        Kind::Map { max, text_max } => map(*max, *text_max),
        Kind::Document => document(if name == "document" { 16 << 20 } else { 64 << 10 }),
        Kind::Object(_) => vec![
            (json!({}), Some("EMPTY_UPDATE")),
            (json!([]), Some("INVALID_TYPE")),
            (json!({ "no such field": 1 }), Some("INVALID_FORMAT")),
        ],
    }
}

fn document(max: usize) -> Vec<Case> {
    vec![
        (json!({ "input_cost_per_token": 1e-6, "more": { "deep": [1, null] } }), None),
        (json!({ "input_cost_per_token": 1e-6, "more": "x".repeat(max) }), Some("MAX_LENGTH")),
        (json!([]), Some("INVALID_TYPE")),
        (json!("{}"), Some("INVALID_TYPE")),
    ]
}

fn integer(min: i64, max: i64) -> Vec<Case> {
    let mut cases = vec![
        (json!(min), None),
        (json!(min.to_string()), None),
        (json!(min - 1), Some("MIN_VALUE")),
        (json!(-1e300), Some("MIN_VALUE")),
        (json!(1.5), Some("INVALID_TYPE")),
        (json!("abc"), Some("INVALID_TYPE")),
        (json!(true), Some("INVALID_TYPE")),
    ];
    if max < i64::MAX {
        cases.extend([
            (json!(max), None),
            (json!(max + 1), Some("MAX_VALUE")),
            (json!(1e300), Some("MAX_VALUE")),
        ]);
    }
    cases
}

fn decimal(max: i64, places: usize) -> Vec<Case> {
    let finest = format!("0.{}1", "0".repeat(places - 1));
    vec![
        (json!(0), None),
        (json!(max), None),
        (json!(max.to_string()), None),
        (json!(format!(" {finest} ")), None),
        (json!(format!("{finest}0")), None),
        (json!(-0.01), Some("MIN_VALUE")),
        (json!(max + 1), Some("MAX_VALUE")),
        (json!(format!("{max}.0001")), Some("MAX_VALUE")),
        (json!(1e300), Some("MAX_VALUE")),
        (json!(format!("{finest}1")), Some("INVALID_FORMAT")),
        (json!(1e-300), Some("INVALID_FORMAT")),
        (json!("1,5"), Some("INVALID_TYPE")),
        (json!(""), Some("INVALID_TYPE")),
        (json!("NaN"), Some("INVALID_TYPE")),
        (json!([]), Some("INVALID_TYPE")),
    ]
}

fn map(max: usize, text_max: usize) -> Vec<Case> {
    let full: Map<String, Value> = (0..max).map(|n| (n.to_string(), json!("x"))).collect();
    let mut over = full.clone();
    over.insert("one more".to_owned(), json!("x"));
    vec![
        (full.into(), None),
        (over.into(), Some("MAX_LENGTH")),
        (json!({ "a": "" }), Some("MIN_LENGTH")),
        (json!({ "": "a" }), Some("MIN_LENGTH")),
        (json!({ "a": "x".repeat(text_max + 1) }), Some("MAX_LENGTH")),
        (json!({ "a": 1 }), Some("INVALID_TYPE")),
        (json!([]), Some("INVALID_TYPE")),
    ]
}

fn text(min: usize, max: usize, form: Form) -> Vec<Case> {
    let mut cases = vec![(json!(5), Some("INVALID_TYPE"))];
    if max < 10_000 {
        cases.push((json!("x".repeat(max + 1)), Some("MAX_LENGTH")));
    }
    if min > 0 {
        cases.extend([
            (json!(""), Some("MIN_LENGTH")),
            (json!(" ".repeat(max.min(10))), Some("MIN_LENGTH")),
        ]);
    }
    match form {
        Form::Any if max < 10_000 => cases.extend([
            (json!("é".repeat(max)), None),
            (json!("x".repeat(min.max(1))), None),
            (json!(format!("a\u{0}{}", "b".repeat(min))), Some("INVALID_FORMAT")),
        ]),
        Form::Any => {}
        Form::Header => cases.extend([
            (json!("~".repeat(max)), None),
            (json!(" !x\n"), None),
            (json!("é".repeat(min.max(1))), Some("INVALID_FORMAT")),
            (json!("a b"), Some("INVALID_FORMAT")),
        ]),
        Form::Credential => cases.extend([
            (json!("~".repeat(4096)), None),
            (json!("~".repeat(4097)), Some("MAX_LENGTH")),
            (json!(" !x\n"), None),
            (json!("é"), Some("INVALID_FORMAT")),
            (json!("a b"), Some("INVALID_FORMAT")),
            (json!("{ }x"), Some("INVALID_FORMAT")),
        ]),
        Form::Path => cases.extend([
            (json!("/{model}/a/{path}"), None),
            (json!("a"), Some("INVALID_FORMAT")),
            (json!("/{x}"), Some("INVALID_FORMAT")),
        ]),
        Form::Pem => cases.push((json!("MIIB"), Some("INVALID_FORMAT"))),
        Form::TimeOfDay => cases.extend([
            (json!("23:59"), None),
            (json!("9:05"), None),
            (json!("24:00"), Some("INVALID_FORMAT")),
            (json!("12:60"), Some("INVALID_FORMAT")),
        ]),
        Form::Webhook => cases.extend(webhook()),
        Form::BaseUrl => {
            cases.extend(url());
            cases.push((json!("https://[::1]:8080/a/v1/"), None));
            cases.push((json!("http://user:pass@up.example"), Some("INVALID_FORMAT")));
        }
        Form::ProxyUrl => {
            cases.extend(url());
            cases.extend(proxy());
        }
    }
    cases
}

fn proxy() -> [Case; 7] {
    [
        (json!("https://proxy.example:3128"), None),
        (json!("http://user:pass@proxy.example"), None),
        (json!("socks5://user:pa@ss@[::1]:1080/"), None),
        (json!("socks5h://proxy.example"), None),
        (json!("socks4://proxy.example"), Some("INVALID_FORMAT")),
        (json!("http://:pass@proxy.example"), Some("INVALID_FORMAT")),
        (json!("http://proxy.example/path"), Some("INVALID_FORMAT")),
    ]
}

fn webhook() -> Vec<Case> {
    let refused = [
        "ftp://hooks.example",
        "hooks.example/a",
        "http://hooks example",
        "http://192.168.0.1/",
        "http://me:pw@1.1.1.1",
    ];
    let mut cases = vec![(json!("http://127.0.0.1:9/hook?token=1"), None)];
    cases.extend(refused.map(|text| (json!(text), Some("INVALID_FORMAT"))));
    cases
}

/// What base URLs and proxy URLs have in common.
fn url() -> Vec<Case> {
    let refused = [
        "ftp://up.example",
        "up.example",
        "http://",
        "http://up.example:99999",
        "http://up.example:",
        "http://up.example?x=1",
        "http://up.example#x",
        "http://up example",
        "http://[]",
        "http://[::g]:80",
        "http://up,down",
    ];
    let mut cases = vec![(json!("http://10.0.0.1:3128"), None)];
    cases.extend(refused.map(|text| (json!(text), Some("INVALID_FORMAT"))));
    cases
}

fn list(name: &str, item: &Kind, min: usize, max: usize) -> Vec<Case> {
    let one = bodies::of_kind("", item);
    let excess = if name == "keyIds" { "BATCH_SIZE_EXCEEDED" } else { "MAX_LENGTH" };
    let mut cases = vec![
        (json!(vec![one.clone(); max]), None),
        (json!(vec![one.clone(); max + 1]), Some(excess)),
        (json!("a,b"), Some("INVALID_TYPE")),
        (json!([{}]), Some("INVALID_TYPE")),
    ];
    cases.push((json!([]), if min > 0 { Some("MIN_LENGTH") } else { None }));
    cases.push((json!([one, null]), Some("INVALID_TYPE")));
    cases
}

/// An operation that is refused later, because of a missing record, has passed the check of its
/// body.
fn is_about(reply: &Reply, path: &str) -> bool {
    reply.body["errorParams"]["field"].as_str().is_some_and(|field| field.starts_with(path))
}

#[tokio::test]
async fn each_field_takes_what_is_within_its_bounds_and_refuses_what_is_not() {
    let gate = Gate::start().await;
    let mut tried = 0;
    for operation in operations().iter().filter(|o| o.verb == Verb::Post && o.path != "auth/login")
    {
        let fields = bodies::fields(operation.body);
        let mut targets: Vec<(String, Field)> =
            fields.iter().map(|f| (f.name.clone(), f.clone())).collect();
        for field in &fields {
            if let Kind::Object(inner) = &field.kind {
                targets.extend(
                    inner.iter().map(|f| (format!("{}.{}", field.name, f.name), f.clone())),
                );
            }
        }
        for (path, field) in targets {
            for (value, expected) in cases(&field) {
                let mut body = smallest(operation.body);
                match path.split_once('.') {
                    None => body.insert(path.clone(), value.clone()),
                    Some((outer, inner)) => body.insert(outer.to_owned(), json!({ inner: value })),
                };
                // The only key cannot be disabled.
                if path == "key_is_enabled" {
                    let further =
                        json!([{ "name": "b", "key": "a-further-credential-9876543210" }]);
                    body.insert("credentials".to_owned(), further);
                }
                let request = gate.post(operation.path).bearer_auth(TOKEN).json(&body);
                let reply = Reply::of(request).await;
                let shown: String = value.to_string().chars().take(60).collect();
                let context = format!("{} {path} = {shown}: {:?}", operation.path, reply.body);
                match expected {
                    Some(code) => {
                        assert_eq!(reply.failure(), (400, code), "{context}");
                        assert!(is_about(&reply, &path), "{context}");
                        assert!(reply.body["errorParams"]["reason"].is_string(), "{context}");
                    }
                    // Only the gateway creates valid cursors.
                    None if path == "cursor" => {}
                    // A new one needs its text, and a name of its own (`proxy/several_keys.rs`).
                    None if path == "credentials" => {}
                    None => assert!(!is_about(&reply, &path) && reply.status != 500, "{context}"),
                }
                tried += 1;
            }
        }
    }
    assert!(tried > 800, "only {tried} cases were made");
}

#[tokio::test]
async fn what_is_required_is_missed_and_what_is_unknown_refused() {
    let gate = Gate::start().await;
    for operation in operations().iter().filter(|o| o.verb == Verb::Post && o.path != "auth/login")
    {
        let send = |body: Map<String, Value>| {
            Reply::of(gate.post(operation.path).bearer_auth(TOKEN).json(&body))
        };
        for field in required(operation.body) {
            let mut body = smallest(operation.body);
            body.remove(&field.name);
            let reply = send(body).await;
            assert_eq!(
                reply.failure(),
                (400, "REQUIRED_FIELD"),
                "{} without {}",
                operation.path,
                field.name
            );
            assert!(is_about(&reply, &field.name), "{:?}", reply.body);
        }
        let mut body = smallest(operation.body);
        body.insert("isEnabbled".to_owned(), json!(true));
        let reply = send(body).await;
        assert_eq!(reply.failure(), (400, "INVALID_FORMAT"), "{}", operation.path);
        assert!(is_about(&reply, "isEnabbled"));
        if bodies::is_partial(operation.body) {
            let target = required(operation.body)
                .iter()
                .map(|f| (f.name.clone(), bodies::sample(f)))
                .collect();
            assert_eq!(send(target).await.failure(), (400, "EMPTY_UPDATE"), "{}", operation.path);
        }
    }
}

#[tokio::test]
async fn every_fault_of_a_body_is_named_not_the_first_alone() {
    let gate = Gate::start().await;
    let body = json!({ "name": "", "url": "nowhere", "weight": 0, "limit_daily_usd": "much" });
    let reply = gate.admin("providers/addProvider", body).await;
    // The first, as before.
    assert_eq!(reply.failure(), (400, "MIN_LENGTH"));
    assert_eq!(reply.body["error"], "name: must not be empty");
    let params = &reply.body["errorParams"];
    assert_eq!(params["field"], "name");
    let named = |fault: &Value| json!([fault["field"], fault["errorCode"]]);
    let faults: Vec<Value> = params["faults"].as_array().unwrap().iter().map(named).collect();
    for expected in [
        json!(["name", "MIN_LENGTH"]),
        json!(["url", "INVALID_FORMAT"]),
        json!(["key", "REQUIRED_FIELD"]),
        json!(["weight", "MIN_VALUE"]),
        json!(["limit_daily_usd", "INVALID_TYPE"]),
    ] {
        assert!(faults.contains(&expected), "{expected} is not in {faults:?}");
    }
    assert_eq!(faults.len(), 5);
    assert_eq!(params["faults"][0]["error"], "name: must not be empty");

    // A single error is reported as one.
    let reply = gate.admin("users/addUser", json!({ "name": "" })).await;
    assert!(reply.body["errorParams"].get("faults").is_none(), "{:?}", reply.body);

    // Errors of a nested table are in the same list.
    let body = json!({ "keyIds": [], "updates": { "limitDailyUsd": "x", "isEnabled": 3 } });
    let reply = gate.admin("keys/batchUpdateKeys", body).await;
    let faults: Vec<Value> =
        reply.body["errorParams"]["faults"].as_array().unwrap().iter().map(named).collect();
    assert!(faults.contains(&json!(["updates.limitDailyUsd", "INVALID_TYPE"])), "{faults:?}");
    assert!(faults.contains(&json!(["updates.isEnabled", "INVALID_TYPE"])), "{faults:?}");
}
