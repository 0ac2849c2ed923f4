//! AWS's event stream (`application/vnd.amazon.eventstream`), in which Bedrock sends replies: each
//! frame has one event of the native format, or of `Converse`. Decoded it is a native stream.
//!
//! A frame is taken once all of it has arrived and its checksums are right. Its size is bounded
//! before it is buffered. An exception becomes the format's error event; nothing follows it.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

use super::error::{self, ErrorReply};
use super::native::converse::stream::ConverseStream;
use super::sse;
use crate::domain::format::WireFormat;

/// The type of such a stream.
pub const CONTENT_TYPE: &[u8] = b"application/vnd.amazon.eventstream";

/// Bytes of a frame, as AWS bounds them, and of its headers.
const MAX_FRAME: usize = 16 * 1024 * 1024;
const MAX_HEADERS: usize = 128 * 1024;
/// The lengths and their checksum, and the checksum at the end.
const PRELUDE: usize = 12;
const TRAILER: usize = 4;

/// The status that an exception within a stream stands for, and the native format's kind.
const EXCEPTIONS: [(&str, u16, &str); 8] = [
    ("throttlingException", 429, "rate_limit_error"),
    ("serviceUnavailableException", 503, "overloaded_error"),
    ("modelNotReadyException", 503, "overloaded_error"),
    ("modelTimeoutException", 504, "timeout_error"),
    ("modelStreamErrorException", 502, "api_error"),
    ("validationException", 400, "invalid_request_error"),
    ("accessDeniedException", 403, "permission_error"),
    ("resourceNotFoundException", 404, "not_found_error"),
];
const OTHER_EXCEPTION: (u16, &str) = (500, "api_error");

/// Why a stream cannot be decoded further.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EventFrameError {
    /// A checksum differs.
    #[error("a frame of the event stream is damaged: its checksum differs")]
    Checksum,
    /// The frame is larger than AWS allows.
    #[error("a frame of the event stream is larger than 16 MiB")]
    TooLarge,
    /// Lengths, headers or payload are not those of a frame.
    #[error("a frame of the event stream cannot be read")]
    Malformed,
}

/// Decodes a stream piece by piece.
#[derive(Debug, Default)]
pub struct EventStreamDecoder {
    /// The beginning of a frame.
    buffer: Vec<u8>,
    /// The events are those of `Converse`.
    converse: Option<ConverseStream>,
    exception: Option<u16>,
    /// What is wrong with a frame, after others.
    fault: Option<EventFrameError>,
}

impl EventStreamDecoder {
    /// Decodes a stream whose events are those of `Converse`.
    #[must_use]
    pub fn of_converse() -> Self {
        Self { converse: Some(ConverseStream::default()), ..Self::default() }
    }

    /// Adds a piece, and returns the events of the frames that are complete.
    ///
    /// # Errors
    /// When a frame is damaged, too large, or none.
    pub fn push(&mut self, piece: &[u8]) -> Result<Vec<u8>, EventFrameError> {
        let mut out = Vec::new();
        if self.fault.is_none() && self.exception.is_none() {
            self.buffer.extend_from_slice(piece);
            self.fault = self.take_frames(&mut out).err();
        }
        match self.fault {
            // The events before it do not depend on how the bytes are split.
            Some(fault) if out.is_empty() => Err(fault),
            _ => Ok(out),
        }
    }

    fn take_frames(&mut self, out: &mut Vec<u8>) -> Result<(), EventFrameError> {
        let mut at = 0;
        while let Some(len) = frame_len(&self.buffer[at..])?
            && let Some(frame) = self.buffer.get(at..at + len)
        {
            self.exception = take(frame, self.converse.as_mut(), out)?;
            at += len;
            if self.exception.is_some() {
                self.buffer = Vec::new();
                return Ok(());
            }
        }
        self.buffer.drain(..at);
        Ok(())
    }

