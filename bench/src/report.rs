//! The figures as Markdown, ready to be pasted into RESULTS.md.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::time::Duration;

use tollgate::domain::format::WireFormat;

use crate::converted::{Kind, Row as Converted};
use crate::fixture::FLOOR;
use crate::measure::{FirstByte, Sample, Scenario};
use crate::process::Resident;

/// Name of the threads that serve requests.
const PROXY: &str = "proxy";

/// The samples of one target in one scenario, one per round.
pub struct Row {
    pub target: &'static str,
    pub samples: Vec<Sample>,
}

/// A figure's median over the rounds.
fn median<T: Ord + Copy>(samples: &[Sample], figure: impl Fn(&Sample) -> T) -> Option<T> {
    let mut figures: Vec<T> = samples.iter().map(figure).collect();
    figures.sort_unstable();
    figures.get(figures.len() / 2).copied()
}

fn middle(rounds: &[Duration]) -> Duration {
    let mut sorted = rounds.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len() / 2).copied().unwrap_or_default()
}

/// Hundredths as a decimal number.
fn hundredths(value: u64) -> String {
    format!("{}.{:02}", value / 100, value % 100)
}

/// `value / base`, two decimals.
fn ratio(value: u64, base: u64) -> String {
    (value * 100 + base / 2).checked_div(base).map_or_else(|| "–".to_owned(), hundredths)
}

fn micros(time: Duration) -> u128 {
    time.as_micros()
}

/// One scenario's table.
pub fn scenario(scenario: &Scenario, rows: &[Row]) -> String {
    let floor = rows.iter().find(|row| row.target == FLOOR);
    let floor_cpu = floor.and_then(|row| median(&row.samples, |s| s.cpu_ns)).unwrap_or(0);
    let floor_rate = floor.and_then(|row| median(&row.samples, |s| s.per_second)).unwrap_or(0);
    let mut text = format!("### {}\n\n", scenario.name);
    let _ = writeln!(
        text,
        "| | CPU µs per {} (rounds) | to floor | requests/s | to floor | p50 µs | p99 µs | context switches | errors |",
        scenario.unit
    );
    text.push_str("|---|---|---|---|---|---|---|---|---|\n");
    for row in rows {
        let cpu = median(&row.samples, |s| s.cpu_ns).unwrap_or(0);
        let rate = median(&row.samples, |s| s.per_second).unwrap_or(0);
        let least = row.samples.iter().map(|s| s.cpu_ns).min().unwrap_or(0);
        let most = row.samples.iter().map(|s| s.cpu_ns).max().unwrap_or(0);
        let _ = writeln!(
            text,
            "| {} | {} ({} – {}) | {} | {rate} | {} | {} | {} | {} | {} |",
            row.target,
            hundredths(cpu / 10),
            hundredths(least / 10),
            hundredths(most / 10),
            ratio(cpu, floor_cpu),
            ratio(rate, floor_rate),
            median(&row.samples, |s| micros(s.p50)).unwrap_or(0),
            median(&row.samples, |s| micros(s.p99)).unwrap_or(0),
            hundredths(median(&row.samples, |s| s.switches).unwrap_or(0)),
            row.samples.iter().map(|s| s.errors).sum::<u64>(),
        );
    }
    for row in rows.iter().filter(|row| row.target.starts_with("tollgate")) {
        let _ = write!(text, "\n{}, by thread: {}.\n", row.target, threads(row));
    }
    text
}

