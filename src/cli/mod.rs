//! The command line: the command and its configuration. `app` serves, and `commands` does the work
//! of the other commands.
//!
//! Exit codes: 0 = done, 1 = it failed, 2 = the command line or the configuration is wrong. Results
//! go to standard output, errors to standard error, and the lines of a running gateway to its log.

mod backup;
mod declarative;
mod doctor;
mod import;
mod moving;
mod reconcile;
mod secret;

use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::{Args, CommandFactory as _, Parser, Subcommand};
use clap_complete::Shell;

use crate::config::{self, Config, LogFormat};
use crate::domain::version;
use crate::files;
use crate::telemetry::{self, LogHandle};
use crate::{app, commands};

/// An AI-model API gateway.
#[derive(Debug, Parser)]
#[command(name = "tollgate", version = version::text())]
struct Cli {
    /// The configuration file; without it conf/tollgate.yaml if there is one, else the defaults.
    #[arg(long, global = true, value_name = "PATH")]
    config: Option<PathBuf>,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve requests (also without any subcommand).
    Serve(ServeArgs),
    /// Validate configuration, database and stored credentials; print what is in effect, secrets
    /// masked.
    Check,
    /// Examine everything a gateway needs (disk, certificates, database, journal, Redis, clocks,
    /// providers), and print what to do about each fault. Exit code 1 if there is one.
    Doctor(doctor::DoctorArgs),
    /// Ask the gateway of this configuration whether it is ready: 0 when it is, 1 when not.
    Health,
    /// Bring the database's schema up to date.
    Migrate,
    /// The key that stored credentials are sealed with.
    Secret {
        #[command(subcommand)]
        command: secret::SecretCommand,
    },
    /// Move the embedded SQLite database to an empty PostgreSQL database. The gateway must be
    /// stopped; an interrupted move goes on when it is started again.
    Move(moving::MoveArgs),
    /// Write the state of a gateway on SQLite to one file: the database, and the records that wait
    /// in the journal. The gateway may run.
    Backup(backup::BackupArgs),
    /// Put the state of a backup into the data directory. The gateway must be stopped; an
    /// interrupted restore goes on when it is started again.
    Restore(backup::RestoreArgs),
    /// Put a file with users, keys, providers and so on in effect. Without --url directly on the
    /// database, whether the gateway runs or not.
    Apply(declarative::ApplyArgs),
    /// Write the file that `tollgate apply` reads.
    Export(declarative::ExportArgs),
    /// Compare vendors' invoices with the ledger, by UTC day, provider and model. Gateways may run.
    Reconcile(reconcile::ReconcileArgs),
    /// Import users, keys, limits, providers, prices and spending of another gateway. Its keys go
    /// on working. Gateways may run.
    Import(import::ImportArgs),
    /// Read back the records that a gateway with a full disk wrote to its log. The gateway may run;
    /// it, or the next start, delivers them, each once.
    ImportLog(ImportLogArgs),
    /// Print the OpenAPI document of the administration API.
    Openapi,
    /// Print a shell completion script.
    Completions { shell: Shell },
    /// Write the manual pages into a folder.
    Man { folder: PathBuf },
    /// Run a scripted upstream that speaks all four wire formats.
    #[cfg(feature = "mock")]
    Mock(MockArgs),
}

#[derive(Debug, Default, Args)]
struct ServeArgs {
    /// Take the listeners over from the running process, which then drains and exits.
    #[arg(long, short)]
    upgrade: bool,
}

#[derive(Debug, Args)]
struct ImportLogArgs {
    /// The log, as text or JSON; `-` is standard input.
    file: PathBuf,
}

#[cfg(feature = "mock")]
#[derive(Debug, Args)]
struct MockArgs {
    /// Where to listen.
    #[arg(long, default_value = "127.0.0.1:9100")]
    addr: std::net::SocketAddr,
}

/// The command line or the configuration is wrong; clap uses the same.
const WRONG_INPUT: u8 = 2;

/// Runs the program.
pub fn run() -> ExitCode {
    let Cli { config: file, command } = Cli::parse();
    files::keep_private();
    match command.unwrap_or_else(|| Command::Serve(ServeArgs::default())) {
        Command::Serve(args) => with_config(file, |config, file| serve(config, file, args.upgrade)),
        Command::Check => with_config(file, |config, _| check(&config)),
        Command::Doctor(args) => with_config(file, |config, _| doctor::doctor(&config, &args)),
        Command::Health => with_config(file, |config, _| health(&config)),
        Command::Migrate => with_config(file, |config, _| migrate(&config)),
        Command::Secret { command } => {
            with_config(file, |config, _| secret::run(&config, &command))
        }
        Command::Move(args) => match args.address() {
            Ok(to) => with_config(file, |config, _| moving::run(&config, &args, &to)),
            Err(wrong) => {
                complain(&wrong);
                ExitCode::from(WRONG_INPUT)
            }
        },
        Command::Backup(args) => with_config(file, |config, _| backup::backup(&config, &args)),
        Command::Restore(args) => with_config(file, |config, _| backup::restore(&config, &args)),
        Command::Apply(args) => with_config(file, |config, _| declarative::apply(&config, &args)),
        Command::Export(args) if args.schema => exit_code(declarative::schema()),
        Command::Export(args) => with_config(file, |config, _| declarative::export(&config, &args)),
        Command::Reconcile(args) => {
            with_config(file, |config, _| reconcile::reconcile(&config, &args))
        }
        Command::Import(args) => with_config(file, |config, _| import::import(&config, &args)),
        Command::ImportLog(args) => with_config(file, |config, _| import_log(&config, &args)),
        Command::Openapi => with_config(file, |config, _| openapi(&config)),
        Command::Completions { shell } => exit_code(completions(shell)),
        Command::Man { folder } => exit_code(man(&folder)),
        #[cfg(feature = "mock")]
        Command::Mock(args) => exit_code(mock(args.addr)),
    }
}

