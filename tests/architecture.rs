//! Checks ARCHITECTURE.md's rules: layers, I/O bans, which crate is named where, headers, sizes,
//! unfinished work. That the other packages do not name the gateway, the compiler checks.
//!
//! A violation is reported with its file, its line and the reason. The checker reads text, so it
//! misses what a macro hides; clippy's `disallowed_methods` covers calls from the other side.

mod source;

use std::fs;
use std::path::{Path, PathBuf};

use source::{NamedPath, blank, paths, without_tests};

/// The modules, from the bottom. A module may name modules of lower layers only.
const LAYERS: [&[&str]; 13] = [
    &["domain", "reasons"],
    &["formats", "policy"],
    &["files"],
    &["redis"],
    &["store"],
    &["limits"],
    &["bounded"],
    &["crypto", "telemetry", "config", "http_client"],
    &["state", "ledger", "upstream", "messages", "otlp"],
    &["jobs"],
    &["proxy", "admin", "notify", "setup"],
    &["app", "commands"],
    &["cli"],
];

/// Sleeps in `tests/` that stay.
const SLEEPS: usize = 20;

/// The parts of `proxy`, from the bottom. A part may name parts of lower layers only: so a request
/// goes down through them, and comes back once.
const PROXY: [&[&str]; 12] = [
    &[
        "blocking",
        "body_budget",
        "caller",
        "coding",
        "embedded_admin",
        "instructions",
        "pending_replies",
        "ready",
        "transcript",
    ],
    &["gateway", "record"],
    &["context"],
    &["cold_cache", "held"],
    &["reply", "settle", "trace"],
    &["connections", "hedge_bill", "late_bill", "request"],
    &["websocket"],
    &["batches", "local", "upstream"],
    &["polling", "probes"],
    &["exchange", "pipeline"],
    &["service"],
    &["accept", "driver"],
];

/// Modules that take the time as an argument and touch neither disk nor network.
const PURE: [&str; 3] = ["domain", "formats", "policy"];

/// A crate (or one that begins with it and `_`) and the only modules that may name it.
const CRATES: [(&str, &[&str], &str); 6] = [
    ("sqlx", &["store"], "every SQL statement is in one module"),
    (
        "redis",
        &["redis", "limits", "state"],
        "only the shared counters and the exchange of provider health speak to Redis",
    ),
    ("pingora", &["proxy", "upstream", "app"], "the proxy engine stays behind the data plane"),
    ("opentelemetry", &["otlp"], "one module speaks OTLP"),
    ("tonic", &["otlp"], "one module speaks gRPC"),
    ("axum", &["admin", "telemetry", "app"], "the data plane has its own server"),
];

/// The sources of the crates with these modules.
const SOURCES: [&str; 4] = ["src", "crates/formats/src", "crates/limits/src", "crates/storage/src"];

/// The place of a rule's own subject: the path under the sources, and the name that is allowed
/// there.
const HOMES: [(&str, &str); 1] = [("domain/clock.rs", "SystemTime::now")];

/// Where `ProxyHttp` is implemented, and the hooks that must be there.
const SERVICE: &str = "proxy/service/mod.rs";
const HOOKS: [&str; 17] = [
    "early_request_filter",
    "request_filter",
    "proxy_upstream_filter",
    "upstream_peer",
    "fail_to_connect",
    "connected_to_upstream",
    "upstream_request_filter",
    "request_body_filter",
    "upstream_response_filter",
    "upstream_response_body_filter",
    "response_filter",
    "response_body_filter",
    "error_while_proxy",
    "fail_to_proxy",
    "logging",
    "suppress_error_log",
    "request_summary",
];

const MAX_LINES: usize = 500;

struct Checked<'a> {
    path: &'a str,
    module: &'a str,
    breaches: Vec<String>,
}

impl Checked<'_> {
    fn breach(&mut self, line: usize, reason: &str) {
        self.breaches.push(format!("{}:{line}: {reason}", self.path));
    }
}

/// All violations of one file. `path` is relative to the sources of its crate.
fn check(path: &str, text: &str) -> Vec<String> {
    let module = path.split('/').next().unwrap_or(path).trim_end_matches(".rs");
    let mut checked = Checked { path, module, breaches: Vec::new() };
    let code = blank(text);
    check_text(&mut checked, text, &code);
    let only_tests = path.ends_with("/tests.rs") || path.contains("/tests/");
    let shipped = if only_tests { String::new() } else { without_tests(&code) };
    for named in paths(&code) {
        check_layer(&mut checked, &named);
    }
    for named in paths(&shipped) {
        check_crates(&mut checked, &named);
        check_proxy(&mut checked, &named);
        check_purity(&mut checked, &named);
    }
    for (number, line) in (1..).zip(shipped.lines()) {
        if checked.path != SERVICE && line.contains("ProxyHttp for") {
            checked.breach(
                number,
                "a second ProxyHttp: the proxy's hooks are in src/proxy/service/mod.rs",
            );
        }
    }
    checked.breaches
}

