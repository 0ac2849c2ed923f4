//! Checks a body against its table. The answer is the first error, in the table's order; if there
//! are several, its parameters list all of them, so that a form can show each at its field.
//!
//! Unknown fields are errors too: a misspelt limit must not be ignored silently.

use chrono_tz::Tz;
use rust_decimal::Decimal;
use serde_json::{Map, Value as Json};

use super::values::{Value, Values};
use super::{Body, Field, Form, Kind, Need, Preset, moment};
use crate::admin::envelope::{ApiError, Code};
use crate::domain::limits::TimeOfDay;

type Checked<T> = Result<T, ApiError>;

/// Checks `sent` against `body`. Bare dates and times without an offset are read in `tz`.
///
/// # Errors
/// 400 with the code of the first error and the field's name in the parameters.
pub fn check(body: &Body, sent: &Map<String, Json>, tz: Tz) -> Checked<Values> {
    let fields: Vec<Field> = body.fields().collect();
    let values = table(&fields, sent, tz, "")?;
    if body.partial && !body.data.iter().any(|field| values.has(field.name)) {
        return Err(ApiError::new(Code::EMPTY_UPDATE, "nothing to change: send at least one field beside the id"));
    }
    Ok(values)
}

/// Checks `sent` against a table that stands alone: not the body of an operation, but a part of one.
///
/// # Errors
/// Each fault by itself. Names that the table lacks are the caller's business.
pub fn check_fields(fields: &[Field], sent: &Map<String, Json>, tz: Tz) -> Result<Values, Vec<ApiError>> {
    known(fields, sent, tz, "")
}

fn table(fields: &[Field], sent: &Map<String, Json>, tz: Tz, path: &str) -> Checked<Values> {
    if let Some(name) = sent.keys().find(|name| fields.iter().all(|f| f.name != name.as_str())) {
        let name: String = name.chars().take(64).collect();
        let field = format!("{path}{name}");
        return Err(ApiError::field(Code::INVALID_FORMAT, &field, format!("{field}: no such field")));
    }
    known(fields, sent, tz, path).map_err(|faults| {
        ApiError::of_faults(faults).unwrap_or_else(|| ApiError::internal("a check failed without a fault"))
    })
}

/// The fields of the table; others are not looked at.
fn known(fields: &[Field], sent: &Map<String, Json>, tz: Tz, path: &str) -> Result<Values, Vec<ApiError>> {
    let mut values = Values::declare(fields.iter().map(|f| f.name).collect());
    let mut faults = Vec::new();
    for field in fields {
        let at = At { path: format!("{path}{}", field.name), tz };
        match at.needed(field, sent.get(field.name)) {
            Ok(Some(value)) => values.put(field.name, value),
            Ok(None) => {}
            Err(fault) => faults.push(fault),
        }
    }
    if faults.is_empty() { Ok(values) } else { Err(faults) }
}

impl Preset {
    fn value(self) -> Value {
        match self {
            Self::Boolean(b) => Value::Boolean(b),
            Self::Integer(n) => Value::Integer(n),
            Self::Text(t) => Value::Text(t.to_owned()),
        }
    }
}

/// The position of the check in the body.
struct At {
    path: String,
    tz: Tz,
}

impl At {
    fn fault(&self, code: Code, what: &str) -> ApiError {
        ApiError::field(code, &self.path, format!("{}: {what}", self.path))
    }

    fn bound(&self, code: Code, what: &str, bound: impl Into<Json>) -> ApiError {
        let name = match code {
            Code::MIN_VALUE | Code::MIN_LENGTH => "min",
            _ => "max",
        };
        self.fault(code, what).with(name, bound.into())
    }

    fn wrong_type(&self, expected: &str) -> ApiError {
        self.fault(Code::INVALID_TYPE, &format!("must be {expected}"))
    }

    /// The value of a field, sent or not; `None` = it is omitted.
    fn needed(&self, field: &Field, sent: Option<&Json>) -> Checked<Option<Value>> {
        let found = sent.map_or(Ok(None), |json| self.field(field, json))?;
        match (found, field.need) {
            (Some(value), _) => Ok(Some(value)),
            (None, Need::Optional) => Ok(None),
            (None, Need::Required) => Err(self.fault(Code::REQUIRED_FIELD, "is required")),
            (None, Need::Preset(preset)) => Ok(Some(preset.value())),
        }
    }

