//! W3C Trace Context: the ids of a trace and of its spans, and the text of a `traceparent` header.

use std::fmt;

/// Identifies one trace: 16 bytes, never all zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceId(pub u128);

/// Identifies one span: 8 bytes, never all zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SpanId(pub u64);

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Display for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// A span within its trace, and whether it is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpanContext {
    /// The trace.
    pub trace_id: TraceId,
    /// The span.
    pub span_id: SpanId,
    /// The `sampled` flag: the span is recorded.
    pub sampled: bool,
}

/// Bytes of a `traceparent` of version 00.
const LENGTH: usize = 55;

impl SpanContext {
    /// Reads a `traceparent` header. Later versions may append further fields. `None` if it is
    /// malformed: a new trace then starts, as the standard says.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let (head, rest) = text.split_at_checked(LENGTH)?;
        let dashes = [2, 35, 52].iter().all(|place| head[*place] == b'-');
        let version = hex(&head[..2])?;
        let ends = if version == 0 { rest.is_empty() } else { rest.is_empty() || rest[0] == b'-' };
        if !dashes || version == 0xff || !ends {
            return None;
        }
        let (trace, span, flags) = (hex(&head[3..35])?, hex(&head[36..52])?, hex(&head[53..])?);
        let span = u64::try_from(span).ok()?;
        let sampled = flags & 1 == 1;
        (trace != 0 && span != 0).then_some(Self {
            trace_id: TraceId(trace),
            span_id: SpanId(span),
            sampled,
        })
    }
}

/// The text of a `traceparent` header, version 00.
impl fmt::Display for SpanContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{}-{}-{:02x}", self.trace_id, self.span_id, u8::from(self.sampled))
    }
}

/// Lower-case hexadecimal digits, 32 at most.
fn hex(digits: &[u8]) -> Option<u128> {
    digits.iter().try_fold(0, |number, digit| {
        let value = match digit {
            b'0'..=b'9' => digit - b'0',
            b'a'..=b'f' => digit - b'a' + 10,
            _ => return None,
        };
        Some(number << 4 | u128::from(value))
    })
}

#[cfg(test)]
mod tests {
    use super::SpanContext;

    const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";

    #[test]
    fn a_traceparent_is_read_as_the_standard_says() {
        let text = format!("00-{TRACE}-b7ad6b7169203331-01");
        let context = SpanContext::parse(text.as_bytes()).unwrap();
        assert!(context.sampled && context.to_string() == text);
        assert_eq!(
            (context.trace_id.to_string(), context.span_id.0),
            (TRACE.to_owned(), 0xb7ad_6b71_6920_3331)
        );
        for (text, sampled) in [
            (format!("00-{TRACE}-b7ad6b7169203331-00"), false),
            (format!("00-{TRACE}-b7ad6b7169203331-03"), true),
            (format!("01-{TRACE}-b7ad6b7169203331-01"), true),
            (format!("cc-{TRACE}-b7ad6b7169203331-01-later"), true),
        ] {
            assert_eq!(
                SpanContext::parse(text.as_bytes()).map(|context| context.sampled),
                Some(sampled),
                "{text}"
            );
        }
        for text in [
            String::new(),
            format!("00-{TRACE}-b7ad6b7169203331"),
            format!("00-{TRACE}-b7ad6b7169203331-01-later"),
            format!("cc-{TRACE}-b7ad6b7169203331-01.later"),
            format!("ff-{TRACE}-b7ad6b7169203331-01"),
            format!("00-{}-b7ad6b7169203331-01", TRACE.to_uppercase()),
            format!("00-{}-b7ad6b7169203331-01", "0".repeat(32)),
            format!("00-{TRACE}-0000000000000000-01"),
            format!("00_{TRACE}-b7ad6b7169203331-01"),
            format!("00-{TRACE}-b7ad6b716920333g-01"),
        ] {
            assert_eq!(SpanContext::parse(text.as_bytes()), None, "{text}");
        }
    }
}
