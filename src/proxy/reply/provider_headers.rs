//! Reply headers that describe the operator's account at a provider, or the provider's own edge.
//!
//! They describe the operator's account, not the client's: a client that obeys them obeys the wrong
//! limits. `proxy.provider_headers: pass` forwards them. A provider's request id is forwarded in
//! both modes (`request-id`, `x-request-id`, `openai-processing-ms`): it names one reply, and the
//! provider's support asks for it.

/// Whether a header describes the provider's account or edge. `name`: lower-case.
#[must_use]
pub(super) fn is_of_account(name: &str) -> bool {
    let known = matches!(
        name,
        "anthropic-organization-id"
            | "anthropic-project-id"
            | "anthropic-workspace-id"
            | "apim-request-id"
            | "expect-ct"
            | "nel"
            | "openai-organization"
            | "openai-organization-id"
            | "openai-project"
            | "openai-project-id"
            | "ratelimit"
            | "ratelimit-limit"
            | "ratelimit-policy"
            | "ratelimit-remaining"
            | "ratelimit-reset"
            | "report-to"
            | "reporting-endpoints"
            | "retry-after"
            | "retry-after-ms"
            | "server"
            | "server-timing"
            | "set-cookie2"
            | "via"
            | "x-powered-by"
            | "x-served-by"
    );
    known || starts(name).iter().any(|start| name.starts_with(start))
}

/// The candidates by first letter: most headers begin with another one.
fn starts(name: &str) -> &'static [&'static str] {
    match name.as_bytes().first() {
        Some(b'a') => {
            &["anthropic-ratelimit-", "anthropic-priority-", "anthropic-fast-", "azureml-"]
        }
        Some(b'c') => &["cf-"],
        Some(b'x') => &[
            "x-ratelimit-",
            "x-codex-",
            "x-amz-",
            "x-amzn-",
            "x-cache",
            "x-envoy-",
            "x-google-",
            "x-ms-",
        ],
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::is_of_account;

    #[test]
    fn headers_of_an_account_are_distinguished_from_those_of_the_reply() {
        for name in [
            "anthropic-ratelimit-requests-remaining",
            "anthropic-ratelimit-unified-5h-utilization",
            "anthropic-organization-id",
            "openai-organization",
            "openai-project",
            "x-ratelimit-remaining-tokens",
            "x-codex-primary-used-percent",
            "cf-ray",
            "server",
            "via",
        ] {
            assert!(is_of_account(name), "{name}");
        }
        for name in [
            "content-type",
            "request-id",
            "x-request-id",
            "openai-processing-ms",
            "openai-version",
            "date",
            "vary",
        ] {
            assert!(!is_of_account(name), "{name}");
        }
    }
}