    /// `None` = as if it had not been sent.
    fn field(&self, field: &Field, json: &Json) -> Checked<Option<Value>> {
        if json.is_null() && field.nullable {
            return Ok(Some(Value::Null));
        }
        if matches!(field.kind, Kind::Moment(_)) && json.as_str().is_some_and(|t| t.trim().is_empty()) {
            return Ok(None);
        }
        self.kind(field.kind, json).map(Some)
    }

    fn kind(&self, kind: Kind, json: &Json) -> Checked<Value> {
        match kind {
            Kind::Integer { min, max } => self.integer(min, max, json),
            Kind::Decimal { max, places } => self.decimal(max, places, json),
            Kind::Text { min, max, form } => self.text(min, max, form, json).map(Value::Text),
            Kind::Boolean => json.as_bool().map(Value::Boolean).ok_or_else(|| self.wrong_type("true or false")),
            Kind::Moment(edge) => {
                let text = json.as_str().ok_or_else(|| self.wrong_type("a date or time as text"))?;
                let parsed = moment::parse(text, edge, self.tz).map(Value::Moment);
                parsed.ok_or_else(|| self.fault(Code::INVALID_FORMAT, "must be YYYY-MM-DD or an ISO 8601 time"))
            }
            Kind::Choice(words) => {
                let text = json.as_str().ok_or_else(|| self.wrong_type("text"))?;
                let known = words.contains(&text).then(|| Value::Text(text.to_owned()));
                let what = || format!("must be one of {}", words.join(", "));
                known.ok_or_else(|| self.fault(Code::INVALID_FORMAT, &what()).with("allowed", (*words).into()))
            }
            Kind::List { item, min, max, excess } => self.list(*item, (min, max, excess), json),
            Kind::Map { max, text_max } => self.map(max, text_max, json),
            Kind::Document { max } => self.document(max, json),
            Kind::Object(fields) => {
                let sent = json.as_object().ok_or_else(|| self.wrong_type("an object"))?;
                let values = table(fields, sent, self.tz, &format!("{}.", self.path))?;
                match fields.iter().any(|f| values.has(f.name)) {
                    true => Ok(Value::Object(values)),
                    false => Err(self.fault(Code::EMPTY_UPDATE, "must name at least one field")),
                }
            }
        }
    }

    fn integer(&self, min: i64, max: i64, json: &Json) -> Checked<Value> {
        let number = self.number(json)?;
        if !number.fract().is_zero() {
            return Err(self.wrong_type("a whole number"));
        }
        self.within(number, min, max)?;
        let whole = i64::try_from(number).map_err(|_| self.wrong_type("a whole number"))?;
        Ok(Value::Integer(whole))
    }

    fn decimal(&self, max: i64, places: u32, json: &Json) -> Checked<Value> {
        let number = self.number(json)?.normalize();
        self.within(number, 0, max)?;
        if number.scale() > places {
            return Err(self.fault(Code::INVALID_FORMAT, &format!("takes at most {places} digits after the point")));
        }
        Ok(Value::Decimal(number))
    }

    fn within(&self, number: Decimal, min: i64, max: i64) -> Checked<()> {
        if number < Decimal::from(min) {
            return Err(self.bound(Code::MIN_VALUE, &format!("must be at least {min}"), min));
        }
        if number > Decimal::from(max) {
            return Err(self.bound(Code::MAX_VALUE, &format!("must be at most {max}"), max));
        }
        Ok(())
    }

    /// A number, or a string that contains one. A number too large for a decimal becomes the
    /// largest of its sign, which no bound allows.
    fn number(&self, json: &Json) -> Checked<Decimal> {
        let text = match json {
            Json::Number(number) => number.to_string(),
            Json::String(text) => text.trim().to_owned(),
            _ => return Err(self.wrong_type("a number")),
        };
        if !text.bytes().all(|b| b.is_ascii_digit() || b"+-.eE".contains(&b)) || text.len() > 64 {
            return Err(self.wrong_type("a number"));
        }
        if let Ok(number) = Decimal::from_str_exact(&text).or_else(|_| Decimal::from_scientific(&text)) {
            return Ok(number);
        }
        match text.parse::<f64>() {
            Ok(number) if number >= 1.0 => Ok(Decimal::MAX),
            Ok(number) if number <= -1.0 => Ok(Decimal::MIN),
            Ok(_) => Err(self.fault(Code::INVALID_FORMAT, "has too many digits after the point")),
            Err(_) => Err(self.wrong_type("a number")),
        }
    }

