//! claude-code-hub's providers, which are much as they are here.

use std::collections::HashMap;

use rust_decimal::Decimal;
use serde_json::Value;

use super::claude_code_hub::{limits, put, put_reset};
use super::model::{Form, Mapped, MappedProvider, UniqueNames, shortened};
use crate::domain::proxy_address::{self, ProxyAddress, is_password};
use crate::store::peer::{PeerData, PeerRow};

fn kind(row: &PeerRow) -> Result<&'static str, &'static str> {
    match row.text("provider_type").unwrap_or("claude") {
        "claude" => Ok("native"),
        "claude-auth" => Ok("native-auth"),
        "codex" => Ok("responses"),
        "openai-compatible" => Ok("chat-compatible"),
        "gemini" => Ok("alt-cli"),
        "gemini-cli" => Err("its credential is a Google login, which tollgate does not renew"),
        _ => Err("tollgate does not have this type of provider"),
    }
}

/// Maps the providers. Returns their positions by the peer's ids.
pub(super) fn map<'d>(data: &'d PeerData, mapped: &mut Mapped) -> HashMap<&'d str, usize> {
    let mut names = UniqueNames::default();
    let mut positions = HashMap::new();
    for row in data.rows("providers").iter().filter(|row| row.time("deleted_at").is_none()) {
        let id = row.text("id").unwrap_or_default();
        let name = names.unique(row.text("name").unwrap_or_default(), id);
        let credential = row.text("key").unwrap_or_default();
        let kind = kind(row).and_then(|kind| {
            match credential.starts_with('{') || credential.starts_with("ya29.") {
                true => Err("its credential is a Google login, which tollgate does not renew"),
                false => Ok(kind),
            }
        });
        match kind {
            Err(why) => mapped.notes.add(why, format!("provider {name:?}")),
            Ok(kind) => {
                positions.insert(id, mapped.providers.len());
                let form = provider(row, kind, &name, mapped);
                mapped.providers.push(MappedProvider {
                    name,
                    form,
                    limits: limits(row, "limit_daily_usd"),
                });
            }
        }
    }
    positions
}

fn provider(row: &PeerRow, kind: &str, name: &str, mapped: &mut Mapped) -> Form {
    let mut form = Form::new();
    let int = |column: &str, default: i64, min: i64, max: i64| {
        row.int(column).unwrap_or(default).clamp(min, max)
    };
    put(&mut form, "url", row.text("url").unwrap_or_default());
    put(&mut form, "key", row.text("key").unwrap_or_default());
    put(&mut form, "provider_type", kind);
    put(&mut form, "is_enabled", row.flag("is_enabled").unwrap_or(true));
    put(&mut form, "weight", int("weight", 1, 1, 100));
    put(&mut form, "priority", int("priority", 0, -1_000, 1_000_000));
    let multiplier = row
        .decimal("cost_multiplier")
        .unwrap_or(Decimal::ONE)
        .clamp(Decimal::ZERO, Decimal::ONE_THOUSAND);
    put(&mut form, "cost_multiplier", multiplier.round_dp(4).normalize().to_string());
    put(&mut form, "group_tag", row.text("group_tag").unwrap_or_default());
    put_reset(&mut form, row);
    put(&mut form, "max_retry_attempts", int("max_retry_attempts", 2, 1, 10));
    put(
        &mut form,
        "circuit_breaker_failure_threshold",
        int("circuit_breaker_failure_threshold", 5, 0, 1_000),
    );
    let open = int("circuit_breaker_open_duration", 1_800_000, 1_000, 86_400_000);
    put(&mut form, "circuit_breaker_open_duration", open);
    let successes = int("circuit_breaker_half_open_success_threshold", 2, 1, 100);
    put(&mut form, "circuit_breaker_half_open_success_threshold", successes);
    for column in [
        "first_byte_timeout_streaming_ms",
        "streaming_idle_timeout_ms",
        "request_timeout_non_streaming_ms",
    ] {
        put(&mut form, column, int(column, 0, 0, 3_600_000));
    }
    if let Some(ttl) = row.text("cache_ttl_preference").filter(|ttl| matches!(*ttl, "5m" | "1h")) {
        put(&mut form, "cache_ttl_preference", ttl);
    }
    put(&mut form, "preserve_client_ip", row.flag("preserve_client_ip").unwrap_or(false));
    put(&mut form, "note", shortened(row.text("description").unwrap_or_default(), 200));
    models(row, &mut form, name, mapped);
    proxy(row, &mut form, name, mapped);
    leftovers(row, name, mapped);
    form
}

