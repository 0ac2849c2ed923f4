//! A YAML file as JSON, with the line and column of everything in it.
//!
//! Scalars are read by the core schema of YAML 1.2: `yes` and `0x1f` are texts. A name that is
//! written twice in one mapping is a fault, which YAML forbids and most readers let pass.
//!
//! See docs/decisions/39-two-yaml-readers.md.

use std::collections::HashMap;

use saphyr_parser::{Event, Parser, ScalarStyle, Span, StrInput, Tag};
use serde_json::{Map, Number, Value};

/// Deeper than any sound file.
const MAX_DEPTH: usize = 32;
/// Values of one file, aliases written out: an alias of aliases could fill the memory.
const MAX_VALUES: usize = 1_000_000;
/// Bytes of their texts and of the pointers to them, likewise.
const MAX_BYTES: usize = 256 << 20;

/// Line and column, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::commands) struct Mark {
    pub line: usize,
    pub column: usize,
}

/// What is wrong, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::commands) struct YamlFault {
    pub mark: Mark,
    pub message: String,
}

/// A file that was read.
#[derive(Debug)]
pub(in crate::commands) struct Yaml {
    pub value: Value,
    /// By JSON pointer: of an entry in a mapping its name, of one in a list its begin.
    marks: HashMap<String, Mark>,
}

impl Yaml {
    /// Where a value stands; of what is not there, where it would stand.
    pub(super) fn mark(&self, pointer: &str) -> Mark {
        let mut place = pointer;
        loop {
            if let Some(mark) = self.marks.get(place) {
                return *mark;
            }
            match place.rsplit_once('/') {
                Some((parent, _)) => place = parent,
                None => return Mark { line: 1, column: 1 },
            }
        }
    }
}

/// Reads a file.
pub(in crate::commands) fn read(text: &str) -> Result<Yaml, YamlFault> {
    let mut reader = YamlReader {
        parser: Parser::new_from_str(text),
        marks: HashMap::new(),
        anchors: HashMap::new(),
        values: 0,
        bytes: 0,
    };
    let mut value = Value::Null;
    let mut documents = 0;
    loop {
        let (event, span) = reader.next()?;
        match event {
            Event::StreamEnd => break,
            Event::StreamStart | Event::DocumentStart(_) | Event::DocumentEnd | Event::Nothing => {}
            event => {
                documents += 1;
                if documents > 1 {
                    return Err(fault(&span, "is a second document: a file has one"));
                }
                value = reader.value(event, &span, "", 0)?;
            }
        }
    }
    Ok(Yaml { value, marks: reader.marks })
}

fn fault(span: &Span, message: impl Into<String>) -> YamlFault {
    YamlFault { mark: mark(span), message: message.into() }
}

fn mark(span: &Span) -> Mark {
    Mark { line: span.start.line(), column: span.start.col() + 1 }
}

struct YamlReader<'t> {
    parser: Parser<'t, StrInput<'t>>,
    marks: HashMap<String, Mark>,
    anchors: HashMap<usize, Value>,
    values: usize,
    bytes: usize,
}

impl<'t> YamlReader<'t> {
    fn next(&mut self) -> Result<(Event<'t>, Span), YamlFault> {
        match self.parser.next_event() {
            None => Ok((Event::StreamEnd, Span::default())),
            Some(Ok(next)) => Ok(next),
            Some(Err(error)) => {
                let place = error.marker();
                let mark = Mark { line: place.line(), column: place.col() + 1 };
                Err(YamlFault { mark, message: format!("is not valid YAML: {}", error.info()) })
            }
        }
    }

