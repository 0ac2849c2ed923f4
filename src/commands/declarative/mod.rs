//! `tollgate apply` and `tollgate export`: the configuration as a file, on a running gateway or on
//! the database itself.
//!
//! What a document means is the administration's business ([`crate::admin::declarative`]), and the
//! same for both ways. Here are the file, its references, and the places of its faults.

mod references;
pub(super) mod yaml;

use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde_json::{Map, Value, json};

use self::yaml::{Mark, Yaml, YamlFault};
use super::runtime::runtime;
use crate::admin::declarative::{self, By, Desk, Order, Plan, Secrets};
use crate::admin::envelope::ApiError;
use crate::config::{self, Config};
use crate::domain::clock::{Clock as _, SystemClock};
use crate::domain::secret::Secret;
use crate::http_client::Webhooks;
use crate::http_client::administration::{self, AskError};
use crate::policy::builtin_rules::BUILTIN_RULES;
use crate::setup::in_use::InUse;
use crate::setup::{database, secrets, seed};
use crate::state::builtin;
use crate::store::{SealedText, Store};

/// Larger than any sound file.
const MAX_FILE: u64 = 16 << 20;

/// Where a document is applied to, or exported from.
#[derive(Debug)]
pub enum Way {
    /// The database that the configuration names.
    Database,
    /// A running gateway.
    Gateway {
        /// The address of its administration, such as `http://127.0.0.1:8081`.
        url: String,
        /// A file with the token; else the configuration's, or the data directory's.
        token_file: Option<PathBuf>,
    },
}

/// What is to be applied, and how.
#[derive(Debug)]
pub struct Applying<'a> {
    /// `-` is standard input.
    pub file: &'a Path,
    /// Where the document is applied to.
    pub way: &'a Way,
    /// Whether the changes are only listed, and nothing is written.
    pub dry_run: bool,
    /// Whether records that are not in the document are removed, in the sections that it has.
    pub prune: bool,
}

/// A file that cannot be applied: every fault, a line each. Nothing was changed.
#[derive(Debug, thiserror::Error)]
#[error("{file} has {}; nothing was changed\n{}", counted(faults.len()), faults.join("\n"))]
pub struct BadDocument {
    /// The file's name as it was given; `-` is standard input.
    pub file: String,
    /// Each as `file:line:column: message`, in the order of the file; never empty.
    pub faults: Vec<String>,
}

fn counted(faults: usize) -> String {
    if faults == 1 { "a fault".to_owned() } else { format!("{faults} faults") }
}

/// What the gateway, or the database's own rules, have against a document.
pub(super) enum Objection {
    /// Each fault with its JSON pointer.
    Document(Vec<(String, String)>),
    /// Anything that is not a fault of the document.
    Other(anyhow::Error),
}

impl From<anyhow::Error> for Objection {
    fn from(error: anyhow::Error) -> Self {
        Self::Other(error)
    }
}

/// Applies a file.
///
/// # Errors
/// [`BadDocument`], or the gateway or the database cannot be reached. Nothing was changed then.
pub fn apply(config: &Config, applying: &Applying<'_>) -> anyhow::Result<Plan> {
    let name = applying.file.display().to_string();
    let bad = |faults: Vec<YamlFault>| {
        let mut faults = faults;
        faults.sort_by_key(|fault| fault.mark);
        let line = |fault: YamlFault| {
            let Mark { line, column } = fault.mark;
            format!("{name}:{line}:{column}: {}", fault.message)
        };
        BadDocument { file: name.clone(), faults: faults.into_iter().map(line).collect() }
    };
    let mut read = yaml::read(&text(applying.file)?).map_err(|fault| bad(vec![fault]))?;
    let folder = applying.file.parent().unwrap_or(Path::new(""));
    references::resolve(&mut read, folder, &config::process_env).map_err(bad)?;
    let document = match &read.value {
        Value::Object(document) => document.clone(),
        Value::Null => Map::new(),
        _ => {
            let message = "must hold sections: `version: 1`, `users:` and so on".to_owned();
            return Err(bad(vec![YamlFault { mark: Mark { line: 1, column: 1 }, message }]).into());
        }
    };
    let applied = runtime()?.block_on(async {
        match applying.way {
            Way::Database => on_database(config, document, applying).await,
            Way::Gateway { url, token_file } => {
                let token = token(config, token_file.as_deref())?;
                on_gateway(url, &token, document, applying).await
            }
        }
    });
    applied.map_err(|failure| match failure {
        Objection::Other(error) => error,
        Objection::Document(faults) => bad(located(&read, faults)).into(),
    })
}

