//! Which headers of a provider's reply go on to the client: those on a list.
//!
//! A reply stands in the gateway's origin, and often behind another proxy. So no header goes on
//! that a browser or a proxy would obey (`refresh`, `access-control-*`, `x-accel-redirect`), and
//! the gateway sets the content type itself. What goes on names one reply, as the provider's
//! request id does, for which the provider's support asks.
//!
//! Headers that describe the operator's account, or the provider's edge, have a list of their own:
//! a client that obeys them obeys the wrong limits. `proxy.provider_headers: pass` forwards them.

/// Whether a header describes this one reply. `name`: lower-case.
pub(super) fn is_of_reply(name: &str) -> bool {
    matches!(
        name,
        "date"
            | "deprecation"
            | "openai-model"
            | "openai-processing-ms"
            | "openai-version"
            | "request-id"
            | "sunset"
            | "warning"
            | "x-gemini-service-tier"
            | "x-generation-id"
            | "x-model"
            | "x-model-version"
            | "x-models-etag"
            | "x-reasoning-included"
            | "x-request-id"
    )
}

/// Whether a header describes the state of an upload; its address is the gateway's own by now.
/// `name`: lower-case.
pub(super) fn is_of_upload(name: &str) -> bool {
    matches!(
        name,
        "x-goog-upload-chunk-granularity"
            | "x-goog-upload-size-received"
            | "x-goog-upload-status"
            | "x-goog-upload-url"
    )
}

/// Whether a header describes the provider's account or edge. `name`: lower-case.
pub(super) fn is_of_account(name: &str) -> bool {
    let known = matches!(
        name,
        "anthropic-organization-id"
            | "anthropic-project-id"
            | "anthropic-workspace-id"
            | "apim-request-id"
            | "cf-cache-status"
            | "cf-ray"
            | "openai-organization"
            | "openai-organization-id"
            | "openai-project"
            | "openai-project-id"
            | "ratelimit"
            | "ratelimit-limit"
            | "ratelimit-policy"
            | "ratelimit-remaining"
            | "ratelimit-reset"
            | "retry-after"
            | "retry-after-ms"
            | "server"
            | "server-timing"
            | "via"
            | "x-cache"
            | "x-envoy-upstream-service-time"
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
        Some(b'c') => &["cf-aig-"],
        Some(b'x') => &["x-ratelimit-", "x-codex-", "x-amz-", "x-amzn-", "x-google-", "x-ms-"],
        _ => &[],
    }
}

/// Whether a header never goes on, whatever the operator adds: it belongs to one connection or one
/// body, or it is a command to a browser or a proxy. `name`: lower-case.
pub(super) fn is_never_forwarded(name: &str) -> bool {
    const STARTS: [&str; 9] = [
        "access-control-",
        "content-",
        "cross-origin-",
        "proxy-",
        "set-cookie",
        "x-accel-",
        "x-sendfile",
        "x-tollgate-",
        "x-frame-options",
    ];
    let known = matches!(
        name,
        "alt-svc"
            | "cache-control"
            | "clear-site-data"
            | "connection"
            | "expect-ct"
            | "keep-alive"
            | "link"
            | "location"
            | "nel"
            | "origin-trial"
            | "permissions-policy"
            | "referrer-policy"
            | "refresh"
            | "report-to"
            | "reporting-endpoints"
            | "service-worker-allowed"
            | "sourcemap"
            | "strict-transport-security"
            | "surrogate-control"
            | "te"
            | "trailer"
            | "transfer-encoding"
            | "upgrade"
            | "www-authenticate"
            | "x-content-type-options"
            | "x-reproxy-url"
    );
    known || STARTS.iter().any(|start| name.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::{is_never_forwarded, is_of_account, is_of_reply};

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
            assert!(is_of_account(name) && !is_of_reply(name), "{name}");
        }
        for name in ["request-id", "x-request-id", "openai-processing-ms", "openai-version", "date"]
        {
            assert!(!is_of_account(name) && is_of_reply(name), "{name}");
            assert!(!is_never_forwarded(name), "{name}");
        }
        for name in ["x-accel-redirect", "refresh", "set-cookie2", "content-encoding", "link"] {
            assert!(is_never_forwarded(name), "{name}");
            assert!(!is_of_account(name) && !is_of_reply(name), "{name}");
        }
    }
}