    /// The status that the exception stands for which ended the stream.
    pub const fn exception_status(&self) -> Option<u16> {
        self.exception
    }
}

/// The length of the frame that begins here; `None` if its lengths have not arrived.
fn frame_len(bytes: &[u8]) -> Result<Option<usize>, EventFrameError> {
    let Some(prelude) = bytes.get(..PRELUDE) else { return Ok(None) };
    if word(prelude, 8) != crc32fast::hash(&prelude[..8]) {
        return Err(EventFrameError::Checksum);
    }
    let (len, headers) = (word(prelude, 0) as usize, word(prelude, 4) as usize);
    if len > MAX_FRAME || headers > MAX_HEADERS {
        return Err(EventFrameError::TooLarge);
    }
    if len < PRELUDE + headers + TRAILER {
        return Err(EventFrameError::Malformed);
    }
    Ok(Some(len))
}

fn word(bytes: &[u8], at: usize) -> u32 {
    bytes[at..at + 4].iter().fold(0, |word, byte| word << 8 | u32::from(*byte))
}

/// Writes a frame's event; the status of the exception, if it is one.
fn take(
    frame: &[u8],
    converse: Option<&mut ConverseStream>,
    out: &mut Vec<u8>,
) -> Result<Option<u16>, EventFrameError> {
    let end = frame.len() - TRAILER;
    if word(frame, end) != crc32fast::hash(&frame[..end]) {
        return Err(EventFrameError::Checksum);
    }
    let payload = PRELUDE + word(frame, 4) as usize;
    let headers = Headers::read(&frame[PRELUDE..payload]).ok_or(EventFrameError::Malformed)?;
    let payload = &frame[payload..end];
    match headers.message_type {
        "event" if let Some(converse) = converse => {
            let written = converse.event(headers.event_type, payload, out);
            written.map(|()| None).map_err(|_| EventFrameError::Malformed)
        }
        "event" if headers.event_type == "chunk" => event(payload, out).map(|()| None),
        // Of a kind that is not known.
        "event" => Ok(None),
        "exception" => Ok(Some(exception(headers.exception_type, &message(payload), out))),
        "error" => Ok(Some(exception(headers.error_code, headers.error_message, out))),
        _ => Err(EventFrameError::Malformed),
    }
}

/// Writes the event that a chunk has.
fn event(payload: &[u8], out: &mut Vec<u8>) -> Result<(), EventFrameError> {
    #[derive(Deserialize)]
    struct Chunk<'a> {
        #[serde(borrow)]
        bytes: Cow<'a, str>,
    }
    #[derive(Deserialize)]
    struct EventType<'a> {
        #[serde(borrow, rename = "type")]
        kind: Cow<'a, str>,
    }
    let chunk: Chunk<'_> =
        serde_json::from_slice(payload).map_err(|_| EventFrameError::Malformed)?;
    let json = STANDARD.decode(chunk.bytes.as_bytes()).map_err(|_| EventFrameError::Malformed)?;
    let event: EventType<'_> =
        serde_json::from_slice(&json).map_err(|_| EventFrameError::Malformed)?;
    if event.kind.bytes().any(|byte| byte.is_ascii_control()) {
        return Err(EventFrameError::Malformed);
    }
    sse::write(out, Some(&event.kind), &json);
    Ok(())
}

fn message(payload: &[u8]) -> String {
    let read: serde_json::Value = serde_json::from_slice(payload).unwrap_or_default();
    let said = ["message", "Message"].iter().find_map(|name| read[*name].as_str());
    said.map_or_else(|| String::from_utf8_lossy(payload).into_owned(), str::to_owned)
}