/// CPU time of the process tree, and what one connection waits longer than without a proxy: the way
/// in which Busbar publishes its figures. `heads`: the scenarios; `rows`: for each of them those of
/// the targets, the mock first. `waits`: as for [`first_byte`].
pub fn published(
    heads: &[&str],
    rows: &[Vec<Row>],
    waits: &[(&'static str, Vec<Vec<FirstByte>>)],
) -> String {
    let mut text = format!(
        "### CPU µs per request at 8 connections; added p50 and p99 µs at one connection\n\n\
         | | {} | added p50 | added p99 |\n|---|{}---|---|\n",
        heads.join(" | "),
        "---|".repeat(heads.len())
    );
    let at = |times: &[Vec<FirstByte>], which: usize| {
        let rounds = times.first().map_or(&[][..], Vec::as_slice);
        micros(middle(&rounds.iter().map(|one| one[which]).collect::<Vec<_>>()))
    };
    let direct = waits.first().map(|(_, times)| [0, 1].map(|which| at(times, which)));
    let direct = direct.unwrap_or_default();
    for (place, (target, times)) in waits.iter().enumerate().skip(1) {
        let cpu = |rows: &Vec<Row>| median(&rows[place].samples, |s| s.cpu_ns).unwrap_or(0);
        let cells: Vec<_> = rows.iter().map(|rows| hundredths(cpu(rows) / 10)).collect();
        let [p50, p99] = [0, 1].map(|which| at(times, which).saturating_sub(direct[which]));
        let _ = writeln!(text, "| {target} | {} | {p50} | {p99} |", cells.join(" | "));
    }
    text
}

/// Every pair of formats of one kind of reply, beside the bare Pingora that passes on the client's
/// and the provider's.
pub fn conversions(kind: Kind, rows: &[Converted]) -> String {
    let cpu = |row: &Converted| median(&row.samples, |s| s.cpu_ns).unwrap_or(0);
    let floor = |format: WireFormat| {
        let found = rows.iter().find(|row| row.client == format && row.provider.is_none());
        found.map_or(0, cpu)
    };
    let mut text = format!(
        "### {}\n\n\
         | client → provider | CPU µs per request (rounds) | to floor | proxy threads alone | to \
         floor that passes on the provider's format | p50 µs | errors |\n\
         |---|---|---|---|---|---|---|\n",
        kind.name
    );
    for row in rows {
        let least = row.samples.iter().map(|s| s.cpu_ns).min().unwrap_or(0);
        let most = row.samples.iter().map(|s| s.cpu_ns).max().unwrap_or(0);
        let proxy =
            median(&row.samples, |s| s.threads.get(PROXY).copied().unwrap_or(0)).unwrap_or(0);
        let (pair, others) = match row.provider {
            None => (format!("{}, bare Pingora", row.client), ["–".to_owned(), "–".to_owned()]),
            Some(provider) => (
                format!("{} → {provider}", row.client),
                [ratio(proxy, floor(row.client)), ratio(cpu(row), floor(provider))],
            ),
        };
        let _ = writeln!(
            text,
            "| {pair} | {} ({} – {}) | {} | {} | {} | {} |",
            hundredths(cpu(row) / 10),
            hundredths(least / 10),
            hundredths(most / 10),
            ratio(cpu(row), floor(row.client)),
            others.join(" | "),
            median(&row.samples, |s| micros(s.p50)).unwrap_or(0),
            row.samples.iter().map(|s| s.errors).sum::<u64>(),
        );
    }
    text
}

/// CPU time by kind of thread, the largest first; the smallest are omitted.
fn threads(row: &Row) -> String {
    let names: BTreeSet<&String> =
        row.samples.iter().flat_map(|sample| sample.threads.keys()).collect();
    let of = |name: &String| {
        median(&row.samples, |s| s.threads.get(name).copied().unwrap_or(0)).unwrap_or(0)
    };
    let mut shares: Vec<(u64, &String)> = names.into_iter().map(|name| (of(name), name)).collect();
    shares.sort_unstable_by_key(|(share, _)| Reverse(*share));
    let shown = shares.iter().filter(|(share, _)| *share >= 100);
    shown
        .map(|(share, name)| format!("{name} {}", hundredths(share / 10)))
        .collect::<Vec<_>>()
        .join(", ")
}

/// First-byte times: for each target and each scenario named in `heads` the rounds' times; the
/// middle ones are shown, beside those of the first row.
pub fn first_byte(heads: &[&str], rows: &[(&'static str, Vec<Vec<FirstByte>>)]) -> String {
    let middles = |times: &[Vec<FirstByte>]| -> Vec<FirstByte> {
        let middle_of = |rounds: &Vec<FirstByte>, at: usize| {
            middle(&rounds.iter().map(|times| times[at]).collect::<Vec<_>>())
        };
        times.iter().map(|rounds| [0, 1].map(|at| middle_of(rounds, at))).collect()
    };
    let mut text = format!(
        "### First byte at one connection, p50 and p99 µs (added to direct)\n\n| | {} |\n",
        heads.join(" | ")
    );
    let _ = writeln!(text, "|---|{}", "---|".repeat(heads.len()));
    let direct = rows.first().map(|(_, times)| middles(times)).unwrap_or_default();
    for (target, times) in rows {
        let cells = middles(times).into_iter().zip(&direct).map(|(times, direct)| {
            let cell = |at: usize| {
                let added = micros(times[at]).saturating_sub(micros(direct[at]));
                format!("{} (+{added})", micros(times[at]))
            };
            format!("{}, {}", cell(0), cell(1))
        });
        let _ = writeln!(text, "| {target} | {} |", cells.collect::<Vec<_>>().join(" | "));
    }
    text
}

/// Memory of one target; of a stream in KiB.
pub struct Memory {
    pub target: &'static str,
    pub idle: Resident,
    pub after: Resident,
    pub per_stream: Option<u64>,
}

pub fn memory(rows: &[Memory]) -> String {
    let mut text = "### Resident memory\n\n\
         | | idle MB | of it own | after load MB | of it own | KB per live stream |\n\
         |---|---|---|---|---|---|\n"
        .to_owned();
    for row in rows {
        let [idle, own, after, own_after] =
            [row.idle.all, row.idle.own, row.after.all, row.after.own]
                .map(|kib| hundredths(kib * 100 / 1024));
        let per_stream = row.per_stream.map_or_else(|| "–".to_owned(), |kib| kib.to_string());
        let _ = writeln!(
            text,
            "| {} | {idle} | {own} | {after} | {own_after} | {per_stream} |",
            row.target
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::converted::KINDS;
    use crate::measure::SCENARIOS;

    fn sample(cpu_ns: &u64) -> Sample {
        Sample {
            cpu_ns: *cpu_ns,
            switches: 150,
            threads: BTreeMap::from([
                ("proxy".to_owned(), cpu_ns / 2),
                ("writer".to_owned(), cpu_ns - 1000),
            ]),
            per_second: 1_000_000_000 / cpu_ns,
            p50: Duration::from_micros(10),
            p99: Duration::from_micros(20),
            errors: 1,
        }
    }

    fn row(target: &'static str, cpus: &[u64]) -> Row {
        Row { target, samples: cpus.iter().map(sample).collect() }
    }

    #[test]
    fn pairs_are_beside_the_floor_of_the_same_client() {
        let of = |client, provider, cpus: &[u64]| Converted {
            client,
            provider,
            samples: cpus.iter().map(sample).collect(),
        };
        let (native, chat) = (WireFormat::Native, WireFormat::Chat);
        let rows = [
            of(native, None, &[40_000]),
            of(native, Some(chat), &[90_000, 50_000, 60_000]),
            of(chat, None, &[30_000]),
        ];
        let text = conversions(KINDS[0], &rows);
        let line =
            "| native → chat-compatible | 60.00 (50.00 – 90.00) | 1.50 | 0.75 | 2.00 | 10 | 3 |";
        assert!(text.contains(line), "{text}");
        assert!(
            text.contains(
                "| chat-compatible, bare Pingora | 30.00 (30.00 – 30.00) | 1.00 | – | – | 10 | 1 |"
            ),
            "{text}"
        );
    }

    #[test]
    fn ratios_are_to_the_floors_median() {
        let text =
            scenario(&SCENARIOS[0], &[row(FLOOR, &[20_000, 40_000, 30_000]), row("x", &[45_000])]);
        assert!(text.contains("| bare Pingora | 30.00 (20.00 – 40.00) | 1.00 |"), "{text}");
        assert!(text.contains("| x | 45.00 (45.00 – 45.00) | 1.50 |"), "{text}");
        let ours = scenario(&SCENARIOS[0], &[row("tollgate, on", &[45_000])]);
        assert!(ours.contains("tollgate, on, by thread: writer 44.00, proxy 22.50."), "{ours}");
        assert!(text.contains("| 3 |\n"), "errors are summed: {text}");
    }

    #[test]
    fn first_bytes_are_shown_beside_the_direct_ones() {
        let micros = |us: u64| Duration::from_micros(us);
        let direct = [70, 50, 20].map(|us| [micros(us), micros(us + 100)]).to_vec();
        let proxy = vec![[micros(90), micros(260)]];
        let text = first_byte(&["a"], &[("direct", vec![direct]), ("proxy", vec![proxy])]);
        assert!(text.contains("| proxy | 90 (+40), 260 (+110) |"), "{text}");
    }
}