/// Lists of models: as texts, or (in newer versions) as rules that match a name or its beginning.
fn models(row: &PeerRow, form: &mut Form, name: &str, mapped: &mut Mapped) {
    let mut refuse = |what: &str| {
        let why = "tollgate's lists of models have whole names and names with a trailing * only";
        mapped.notes.add(why, format!("provider {name:?}: {what}"));
    };
    let mut allowed = Vec::new();
    for entry in
        row.json("allowed_models").and_then(|list| list.as_array().cloned()).unwrap_or_default()
    {
        let pattern = entry["pattern"].as_str().or(entry.as_str()).unwrap_or_default();
        match entry["matchType"].as_str().unwrap_or("exact") {
            "exact" if !pattern.is_empty() => allowed.push(pattern.to_owned()),
            "prefix" if !pattern.is_empty() => allowed.push(format!("{pattern}*")),
            _ => refuse(&format!("allowed model {pattern:?}")),
        }
    }
    let mut redirects = Form::new();
    match row.json("model_redirects") {
        Some(Value::Object(map)) => {
            redirects = map.into_iter().filter(|(_, to)| to.is_string()).collect()
        }
        Some(Value::Array(rules)) => {
            for rule in rules {
                let (from, to) =
                    (rule["source"].as_str().unwrap_or_default(), rule["target"].clone());
                match rule["matchType"].as_str().unwrap_or("exact") {
                    "exact" if to.is_string() => put(&mut redirects, from, to),
                    _ => refuse(&format!("redirect of {from:?}")),
                }
            }
        }
        _ => {}
    }
    put(form, "allowed_models", allowed);
    put(form, "model_redirects", redirects);
}

fn proxy(row: &PeerRow, form: &mut Form, name: &str, mapped: &mut Mapped) {
    let Some(proxy) = row.text("proxy_url") else { return };
    let (address, password) = proxy_address::without_password(proxy);
    if ProxyAddress::parse(&address).is_some() && password.is_none_or(is_password) {
        put(form, "proxy_url", proxy.trim_end_matches('/'));
    } else {
        // Without the proxy its address would be shown to the upstream.
        put(form, "is_enabled", false);
        let why = "the proxy is not of a supported form (HTTP or SOCKS5); the provider is \
                   disabled until you set one";
        mapped.notes.add(why, format!("provider {name:?}"));
    }
    if row.flag("proxy_fallback_to_direct") == Some(true) {
        mapped
            .notes
            .add("tollgate never goes round a proxy that is down", format!("provider {name:?}"));
    }
}

fn leftovers(row: &PeerRow, name: &str, mapped: &mut Mapped) {
    let lists = |column: &str| {
        row.json(column).is_some_and(|v| v.as_array().is_some_and(|list| !list.is_empty()))
    };
    let is =
        |column: &str, unset: &[&str]| row.text(column).is_some_and(|text| !unset.contains(&text));
    for (is_set, what, why) in [
        (
            lists("allowed_clients") || lists("blocked_clients"),
            "lists of clients",
            "tollgate lists clients per user",
        ),
        (is("active_time_start", &[]), "active hours", "tollgate's providers have no hours"),
        (
            is("custom_headers", &["{}", "null"]),
            "custom headers",
            "tollgate sets headers in its settings",
        ),
        (
            is("mcp_passthrough_type", &["none"]),
            "MCP passthrough",
            "tollgate has no MCP passthrough",
        ),
        (
            is("context_1m_preference", &["inherit"]),
            "1M context preference",
            "tollgate passes the client's header on",
        ),
        (
            is("group_priorities", &["{}", "null"]),
            "priorities per group",
            "tollgate's providers have one priority",
        ),
        (
            row.flag("join_claude_pool") == Some(true),
            "claude pool",
            "tollgate converts formats by itself",
        ),
    ] {
        if is_set {
            mapped.notes.add(why, format!("provider {name:?}: {what}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn row(values: &[(&'static str, &str)]) -> PeerRow {
        values.iter().map(|(name, text)| (*name, (*text).to_owned())).collect()
    }

    #[test]
    fn both_forms_of_model_lists_are_read() {
        let lists = |allowed: &str, redirects: &str| {
            let row = row(&[("allowed_models", allowed), ("model_redirects", redirects)]);
            let (mut form, mut mapped) = (Form::new(), Mapped::default());
            models(&row, &mut form, "p", &mut mapped);
            (
                form["allowed_models"].clone(),
                form["model_redirects"].clone(),
                mapped.notes.into_lines().len(),
            )
        };
        assert_eq!(
            lists(r#"["a", "b"]"#, r#"{"x": "y"}"#),
            (json!(["a", "b"]), json!({"x": "y"}), 0)
        );
        let allowed = r#"[{"matchType": "prefix", "pattern": "gpt-"}, {"matchType": "regex", "pattern": "x"}]"#;
        let redirects = r#"[{"matchType": "exact", "source": "x", "target": "y"}, {"matchType": "suffix", "source": "s", "target": "t"}]"#;
        assert_eq!(lists(allowed, redirects), (json!(["gpt-*"]), json!({"x": "y"}), 1));
        assert_eq!(lists("null", "null"), (json!([]), json!({}), 0));
    }
}
