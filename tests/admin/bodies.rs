//! The fields of every operation's body, read from its JSON schema, from which tests are generated:
//! what the document promises is what is tried.

use serde_json::{Map, Value, json};
use tollgate::admin::bodies::Shape;

/// One field of a body.
#[derive(Debug, Clone)]
pub struct Field {
    pub name: String,
    pub kind: Kind,
    pub required: bool,
    pub nullable: bool,
}

/// What a field takes.
#[derive(Debug, Clone)]
pub enum Kind {
    Integer { min: i64, max: i64 },
    Decimal { max: i64, places: u32 },
    Text { min: usize, max: usize, form: Form },
    Boolean,
    Moment,
    Choice(Vec<String>),
    List { item: Box<Kind>, min: usize, max: usize },
    Map { max: usize, text_max: usize },
    Document,
    Object(Vec<Field>),
}

/// The form of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    Any,
    /// Visible ASCII without blanks.
    Header,
    /// As a header, or a JSON object.
    Credential,
    /// Certificates or a key.
    Pem,
    /// Begins with `/`.
    Path,
    TimeOfDay,
    BaseUrl,
    ProxyUrl,
    Webhook,
}

/// The fields of a body, in their order.
pub fn fields(shape: &Shape) -> Vec<Field> {
    of_object(&shape.schema())
}

/// The fields that must be sent.
pub fn required(shape: &Shape) -> Vec<Field> {
    fields(shape).into_iter().filter(|field| field.required).collect()
}

/// The fields of a record: those of an edit that do not name its target.
pub fn data(shape: &Shape) -> Vec<Field> {
    let target = ["userId", "keyId", "providerId", "id"];
    fields(shape).into_iter().filter(|field| !target.contains(&field.name.as_str())).collect()
}

/// Whether it is a partial update: more fields must be sent than those that name the target.
pub fn is_partial(shape: &Shape) -> bool {
    shape.least() > 0
}

fn of_object(schema: &Value) -> Vec<Field> {
    let required = |name: &str| {
        schema["required"].as_array().is_some_and(|names| names.contains(&json!(name)))
    };
    let field = |(name, schema): (&String, &Value)| Field {
        name: name.clone(),
        kind: kind(name, schema),
        required: required(name),
        nullable: types(schema).contains(&"null"),
    };
    schema["properties"].as_object().into_iter().flatten().map(field).collect()
}

fn types(schema: &Value) -> Vec<&str> {
    match &schema["type"] {
        Value::Array(types) => types.iter().filter_map(Value::as_str).collect(),
        single => single.as_str().into_iter().collect(),
    }
}

fn kind(name: &str, schema: &Value) -> Kind {
    let size = |key: &str| schema[key].as_u64().map(|n| usize::try_from(n).unwrap());
    let words = schema["enum"].as_array().into_iter().flatten();
    if schema["enum"].is_array() {
        return Kind::Choice(words.filter_map(|word| Some(word.as_str()?.to_owned())).collect());
    }
    match types(schema)[0] {
        "integer" => Kind::Integer {
            min: schema["minimum"].as_i64().unwrap(),
            max: schema["maximum"].as_i64().unwrap_or(i64::MAX),
        },
        "number" => {
            let pattern = schema["pattern"].as_str().unwrap();
            let places = pattern.rsplit_once("{1,").unwrap().1.split('}').next().unwrap();
            Kind::Decimal {
                max: schema["maximum"].as_i64().unwrap(),
                places: places.parse().unwrap(),
            }
        }
        "boolean" => Kind::Boolean,
        "string" if schema["examples"].is_array() => Kind::Moment,
        "string" => Kind::Text {
            min: size("minLength").unwrap_or(0),
            max: size("maxLength").unwrap(),
            form: form(name, schema),
        },
        "array" => Kind::List {
            item: Box::new(kind(name, &schema["items"])),
            min: size("minItems").unwrap_or(0),
            max: size("maxItems").unwrap(),
        },
        "object" if schema["properties"].is_object() => Kind::Object(of_object(schema)),
        "object" if schema["maxProperties"].is_u64() => {
            let text_max = schema["additionalProperties"]["maxLength"].as_u64().unwrap();
            Kind::Map {
                max: size("maxProperties").unwrap(),
                text_max: usize::try_from(text_max).unwrap(),
            }
        }
        "object" => Kind::Document,
        other => panic!("{name}: {other}"),
    }
}

