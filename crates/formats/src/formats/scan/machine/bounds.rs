//! The bounds of a document: how many elements its lists may have, and values that are too deep to
//! be read.

use super::{Cut, Expect, ScanProblem, Scanned, Scanner, Stop, string};

impl<T: Copy> Scanner<T> {
    /// With a bound on the elements of all its lists together.
    #[must_use]
    pub fn with_most_elements(self, most_elements: usize) -> Self {
        Self { most_elements, ..self }
    }

    /// One that skips what is deeper than the limit: there only strings and the number of brackets
    /// are checked.
    #[must_use]
    pub fn skipping_deep(self) -> Self {
        Self { skips_deep: true, ..self }
    }

    /// Elements of all lists so far.
    pub const fn elements(&self) -> usize {
        self.elements
    }

    /// Takes a byte of a value that is skipped, or a string.
    pub(super) fn skip(&mut self, chunk: &[u8], at: usize, byte: u8) -> Scanned<usize> {
        match byte {
            b'"' => {
                let stop = string::run(chunk, at + 1, self.valid, &mut self.escaped);
                return self.skipped_string(chunk, stop);
            }
            b'{' | b'[' => self.deep += 1,
            b'}' | b']' => {
                self.deep -= 1;
                if self.deep == 0 {
                    self.expect = Expect::Comma;
                }
            }
            _ => {}
        }
        Ok(at + 1)
    }

    pub(super) fn skipped_string(&mut self, chunk: &[u8], stop: Stop) -> Scanned<usize> {
        match stop {
            Stop::Quote(end) => Ok(end + 1),
            Stop::Chunk(phase) => {
                self.cut = Cut::Deep(phase);
                Ok(chunk.len())
            }
            Stop::Bad(problem, at) => self.fail(problem, at),
        }
    }

    /// An element of a list is complete.
    #[inline]
    pub(super) fn element(&mut self, at: usize) -> Scanned<()> {
        self.elements += 1;
        if self.elements > self.most_elements {
            return self.fail(ScanProblem::TooManyElements, at);
        }
        Ok(())
    }
}