    fn text(&self, min: usize, max: usize, form: Form, json: &Json) -> Checked<String> {
        let text = json.as_str().ok_or_else(|| self.wrong_type("text"))?.trim();
        let length = text.chars().count();
        if length < min {
            return Err(self.bound(Code::MIN_LENGTH, &at_least(min, "characters"), min));
        }
        if length > max {
            return Err(self.bound(Code::MAX_LENGTH, &format!("must have at most {max} characters"), max));
        }
        if text.contains('\0') {
            return Err(self.fault(Code::INVALID_FORMAT, "must not contain NUL"));
        }
        match form.fault(text) {
            Some(what) => Err(self.fault(Code::INVALID_FORMAT, what)),
            None => Ok(text.to_owned()),
        }
    }

    fn list(&self, item: Kind, (min, max, excess): (usize, usize, Code), json: &Json) -> Checked<Value> {
        let items = json.as_array().ok_or_else(|| self.wrong_type("a list"))?;
        if items.len() < min {
            return Err(self.bound(Code::MIN_LENGTH, &at_least(min, "entries"), min));
        }
        if items.len() > max {
            return Err(self.bound(excess, &format!("must have at most {max} entries"), max));
        }
        let each = items.iter().enumerate().map(|(index, json)| {
            let at = Self { path: format!("{}[{index}]", self.path), tz: self.tz };
            at.kind(item, json)
        });
        each.collect::<Checked<Vec<Value>>>().map(Value::List)
    }

    fn document(&self, max: usize, json: &Json) -> Checked<Value> {
        if !json.is_object() {
            return Err(self.wrong_type("an object"));
        }
        if json.to_string().len() > max {
            return Err(self.bound(Code::MAX_LENGTH, &format!("must have at most {max} bytes"), max));
        }
        Ok(Value::Document(json.clone()))
    }

    fn map(&self, max: usize, text_max: usize, json: &Json) -> Checked<Value> {
        let sent = json.as_object().ok_or_else(|| self.wrong_type("an object of text to text"))?;
        if sent.len() > max {
            return Err(self.bound(Code::MAX_LENGTH, &format!("must have at most {max} entries"), max));
        }
        let each = sent.iter().map(|(name, json)| {
            let name = self.text(1, text_max, Form::Any, &Json::String(name.clone()))?;
            Ok((name, self.text(1, text_max, Form::Any, json)?))
        });
        each.collect::<Checked<Vec<_>>>().map(Value::Map)
    }
}

fn at_least(min: usize, what: &str) -> String {
    match min {
        1 => "must not be empty".to_owned(),
        _ => format!("must have at least {min} {what}"),
    }
}

impl Form {
    /// What is wrong with the text; `None` if it is valid. An empty text is accepted if the length
    /// allows it.
    fn fault(self, text: &str) -> Option<&'static str> {
        match self {
            Self::Any => None,
            Self::TimeOfDay => TimeOfDay::parse(text).is_none().then_some("must be a time of day, HH:MM"),
            Self::Webhook => {
                let shaped = ["http://", "https://"].iter().any(|scheme| text.to_ascii_lowercase().starts_with(scheme));
                (!shaped || text.contains(char::is_whitespace)).then_some("must be an http or https address")
            }
            Self::BaseUrl => url_fault(text, &["http", "https"]),
            Self::ProxyUrl => url_fault(text, &["http"]).or_else(|| {
                let bare = text.parse::<http::Uri>().is_ok_and(|uri| matches!(uri.path(), "" | "/"));
                (!bare).then_some("must be http://host:port without a path")
            }),
        }
    }
}

fn url_fault(text: &str, schemes: &[&str]) -> Option<&'static str> {
    const SHAPE: &str = "must be an http or https address";
    let Ok(uri) = text.parse::<http::Uri>() else { return Some(SHAPE) };
    let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else { return Some(SHAPE) };
    if !schemes.contains(&scheme) || authority.host().is_empty() {
        return Some(if schemes.contains(&"https") { SHAPE } else { "must be an http address" });
    }
    if authority.as_str().contains('@') {
        return Some("must not carry credentials: send them in `key`");
    }
    let port_text = authority.as_str().rsplit_once(':').filter(|(_, port)| !port.ends_with(']'));
    if port_text.is_some_and(|(_, port)| port.parse::<u16>().is_ok_and(|p| p == 0) || port.parse::<u16>().is_err()) {
        return Some("has a port that is none");
    }
    (text.contains('#') || uri.query().is_some()).then_some("must not have a query or a fragment")
}
