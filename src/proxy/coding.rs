//! Content codings: compressed request bodies, and replies that a provider compressed without being
//! asked to.

use std::io::{Read, Write};

use bytes::{Buf, Bytes};

use crate::formats::event_stream::{self, EventFrameError};

/// A zstd frame may ask for a window of 8 MiB: RFC 9659. The library's own bound is 128 MiB.
const ZSTD_WINDOW_LOG_MAX: u32 = 23;

/// While a body is decoded, the budget is checked each time the result grows by this many bytes.
const DECODE_STEP: u64 = 256 * 1024;

/// The supported codings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Coding {
    Identity,
    Gzip,
    Deflate,
    Brotli,
    Zstd,
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum CodingError {
    #[error("the content encoding is not one of gzip, deflate, br, zstd")]
    Unknown,
    #[error("the compressed body is damaged")]
    Damaged,
    #[error("the decompressed body is too large")]
    TooLarge,
    #[error("the decompressed body exceeds the body budget now")]
    BudgetExceeded,
    #[error(transparent)]
    Frame(#[from] EventFrameError),
}

impl Coding {
    /// Reads a `Content-Encoding`. Absent or `identity` means none. Several codings at once are not
    /// supported.
    pub(super) fn of(header: Option<&http::HeaderValue>) -> Result<Self, CodingError> {
        let Some(value) = header else { return Ok(Self::Identity) };
        match value.to_str().unwrap_or("?").trim().to_ascii_lowercase().as_str() {
            "" | "identity" => Ok(Self::Identity),
            "gzip" | "x-gzip" => Ok(Self::Gzip),
            "deflate" => Ok(Self::Deflate),
            "br" => Ok(Self::Brotli),
            "zstd" => Ok(Self::Zstd),
            _ => Err(CodingError::Unknown),
        }
    }
}

/// Decodes a complete body, up to `max` bytes. It may take milliseconds: call it off the proxy's
/// threads.
///
/// # Errors
/// When the body is damaged, or larger than `max` once decoded.
pub(super) fn decode_whole(
    coding: Coding,
    chunks: Vec<Bytes>,
    max: usize,
) -> Result<Vec<Bytes>, CodingError> {
    decode_within(coding, chunks, max, |_| true)
}

/// Decodes a complete body of up to `max` bytes. `fits` is called with each size that the result
/// grows to, and stops the decoding by refusing one. It may take milliseconds: call it off the
/// proxy's threads.
///
/// # Errors
/// When the body is damaged, larger than `max` once decoded, or above the body budget.
pub(super) fn decode_within(
    coding: Coding,
    chunks: Vec<Bytes>,
    max: usize,
    mut fits: impl FnMut(usize) -> bool,
) -> Result<Vec<Bytes>, CodingError> {
    let source = Chunks(chunks.into_iter().collect());
    let reader: Box<dyn Read> = match coding {
        Coding::Identity => return Ok(source.0.into()),
        Coding::Gzip => Box::new(flate2::read::MultiGzDecoder::new(source)),
        Coding::Deflate => Box::new(flate2::read::ZlibDecoder::new(source)),
        Coding::Brotli if source.first().is_some_and(has_large_window) => {
            return Err(CodingError::Damaged);
        }
        Coding::Brotli => Box::new(brotli::Decompressor::new(source, 16 * 1024)),
        Coding::Zstd => {
            let decoder = zstd::stream::read::Decoder::new(source).and_then(|mut decoder| {
                decoder.window_log_max(ZSTD_WINDOW_LOG_MAX)?;
                Ok(decoder)
            });
            Box::new(decoder.map_err(|_| CodingError::Damaged)?)
        }
    };
    let mut decoded = Vec::new();
    let limit = u64::try_from(max).unwrap_or(u64::MAX).saturating_add(1);
    let mut reader = reader.take(limit);
    loop {
        let read = (&mut reader)
            .take(DECODE_STEP)
            .read_to_end(&mut decoded)
            .map_err(|_| CodingError::Damaged)?;
        if decoded.len() > max {
            return Err(CodingError::TooLarge);
        }
        if !fits(decoded.len()) {
            return Err(CodingError::BudgetExceeded);
        }
        if (read as u64) < DECODE_STEP {
            // Returns the unused capacity: the body may live long.
            decoded.shrink_to_fit();
            return Ok(vec![decoded.into()]);
        }
    }
}

struct Chunks(std::collections::VecDeque<Bytes>);

impl Chunks {
    fn first(&self) -> Option<u8> {
        self.0.iter().find_map(|chunk| chunk.first().copied())
    }
}

/// Whether a brotli stream that begins with this byte asks for a window above 16 MiB, up to 1 GiB.
/// RFC 7932 knows no such windows.
const fn has_large_window(first: u8) -> bool {
    first & 0x7f == 0x11
}

impl Read for Chunks {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        while let Some(first) = self.0.front_mut() {
            if first.is_empty() {
                self.0.pop_front();
                continue;
            }
            let n = first.len().min(buf.len());
            first.copy_to_slice(&mut buf[..n]);
            return Ok(n);
        }
        Ok(0)
    }
}