/// Header, size, and violations within a single line.
fn check_text(checked: &mut Checked<'_>, text: &str, code: &str) {
    if !text.starts_with("//!") {
        checked.breach(1, "no `//!` header: say what the file is, why so, and what it does not do");
    }
    let lines = text.lines().count();
    if lines > MAX_LINES {
        checked.breach(
            lines,
            &format!("{lines} lines: split by idea (aim at 300, stop at {MAX_LINES})"),
        );
    }
    if !checked.path.contains('/') && checked.module != "lib" && checked.module != "main" {
        checked.breach(1, "a file beside the modules: it belongs in one of them");
    } else if layer(checked.module).is_none() && checked.path.contains('/') {
        checked.breach(1, "a module without a layer: give it one in ARCHITECTURE.md and here");
    }
    for (number, (raw, code)) in (1..).zip(text.lines().zip(code.lines())) {
        let dense: String = code.split_whitespace().collect();
        for (mark, reason) in [
            ("todo!", "unfinished code"),
            ("unimplemented!", "unfinished code"),
            ("dbg!", "a debugging aid left behind"),
            ("#[ignore", "an ignored test: make it run or take it out"),
            ("[allow(", "allow without a reason: `#[expect(…, reason = \"…\")]`"),
        ] {
            if dense.contains(mark) {
                checked.breach(number, reason);
            }
        }
        let comment = raw.find("//").map_or("", |at| &raw[at..]);
        if words(comment).any(|word| ["TODO", "FIXME", "XXX", "HACK"].contains(&word)) {
            checked.breach(
                number,
                "a note of unfinished work: do it, or write it down where work is planned",
            );
        }
    }
}

fn check_layer(checked: &mut Checked<'_>, named: &NamedPath) {
    let climbs = named.parts.iter().take_while(|part| *part == "super").count();
    let to_root =
        checked.path.matches('/').count() + usize::from(!checked.path.ends_with("/mod.rs"));
    let other = match named.parts.first().map(String::as_str) {
        Some("crate") if named.parts.len() == 1 => "*",
        Some("crate" | "tollgate") => named.parts[1].as_str(),
        Some("super") if climbs >= to_root && climbs < named.parts.len() => {
            named.parts[climbs].as_str()
        }
        _ => return,
    };
    if other == "*" {
        return checked.breach(named.line, "names the whole crate: name the module");
    }
    if checked.module == "lib" || other == checked.module {
        return;
    }
    if checked.module == "main" {
        if !["cli", "app"].contains(&other) {
            checked.breach(named.line, &format!("main reaches {other}: it only hands over to cli"));
        }
        return;
    }
    if let (Some(here), Some(there)) = (layer(checked.module), layer(other)) {
        let module = checked.module;
        if there > here {
            checked.breach(
                named.line,
                &format!("{module} reaches up to {other}: imports point down only"),
            );
        } else if there == here {
            checked.breach(
                named.line,
                &format!(
                    "{module} reaches {other}, its neighbour: modules of one layer stay apart"
                ),
            );
        }
    }
}

/// The order of the parts of `proxy`.
fn check_proxy(checked: &mut Checked<'_>, named: &NamedPath) {
    let Some(inside) = checked.path.strip_prefix("proxy/") else { return };
    let mut at: Vec<&str> = inside.trim_end_matches(".rs").split('/').collect();
    at.retain(|part| *part != "mod");
    let climbs = named.parts.iter().take_while(|part| *part == "super").count();
    let other = match named.parts.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["crate", "proxy", other, ..] => other,
        ["super", ..] if climbs == at.len() && climbs < named.parts.len() => &named.parts[climbs],
        _ => return,
    };
    let part = |name: &str| PROXY.iter().position(|parts| parts.contains(&name));
    let Some(here) = at.first().filter(|here| **here != other) else { return };
    match (part(here), part(other)) {
        (None, _) => checked.breach(1, "a part of proxy without a layer: give it one here"),
        (Some(low), Some(high)) if high >= low => {
            let what = format!("{here} reaches {other}, which does not stand below it in proxy");
            checked.breach(named.line, &what);
        }
        _ => {}
    }
}

fn check_crates(checked: &mut Checked<'_>, named: &NamedPath) {
    let first = named.parts[0].as_str();
    for (name, modules, why) in CRATES {
        let same =
            first.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('_'));
        if same && !modules.contains(&checked.module) {
            checked.breach(
                named.line,
                &format!("{first} is named outside of {}: {why}", modules.join(", ")),
            );
        }
    }
    if named.starts_with(&["std", "env"]) && checked.module != "config" {
        checked.breach(named.line, "std::env outside of config: take a validated setting");
    }
}