fn located(yaml: &Yaml, faults: Vec<(String, String)>) -> Vec<YamlFault> {
    faults
        .into_iter()
        .map(|(pointer, message)| YamlFault { mark: yaml.mark(&pointer), message })
        .collect()
}

fn text(file: &Path) -> anyhow::Result<String> {
    let about = || format!("reading {}", file.display());
    let mut bytes = Vec::new();
    if file == Path::new("-") {
        std::io::stdin().lock().take(MAX_FILE + 1).read_to_end(&mut bytes).with_context(about)?;
    } else {
        std::fs::File::open(file)
            .with_context(about)?
            .take(MAX_FILE + 1)
            .read_to_end(&mut bytes)
            .with_context(about)?;
    }
    anyhow::ensure!(
        bytes.len() as u64 <= MAX_FILE,
        "{} is larger than {MAX_FILE} bytes",
        file.display()
    );
    String::from_utf8(bytes).with_context(about)
}

/// The administrator's token: of the file, else of the configuration, else the one that the gateway
/// of this data directory made.
pub(super) fn token(config: &Config, file: Option<&Path>) -> anyhow::Result<Secret> {
    if let Some(path) = file {
        return config::secret_of("auth.admin_token", path)
            .map_err(|wrong| anyhow::anyhow!("--token-file: {wrong}"));
    }
    if let Some(token) = &config.auth.admin_token {
        return Ok(token.clone());
    }
    secrets::kept_admin_token(config)?.context(
        "there is no administrator's token: set ADMIN_TOKEN, or name a file with --token-file",
    )
}

async fn on_gateway(
    url: &str,
    token: &Secret,
    document: Map<String, Value>,
    applying: &Applying<'_>,
) -> Result<Plan, Objection> {
    let body = json!({ "document": document, "dryRun": applying.dry_run, "prune": applying.prune });
    match administration::ask(url, "configuration/applyConfiguration", token, &body).await {
        Ok(plan) => Ok(serde_json::from_value(plan).context("the gateway's answer")?),
        Err(AskError::Refused(envelope)) => {
            match faults(&envelope["errorParams"], &envelope["error"]) {
                Some(faults) => Err(Objection::Document(faults)),
                None => Err(failed(url, AskError::Refused(envelope)).into()),
            }
        }
        Err(error) => Err(failed(url, error).into()),
    }
}

pub(super) fn failed(url: &str, error: AskError) -> anyhow::Error {
    anyhow::anyhow!("the gateway at {url}: {error}")
}

/// The faults of the document that a refusal tells; `None` where it tells something else.
fn faults(params: &Value, error: &Value) -> Option<Vec<(String, String)>> {
    let one = |fault: &Value, error: &Value| {
        Some((fault["pointer"].as_str()?.to_owned(), error.as_str()?.to_owned()))
    };
    match params["faults"].as_array() {
        Some(all) => all.iter().map(|fault| one(fault, &fault["error"])).collect(),
        None => one(params, error).map(|fault| vec![fault]),
    }
}