/// Bound of one decoded piece of a reply: a piece of 64 KiB, compressed 250-fold.
const PIECE_MAX: usize = 16 * 1024 * 1024;

/// Decodes a reply piece by piece as it arrives.
pub(super) enum StreamDecoder {
    Gzip(flate2::write::MultiGzDecoder<Decoded>),
    Deflate(flate2::write::ZlibDecoder<Decoded>),
    Brotli {
        decoder: Box<brotli::DecompressorWriter<Decoded>>,
        begun: bool,
    },
    Zstd(zstd::stream::write::Decoder<'static, Decoded>),
    /// No coding, but AWS's frames around the events of a stream.
    EventStream(Box<event_stream::EventStreamDecoder>),
}

/// The decoded bytes of one piece, bounded because a few compressed bytes can expand to gigabytes.
#[derive(Default)]
pub(super) struct Decoded(Vec<u8>);

impl Write for Decoded {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.0.len() + bytes.len() > PIECE_MAX {
            return Err(std::io::Error::other("too large once decoded"));
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl StreamDecoder {
    /// `None` for [`Coding::Identity`].
    pub(super) fn new(coding: Coding) -> Result<Option<Self>, CodingError> {
        Ok(match coding {
            Coding::Identity => None,
            Coding::Gzip => {
                Some(Self::Gzip(flate2::write::MultiGzDecoder::new(Decoded::default())))
            }
            Coding::Deflate => {
                Some(Self::Deflate(flate2::write::ZlibDecoder::new(Decoded::default())))
            }
            Coding::Brotli => Some(Self::Brotli {
                decoder: Box::new(brotli::DecompressorWriter::new(Decoded::default(), 16 * 1024)),
                begun: false,
            }),
            Coding::Zstd => {
                let decoder = zstd::stream::write::Decoder::new(Decoded::default());
                let mut decoder = decoder.map_err(|_| CodingError::Damaged)?;
                let bounded = decoder.window_log_max(ZSTD_WINDOW_LOG_MAX);
                bounded.map_err(|_| CodingError::Damaged)?;
                Some(Self::Zstd(decoder))
            }
        })
    }

    /// Adds `chunk` and returns what can be decoded so far.
    ///
    /// # Errors
    /// When the stream is damaged, or the chunk decodes to more than 16 MiB.
    pub(super) fn push(&mut self, chunk: &[u8]) -> Result<Bytes, CodingError> {
        let decoded = match self {
            Self::Gzip(d) => {
                d.write_all(chunk).and_then(|()| d.flush()).map(|()| std::mem::take(d.get_mut()))
            }
            Self::Deflate(d) => {
                d.write_all(chunk).and_then(|()| d.flush()).map(|()| std::mem::take(d.get_mut()))
            }
            Self::Brotli { decoder: d, begun } => {
                let is_first = !chunk.is_empty() && !std::mem::replace(begun, true);
                if is_first && chunk.first().copied().is_some_and(has_large_window) {
                    return Err(CodingError::Damaged);
                }
                d.write_all(chunk).and_then(|()| d.flush()).map(|()| std::mem::take(d.get_mut()))
            }
            Self::Zstd(d) => {
                d.write_all(chunk).and_then(|()| d.flush()).map(|()| std::mem::take(d.get_mut()))
            }
            Self::EventStream(d) => return Ok(d.push(chunk)?.into()),
        };
        decoded.map(|decoded| decoded.0.into()).map_err(|_| CodingError::Damaged)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(coding: Coding, plain: &[u8]) -> Vec<u8> {
        match coding {
            Coding::Identity => plain.to_vec(),
            Coding::Gzip => {
                let mut e = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
                e.write_all(plain).unwrap();
                e.finish().unwrap()
            }
            Coding::Deflate => {
                let mut e =
                    flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
                e.write_all(plain).unwrap();
                e.finish().unwrap()
            }
            Coding::Brotli => {
                let mut out = Vec::new();
                brotli::CompressorWriter::new(&mut out, 4096, 3, 20).write_all(plain).unwrap();
                out
            }
            Coding::Zstd => zstd::encode_all(plain, 1).unwrap(),
        }
    }

    const ALL: [Coding; 4] = [Coding::Gzip, Coding::Deflate, Coding::Brotli, Coding::Zstd];

    #[test]
    fn every_coding_decodes_whole_and_in_pieces() {
        let plain = "data: {\"text\":\"größe 🎈\"}\n\n".repeat(2_000).into_bytes();
        for coding in ALL {
            let packed = encoded(coding, &plain);
            let chunks: Vec<Bytes> = packed.chunks(7).map(Bytes::copy_from_slice).collect();
            let whole = decode_whole(coding, chunks.clone(), plain.len()).unwrap().concat();
            assert_eq!(whole, plain, "{coding:?}");
            let mut decoder = StreamDecoder::new(coding).unwrap().unwrap();
            let pieces: Vec<u8> = chunks.iter().flat_map(|c| decoder.push(c).unwrap()).collect();
            assert_eq!(pieces, plain, "{coding:?} in pieces");
        }
    }

    #[test]
    fn bombs_and_damage_are_refused() {
        let bomb = vec![b' '; 1 << 20];
        for coding in ALL {
            let packed = Bytes::from(encoded(coding, &bomb));
            assert_eq!(
                decode_whole(coding, vec![packed], 1000),
                Err(CodingError::TooLarge),
                "{coding:?}"
            );
            let noise = Bytes::from_static(b"this is not a compressed body at all");
            assert_eq!(
                decode_whole(coding, vec![noise], 1000),
                Err(CodingError::Damaged),
                "{coding:?}"
            );
        }
    }

    #[test]
    fn windows_above_the_formats_bounds_are_refused() {
        let plain = b"a small body";
        let zstd = |log: u32| {
            let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 1).unwrap();
            encoder.window_log(log).unwrap();
            encoder.write_all(plain).unwrap();
            encoder.finish().unwrap()
        };
        let brotli = |large: bool| {
            let params = brotli::enc::BrotliEncoderParams {
                large_window: large,
                lgwin: if large { 28 } else { 24 },
                ..Default::default()
            };
            let mut out = Vec::new();
            brotli::BrotliCompress(&mut &plain[..], &mut out, &params).unwrap();
            out
        };
        for (coding, packed, fits) in [
            (Coding::Zstd, zstd(23), true),
            (Coding::Zstd, zstd(24), false),
            (Coding::Zstd, zstd(27), false),
            (Coding::Brotli, brotli(false), true),
            (Coding::Brotli, brotli(true), false),
        ] {
            let whole = decode_whole(coding, vec![Bytes::from(packed.clone())], 1000);
            assert_eq!(whole.is_ok(), fits, "{coding:?}");
            let mut decoder = StreamDecoder::new(coding).unwrap().unwrap();
            // In any pieces.
            let streamed = packed.iter().try_fold(Vec::new(), |mut all, byte| {
                all.extend_from_slice(&decoder.push(&[*byte])?);
                Ok::<_, CodingError>(all)
            });
            assert_eq!(streamed.is_ok(), fits, "{coding:?} in pieces");
        }
    }

    #[test]
    fn a_bomb_in_a_stream_is_given_up_at_the_bound() {
        let bomb = vec![b' '; PIECE_MAX + 1];
        for coding in ALL {
            let packed = encoded(coding, &bomb);
            let mut decoder = StreamDecoder::new(coding).unwrap().unwrap();
            assert_eq!(decoder.push(&packed), Err(CodingError::Damaged), "{coding:?}");
        }
    }
}