    fn value(
        &mut self,
        event: Event<'t>,
        span: &Span,
        at: &str,
        depth: usize,
    ) -> Result<Value, YamlFault> {
        let text = if let Event::Scalar(text, ..) = &event { text.len() } else { 0 };
        self.count(1, text + at.len(), span)?;
        if depth > MAX_DEPTH {
            return Err(fault(span, "is nested too deeply"));
        }
        self.marks.entry(at.to_owned()).or_insert_with(|| mark(span));
        let (value, anchor) = match event {
            Event::Scalar(text, style, anchor, tag) => {
                (scalar(&text, style, tag.as_deref(), span)?, anchor)
            }
            Event::SequenceStart(anchor, _) => (self.list(at, depth)?, anchor),
            Event::MappingStart(anchor, _) => (self.mapping(at, depth)?, anchor),
            Event::Alias(anchor) => {
                let value = self.anchors.get(&anchor).cloned();
                let value =
                    value.ok_or_else(|| fault(span, "is an alias that refers to itself"))?;
                let (values, bytes) = size(&value);
                self.count(values, bytes, span)?;
                (value, 0)
            }
            _ => return Err(fault(span, "is not a value")),
        };
        if anchor > 0 {
            let (values, bytes) = size(&value);
            self.count(values, bytes, span)?;
            self.anchors.insert(anchor, value.clone());
        }
        Ok(value)
    }

    fn count(&mut self, values: usize, bytes: usize, span: &Span) -> Result<(), YamlFault> {
        self.values += values;
        self.bytes += bytes;
        let beyond = if self.values > MAX_VALUES {
            format!("{MAX_VALUES} values")
        } else if self.bytes > MAX_BYTES {
            format!("{} MiB of text", MAX_BYTES >> 20)
        } else {
            return Ok(());
        };
        Err(fault(span, format!("is beyond the {beyond} that a file may have")))
    }

    fn list(&mut self, at: &str, depth: usize) -> Result<Value, YamlFault> {
        let mut items = Vec::new();
        loop {
            let (event, span) = self.next()?;
            if event == Event::SequenceEnd {
                return Ok(Value::Array(items));
            }
            items.push(self.value(event, &span, &format!("{at}/{}", items.len()), depth + 1)?);
        }
    }

    fn mapping(&mut self, at: &str, depth: usize) -> Result<Value, YamlFault> {
        let mut map = Map::new();
        loop {
            let (event, span) = self.next()?;
            let name = match event {
                Event::MappingEnd => return Ok(Value::Object(map)),
                Event::Scalar(text, ..) => text.into_owned(),
                _ => return Err(fault(&span, "must be a name: a text")),
            };
            let place = format!("{at}/{}", name.replace('~', "~0").replace('/', "~1"));
            if map.contains_key(&name) {
                let first = self.marks.get(&place).map_or(0, |mark| mark.line);
                return Err(fault(&span, format!("{name}: is there already, in line {first}")));
            }
            self.count(0, place.len(), &span)?;
            self.marks.insert(place.clone(), mark(&span));
            let (event, span) = self.next()?;
            let value = self.value(event, &span, &place, depth + 1)?;
            map.insert(name, value);
        }
    }
}

/// The values in a value, itself included, and the bytes of their texts and names.
fn size(value: &Value) -> (usize, usize) {
    let add = |one: (usize, usize), other: (usize, usize)| (one.0 + other.0, one.1 + other.1);
    match value {
        Value::Array(items) => items.iter().map(size).fold((1, 0), add),
        Value::Object(map) => map
            .iter()
            .fold((1, 0), |sum, (name, value)| add(add(sum, (0, name.len())), size(value))),
        Value::String(text) => (1, text.len()),
        _ => (1, 0),
    }
}

fn scalar(
    text: &str,
    style: ScalarStyle,
    tag: Option<&Tag>,
    span: &Span,
) -> Result<Value, YamlFault> {
    match tag {
        Some(tag) if !tag.is_yaml_core_schema() => {
            return Err(fault(span, format!("!{}: is an unknown tag", tag.suffix)));
        }
        Some(tag) if tag.suffix == "str" => return Ok(text.into()),
        _ => {}
    }
    if style != ScalarStyle::Plain {
        return Ok(text.into());
    }
    Ok(match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => Value::Bool(true),
        "false" | "False" | "FALSE" => Value::Bool(false),
        other => number(other).map_or_else(|| other.into(), Value::Number),
    })
}

