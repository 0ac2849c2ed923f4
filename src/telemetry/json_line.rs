//! A line written member by member into a buffer, for lines of every request: one flat JSON object,
//! or `name=value` pairs as text.
//!
//! Names are the program's own and are written unchanged. Values from outside go through
//! [`JsonLine::text`], which uses `serde_json` if they need escaping.

/// How a line is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    Json,
    Text,
}

/// A member's name, with what stands around it in both styles: written at once, since a line has
/// more than thirty members.
#[derive(Debug, Clone, Copy)]
pub(super) struct LineName {
    pub json: &'static str,
    /// Before a text.
    pub quoted: &'static str,
    pub text: &'static str,
}

/// A [`LineName`] of a literal.
macro_rules! name {
    ($name:literal) => {
        $crate::telemetry::json_line::LineName {
            json: concat!(",\"", $name, "\":"),
            quoted: concat!(",\"", $name, "\":\""),
            text: concat!(" ", $name, "="),
        }
    };
}
pub(super) use name;

/// A line that is being written. Finish it with [`JsonLine::end`].
pub(super) struct JsonLine<'o> {
    out: &'o mut Vec<u8>,
    style: Style,
}

impl<'o> JsonLine<'o> {
    /// Starts with the common members of every log line.
    pub(super) fn begin(out: &'o mut Vec<u8>, style: Style, timestamp: &str) -> Self {
        let mut line = Self { out, style };
        if style == Style::Json {
            // The only member without a comma before it.
            line.out.extend_from_slice(b"{\"timestamp\":\"");
            line.out.extend_from_slice(timestamp.as_bytes());
            line.out.push(b'"');
            line.plain(name!("level"), "INFO").plain(name!("target"), "access");
        } else {
            line.out.extend_from_slice(timestamp.as_bytes());
            line.out.extend_from_slice(b"  INFO access:");
        }
        line
    }

    /// The end of the line.
    pub(super) fn end(self) {
        self.out.extend_from_slice(if self.style == Style::Json { b"}\n" } else { b"\n" });
    }

    fn name(&mut self, name: LineName) {
        let name = if self.style == Style::Json { name.json } else { name.text };
        self.out.extend_from_slice(name.as_bytes());
    }

    /// A text without characters that JSON escapes: the program's own word, a time, an id.
    pub(super) fn plain(&mut self, name: LineName, value: &str) -> &mut Self {
        let is_json = self.style == Style::Json;
        let name = if is_json { name.quoted } else { name.text };
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(value.as_bytes());
        if is_json {
            self.out.push(b'"');
        }
        self
    }

    /// Any text.
    pub(super) fn text(&mut self, name: LineName, value: &str) -> &mut Self {
        let is_bare =
            self.style == Style::Json || (!value.is_empty() && !value.contains([' ', '=']));
        if is_bare && !needs_escaping(value) {
            return self.plain(name, value);
        }
        self.name(name);
        // Writing a text into memory cannot fail.
        let _written = serde_json::to_writer(&mut *self.out, value);
        self
    }

    pub(super) fn text_if_any(&mut self, name: LineName, value: Option<&str>) -> &mut Self {
        match value {
            Some(value) => self.text(name, value),
            None => self,
        }
    }

    pub(super) fn number(&mut self, name: LineName, value: u64) -> &mut Self {
        self.name(name);
        self.out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
        self
    }

    pub(super) fn id_if_any(&mut self, name: LineName, value: Option<i64>) -> &mut Self {
        if let Some(value) = value {
            self.name(name);
            self.out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
        }
        self
    }

    pub(super) fn flag(&mut self, name: LineName, value: bool) -> &mut Self {
        self.name(name);
        self.out.extend_from_slice(if value { b"true" } else { b"false" });
        self
    }
}

/// Scans all bytes in any case: without an early exit the compiler generates vector instructions.
fn needs_escaping(text: &str) -> bool {
    text.bytes().fold(false, |found, byte| found | (byte < 0x20) | (byte == b'"') | (byte == b'\\'))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn every_member_reads_as_it_was_written() {
        let mut out = Vec::new();
        let hard: String = (0..0x180).filter_map(char::from_u32).collect();
        let mut line = JsonLine::begin(&mut out, Style::Json, "now");
        line.plain(name!("plain"), "word")
            .text(name!("easy"), "héllo / 你")
            .text(name!("hard"), &hard)
            .text(name!("none"), "");
        line.text_if_any(name!("there"), Some("a\"b\\c\nd")).text_if_any(name!("absent"), None);
        line.number(name!("most"), u64::MAX)
            .id_if_any(name!("least"), Some(i64::MIN))
            .id_if_any(name!("no_id"), None);
        line.flag(name!("yes"), true).flag(name!("no"), false);
        line.end();
        let text = String::from_utf8(out).unwrap();
        assert!(text.ends_with("}\n") && text.matches('\n').count() == 1, "{text}");
        let wanted = json!({"timestamp": "now", "level": "INFO", "target": "access", "plain": "word", "easy": "héllo / 你", "hard": hard, "none": "", "there": "a\"b\\c\nd",
            "most": u64::MAX, "least": i64::MIN, "yes": true, "no": false});
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), wanted);
    }

    #[test]
    fn as_text_a_line_reads_like_the_others_of_a_terminal() {
        let mut out = Vec::new();
        let mut line = JsonLine::begin(&mut out, Style::Text, "2026-01-02T03:04:05.678Z");
        line.number(name!("status"), 200)
            .text(name!("model"), "m-1")
            .text(name!("error"), "it \"broke\"\noff")
            .text(name!("none"), "");
        line.flag(name!("streamed"), true).id_if_any(name!("key_id"), Some(7));
        line.end();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "2026-01-02T03:04:05.678Z  INFO access: status=200 model=m-1 \
             error=\"it \\\"broke\\\"\\noff\" none=\"\" streamed=true key_id=7\n"
        );
    }
}
