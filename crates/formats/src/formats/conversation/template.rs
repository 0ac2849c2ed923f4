//! An event that is written again and again with other values, as the deltas of a block: its
//! constant bytes are put together once.

use super::json;

/// The event's bytes, cut where the values are.
#[derive(Debug)]
pub struct Template {
    parts: Vec<Vec<u8>>,
}

/// Where the values of a template are: `Object::gap` adds them.
#[derive(Debug, Default)]
pub struct Gaps(Vec<usize>);

/// A value in a gap.
#[derive(Debug, Clone, Copy)]
pub enum GapValue<'v> {
    /// A string.
    Text(&'v str),
    /// An unsigned number.
    Uint(u64),
}

impl Gaps {
    /// A value belongs at this place.
    pub fn add(&mut self, at: usize) {
        self.0.push(at);
    }
}

impl Template {
    /// `write` writes the event without its values, and adds their places.
    #[must_use]
    pub fn new(write: impl FnOnce(&mut Vec<u8>, &mut Gaps)) -> Self {
        let (mut bytes, mut gaps) = (Vec::new(), Gaps::default());
        write(&mut bytes, &mut gaps);
        let mut parts = Vec::with_capacity(gaps.0.len() + 1);
        for at in gaps.0.iter().rev() {
            parts.push(bytes.split_off(*at));
        }
        parts.push(bytes);
        parts.reverse();
        Self { parts }
    }

    /// Writes the event, with a value for each gap.
    pub fn write(&self, out: &mut Vec<u8>, values: &[GapValue<'_>]) {
        debug_assert_eq!(values.len() + 1, self.parts.len());
        for (number, part) in self.parts.iter().enumerate() {
            out.extend_from_slice(part);
            match values.get(number) {
                Some(GapValue::Text(text)) => json::string(out, text),
                Some(GapValue::Uint(number)) => json::uint(out, *number),
                None => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_at_their_places() {
        let template = Template::new(|out, gaps| {
            json::object(out, |o| {
                o.gap("n", gaps);
                o.word("a", "b");
                o.gap("text", gaps);
            });
            out.push(b'\n');
        });
        let mut out = Vec::new();
        template.write(&mut out, &[GapValue::Uint(7), GapValue::Text("x\"")]);
        template.write(&mut out, &[GapValue::Uint(8), GapValue::Text("")]);
        let lines =
            "{\"n\":7,\"a\":\"b\",\"text\":\"x\\\"\"}\n{\"n\":8,\"a\":\"b\",\"text\":\"\"}\n";
        assert_eq!(String::from_utf8(out).unwrap(), lines);
    }
}
