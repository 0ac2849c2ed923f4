//! `tollgate move` on the command line: the target, the progress, and the remaining steps.

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;

use super::{complain, report, say};
use crate::commands::{self, MoveNews, Moved};
use crate::config::{self, Config};
use crate::domain::secret::Secret;

#[derive(Debug, Args)]
pub(super) struct MoveArgs {
    /// The PostgreSQL database to move to: postgres://user:password@host/database. It must be
    /// empty.
    #[arg(
        long,
        value_name = "ADDRESS",
        required_unless_present = "to_file",
        conflicts_with = "to_file"
    )]
    to: Option<String>,
    /// A file that holds the address, so that the password does not appear in the list of
    /// processes.
    #[arg(long, value_name = "PATH")]
    to_file: Option<PathBuf>,
    /// Check whether the move is possible, and change nothing. The gateway may run.
    #[arg(long)]
    check: bool,
}

impl MoveArgs {
    /// Where to move to; else what is wrong with it, without the address.
    pub(super) fn address(&self) -> Result<Secret, String> {
        match (&self.to, &self.to_file) {
            (Some(text), _) => {
                config::postgres_address(text).map_err(|wrong| format!("--to {wrong}"))
            }
            (None, Some(path)) => config::secret_of("database.url", path)
                .map_err(|wrong| format!("--to-file: {wrong}")),
            (None, None) => Err("--to is missing".to_owned()),
        }
    }
}

pub(super) fn run(config: &Config, args: &MoveArgs, to: &Secret) -> anyhow::Result<()> {
    if args.check {
        for line in commands::check_move(config, to)? {
            say(&format!("{line}\n"))?;
        }
        return say("\nnothing is in the way of the move\n");
    }
    let mut screen = Screen::new();
    let moved = commands::move_database(config, to, &mut |news| screen.show(&news));
    screen.clear();
    let moved = moved?;
    report(&figures(&moved))?;
    report(&done(&moved))
}

/// A line on a terminal that is written over, or now and then a line elsewhere. On standard error:
/// it is not a result.
struct Screen {
    is_terminal: bool,
    shown: Option<Instant>,
    /// Characters of the line that stands there.
    width: usize,
}

impl Screen {
    const REDRAWN: Duration = Duration::from_millis(100);
    const REPEATED: Duration = Duration::from_secs(10);

    fn new() -> Self {
        Self { is_terminal: io::stderr().is_terminal(), shown: None, width: 0 }
    }

    fn show(&mut self, news: &MoveNews<'_>) {
        match news {
            MoveNews::Note(text) => {
                self.clear();
                complain(text);
            }
            MoveNews::Copied { table, rows, of } => {
                let pause = if self.is_terminal { Self::REDRAWN } else { Self::REPEATED };
                let began = *self.shown.get_or_insert_with(Instant::now);
                if began.elapsed() < pause {
                    return;
                }
                self.shown = Some(Instant::now());
                self.draw(&format!("{table}: {rows} of {of} rows"));
            }
        }
    }

    fn draw(&mut self, line: &str) {
        if !self.is_terminal {
            return complain(line);
        }
        let wide = self.width.max(line.len());
        let _unwritable = write!(io::stderr().lock(), "\r{line:wide$}");
        self.width = line.len();
    }

    fn clear(&mut self) {
        if self.width > 0 {
            let _unwritable = write!(io::stderr().lock(), "\r{:1$}\r", "", self.width);
            self.width = 0;
        }
    }
}

/// Both sides, line by line.
fn figures(moved: &Moved) -> String {
    let mut lines = vec![(String::new(), "SQLite".to_owned(), "PostgreSQL".to_owned())];
    let rows = moved.here.tables().zip(moved.there.tables());
    lines.extend(
        rows.map(|((name, here), (_, there))| {
            (name.to_owned(), here.to_string(), there.to_string())
        }),
    );
    let sums = moved.here.sums().into_iter().zip(moved.there.sums());
    lines.extend(sums.map(|((name, here), (_, there))| (name.to_owned(), here, there)));
    let users = (moved.here.users().to_string(), moved.there.users().to_string());
    lines.push(("users with equal sums".to_owned(), users.0, users.1));
    let width = |of: fn(&(String, String, String)) -> &String| {
        lines.iter().map(|l| of(l).len()).max().unwrap_or(0)
    };
    let (name, here, there) = (width(|l| &l.0), width(|l| &l.1), width(|l| &l.2));
    lines.iter().map(|l| format!("{:name$}  {:>here$}  {:>there$}\n", l.0, l.1, l.2)).collect()
}

fn done(moved: &Moved) -> String {
    let (tables, rows) =
        moved.here.tables().fold((0, 0), |(tables, sum), (_, rows)| (tables + 1, sum + rows));
    let first = match moved.already {
        false => format!("moved {rows} rows of {tables} tables"),
        true => format!("an earlier run has moved all {rows} rows of {tables} tables"),
    };
    format!(
        "\n{first}: all counts and sums are the same on both sides\n\nWhat is left to do:\n  1. \
         set database.url (DATABASE_URL) to the address that was moved to; keep data_dir and the \
         secret key\n  2. tollgate check\n  3. start the gateway\nThe SQLite database {} was left \
         as it is. To go back, unset database.url: what is recorded\nfrom now on is in PostgreSQL \
         only.\n",
        moved.database.display()
    )
}
