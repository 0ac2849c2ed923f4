//! The work that a body takes: with four times the elements, at most six times the instructions.
//!
//! Callgrind counts them: it runs this test once more, alone, and writes a figure after each
//! conversion. The figures are the same in each run, whatever else the machine does.

use std::process::Command;

use tollgate::domain::format::WireFormat;

use super::catalog;
use super::{Shape, convert_event, convert_reply, convert_request, others};

const NAME: &str = "shapes::work::four_times_the_elements_take_at_most_six_times_the_instructions";
const ALONE: &str = "TOLLGATE_TEST_ALONE";
/// Without wildcards, which Callgrind does not take for the end of a function.
const COUNTED: &str = "main::shapes::work::counted_conversion";

/// Elements of each list, and four times as many.
const FEW: usize = 100;

type Convert = fn(WireFormat, WireFormat, &[u8]) -> Result<Vec<u8>, String>;

/// All shapes, each to one of the other formats in turn, in the order in which they are counted.
/// Callgrind takes half a second for a figure.
fn conversions() -> Vec<(Shape, WireFormat, Convert)> {
    let kinds: [(Vec<Shape>, Convert); 3] = [
        (catalog::requests(), convert_request),
        (catalog::replies(), convert_reply),
        (catalog::events(), convert_event),
    ];
    let mut all = Vec::new();
    for (shapes, convert) in kinds {
        for (turn, shape) in shapes.into_iter().enumerate() {
            all.extend(others(shape.format).nth(turn % 3).map(|to| (shape, to, convert)));
        }
    }
    all
}

/// What Callgrind counts, and after which it writes a figure.
#[inline(never)]
fn counted_conversion(convert: Convert, from: WireFormat, to: WireFormat, body: &[u8]) -> usize {
    std::hint::black_box(convert(from, to, body)).map_or(0, |converted| converted.len())
}

#[test]
fn four_times_the_elements_take_at_most_six_times_the_instructions() {
    let conversions = conversions();
    if std::env::var_os(ALONE).is_some() {
        for (shape, to, convert) in &conversions {
            for count in [FEW, 4 * FEW] {
                counted_conversion(*convert, shape.format, *to, &shape.body(count));
            }
        }
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let profile = dir.path().join("profile");
    let run = Command::new("valgrind")
        .args(["--tool=callgrind", "--read-inline-info=no", "--combine-dumps=yes"])
        .args([format!("--toggle-collect={COUNTED}"), format!("--dump-after={COUNTED}")])
        .args(["--dump-line=no", "--dump-instr=no"])
        .arg(format!("--callgrind-out-file={}", profile.display()))
        .arg(std::env::current_exe().unwrap())
        .args([NAME, "--exact", "--test-threads=1"])
        .env(ALONE, "1")
        .output()
        .expect("Valgrind is installed: scripts/setup.sh test");
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let profile = std::fs::read_to_string(profile).unwrap();
    let figures: Vec<u64> = profile
        .lines()
        .filter_map(|line| line.strip_prefix("summary: "))
        .map(|figure| figure.trim().parse().unwrap())
        .filter(|figure| *figure > 0)
        .collect();
    assert_eq!(figures.len(), 2 * conversions.len(), "one figure for each conversion");
    let mut faults = Vec::new();
    for ((shape, to, _), figures) in conversions.iter().zip(figures.chunks(2)) {
        let (few, many) = (figures[0], figures[1]);
        if many > 6 * few {
            let (times, tenths) = (many / few, many * 10 / few % 10);
            faults.push(format!("{times}.{tenths} times to {to:?}: {}", shape.template));
        }
    }
    assert!(faults.is_empty(), "more work than elements:\n{}", faults.join("\n"));
}
