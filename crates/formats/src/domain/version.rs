//! The version of this build.

use std::sync::LazyLock;

/// The release's number.
pub const NUMBER: &str = env!("CARGO_PKG_VERSION");
/// The commit that a release was built from (scripts/dist.sh sets it); none in other builds.
pub const COMMIT: Option<&str> = option_env!("TOLLGATE_COMMIT");

/// Both: `0.1.0 (commit 0123456789ab)`, or `0.1.0 (development build)`.
pub fn text() -> &'static str {
    static TEXT: LazyLock<String> = LazyLock::new(|| match COMMIT {
        Some(commit) => format!("{NUMBER} (commit {commit})"),
        None => format!("{NUMBER} (development build)"),
    });
    &TEXT
}