fn form(name: &str, schema: &Value) -> Form {
    match schema["format"].as_str() {
        _ if schema["pattern"] == "^[!-~]*$" => Form::Header,
        _ if schema["pattern"] == "^/" => Form::Path,
        _ if schema["pattern"].as_str().is_some_and(|one| one.starts_with("-----BEGIN")) => {
            Form::Pem
        }
        _ if name == "key" && schema["pattern"].is_string() => Form::Credential,
        Some("uri") if name == "proxy_url" => Form::ProxyUrl,
        Some("uri") if name == "url" => Form::BaseUrl,
        Some("uri") => Form::Webhook,
        _ if schema["pattern"].is_string() => Form::TimeOfDay,
        _ => Form::Any,
    }
}

/// A certificate of the tests, or its key.
pub fn pem(name: &str) -> String {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/nodes/tls");
    std::fs::read_to_string(format!("{folder}/{name}")).unwrap().trim_end().to_owned()
}

/// A value that the field accepts.
pub fn sample(field: &Field) -> Value {
    of_kind(&field.name, &field.kind)
}

/// A value of the kind.
pub fn of_kind(name: &str, kind: &Kind) -> Value {
    match kind {
        Kind::Integer { min, max } => json!(if (*min..=*max).contains(&1) { 1 } else { *min }),
        Kind::Decimal { max: 1, .. } => json!(0.5),
        Kind::Decimal { .. } => json!(1.25),
        Kind::Text { form: Form::TimeOfDay, .. } => json!("08:30"),
        Kind::Text { form: Form::Path, .. } => json!("/{path}"),
        Kind::Text { form: Form::Pem, .. } => match name {
            "tls_ca" => json!(pem("ca.pem")),
            "tls_client_certificate" => json!(pem("client.pem")),
            _ => json!(pem("client.key")),
        },
        Kind::Text { form: Form::BaseUrl, .. } => json!("https://up.example/v1"),
        Kind::Text { form: Form::ProxyUrl, .. } => json!("http://proxy.example:3128"),
        Kind::Text { form: Form::Webhook, .. } => json!("http://127.0.0.1:9/hook"),
        Kind::Document if name == "document" => {
            json!({ "version": 1, "settings": { "site_title": "x" } })
        }
        Kind::Document => json!({ "input_cost_per_token": 1e-6 }),
        Kind::Text { .. } if name == "jsonContent" => {
            json!("{\"m\": {\"input_cost_per_token\": 1e-6}}")
        }
        Kind::Text { min, .. } => json!("sample-text".repeat(min.div_ceil(11).max(1))),
        Kind::Boolean => json!(true),
        Kind::Moment => json!("2027-01-31"),
        Kind::Choice(words) => json!(words[words.len() - 1]),
        Kind::List { item, .. } => json!([of_kind(name, item)]),
        Kind::Map { .. } => json!({ "a": "b" }),
        Kind::Object(fields) => json!({ &fields[0].name: sample(&fields[0]) }),
    }
}

/// A body with every required field, and one more in a partial update.
pub fn smallest(shape: &Shape) -> Map<String, Value> {
    let mut body: Map<String, Value> =
        required(shape).iter().map(|f| (f.name.clone(), sample(f))).collect();
    if is_partial(shape) {
        let all = fields(shape);
        let more = all.iter().find(|f| !body.contains_key(&f.name)).unwrap();
        body.insert(more.name.clone(), sample(more));
    }
    body
}
