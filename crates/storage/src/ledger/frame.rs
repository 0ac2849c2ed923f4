//! One record as bytes: mark, length, checksum, payload. Pure.
//!
//! ```text
//! FF FE 'T' 'J' │ length u32 le │ CRC-32 of length and payload, u32 le │ payload
//! ```
//!
//! The mark begins with two bytes that no payload contains (see `encoding`), so no text from a
//! client can look like the start of a frame: after damage, the next complete frame is found by
//! searching for it.

use crate::domain::record::Record;

use super::encoding;
use super::error::LedgerError;

const MARK: [u8; 4] = [0xFF, 0xFE, b'T', b'J'];
/// Bytes before the payload.
pub(super) const HEAD: usize = 12;
/// A record has some hundred bytes. A larger one is a programming error, and a length above this is
/// damage.
pub(super) const MAX_PAYLOAD: usize = 4 << 20;

/// What was found at the start of some bytes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum FoundFrame<'a> {
    /// A complete frame of `HEAD + payload.len()` bytes, checksum verified.
    Frame(&'a [u8]),
    /// The bytes may be a frame, but it has this many bytes in total.
    Short(usize),
    /// No frame begins here.
    Damaged,
}

/// Replaces the content of `out` by the record's frame.
pub(super) fn encode(record: &Record, out: &mut Vec<u8>) -> Result<(), LedgerError> {
    out.clear();
    out.extend_from_slice(&[0; HEAD]);
    encoding::write(record, out);
    let payload = out.len() - HEAD;
    let length = match u32::try_from(payload) {
        Ok(length) if payload <= MAX_PAYLOAD => length.to_le_bytes(),
        _ => return Err(LedgerError::TooLarge(payload)),
    };
    let sum = checksum(length, &out[HEAD..]).to_le_bytes();
    out[..4].copy_from_slice(&MARK);
    out[4..8].copy_from_slice(&length);
    out[8..HEAD].copy_from_slice(&sum);
    Ok(())
}

/// Reads the start of `bytes`.
pub(super) fn read(bytes: &[u8]) -> FoundFrame<'_> {
    let Some((head, rest)) = bytes.split_first_chunk::<HEAD>() else {
        let known = bytes.len().min(MARK.len());
        return if bytes[..known] == MARK[..known] {
            FoundFrame::Short(HEAD)
        } else {
            FoundFrame::Damaged
        };
    };
    let [m0, m1, m2, m3, l0, l1, l2, l3, c0, c1, c2, c3] = *head;
    let length = u32::from_le_bytes([l0, l1, l2, l3]) as usize;
    if [m0, m1, m2, m3] != MARK || length > MAX_PAYLOAD {
        return FoundFrame::Damaged;
    }
    match rest.get(..length) {
        None => FoundFrame::Short(HEAD + length),
        Some(payload)
            if checksum([l0, l1, l2, l3], payload) == u32::from_le_bytes([c0, c1, c2, c3]) =>
        {
            FoundFrame::Frame(payload)
        }
        Some(_) => FoundFrame::Damaged,
    }
}

/// The start of the next complete frame, after the first byte of `bytes`.
pub(super) fn resync(bytes: &[u8]) -> Option<usize> {
    let rest = bytes.get(1..)?;
    memchr::memmem::find_iter(rest, &MARK)
        .map(|at| at + 1)
        .find(|at| matches!(read(&bytes[*at..]), FoundFrame::Frame(_)))
}

fn checksum(length: [u8; 4], payload: &[u8]) -> u32 {
    let mut sum = crc32fast::Hasher::new();
    sum.update(&length);
    sum.update(payload);
    sum.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::segment::sample;

    #[test]
    fn a_frame_reads_back_and_every_shorter_one_is_short() {
        let mut bytes = Vec::new();
        encode(&sample(7), &mut bytes).unwrap();
        let FoundFrame::Frame(payload) = read(&bytes) else { panic!("not a frame") };
        assert_eq!(encoding::Decoder::default().read(payload), Some(sample(7)));
        for cut in 0..bytes.len() {
            let expected = if cut < HEAD { HEAD } else { bytes.len() };
            assert_eq!(read(&bytes[..cut]), FoundFrame::Short(expected), "cut at {cut}");
        }
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        let mut bytes = Vec::new();
        encode(&sample(1), &mut bytes).unwrap();
        for bit in 0..bytes.len() * 8 {
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(!matches!(read(&bytes), FoundFrame::Frame(_)), "bit {bit}");
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
    }

    #[test]
    fn resync_finds_the_next_whole_frame_only() {
        let (mut first, mut second) = (Vec::new(), Vec::new());
        encode(&sample(1), &mut first).unwrap();
        encode(&sample(2), &mut second).unwrap();
        let bytes = [&first[..], &MARK, &second[..]].concat();
        assert_eq!(resync(&bytes), Some(first.len() + MARK.len()));
        assert_eq!(resync(&first), None);
        assert_eq!(resync(&[]), None);
    }

    #[test]
    fn a_record_beyond_the_bound_is_refused() {
        let mut record = sample(1);
        record.error_message = Some("x".repeat(MAX_PAYLOAD));
        assert!(matches!(encode(&record, &mut Vec::new()), Err(LedgerError::TooLarge(_))));
    }
}