impl From<ApiError> for Objection {
    fn from(refusal: ApiError) -> Self {
        let params = Value::Object(refusal.params().clone());
        match faults(&params, &refusal.message().into()) {
            Some(faults) => Self::Document(faults),
            None => Self::Other(anyhow::anyhow!(
                "{}",
                refusal.internal_reason().map_or_else(|| refusal.message(), str::to_owned)
            )),
        }
    }
}

/// The database, which must be there and of this version.
///
/// # Errors
/// It is not there, cannot be reached, or has another schema.
pub(super) async fn database(config: &Config) -> anyhow::Result<(InUse, Store)> {
    database::ensure_exists(config)?;
    secrets::data_dir(config)?;
    let in_use = InUse::to_serve(&config.data_dir)?;
    let store = database::store(config).await?;
    store.check_schema().await.context("the database (tollgate migrate brings it up to date)")?;
    Ok((in_use, store))
}

pub(super) async fn stored(store: &Store) -> anyhow::Result<Vec<SealedText>> {
    Ok(store.sealed_texts().await.context("the database")?.0)
}

async fn on_database(
    config: &Config,
    document: Map<String, Value>,
    applying: &Applying<'_>,
) -> Result<Plan, Objection> {
    let (_in_use, store) = database(config).await?;
    let vault = secrets::vault(config, &stored(&store).await?)?;
    let webhooks = Webhooks::new(config.webhooks.allow_private.as_ref().to_vec());
    let now = SystemClock.now();
    let desk = Desk { vault: &vault, webhooks: &webhooks, time_zone: config.time_zone, now };
    let (prune, dry_run) = (applying.prune, applying.dry_run);
    let order = Order { document, prune, dry_run, may_take_last_key: false };
    let by = By { actor: "command line".to_owned(), client: None };
    let mut tx = store.begin().await.context("the database")?;
    // As at a start: else a first price by hand would keep those of the program away.
    seed::prices_into(config, &mut tx, now).await.context("loading the seed price table")?;
    builtin::install_into(&mut tx, BUILTIN_RULES, now).await.context("the database")?;
    let mut applied = declarative::apply(desk, &mut tx, order, by).await?;
    if !applying.dry_run && !applied.plan.changes.is_empty() {
        tx.commit().await.context("the database")?;
        applied.end_logins(&store).await.context("the database")?;
        applied.plan.applied = true;
    }
    Ok(applied.plan)
}

/// The configuration as a YAML file.
pub fn export(config: &Config, way: &Way, secrets: Secrets) -> anyhow::Result<String> {
    let mut document: Value = runtime()?.block_on(async {
        match way {
            Way::Database => {
                let (_in_use, store) = database(config).await?;
                let vault = self::secrets::vault(config, &stored(&store).await?)?;
                let whole = store.load_whole().await.context("the database")?;
                let document = declarative::export(&vault, &whole, secrets);
                document.map(Value::Object).map_err(|refusal| match Objection::from(refusal) {
                    Objection::Other(error) => error,
                    Objection::Document(_) => anyhow::anyhow!("the configuration cannot be exported"),
                })
            }
            Way::Gateway { url, token_file } => {
                let token = token(config, token_file.as_deref())?;
                let body = json!({ "secrets": if secrets == Secrets::Sealed { "sealed" } else { "masked" } });
                let answer = administration::ask(url, "configuration/getConfiguration", &token, &body).await;
                Ok(answer.map_err(|error| failed(url, error))?["document"].take())
            }
        }
    })?;
    references::escape(&mut document);
    Ok(format!("{HEAD}{}", serde_yaml_ng::to_string(&document)?))
}

/// The first lines of an exported file.
const HEAD: &str = "\
# yaml-language-server: $schema=gateway.schema.json
# Written by `tollgate export`, to be read by `tollgate apply` (docs/declarative.md). What is not
# written has its default. A masked secret leaves what is stored.
";

/// The JSON schema of the file.
pub fn schema() -> anyhow::Result<String> {
    Ok(serde_json::to_string_pretty(&declarative::schema())? + "\n")
}
