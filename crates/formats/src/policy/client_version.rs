//! Recognises coding clients and their versions by the user agent.
//!
//! Only known user agents are recognised; for anything else no version is required. A user agent
//! can be forged: the check keeps genuine clients up to date, and is not access control.

use std::fmt;

/// The known clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[derive(strum::IntoStaticStr, strum::EnumString)]
#[strum(serialize_all = "kebab-case")]
pub enum Client {
    /// Claude Code and its SDK.
    ClaudeCode,
    /// Codex: its terminal program, `exec`, its SDK and its editor extension.
    Codex,
    /// Gemini CLI, whatever program runs it.
    GeminiCli,
    /// The opencode program.
    #[strum(serialize = "opencode")]
    OpenCode,
    /// Qwen Code.
    QwenCode,
}

/// The text before the version in each client's user agent, in lower case. With a hyphen at the
/// end, any word may follow it (Gemini CLI names the program that runs it). Taken from the released
/// programs' requests; for opencode and Qwen Code from their source.
const AGENTS: &[(&str, Client)] = &[
    ("claude-cli", Client::ClaudeCode),
    ("claude-code", Client::ClaudeCode),
    ("codex_cli_rs", Client::Codex),
    ("codex_exec", Client::Codex),
    ("codex_sdk_ts", Client::Codex),
    ("codex_vscode", Client::Codex),
    ("codex-tui", Client::Codex),
    ("geminicli", Client::GeminiCli),
    ("geminicli-", Client::GeminiCli),
    ("opencode", Client::OpenCode),
    ("qwencode", Client::QwenCode),
];

impl Client {
    /// Every known client, each once.
    pub const ALL: [Self; 5] =
        [Self::ClaudeCode, Self::Codex, Self::GeminiCli, Self::OpenCode, Self::QwenCode];

    /// The display name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ClaudeCode => "Claude Code",
            Self::Codex => "Codex CLI",
            Self::GeminiCli => "Gemini CLI",
            Self::OpenCode => "opencode",
            Self::QwenCode => "Qwen Code",
        }
    }

    /// The name for programs and the database.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Reads what [`Self::as_str`] writes; `None` for any other text.
    pub fn parse(text: &str) -> Option<Self> {
        text.parse().ok()
    }
}

/// A version of three numbers; a pre-release is older than the release.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Version {
    /// The first number.
    pub major: u32,
    /// The second number.
    pub minor: u32,
    /// The third number.
    pub patch: u32,
    /// False for a pre-release, such as `1.2.3-beta.1`.
    pub released: bool,
}

impl Version {
    /// Reads `1.2.3`, `v1.2.3` or `1.2.3-beta.1`; anything after a `+` is ignored.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.strip_prefix('v').unwrap_or(text);
        let text = text.split('+').next()?;
        let (numbers, released) = match text.split_once('-') {
            Some((numbers, _)) => (numbers, false),
            None => (text, true),
        };
        let number = |part: Option<&str>| {
            part.filter(|p| (1..=9).contains(&p.len()) && p.bytes().all(|b| b.is_ascii_digit()))?
                .parse()
                .ok()
        };
        let mut parts = numbers.split('.');
        let version = Self {
            major: number(parts.next())?,
            minor: number(parts.next())?,
            patch: number(parts.next())?,
            released,
        };
        parts.next().is_none().then_some(version)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)?;
        if self.released { Ok(()) } else { f.write_str("-pre") }
    }
}

/// The client and version in a user agent.
pub fn read(user_agent: &str) -> Option<(Client, Version)> {
    let (named, rest) = user_agent.split_once('/')?;
    let named = named.to_ascii_lowercase();
    let fits =
        |name: &str| if name.ends_with('-') { named.starts_with(name) } else { named == name };
    let (_, client) = AGENTS.iter().find(|(name, _)| fits(name))?;
    let end = rest.find([' ', '/', '(', ';', ',']).unwrap_or(rest.len());
    Some((*client, Version::parse(&rest[..end])?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_clients_are_distinguished_from_the_rest() {
        for (agent, expected) in [
            ("claude-cli/2.1.329 (external, sdk-cli)", Some("claude-code 2.1.329")),
            ("claude-cli/2.1.329 (external, cli)", Some("claude-code 2.1.329")),
            ("Claude-CLI/1.0.60-beta.2 (external, claude-vscode)", Some("claude-code 1.0.60-pre")),
            ("codex_cli_rs/0.169.0 (Debian 13.0.0; x86_64) xterm", Some("codex 0.169.0")),
            (
                "codex_exec/0.169.0 (Debian 12.0.0; x86_64) dumb (codex_exec; 0.169.0)",
                Some("codex 0.169.0"),
            ),
            ("codex_exec/0.169.0-alpha.1", Some("codex 0.169.0-pre")),
            (
                "GeminiCLI-tui/0.61.0/gemini-2.5-pro (linux; x64; terminal)",
                Some("gemini-cli 0.61.0"),
            ),
            ("GeminiCLIx/0.61.0", None),
            ("GeminiCLI/0.61.0/gemini-2.5-pro (linux; x64)", Some("gemini-cli 0.61.0")),
            ("GeminiCLI/v0.61.0", Some("gemini-cli 0.61.0")),
            ("opencode/1.18.33+build.7", Some("opencode 1.18.33")),
            ("QwenCode/0.2.1 (linux; x64)", Some("qwen-code 0.2.1")),
            ("claude-cli/dev", None),
            ("claude-cli/1.2", None),
            ("claude-cli/1.2.3.4", None),
            ("claude-cli/99999999999.0.0", None),
            ("my claude-cli/2.1.329", None),
            ("anthropic-sdk-python/0.40.0", None),
            ("é", None),
            ("", None),
        ] {
            let found =
                read(agent).map(|(client, version)| format!("{} {version}", client.as_str()));
            assert_eq!(found.as_deref(), expected, "{agent}");
        }
        assert!(
            Client::ALL.into_iter().all(|client| Client::parse(client.as_str()) == Some(client))
        );
    }

    #[test]
    fn versions_are_compared_as_numbers_and_before_a_release_is_older() {
        let order = ["0.9.10", "1.0.0-rc.1", "1.0.0", "1.0.9", "1.0.10", "1.2.0", "2.0.0"];
        let versions: Vec<Version> =
            order.iter().map(|text| Version::parse(text).unwrap()).collect();
        assert!(versions.is_sorted());
    }
}