/// A number as JSON writes it; other forms are texts, and `007` stays a name.
fn number(text: &str) -> Option<Number> {
    text.starts_with(|c: char| c.is_ascii_digit() || c == '-')
        .then(|| serde_json::from_str(text).ok())?
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn scalars_follow_the_core_schema() {
        let text = "a: yes\nb: 0x1f\nc: 007\nd: 3e-6\ne: ~\nf: 'true'\ng: TRUE\nh: -5\ni: !!str \
                    5\nj: |\n  x\n  y\n";
        let expected = json!({"a": "yes", "b": "0x1f", "c": "007", "d": 3e-6, "e": null, "f": "true", "g": true, "h": -5,
            "i": "5", "j": "x\ny\n"});
        assert_eq!(read(text).unwrap().value, expected);
        assert_eq!(read("").unwrap().value, Value::Null);
    }

    #[test]
    fn everything_has_its_line_and_column() {
        let yaml =
            read("# first\nusers:\n  - name: ada\n    keys:\n      - name: one\n      - hash: x\n")
                .unwrap();
        let at = |pointer: &str| {
            let mark = yaml.mark(pointer);
            (mark.line, mark.column)
        };
        assert_eq!(at("/users/0/name"), (3, 5));
        assert_eq!(at("/users/0/keys/1/hash"), (6, 9));
        assert_eq!(at("/users/0/keys/1/name"), (6, 9), "it would stand there");
        assert_eq!(at("/users/0/rpm"), (3, 5));
        assert_eq!(at("/version"), (2, 1));
    }

    #[test]
    fn a_mistake_is_reported_with_its_place() {
        for (text, line, column, wanted) in [
            ("a: 1\na: 2\n", 2, 1, "a: is there already, in line 1"),
            ("a: [1, 2\nb: 3\n", 2, 0, "is not valid YAML"),
            ("a: 1\n---\nb: 2\n", 3, 1, "second document"),
            ("a: !secret x\n", 1, 4, "unknown tag"),
            ("a: *none\n", 1, 4, "is not valid YAML"),
            ("? [a]\n: b\n", 1, 3, "must be a name"),
        ] {
            let fault = read(text).unwrap_err();
            assert!(fault.message.contains(wanted), "{text}: {fault:?}");
            assert!(
                fault.mark.line == line && (column == 0 || fault.mark.column == column),
                "{text}: {fault:?}"
            );
        }
    }

    #[test]
    fn aliases_are_written_out_and_bounded() {
        let yaml = read("a: &limits { daily: 5 }\nb: *limits\n").unwrap();
        assert_eq!(yaml.value, json!({"a": {"daily": 5}, "b": {"daily": 5}}));
        let mut bomb = String::from("a0: &a0 [1,1,1,1,1,1,1,1,1,1]\n");
        for n in 1..9 {
            let alias = format!("*a{}", n - 1);
            bomb.push_str(&format!("a{n}: &a{n} [{}]\n", [alias.as_str(); 10].join(",")));
        }
        assert!(read(&bomb).unwrap_err().message.contains("1000000 values"));
        assert!(read(&"[".repeat(100)).is_err());
        // A large text many times, and a long name before many values.
        let text = "x".repeat(1 << 20);
        let texts = format!("a: &a {text}\nb: [{}]\n", ["*a"; 300].join(","));
        let names = format!("? {text}\n: [{}]\n", ["1"; 300].join(","));
        let anchors = format!(
            "a: {}",
            (0..30).fold(format!("[{}]", ["1"; 50_000].join(",")), |inner, n| {
                format!("&a{n} [{inner}]")
            })
        );
        for (bomb, what) in [(texts, "256 MiB"), (names, "256 MiB"), (anchors, "1000000 values")] {
            let fault = read(&bomb).unwrap_err();
            assert!(fault.message.contains(what), "{fault:?}");
        }
    }
}
