//! Checks fields of a raw HTTP/1 head, because a parsed head may lack one of two contradictory
//! fields.

/// Whether a raw HTTP/1 head has a field of this name. It matches everything that a parser accepts
/// as such a field, and more: a name with spaces around it, or one in the lines after the head.
pub fn has_field(raw: &[u8], name: &str) -> bool {
    raw.split(|byte| *byte == b'\n').any(|line| {
        let end = line.iter().position(|byte| *byte == b':').unwrap_or(0);
        line[..end].trim_ascii().eq_ignore_ascii_case(name.as_bytes())
    })
}

#[cfg(test)]
mod tests {
    use super::has_field;

    #[test]
    fn a_field_is_found_however_it_is_written() {
        for (raw, found) in [
            ("POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\n", true),
            ("POST / HTTP/1.1\nhost: x\ncontent-length:3\n\n", true),
            ("POST / HTTP/1.1\r\nCONTENT-LENGTH :3\r\n\r\n", true),
            ("POST / HTTP/1.1\r\nx-content-length: 3\r\n\r\n", false),
            ("POST /content-length HTTP/1.1\r\nhost: content-length\r\n\r\n", false),
            ("", false),
        ] {
            assert_eq!(has_field(raw.as_bytes(), "content-length"), found, "{raw:?}");
        }
    }
}