fn check_purity(checked: &mut Checked<'_>, named: &NamedPath) {
    if !PURE.contains(&checked.module) {
        return;
    }
    let outside = ["tokio", "reqwest", "hyper", "socket2", "mio", "async_std"]
        .contains(&named.parts[0].as_str())
        || ["fs", "net", "process", "thread", "os"].iter().any(|m| named.starts_with(&["std", m]));
    if outside {
        checked.breach(named.line, "I/O in a pure module: take the data as an argument");
    }
    let clocks = [["SystemTime", "now"], ["Instant", "now"], ["Utc", "now"], ["Local", "now"]];
    let home = HOMES
        .iter()
        .any(|(path, what)| *path == checked.path && named.parts.join("::").ends_with(what));
    if clocks.iter().any(|clock| named.ends_with(clock)) && !home {
        checked.breach(named.line, "a clock in a pure module: take the time as an argument");
    }
}

fn layer(module: &str) -> Option<usize> {
    LAYERS.iter().position(|modules| modules.contains(&module))
}

fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !c.is_alphanumeric() && c != '_')
}

fn rust_files(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn the_sources_keep_the_rules_of_the_architecture() {
    let mut breaches = Vec::new();
    for sources in SOURCES {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join(sources);
        let mut files = Vec::new();
        rust_files(&sources, &mut files);
        assert!(files.len() > 20, "the sources were not found under {}", sources.display());
        files.sort();
        for file in files {
            let text = fs::read_to_string(&file).unwrap();
            breaches.extend(check(file.strip_prefix(&sources).unwrap().to_str().unwrap(), &text));
        }
    }
    assert!(
        breaches.is_empty(),
        "{} breaches of the rules:\n{}",
        breaches.len(),
        breaches.join("\n")
    );
}

#[test]
fn the_proxy_is_a_proxyhttp_with_every_hook() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(SERVICE);
    let code = without_tests(&blank(&fs::read_to_string(path).unwrap()));
    let (_, service) =
        code.split_once("impl ProxyHttp for Service {").expect("the service implements ProxyHttp");
    let (hooks, _) = service.split_once("\n}\n").unwrap();
    for hook in HOOKS {
        assert!(hooks.contains(&format!("fn {hook}(")), "{hook} is not implemented");
    }
}

/// A sleep makes a test slow or lets it fail by chance. `tests/support/wait.rs` waits for things.
#[test]
fn each_sleep_of_a_test_has_its_reason_and_there_are_few() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let (mut files, mut sleeps, mut bare) = (Vec::new(), 0, Vec::new());
    rust_files(&tests, &mut files);
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        for (at, line) in blank(&text).lines().enumerate() {
            if line.contains("sleep(") {
                sleeps += 1;
                // A reason may have two lines.
                let is_given = |line: &&str| line.trim_start().starts_with("// Sleeps: ");
                if !lines[at.saturating_sub(2)..at].iter().any(is_given) {
                    bare.push(format!("{}:{}", file.display(), at + 1));
                }
            }
        }
    }
    assert!(bare.is_empty(), "sleeps without `// Sleeps: ` and a reason: {bare:#?}");
    assert!((1..=SLEEPS).contains(&sleeps), "{sleeps} sleeps in tests");
}

