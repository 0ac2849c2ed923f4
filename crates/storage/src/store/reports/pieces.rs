//! Splits a time range into what can be read from sums of days, from sums of hours, and only row by
//! row.

use crate::store::ledger::days::SummedDay;
use crate::store::ledger::sums::whole_hours;

/// The source of a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::store) enum PieceSource {
    Days,
    /// Sums per hour.
    Hours,
    /// The ledger's rows, or the log's.
    Rows,
}

/// A part of a range: from the first (inclusive) to the second (exclusive) time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::store) struct RangePiece {
    pub(in crate::store) source: PieceSource,
    pub(in crate::store) from: i64,
    pub(in crate::store) until: i64,
}

/// The range in pieces, in order, none of them empty. `days` are in order, and may extend beyond
/// it.
pub(in crate::store) fn pieces(from: i64, until: i64, days: &[SummedDay]) -> Vec<RangePiece> {
    let mut pieces: Vec<RangePiece> = Vec::new();
    let mut at = from;
    for day in days.iter().filter(|day| day.from.0 >= from && day.until.0 <= until) {
        hours(at, day.from.0, &mut pieces);
        at = day.until.0;
        match pieces.last_mut() {
            // Consecutive days are read together.
            Some(last) if last.source == PieceSource::Days && last.until == day.from.0 => {
                last.until = at
            }
            _ => pieces.push(RangePiece { source: PieceSource::Days, from: day.from.0, until: at }),
        }
    }
    hours(at, until, &mut pieces);
    pieces
}

fn hours(from: i64, until: i64, pieces: &mut Vec<RangePiece>) {
    let (first_whole, end_whole) = whole_hours(from, until);
    let parts = [
        (PieceSource::Rows, from, first_whole),
        (PieceSource::Hours, first_whole, end_whole),
        (PieceSource::Rows, end_whole, until),
    ];
    let parts = parts.into_iter().filter(|(_, from, until)| from < until);
    pieces.extend(parts.map(|(source, from, until)| RangePiece { source, from, until }));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::clock::Timestamp;
    use crate::store::ledger::sums::HOUR_MS;

    fn at(halves: i64) -> i64 {
        halves * HOUR_MS / 2
    }

    fn day(from: i64, until: i64) -> SummedDay {
        SummedDay { from: Timestamp(at(from)), until: Timestamp(at(until)) }
    }

    fn taken_apart(from: i64, until: i64, days: &[SummedDay]) -> Vec<(PieceSource, i64, i64)> {
        let half = HOUR_MS / 2;
        pieces(at(from), at(until), days)
            .iter()
            .map(|p| (p.source, p.from / half, p.until / half))
            .collect()
    }

    #[test]
    fn hours_that_a_boundary_cuts_are_read_row_by_row() {
        use PieceSource::{Hours, Rows};
        assert_eq!(taken_apart(0, 48, &[]), [(Hours, 0, 48)]);
        assert_eq!(taken_apart(1, 49, &[]), [(Rows, 1, 2), (Hours, 2, 48), (Rows, 48, 49)]);
        assert_eq!(taken_apart(49, 50, &[]), [(Rows, 49, 50)]);
        assert_eq!(taken_apart(50, 50, &[]), []);
        assert_eq!(taken_apart(50, 1, &[]), []);
        assert_eq!(pieces(60_000, 120_000, &[]).len(), 1);
    }

    #[test]
    fn summed_days_are_taken_whole_and_the_rest_from_hours() {
        use PieceSource::{Days, Hours, Rows};
        let days = [day(1, 49), day(49, 97), day(145, 193)];
        assert_eq!(
            taken_apart(0, 200, &days),
            [
                (Rows, 0, 1),
                (Days, 1, 97),
                (Rows, 97, 98),
                (Hours, 98, 144),
                (Rows, 144, 145),
                (Days, 145, 193),
                (Rows, 193, 194),
                (Hours, 194, 200)
            ]
        );
        assert_eq!(taken_apart(1, 97, &days), [(Days, 1, 97)]);
        assert_eq!(taken_apart(2, 96, &days), [(Hours, 2, 96)], "only parts of them");
        assert_eq!(taken_apart(2, 97, &days)[2], (Days, 49, 97));
    }
}
