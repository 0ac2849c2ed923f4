//! `tollgate reconcile`: vendors' invoices beside the ledger, asked of a running gateway or made
//! from the database itself. Both answer the same record.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde_json::{Map, Value, json};

use super::declarative::{Way, database, failed, stored, token};
use super::runtime::runtime;
use crate::admin::actions::reconciliation::{MAX_FILE, ReconcileQuery, answer};
use crate::admin::bodies;
use crate::admin::envelope::ApiError;
use crate::config::Config;
use crate::domain::clock::{Clock as _, SystemClock};
use crate::formats::invoice::{FileKind, reduce};
use crate::http_client::administration;
use crate::setup::secrets;

/// A billing file may have lines of every service; those of AI models are picked out.
const MAX_BILLING_FILE: u64 = 256 << 20;

/// What is to be compared.
#[derive(Debug)]
pub struct Reconciling<'a> {
    /// The ledger of the gateway.
    pub way: &'a Way,
    /// The only provider, by name or id.
    pub provider: Option<&'a str>,
    /// The first day, `YYYY-MM-DD`.
    pub from: Option<&'a str>,
    /// The last day.
    pub until: Option<&'a str>,
    /// A billing file in place of the report API.
    pub file: Option<(FileKind, &'a Path)>,
}

/// The comparison, as the administration API answers it.
///
/// # Errors
/// The gateway or the database cannot be reached, or what was asked for is not as it must be.
pub fn reconcile(config: &Config, asked: &Reconciling<'_>) -> anyhow::Result<Value> {
    let mut body = Map::new();
    for (name, date) in [("startDate", asked.from), ("endDate", asked.until)] {
        body.extend(date.map(|date| (name.to_owned(), Value::from(date))));
    }
    if let Some((kind, path)) = asked.file {
        anyhow::ensure!(
            asked.provider.is_some(),
            "a billing file is one provider's: name it with --provider"
        );
        body.insert("fileKind".to_owned(), kind.as_str().into());
        body.insert("csv".to_owned(), file(kind, path)?.into());
    }
    runtime()?.block_on(async {
        match asked.way {
            Way::Database => on_database(config, asked.provider, body).await,
            Way::Gateway { url, token_file } => {
                on_gateway(config, url, token_file.as_ref(), asked.provider, body).await
            }
        }
    })
}

/// The lines of AI models of a billing file.
fn file(kind: FileKind, path: &Path) -> anyhow::Result<String> {
    let about = || format!("reading {}", path.display());
    let mut text = String::new();
    let file = std::fs::File::open(path).with_context(about)?;
    file.take(MAX_BILLING_FILE + 1).read_to_string(&mut text).with_context(about)?;
    let hint = "export only the lines of AI services (docs/reconcile.md)";
    let is_within = text.len() as u64 <= MAX_BILLING_FILE;
    anyhow::ensure!(
        is_within,
        "{} is larger than {MAX_BILLING_FILE} bytes: {hint}",
        path.display()
    );
    let reduced = reduce(kind, &text).with_context(about)?;
    let is_within = reduced.len() <= MAX_FILE;
    anyhow::ensure!(is_within, "{} has too many lines of AI models: {hint}", path.display());
    Ok(reduced)
}

async fn on_database(
    config: &Config,
    provider: Option<&str>,
    mut body: Map<String, Value>,
) -> anyhow::Result<Value> {
    let (_in_use, store) = database(config).await?;
    let vault = secrets::vault(config, &stored(&store).await?)?;
    if let Some(wanted) = provider {
        let providers = store.load_all().await.context("the database")?.providers;
        let named = providers.iter().map(|p| (p.provider.id.0, p.provider.name.as_str()));
        body.insert("providerId".to_owned(), found(wanted, named)?.into());
    }
    let said = |refusal: ApiError| match refusal.internal_reason() {
        Some(why) => anyhow::anyhow!("{why}"),
        None => anyhow::anyhow!("{}", refusal.message()),
    };
    let query: ReconcileQuery = bodies::read(&body).map_err(said)?;
    let record = answer(&store, &vault, query, SystemClock.now()).await.map_err(said)?;
    Ok(serde_json::to_value(record)?)
}

async fn on_gateway(
    config: &Config,
    url: &str,
    token_file: Option<&PathBuf>,
    provider: Option<&str>,
    mut body: Map<String, Value>,
) -> anyhow::Result<Value> {
    let token = token(config, token_file.map(PathBuf::as_path))?;
    let ask = async |operation: &str, body: &Value| {
        let answer = administration::ask(url, operation, &token, body).await;
        answer.map_err(|error| failed(url, error))
    };
    if let Some(wanted) = provider {
        let providers = ask("providers/getProviders", &json!({})).await?;
        let named = providers.as_array().into_iter().flatten();
        let named = named.filter_map(|p| Some((p["id"].as_i64()?, p["name"].as_str()?)));
        body.insert("providerId".to_owned(), found(wanted, named)?.into());
    }
    ask("reconciliation/getReconciliation", &Value::Object(body)).await
}

/// The provider of this name, or of this id.
fn found<'p>(wanted: &str, providers: impl Iterator<Item = (i64, &'p str)>) -> anyhow::Result<i64> {
    let providers: Vec<(i64, &str)> = providers.collect();
    let named: Vec<i64> =
        providers.iter().filter(|(_, name)| *name == wanted).map(|(id, _)| *id).collect();
    match named[..] {
        [id] => Ok(id),
        [] => {
            let by_id = providers.iter().find(|(id, _)| id.to_string() == wanted);
            by_id.map(|(id, _)| *id).with_context(|| format!("there is no provider {wanted:?}"))
        }
        _ => anyhow::bail!("several providers are named {wanted:?}: write the id of one"),
    }
}
