//! The command line: what to do, with which configuration. Everything is done by `app`.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "this is where the program speaks to its user")]

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

use crate::app;
use crate::config::{self, Config, LogFormat};
use crate::telemetry::{self, LogHandle};

/// An AI-model API gateway.
#[derive(Debug, Parser)]
#[command(name = "tollgate", version)]
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
    /// Validate configuration, database and stored credentials; print what is in force, secrets masked.
    Check,
    /// Bring the database's schema up to date.
    Migrate,
    /// Print the OpenAPI document of the administration API.
    Openapi,
    /// Run a scripted upstream that speaks all four wire formats.
    Mock(MockArgs),
}

#[derive(Debug, Default, Args)]
struct ServeArgs {
    /// Take the listeners over from the running process, which then drains and leaves.
    #[arg(long, short)]
    upgrade: bool,
}

#[derive(Debug, Args)]
struct MockArgs {
    /// Where to listen.
    #[arg(long, default_value = "127.0.0.1:9100")]
    addr: SocketAddr,
}

/// Runs the program.
#[must_use]
pub fn run() -> ExitCode {
    let cli = Cli::parse();
    match execute(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("tollgate: {e:#}");
            ExitCode::FAILURE
        }
    }
}

fn execute(cli: Cli) -> anyhow::Result<()> {
    let file = cli.config;
    match cli.command.unwrap_or_else(|| Command::Serve(ServeArgs::default())) {
        Command::Mock(mock) => {
            let log = telemetry::init_logging("info", None, false)?;
            let ended = app::mock(mock.addr);
            log.flush();
            ended
        }
        Command::Openapi => {
            let config = load(file.as_ref())?;
            println!("{}", app::openapi(config.admin.app_url.as_deref())?);
            Ok(())
        }
        Command::Check => {
            let config = load(file.as_ref())?;
            print!("{}", config.describe());
            app::check(&config)?;
            println!("\nall good");
            Ok(())
        }
        Command::Migrate => {
            let applied = app::migrate(&load(file.as_ref())?)?;
            match applied.as_slice() {
                [] => println!("the database is up to date"),
                names => println!("applied {}", names.join(", ")),
            }
            Ok(())
        }
        Command::Serve(serve) => {
            let config = load(file.as_ref())?;
            let log = logging(&config)?;
            let served = app::serve(config, app::Source { file }, serve.upgrade, log.clone());
            log.flush();
            served
        }
    }
}

/// Loads the configuration; variables that look like settings and are none are named.
fn load(file: Option<&PathBuf>) -> anyhow::Result<Config> {
    for stray in config::stray_variables() {
        eprintln!("tollgate: warning: {stray}");
    }
    config::load(file.map(PathBuf::as_path), &config::process_env)
        .map_err(|problems| anyhow::anyhow!("the configuration cannot be used:\n{problems}"))
}

fn logging(config: &Config) -> anyhow::Result<LogHandle> {
    let json = match config.log.format {
        LogFormat::Json => Some(true),
        LogFormat::Text => Some(false),
        LogFormat::Auto => None,
    };
    Ok(telemetry::init_logging(&config.log.level, json, config.log.access)?)
}
