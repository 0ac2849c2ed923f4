//! Finds any of many byte strings in a text, by the fastest engine that can hold them.
//!
//! Up to about 150 strings are searched by vector instructions, in groups: one to two instructions
//! per byte of text and group. More than that share one automaton of about six instructions per
//! byte, whatever their number.

use aho_corasick::packed::{Config, MatchKind, Searcher};
use aho_corasick::{AhoCorasick, AhoCorasickKind, BuildError, Input};

/// Maximum strings in a group; more groups are slower than the automaton.
const GROUP: usize = 32;
const MOST_GROUPS: usize = 5;
/// The vector engine filters by the first four bytes of its shortest string: shorter ones have a
/// separate group.
const LONG: usize = 4;
/// Up to this many bytes of strings the fastest automaton is built; it takes about a hundred bytes
/// of memory for each.
const FAST_MAX: usize = 64 * 1024;

#[derive(Debug)]
enum Engine {
    Vectors(Searcher),
    Automaton(AhoCorasick),
}

/// Strings that are searched together; each is identified by its number.
#[derive(Debug)]
pub(super) struct Group {
    engine: Engine,
    numbers: Vec<usize>,
}

impl Group {
    /// The start of the first string in `text` after `from`, and its number. Of several that begin
    /// there, any.
    pub(super) fn find(&self, text: &[u8], from: usize) -> Option<(usize, usize)> {
        let (start, at) = match &self.engine {
            Engine::Vectors(searcher) => {
                let hit =
                    searcher.find_in(text, aho_corasick::Span { start: from, end: text.len() })?;
                (hit.start(), hit.pattern())
            }
            Engine::Automaton(all) => {
                let hit = all.find(Input::new(text).range(from..))?;
                (hit.start(), hit.pattern())
            }
        };
        Some((start, self.numbers.get(at.as_usize()).copied()?))
    }
}

/// Groups for all of `strings`, whose numbers are their indices; none of them may be empty.
///
/// # Errors
/// When they are too large for any engine.
pub(super) fn groups(strings: &[Vec<u8>]) -> Result<Vec<Group>, BuildError> {
    let (long, short): (Vec<usize>, Vec<usize>) =
        (0..strings.len()).partition(|at| strings[*at].len() >= LONG);
    let by_length = [long, short];
    let vectors = by_length.iter().flat_map(|all| all.chunks(GROUP)).map(|numbers| {
        let mut builder = Config::new().match_kind(MatchKind::LeftmostFirst).builder();
        builder.extend(numbers.iter().map(|at| &strings[*at]));
        Some(Group { engine: Engine::Vectors(builder.build()?), numbers: numbers.to_vec() })
    });
    if let Some(groups) = vectors.take(MOST_GROUPS + 1).collect::<Option<Vec<_>>>()
        && groups.len() <= MOST_GROUPS
    {
        return Ok(groups);
    }
    let fast = strings.iter().map(Vec::len).sum::<usize>() <= FAST_MAX;
    let mut builder = AhoCorasick::builder();
    builder
        .match_kind(aho_corasick::MatchKind::LeftmostFirst)
        .kind(fast.then_some(AhoCorasickKind::DFA));
    Ok(vec![Group {
        engine: Engine::Automaton(builder.build(strings)?),
        numbers: (0..strings.len()).collect(),
    }])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_of_few_and_of_many_strings_is_found() {
        for count in [1, 5, 64, 65, 200, 300, 2000] {
            let strings: Vec<Vec<u8>> =
                (0..count).map(|n| format!("{n:x}{}", "z".repeat(n % 7)).into_bytes()).collect();
            let groups = groups(&strings).unwrap();
            for string in &strings {
                let text = [b"~~~~".as_slice(), string, b"~~"].concat();
                assert!(groups.iter().any(|group| group.find(&text, 2).is_some()), "{count}");
                assert!(
                    groups.iter().all(|group| group.find(&text, 4 + string.len()).is_none()),
                    "{count}"
                );
            }
            assert!(groups.iter().all(|group| group.find(b"~~~", 0).is_none()));
        }
        assert!(groups(&[]).unwrap().is_empty());
    }
}