/// Writes the error event of an exception; returns the status that it stands for.
fn exception(name: &str, message: &str, out: &mut Vec<u8>) -> u16 {
    let row = EXCEPTIONS.iter().find(|(known, ..)| known.eq_ignore_ascii_case(name));
    let (status, kind) = row.map_or(OTHER_EXCEPTION, |(_, status, kind)| (*status, *kind));
    let message = if message.is_empty() { name } else { message };
    let code = Some(name).filter(|name| !name.is_empty());
    let reply = ErrorReply { status, kind, message, code, extra: &[] };
    out.extend_from_slice(&error::stream_event(WireFormat::Native, &reply));
    status
}

/// The headers of a frame that decide what it is.
#[derive(Default)]
struct Headers<'a> {
    message_type: &'a str,
    event_type: &'a str,
    exception_type: &'a str,
    error_code: &'a str,
    error_message: &'a str,
}

impl<'a> Headers<'a> {
    fn read(mut bytes: &'a [u8]) -> Option<Self> {
        let mut headers = Self::default();
        while !bytes.is_empty() {
            let len = usize::from(split(&mut bytes, 1)?[0]);
            let name = split(&mut bytes, len)?;
            let kind = split(&mut bytes, 1)?[0];
            let len = match kind {
                // true, false
                0 | 1 => 0,
                // integers of 1, 2, 4 and 8 bytes, bytes, text, time, UUID
                2 => 1,
                3 => 2,
                4 => 4,
                5 | 8 => 8,
                6 | 7 => {
                    let len = split(&mut bytes, 2)?;
                    usize::from(len[0]) << 8 | usize::from(len[1])
                }
                9 => 16,
                _ => return None,
            };
            let value = split(&mut bytes, len)?;
            let place = match (name, kind) {
                (b":message-type", 7) => &mut headers.message_type,
                (b":event-type", 7) => &mut headers.event_type,
                (b":exception-type", 7) => &mut headers.exception_type,
                (b":error-code", 7) => &mut headers.error_code,
                (b":error-message", 7) => &mut headers.error_message,
                _ => continue,
            };
            *place = std::str::from_utf8(value).ok()?;
        }
        Some(headers)
    }
}

fn split<'a>(bytes: &mut &'a [u8], len: usize) -> Option<&'a [u8]> {
    let (first, rest) = bytes.split_at_checked(len)?;
    *bytes = rest;
    Some(first)
}

/// A frame, for tests and for the mock.
pub fn frame(headers: &[(&str, &str)], payload: &[u8]) -> Vec<u8> {
    let mut head = Vec::new();
    for (name, value) in headers {
        head.push(u8::try_from(name.len()).unwrap_or(u8::MAX));
        head.extend_from_slice(name.as_bytes());
        head.push(7);
        head.extend_from_slice(&u16::try_from(value.len()).unwrap_or(u16::MAX).to_be_bytes());
        head.extend_from_slice(value.as_bytes());
    }
    let len = PRELUDE + head.len() + payload.len() + TRAILER;
    let mut frame = Vec::with_capacity(len);
    for len in [len, head.len()] {
        frame.extend_from_slice(&u32::try_from(len).unwrap_or(u32::MAX).to_be_bytes());
    }
    frame.extend_from_slice(&crc32fast::hash(&frame).to_be_bytes());
    frame.extend_from_slice(&head);
    frame.extend_from_slice(payload);
    frame.extend_from_slice(&crc32fast::hash(&frame).to_be_bytes());
    frame
}

/// The frame of an event of `Converse`, for tests and for the mock.
pub fn converse_event(name: &str, json: &str) -> Vec<u8> {
    let headers =
        [(":event-type", name), (":content-type", "application/json"), (":message-type", "event")];
    frame(&headers, json.as_bytes())
}

/// The frame of an event of the native format.
pub fn chunk(json: &[u8]) -> Vec<u8> {
    let headers = [
        (":event-type", "chunk"),
        (":content-type", "application/json"),
        (":message-type", "event"),
    ];
    frame(&headers, format!("{{\"bytes\":\"{}\"}}", STANDARD.encode(json)).as_bytes())
}

#[cfg(test)]
#[path = "event_stream_tests.rs"]
mod tests;
