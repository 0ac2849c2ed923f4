//! The memory that a body takes while it is converted: a small multiple of its bytes, whatever its
//! shape.
//!
//! The allocator of this binary counts the bytes in use in the whole process. So the test runs once
//! more, alone in a process of its own, and measures there.

use std::collections::HashSet;
use std::process::Command;

use super::catalog;
use super::{Shape, convert_event, convert_reply, convert_request, others};
use crate::ALLOCATOR;

const NAME: &str = "shapes::memory::every_shape_takes_a_small_multiple_of_its_bytes";
const ALONE: &str = "TOLLGATE_TEST_ALONE";

/// Elements of a list, all of which are invalid, or skipped: nearly as many as a body may have.
const MOST: usize = 199_000;
/// Others: a little above a power of two, where vectors that double have most to spare.
const MANY: usize = 33_000;

/// The most bytes in use beside a body of this length. The second term is for bodies of tiny
/// elements, whose number is bounded.
const fn most(body: usize) -> usize {
    16 * body + (8 << 20)
}

/// The most bytes in use during `work`, beside those before.
fn peak<T>(work: impl FnOnce() -> T) -> (usize, T) {
    ALLOCATOR.reset_peak_usage();
    let before = ALLOCATOR.current_usage();
    let done = work();
    (ALLOCATOR.peak_usage().saturating_sub(before), done)
}

type Convert = fn(
    tollgate::domain::format::WireFormat,
    tollgate::domain::format::WireFormat,
    &[u8],
) -> Result<Vec<u8>, String>;

/// Checks one conversion; `turn` chooses the target.
fn check((shape, turn): (&Shape, usize), count: usize, convert: Convert) -> Result<(), String> {
    let lists = shape.template.matches('⟦').count();
    let body = shape.body(count / lists);
    let to = others(shape.format).nth(turn % 3).unwrap();
    let (used, done) = peak(|| convert(shape.format, to, &body));
    if used > most(body.len()) {
        let (times, len) = (used / body.len(), body.len());
        return Err(format!("{times:>4} times {len} to {to:?}: {}", shape.template));
    }
    done.map(drop).map_err(|e| format!("{e}: {}", shape.template))
}

#[test]
fn every_shape_takes_a_small_multiple_of_its_bytes() {
    if std::env::var_os(ALONE).is_none() {
        let mut alone = Command::new(std::env::current_exe().unwrap());
        let run = alone.args([NAME, "--exact", "--nocapture"]).env(ALONE, "1").output().unwrap();
        let said = String::from_utf8_lossy(&run.stderr);
        assert!(run.status.success(), "{said}");
        return;
    }
    let (mut faults, mut seen) = (Vec::new(), HashSet::new());
    let kinds: [(Vec<Shape>, Convert); 3] = [
        (catalog::requests(), convert_request),
        (catalog::replies(), convert_reply),
        (catalog::events(), convert_event),
    ];
    for (kind, (shapes, convert)) in kinds.into_iter().enumerate() {
        for (turn, shape) in shapes.iter().enumerate() {
            // A reply of which a client could read nothing, or too much, is not a reply.
            let is_fault = |fault: &String| kind == 0 || fault.contains(" times ");
            faults.extend(check((shape, turn), MANY, convert).err().filter(is_fault));
            // Of the other elements only the memory counts: most are refused.
            let other = catalog::ANY[turn % catalog::ANY.len()];
            for (element, count) in [("{}", MOST), (other, MANY)] {
                let shape = shape.with_element(element);
                // Several shapes are of one list.
                if seen.insert((kind, shape.template.clone())) {
                    let checked = check((&shape, turn), count, convert);
                    faults.extend(checked.err().filter(|fault| fault.contains(" times ")));
                }
            }
        }
    }
    assert!(faults.is_empty(), "too much memory, or refused:\n{}", faults.join("\n"));
}