/// Loads the configuration and runs `go` with it, or reports every problem. Variables that look
/// like settings and are none are named either way.
fn with_config(
    file: Option<PathBuf>,
    go: impl FnOnce(Config, Option<PathBuf>) -> anyhow::Result<()>,
) -> ExitCode {
    for stray in config::stray_variables() {
        complain(&format!("warning: {stray}"));
    }
    let file = config::found(file);
    match config::load(file.as_deref(), &config::process_env) {
        Ok(config) => exit_code(go(config, file)),
        Err(problems) => {
            complain(&problems.to_string());
            ExitCode::from(WRONG_INPUT)
        }
    }
}

fn exit_code(result: anyhow::Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&format!("{error:#}"));
            // The configuration is in order, but not for this command.
            let is_input = error.is::<commands::NotEmbedded>()
                || error.is::<commands::BadDocument>()
                || error.is::<commands::BadSource>();
            if is_input { ExitCode::from(WRONG_INPUT) } else { ExitCode::FAILURE }
        }
    }
}

/// Writes a result to standard output. A reader that closed its end (`tollgate check | head`) is no
/// fault: the command goes on, and its exit code says how it ended.
fn say(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(e) if e.kind() != ErrorKind::BrokenPipe => Err(e.into()),
        _ => Ok(()),
    }
}

/// As [`say`], after a command has changed what it was asked to: the error says that it has.
fn report(text: &str) -> anyhow::Result<()> {
    say(text).context("everything was done, but the report of it cannot be written")
}

/// Writes a fault to standard error, where nothing can be done about one that cannot be written.
fn complain(text: &str) {
    let _unwritable = writeln!(io::stderr().lock(), "tollgate: {text}");
}

/// The log is flushed before a failure is printed.
fn serve(config: Config, file: Option<PathBuf>, upgrade: bool) -> anyhow::Result<()> {
    let log = logging(&config)?;
    let served = app::serve(config, app::ConfigSource { file }, upgrade, log.clone());
    log.flush();
    served
}

fn check(config: &Config) -> anyhow::Result<()> {
    say(&config.describe())?;
    let warnings = commands::check(config)?;
    for warning in &warnings {
        complain(&format!("warning: {warning}"));
    }
    say("\nall good\n")
}

fn health(config: &Config) -> anyhow::Result<()> {
    let degraded = commands::health(config)?;
    say("ready\n")?;
    for part in degraded {
        say(&format!("degraded: {part}\n"))?;
    }
    Ok(())
}

fn migrate(config: &Config) -> anyhow::Result<()> {
    let applied = commands::migrate(config)?;
    for name in &applied {
        report(&format!("applied {name}\n"))?;
    }
    if applied.is_empty() {
        say("the database is up to date\n")?;
    }
    Ok(())
}

fn import_log(config: &Config, ImportLogArgs { file }: &ImportLogArgs) -> anyhow::Result<()> {
    let reading = || format!("reading {}", file.display());
    let records = if file == Path::new("-") {
        commands::import_log(config, io::stdin().lock())?
    } else {
        let log = std::fs::File::open(file).with_context(reading)?;
        commands::import_log(config, io::BufReader::new(log)).with_context(reading)?
    };
    report(&match records {
        0 => "the log has no records\n".to_owned(),
        n => format!("{n} records are in the journal: the gateway delivers them, each once\n"),
    })
}

fn openapi(config: &Config) -> anyhow::Result<()> {
    say(&format!("{}\n", commands::openapi(config.admin.app_url.as_deref())?))
}

fn completions(shell: Shell) -> anyhow::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "tollgate", &mut script);
    say(&String::from_utf8(script)?)
}

/// tollgate.1, and a page for each command.
fn man(folder: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(folder)
        .and_then(|()| {
            clap_mangen::generate_to(Cli::command().disable_help_subcommand(true), folder)
        })
        .with_context(|| format!("writing the manual pages into {}", folder.display()))
}

#[cfg(feature = "mock")]
fn mock(addr: std::net::SocketAddr) -> anyhow::Result<()> {
    let log = telemetry::init_logging("info", None, false)?;
    let ended = commands::mock(addr);
    log.flush();
    ended
}

fn logging(config: &Config) -> anyhow::Result<LogHandle> {
    let json = match config.log.format {
        LogFormat::Json => Some(true),
        LogFormat::Text => Some(false),
        LogFormat::Auto => None,
    };
    Ok(telemetry::init_logging(config.live.log_level.as_str(), json, config.log.access)?)
}

#[cfg(test)]
mod tests;
