//! Configuration: reads the YAML file and the environment, and returns one validated [`Config`], or
//! every problem at once.
//!
//! The settings are declared in `sections`, with types of [`bounded`](crate::bounded) and `forms`;
//! `table` is made of these declarations. No other code reads the environment. This module neither
//! applies a reload (`app` does) nor opens listeners or databases.

pub mod forms;
mod machine;
mod pairs;
mod problem;
mod read;
mod rules;
mod secret_file;
mod section;
mod sections;
mod setting;
mod show;
mod table;
mod telemetry_rules;
mod types;
mod values;

use std::path::{Path, PathBuf};

pub use machine::{MachineIdentity, machine_identity};
pub use problem::{ConfigProblem, Problems, nearest};
pub use secret_file::{WatchedFile, postgres_address, secret_of};
use section::SettingsSection as _;
pub use sections::{
    ADMIN_TOKEN_MIN, Admin, Auth, Breaker, Collector, Compression, ConnectionBounds, Database,
    DatabaseTarget, HeaderRules, Instructions, Ledger, Limits, Live, Log, LogFormat, LogLevel,
    Metrics, OnAbort, Otlp, OtlpProtocol, OtlpRelay, PriceUpdates, Prices, ProviderHeaders, Proxy,
    Redis, ReplyHeaders, Retry, Safeguards, Sampler, Session, Shutdown, StatusPage, Telemetry,
    Timeouts, TlsFiles, ToolChecks, WebSockets, Webhooks,
};
use serde_yaml_ng::{Mapping, Value as Yaml};
pub use setting::{Setting, ValueFault};
pub use show::{Changes, SettingChange};
pub use table::SETTINGS;
pub use types::Config;

/// Read if no file is given; it may be missing.
pub const DEFAULT_FILE: &str = "conf/tollgate.yaml";

/// The price table of `conf/prices.json` at build time, for an empty database.
pub const BUILT_IN_PRICES: &str = include_str!("../../conf/prices.json");

/// The file to load: the default one if none is named and it is there. A process keeps to it: when
/// the file is gone at a reload, its settings do not become the defaults.
#[must_use]
pub fn found(named: Option<PathBuf>) -> Option<PathBuf> {
    named.or_else(|| Some(PathBuf::from(DEFAULT_FILE)).filter(|file| file.exists()))
}

/// Loads, overrides, checks. `file: None` = [`DEFAULT_FILE`] if it exists, else the defaults.
///
/// # Errors
/// Everything that is wrong, each with its path and the expected form.
pub fn load(file: Option<&Path>, env: &dyn Fn(&str) -> Option<String>) -> Result<Config, Problems> {
    let mut problems = Problems::default();
    let name = file.unwrap_or(Path::new(DEFAULT_FILE));
    let text = match std::fs::read_to_string(name) {
        Ok(text) => text,
        Err(error) if file.is_none() && error.kind() == std::io::ErrorKind::NotFound => {
            String::new()
        }
        Err(error) => {
            let remedy = "put a readable YAML file there, or name another with --config";
            problems.add(&name.display().to_string(), format!("cannot be read: {error}"), remedy);
            String::new()
        }
    };
    load_text(&text, &name.display().to_string(), env, problems)
}

/// As [`load`], from text. `name` is the file's name in messages.
///
/// # Errors
/// As [`load`].
pub fn load_str(
    text: &str,
    name: &str,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<Config, Problems> {
    load_text(text, name, env, Problems::default())
}

fn load_text(
    text: &str,
    name: &str,
    env: &dyn Fn(&str) -> Option<String>,
    mut problems: Problems,
) -> Result<Config, Problems> {
    let tree = parse(text, name, &mut problems);
    let mut values = read::read(&tree, env, &mut problems);
    secret_file::resolve(&mut values, env, &mut problems);
    match Config::fill(&values) {
        Some(config) => {
            rules::check(&config, &mut problems);
            if problems.0.is_empty() { Ok(config) } else { Err(problems) }
        }
        None => {
            let remedy = "this is a fault of tollgate: please report it";
            problems.add(name, "meets a setting whose default has not its type", remedy);
            Err(problems)
        }
    }
}

fn parse(text: &str, name: &str, problems: &mut Problems) -> Mapping {
    match serde_yaml_ng::from_str::<Yaml>(text) {
        Ok(Yaml::Mapping(tree)) => tree,
        Ok(Yaml::Null) => Mapping::new(),
        Ok(_) => {
            problems.add(
                name,
                "holds no settings",
                "write `name: value` lines, as in conf/tollgate.yaml",
            );
            Mapping::new()
        }
        Err(error) => {
            problems.add(name, format!("is not valid YAML: {error}"), "correct the file there");
            Mapping::new()
        }
    }
}

/// A variable of this process; one that is not Unicode counts as unset.
#[expect(clippy::disallowed_methods, reason = "the one place that reads the environment")]
#[must_use]
pub fn process_env(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// The file that this program was started from. If it was replaced since, Linux appends a mark to
/// its name; then the file that is there now is returned.
pub fn program() -> std::io::Result<PathBuf> {
    let path = std::env::current_exe()?;
    let replaced =
        path.to_str().and_then(|path| path.strip_suffix(" (deleted)")).map(PathBuf::from);
    Ok(replaced.unwrap_or(path))
}

/// `TOLLGATE_…` variables of this process that no setting reads. Each is worth a warning.
#[must_use]
pub fn stray_variables() -> Vec<ConfigProblem> {
    read::strays(std::env::vars_os().filter_map(|(name, _)| name.into_string().ok()))
}
