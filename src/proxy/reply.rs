//! The provider's reply on its way through: decoded, read for usage, reshaped for the client.
//!
//! One pass over each piece. Nothing grows with the reply, except where a whole reply has to be converted in one go.

use std::time::Instant;

use bytes::Bytes;

use super::coding::{CodingError, StreamDecoder};
use crate::domain::usage::Usage;
use crate::formats::error::UpstreamError;
use crate::formats::usage::{HideUsageChunk, UsageReader};

/// What is made of a reply's pieces.
pub struct Reply {
    decoder: Option<StreamDecoder>,
    /// `None` where a reply has no usage (token counting).
    reader: Option<UsageReader>,
    shape: Shape,
    received: u64,
    /// When the last part arrived that was more than a sign of life.
    pub last_progress: Instant,
    progress: u64,
}

/// How pieces are changed for the client.
pub enum Shape {
    /// They are not.
    AsIs,
    /// The usage chunk that only the gateway asked for is left out.
    HideUsage(Box<HideUsageChunk>),
}

impl Reply {
    #[must_use]
    pub fn new(decoder: Option<StreamDecoder>, reader: Option<UsageReader>, shape: Shape) -> Self {
        Self { decoder, reader, shape, received: 0, last_progress: Instant::now(), progress: 0 }
    }

    /// Takes a piece from the provider and gives what goes to the client.
    ///
    /// # Errors
    /// When the provider's compression is damaged.
    pub fn take(&mut self, piece: Bytes) -> Result<Bytes, CodingError> {
        let plain = match &mut self.decoder {
            Some(decoder) => decoder.push(&piece)?,
            None => piece,
        };
        self.received += plain.len() as u64;
        let progress = match &mut self.reader {
            Some(reader) => {
                reader.feed(&plain);
                reader.output_chars() as u64 + u64::from(reader.seen_content()) + u64::from(reader.seen_end())
            }
            None => self.received,
        };
        if progress > self.progress {
            self.progress = progress;
            self.last_progress = Instant::now();
        }
        Ok(match &mut self.shape {
            Shape::AsIs => plain,
            Shape::HideUsage(filter) => {
                let mut passed = Vec::new();
                filter.feed(&plain, &mut passed);
                joined(passed)
            }
        })
    }

    /// To be called once, after the last piece: gives what is left for the client.
    pub fn finish(&mut self) -> Bytes {
        if let Some(reader) = &mut self.reader {
            reader.finish();
        }
        match &mut self.shape {
            Shape::AsIs => Bytes::new(),
            Shape::HideUsage(filter) => filter.finish().unwrap_or_default(),
        }
    }

    /// Whether something came that is worth showing to the client.
    #[must_use]
    pub fn has_content(&self) -> bool {
        self.reader.as_ref().map_or(self.received > 0, UsageReader::seen_content)
    }

    /// Whether the format's own sign of a proper end has been seen.
    #[must_use]
    pub fn has_end(&self) -> bool {
        self.reader.as_ref().is_none_or(UsageReader::seen_end)
    }

    #[must_use]
    pub fn error(&self) -> Option<UpstreamError> {
        self.reader.as_ref()?.seen_error().cloned()
    }

    #[must_use]
    pub fn usage(&self) -> Option<Usage> {
        self.reader.as_ref()?.usage()
    }

    /// Characters of output that were received: what an estimate is made from.
    #[must_use]
    pub fn output_chars(&self) -> u64 {
        self.reader.as_ref().map_or(0, |reader| reader.output_chars() as u64)
    }
}

/// One piece out of several; a single one is not copied.
fn joined(mut pieces: Vec<Bytes>) -> Bytes {
    match pieces.len() {
        0 => Bytes::new(),
        1 => pieces.swap_remove(0),
        _ => pieces.concat().into(),
    }
}