/// Every rule, with a text that violates it: (file, code after the header, the expected report;
/// empty = clean).
const PLANTED: &[(&str, &str, &str)] = &[
    ("domain/key.rs", "use crate::store::Store;", "domain/key.rs:2: domain reaches up to store"),
    (
        "policy/a.rs",
        "fn f() {\n crate::formats::x();\n}",
        "policy/a.rs:3: policy reaches formats, its neighbour",
    ),
    (
        "store/a.rs",
        "use crate::{\n domain::Key,\n admin::Context,\n};",
        "store/a.rs:4: store reaches up to admin",
    ),
    ("proxy/a.rs", "use {crate::admin as front};", "proxy reaches admin"),
    ("state/a.rs", "use super::super::{ledger::Ledger};", "state reaches ledger"),
    ("state/mod.rs", "use super::ledger::Ledger;", "state reaches ledger"),
    ("state/a/b.rs", "use super::ledger::Ledger;", ""),
    ("state/a.rs", "use crate::*;", "names the whole crate"),
    ("state/a.rs", "use crate as whole;", "names the whole crate"),
    ("main.rs", "use tollgate::store::Store;", "main reaches store"),
    (
        "state/a.rs",
        "#[cfg(test)]\nmod tests { use crate::proxy::x; }",
        "state/a.rs:3: state reaches up to proxy",
    ),
    ("state/a.rs", "use crate::{domain::key::Key, store::{self, Store}, policy};", ""),
    (
        "proxy/a.rs",
        "/* crate::admin */ // crate::admin\n\
         const A: &str = r#\"crate::admin \"#; const B: char = '\"';",
        "",
    ),
    (
        "proxy/a.rs",
        "const B: char = '\"'; use crate::admin::x; const C: char = '\"';",
        "proxy reaches admin",
    ),
    ("proxy/a.rs", "fn f<'a>(x: &'a str) { crate::admin::g::<'a>(x) }", "proxy reaches admin"),
    ("ledger/a.rs", "use sqlx::Row;", "sqlx is named outside of store"),
    ("ledger/a.rs", "fn f(e: sqlx::Error) {}", "sqlx is named outside of store"),
    ("ledger/a.rs", "use sqlx;", "sqlx is named outside of store"),
    (
        "admin/a.rs",
        "use pingora_core::Result;",
        "pingora_core is named outside of proxy, upstream, app",
    ),
    ("proxy/a.rs", "async fn f(r: ::axum::Router) {}", "axum is named outside of"),
    ("admin/a.rs", "use redis::Client;", "redis is named outside of redis, limits, state"),
    ("app/a.rs", "use std::{env, fs};", "std::env outside of config"),
    ("app/a.rs", "fn f() { std::env::var(\"X\"); }", "std::env outside of config"),
    ("config/a.rs", "use std::env;", ""),
    ("proxy/upstream/attempt.rs", "impl ProxyHttp for Other {}", "a second ProxyHttp"),
    ("app/a.rs", "impl pingora::proxy::ProxyHttp for Other {}", "a second ProxyHttp"),
    ("proxy/service/mod.rs", "impl ProxyHttp for Service {}", ""),
    ("proxy/driver/mod.rs", "use pingora::proxy::ProxyHttp as _;", ""),
    (
        "proxy/upstream/attempt.rs",
        "use crate::proxy::exchange::Exchange;",
        "upstream reaches exchange, which does not stand below it in proxy",
    ),
    ("proxy/local/a.rs", "use super::super::upstream::head;", "local reaches upstream"),
    ("proxy/new.rs", "use super::record::Ending;", "a part of proxy without a layer"),
    ("proxy/context.rs", "use super::record::Ending;", ""),
    ("proxy/upstream/mod.rs", "use super::request::plan; use self::head::build;", ""),
    ("formats/a.rs", "use std::fs;", "I/O in a pure module"),
    (
        "formats/a.rs",
        "#[cfg(test)]\nmod tests { use std::fs; }\nuse std::net::TcpStream;",
        "formats/a.rs:4: I/O in a pure module",
    ),
    ("formats/a.rs", "#[cfg(test)]\nmod tests { use std::fs; }", ""),
    ("policy/a.rs", "async fn f() { tokio::task::yield_now().await }", "I/O in a pure module"),
    ("policy/a.rs", "fn f() { std::time::Instant::now(); }", "a clock in a pure module"),
    ("domain/a.rs", "fn f() { Utc::now(); }", "a clock in a pure module"),
    ("domain/clock.rs", "fn f() { std::time::SystemTime::now(); }", ""),
    ("app/a.rs", "fn f() { todo!(\"later\") }", "unfinished code"),
    ("app/a.rs", "fn f() { unimplemented!() }", "unfinished code"),
    ("app/a.rs", "fn f() { dbg!(1); }", "a debugging aid"),
    ("app/a.rs", "#[test]\n#[ignore = \"slow\"]\nfn f() {}", "app/a.rs:3: an ignored test"),
    ("app/a.rs", "#![allow(dead_code)]", "allow without a reason"),
    ("app/a.rs", "#[expect(dead_code, reason = \"not #[allow(dead_code)]\")]\nfn f() {}", ""),
    ("app/a.rs", "// TODO: more", "a note of unfinished work"),
    ("utils.rs", "", "a file beside the modules"),
    ("common/mod.rs", "", "a module without a layer"),
];

#[test]
fn a_planted_breach_is_caught_and_clean_code_is_not() {
    for (path, code, expected) in PLANTED {
        let found = check(path, &format!("//! Header.\n{code}\n"));
        if expected.is_empty() {
            assert_eq!(found, Vec::<String>::new(), "{path}: {code}");
        } else {
            assert!(
                found.iter().any(|f| f.contains(expected)),
                "{path}: {code}\nwanted {expected}, found {found:?}"
            );
        }
    }
}

#[test]
fn headers_and_sizes_are_watched() {
    assert!(check("app/a.rs", "use std::fmt;\n")[0].contains("app/a.rs:1: no `//!` header"));
    let long = format!("//! Header.\n{}", "\n".repeat(MAX_LINES));
    assert!(check("app/a.rs", &long)[0].contains("501 lines"));
}
