//! A line of JSON, written member by member into a buffer: one flat object, for lines that every request writes.
//!
//! Names are the program's own and are written as they are. Values that came from outside go through [`JsonLine::text`], which
//! leaves to `serde_json` what needs escaping.

/// An object that is being written. Finish it by [`JsonLine::end`].
pub(super) struct JsonLine<'o> {
    out: &'o mut Vec<u8>,
    first: bool,
}

impl<'o> JsonLine<'o> {
    pub(super) fn begin(out: &'o mut Vec<u8>) -> Self {
        out.push(b'{');
        Self { out, first: true }
    }

    /// The end of the object and of the line.
    pub(super) fn end(self) {
        self.out.extend_from_slice(b"}\n");
    }

    fn name(&mut self, name: &'static str) {
        if !std::mem::take(&mut self.first) {
            self.out.push(b',');
        }
        self.out.push(b'"');
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b"\":");
    }

    /// A text that holds nothing that JSON would have escaped: a word of ours, a time, an id.
    pub(super) fn plain(&mut self, name: &'static str, value: &str) -> &mut Self {
        self.name(name);
        self.out.push(b'"');
        self.out.extend_from_slice(value.as_bytes());
        self.out.push(b'"');
        self
    }

    /// Any text.
    pub(super) fn text(&mut self, name: &'static str, value: &str) -> &mut Self {
        if !needs_escaping(value) {
            return self.plain(name, value);
        }
        self.name(name);
        // Writing a text into memory cannot fail.
        let _written = serde_json::to_writer(&mut *self.out, value);
        self
    }

    pub(super) fn text_if_any(&mut self, name: &'static str, value: Option<&str>) -> &mut Self {
        match value {
            Some(value) => self.text(name, value),
            None => self,
        }
    }

    pub(super) fn number(&mut self, name: &'static str, value: u64) -> &mut Self {
        self.name(name);
        self.out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
        self
    }

    pub(super) fn id_if_any(&mut self, name: &'static str, value: Option<i64>) -> &mut Self {
        if let Some(value) = value {
            self.name(name);
            self.out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
        }
        self
    }

    pub(super) fn flag(&mut self, name: &'static str, value: bool) -> &mut Self {
        self.name(name);
        self.out.extend_from_slice(if value { b"true" } else { b"false" });
        self
    }
}

/// Looks at all bytes whatever it finds: without an early end the compiler makes it vector instructions.
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
        let mut line = JsonLine::begin(&mut out);
        line.plain("plain", "word").text("easy", "héllo / 你").text("hard", &hard).text("none", "");
        line.text_if_any("there", Some("a\"b\\c\nd")).text_if_any("absent", None);
        line.number("most", u64::MAX).id_if_any("least", Some(i64::MIN)).id_if_any("no_id", None);
        line.flag("yes", true).flag("no", false);
        line.end();
        let text = String::from_utf8(out).unwrap();
        assert!(text.ends_with("}\n") && text.matches('\n').count() == 1, "{text}");
        let wanted = json!({"plain": "word", "easy": "héllo / 你", "hard": hard, "none": "", "there": "a\"b\\c\nd",
            "most": u64::MAX, "least": i64::MIN, "yes": true, "no": false});
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), wanted);
    }
}
