//! Frames of event streams: read in any pieces, damaged, too large, exceptions.

use super::*;

/// A frame of the service's own encoder, with `{"type":"ping"}`.
const PING: &str = "0000007b0000004b0a2e96af0b3a6576656e742d747970650700056368756e6b0d3a636f6e74656e742d74797065070010\
    6170706c69636174696f6e2f6a736f6e0d3a6d6573736167652d747970650700056576656e747b226279746573223a\
    2265794a306558426c496a6f6963476c755a794a39227da01f56c4";

fn ping() -> Vec<u8> {
    let digits: Vec<u32> = PING.chars().filter_map(|c| c.to_digit(16)).collect();
    digits.chunks(2).map(|pair| u8::try_from(pair[0] << 4 | pair[1]).unwrap()).collect()
}

fn decoded(bytes: &[u8], size: usize) -> Result<(String, Option<u16>), EventFrameError> {
    let (mut decoder, mut out) = (EventStreamDecoder::default(), Vec::new());
    for piece in bytes.chunks(size) {
        out.extend(decoder.push(piece)?);
    }
    out.extend(decoder.push(&[])?);
    Ok((String::from_utf8(out).unwrap(), decoder.exception_status()))
}

fn exception_frame(name: &str, payload: &str) -> Vec<u8> {
    let headers = [(":exception-type", name), (":message-type", "exception")];
    frame(&headers, payload.as_bytes())
}

#[test]
fn a_frame_of_the_service_is_read_and_made() {
    let ping = ping();
    assert_eq!(ping.len(), 123);
    assert_eq!(chunk(br#"{"type":"ping"}"#), ping);
    let wanted = "event: ping\ndata: {\"type\":\"ping\"}\n\n";
    for size in [1, 2, 11, 12, 13, 122, 123] {
        assert_eq!(decoded(&ping, size), Ok((wanted.to_owned(), None)), "{size}");
    }
    let two = [&ping[..], &ping, &ping[..50]].concat();
    assert_eq!(decoded(&two, two.len()), Ok((wanted.repeat(2), None)));
}

#[test]
fn damaged_frames_are_refused() {
    let ping = ping();
    for at in 0..ping.len() {
        let mut bad = ping.clone();
        bad[at] ^= 0x10;
        let result = decoded(&bad, 7);
        assert_eq!(result, Err(EventFrameError::Checksum), "byte {at}");
    }
    let prelude = |len: u32, headers: u32| {
        let mut bytes = [len.to_be_bytes(), headers.to_be_bytes()].concat();
        bytes.extend(crc32fast::hash(&bytes).to_be_bytes());
        decoded(&bytes, 100)
    };
    assert_eq!(prelude(MAX_FRAME as u32 + 1, 0), Err(EventFrameError::TooLarge));
    assert_eq!(prelude(1 << 20, MAX_HEADERS as u32 + 1), Err(EventFrameError::TooLarge));
    assert_eq!(prelude(15, 0), Err(EventFrameError::Malformed));
    assert_eq!(prelude(100, 90), Err(EventFrameError::Malformed));
    assert_eq!(prelude(0, u32::MAX), Err(EventFrameError::TooLarge));
    let event = [(":event-type", "chunk"), (":message-type", "event")];
    for (headers, payload) in [
        (&event[..], &b"{\"bytes\":\"?\"}"[..]),
        (&event, b"{}"),
        (&event, b"{\"bytes\":\"bm8=\"}"),
        (&event, b"{\"bytes\":\"eyJ0eXBlIjoiYVxuYiJ9\"}"),
        (&[(":message-type", "other")], b""),
        (&[], b""),
    ] {
        assert_eq!(decoded(&frame(headers, payload), 9), Err(EventFrameError::Malformed));
    }
}

#[test]
fn headers_of_every_type_are_passed_over() {
    let mut head = Vec::new();
    for (kind, len) in [(0, 0), (1, 0), (2, 1), (3, 2), (4, 4), (5, 8), (8, 8), (9, 16)] {
        head.extend([1, b'h', kind]);
        head.extend(vec![0; len]);
    }
    head.extend([1, b'h', 6, 0, 2, 1, 1]);
    assert!(Headers::read(&head).is_some());
    assert!(Headers::read(&[1, b'h', 10]).is_none());
    assert!(Headers::read(&head[..head.len() - 1]).is_none());
    assert!(Headers::read(&[200, b'h']).is_none());
}

#[test]
fn an_exception_is_the_formats_error_event_and_the_end() {
    for (name, status, kind) in
        EXCEPTIONS.into_iter().chain([("internalServerException", 500, "api_error")])
    {
        let bytes = [exception_frame(name, r#"{"message":"no"}"#), ping()].concat();
        let (text, stands_for) = decoded(&bytes, 5).unwrap();
        let event = format!(
            "event: error\ndata: {{\"type\":\"error\",\"error\":{{\"type\":\"{kind}\",\"message\":\"no\",\"code\":\"{name}\"}}}}\n\n"
        );
        assert_eq!((text, stands_for), (event, Some(status)));
    }
    let headers =
        [(":message-type", "error"), (":error-code", "InternalError"), (":error-message", "")];
    let (text, status) = decoded(&frame(&headers, b""), 5).unwrap();
    assert!(text.contains("\"message\":\"InternalError\"") && status == Some(500), "{text}");
    let unknown = [(":event-type", "metadata"), (":message-type", "event")];
    assert_eq!(decoded(&frame(&unknown, b"{}"), 5), Ok((String::new(), None)));
}
