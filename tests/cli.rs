//! The program on the command line: exit codes, and the output of each stream.

mod checked;
mod output;

use std::path::Path;
use std::process::{Command, Output};

use crate::support::gateway::Gateway;

/// Runs the program with only this environment, in an empty folder.
fn run(folder: &Path, arguments: &[&str], env: &[(&str, &str)]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tollgate"))
        .args(arguments)
        .current_dir(folder)
        .env_clear()
        .envs(env.iter().copied())
        .output()
        .unwrap()
}

fn texts(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn a_wrong_configuration_is_explained_and_refused() {
    let folder = tempfile::tempdir().unwrap();
    for arguments in [&[][..], &["serve"], &["check"], &["migrate"]] {
        let env = [("ADMIN_TOKEN", "change-me"), ("TOLLGATE_PROXY_ADDR", "everywhere")];
        let (code, out, err) = texts(&run(folder.path(), arguments, &env));
        assert_eq!((code, out.as_str()), (Some(2), ""), "{arguments:?}: {err}");
        assert!(
            err.contains("2 problems")
                && err.contains("ADMIN_TOKEN")
                && err.contains("`everywhere`"),
            "{err}"
        );
    }
    let (code, _, err) = texts(&run(folder.path(), &["check", "--config", "none.yaml"], &[]));
    assert!(code == Some(2) && err.contains("none.yaml: cannot be read"), "{err}");
}

#[test]
fn check_prints_the_settings_in_effect_and_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("gate.yaml");
    std::fs::write(&file, "proxy: { threads: 3 }\n").unwrap();
    let env = [("ADMIN_TOKEN", "a-secret-admin-token"), ("TOLLGATE_PROXY_THREAD", "4")];
    let (code, out, err) = texts(&run(folder.path(), &["check", "--config", "gate.yaml"], &env));
    assert_eq!(code, Some(0), "{out}{err}");
    let line = |start: &str| {
        out.lines()
            .find(|line| line.starts_with(start))
            .unwrap_or_else(|| panic!("{start} in {out}"))
    };
    assert!(line("proxy.threads: 3").ends_with("# file"));
    assert!(line("auth.admin_token: ***").ends_with("# ADMIN_TOKEN"));
    assert!(!out.contains("a-secret-admin-token"));
    assert!(err.contains("did you mean `TOLLGATE_PROXY_THREADS`?"), "{err}");
    let left: Vec<_> =
        std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["gate.yaml"]);
}

#[test]
fn check_and_secret_status_make_no_database() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("data")).unwrap();
    let (code, out, err) = texts(&run(folder.path(), &["check"], &[]));
    assert_eq!(code, Some(0), "{out}{err}");
    let (code, out, err) = texts(&run(folder.path(), &["secret", "status"], &[]));
    assert!(code == Some(0) && out.contains("there is no database yet"), "{out}{err}");
    assert_eq!(std::fs::read_dir(folder.path().join("data")).unwrap().count(), 0);
    // Nor a secret key, beside a database.
    let (code, out, err) = texts(&run(folder.path(), &["migrate"], &[]));
    assert_eq!(code, Some(0), "{out}{err}");
    let (code, out, err) = texts(&run(folder.path(), &["check"], &[]));
    assert_eq!(code, Some(0), "{out}{err}");
    let (code, out, err) = texts(&run(folder.path(), &["secret", "status"], &[]));
    assert!(code == Some(0) && out.contains("there is no secret key yet"), "{out}{err}");
    assert!(!folder.path().join("data/secret.key").exists());
}

#[test]
fn a_data_directory_that_cannot_be_made_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("file"), "x").unwrap();
    for dir in ["file", "file/below"] {
        let env = [("TOLLGATE_DATA_DIR", dir)];
        let (code, out, err) = texts(&run(folder.path(), &["check"], &env));
        assert_eq!(code, Some(1), "{out}{err}");
        let expected =
            "a start would fail: this user cannot write into file: it is not a directory";
        assert!(format!("{out}{err}").contains(expected), "{out}{err}");
        let (code, out, err) = texts(&run(folder.path(), &["doctor"], &env));
        assert_ne!(code, Some(0), "{out}{err}");
        assert!(out.contains("cannot write into file: it is not a directory"), "{out}{err}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_gateway_shares_no_listener_with_the_first() {
    let first = Gateway::with(&[]).await;
    let folder = tempfile::tempdir().unwrap();
    for (setting, name, url) in [
        ("TOLLGATE_ADMIN_ADDR", "admin.addr", &first.admin),
        ("TOLLGATE_METRICS_ADDR", "metrics.addr", &first.metrics),
    ] {
        let mut env = [
            ("TOLLGATE_PRICES_SYNC", "off"),
            ("TOLLGATE_PROXY_ADDR", "127.0.0.1:0"),
            ("TOLLGATE_ADMIN_ADDR", "127.0.0.1:0"),
            ("TOLLGATE_METRICS_ADDR", "127.0.0.1:0"),
        ];
        for (known, value) in &mut env {
            if *known == setting {
                *value = url.trim_start_matches("http://");
            }
        }
        let output = run(folder.path(), &["serve"], &env);
        let (code, out, err) = texts(&output);
        assert_eq!(code, Some(1), "{out}{err}");
        let said = format!("{out}{err}");
        assert!(said.contains(&format!("({name}) cannot be bound")), "{said}");
    }
}

#[test]
fn migrate_says_what_it_did_once() {
    let folder = tempfile::tempdir().unwrap();
    let (code, first, err) = texts(&run(folder.path(), &["migrate"], &[]));
    assert_eq!(code, Some(0), "{first}{err}");
    assert!(
        first.lines().count() > 0 && first.lines().all(|line| line.starts_with("applied ")),
        "{first}"
    );
    let (code, second, _) = texts(&run(folder.path(), &["migrate"], &[]));
    assert_eq!((code, second.as_str()), (Some(0), "the database is up to date\n"));
    let (code, out, err) = texts(&run(folder.path(), &["check"], &[]));
    assert_eq!(code, Some(0), "{out}{err}");
}

#[test]
fn openapi_prints_a_document() {
    let folder = tempfile::tempdir().unwrap();
    let (code, out, err) =
        texts(&run(folder.path(), &["openapi"], &[("APP_URL", "https://gate.example")]));
    assert_eq!(code, Some(0), "{err}");
    let document: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(document["openapi"], "3.1.0");
    assert!(document["servers"][0]["url"].as_str().unwrap().starts_with("https://gate.example"));
}

#[test]
fn an_unknown_command_is_a_wrong_line() {
    let folder = tempfile::tempdir().unwrap();
    let (code, out, err) = texts(&run(folder.path(), &["srve"], &[]));
    assert!(code == Some(2) && out.is_empty() && err.contains("srve"), "{err}");
    let (code, out, _) = texts(&run(folder.path(), &["--version"], &[]));
    assert_eq!(
        (code, out.trim()),
        (Some(0), concat!("tollgate ", env!("CARGO_PKG_VERSION"), " (development build)"))
    );
}

#[test]
fn completions_and_manual_pages_know_every_command() {
    let folder = tempfile::tempdir().unwrap();
    for (shell, sign) in [
        ("bash", "complete -F _tollgate"),
        ("zsh", "#compdef tollgate"),
        ("fish", "complete -c tollgate"),
    ] {
        let (code, out, err) = texts(&run(folder.path(), &["completions", shell], &[]));
        assert!(
            code == Some(0) && out.contains(sign) && out.contains("rotate"),
            "{shell}: {err}{out}"
        );
    }
    let (code, out, err) = texts(&run(folder.path(), &["completions", "tcl"], &[]));
    assert!(code == Some(2) && out.is_empty() && err.contains("tcl"), "{err}");
    let (code, _, err) = texts(&run(folder.path(), &["man", "pages"], &[]));
    assert_eq!(code, Some(0), "{err}");
    let page =
        |name: &str| std::fs::read_to_string(folder.path().join("pages").join(name)).unwrap();
    assert!(page("tollgate.1").contains("tollgate\\-check(1)"), "{}", page("tollgate.1"));
    assert!(page("tollgate-apply.1").contains("\\-\\-dry\\-run"), "{}", page("tollgate-apply.1"));
    assert!(page("tollgate-secret-rotate.1").contains("\\-\\-distributed"));
    // A folder that cannot be made.
    std::fs::write(folder.path().join("file"), "").unwrap();
    let (code, _, err) = texts(&run(folder.path(), &["man", "file"], &[]));
    assert!(code == Some(1) && err.contains("file"), "{err}");
}

#[test]
fn health_without_a_gateway_is_a_failure() {
    let folder = tempfile::tempdir().unwrap();
    let port = crate::support::ports::free_port();
    let address = format!("127.0.0.1:{port}");
    let (code, out, err) =
        texts(&run(folder.path(), &["health"], &[("TOLLGATE_METRICS_ADDR", &address)]));
    assert!(
        code == Some(1) && out.is_empty() && err.contains(&address) && err.contains("metrics.addr"),
        "{err}"
    );
}

/// The health command uses loopback for a gateway on every address; one whose database is
/// unreachable is not ready, and reports the reason.
#[tokio::test(flavor = "multi_thread")]
async fn health_is_what_readyz_says() {
    let mut gateway = Gateway::prepare(&[]);
    let port = gateway.metrics.rsplit(':').next().unwrap().to_owned();
    gateway.set("TOLLGATE_METRICS_ADDR", &format!("0.0.0.0:{port}"));
    gateway.spawn();
    gateway.ready().await;
    assert_eq!(gateway.run(&["health"]), (true, "ready\n".to_owned()));
    // Another server that answers there.
    let other = crate::support::upstream::Upstream::start().await;
    let address = other.url.trim_start_matches("http://").to_owned();
    gateway.set("TOLLGATE_METRICS_ADDR", &address);
    let (well, said) = gateway.run(&["health"]);
    assert!(!well && said.contains(&address), "{said}");
}

#[test]
fn a_reader_that_closes_its_end_is_no_panic() {
    let folder = tempfile::tempdir().unwrap();
    for arguments in [&["check"][..], &["openapi"]] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_tollgate"))
            .args(arguments)
            .current_dir(folder.path())
            .env_clear()
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        // Before the program has written anything: the earliest moment at which `head` can exit.
        drop(child.stdout.take());
        let (code, _, err) = texts(&child.wait_with_output().unwrap());
        assert_eq!((code, err.as_str()), (Some(0), ""), "{arguments:?}");
    }
}

/// `make dist` runs it with a program that counts which of its code runs (scripts/layout.sh).
#[test]
fn the_workload_of_the_layout_is_answered_as_expected() {
    let program = env!("CARGO_BIN_EXE_tollgate");
    let done =
        Command::new("scripts/workload.py").args([program, program, "0.1"]).output().unwrap();
    let (code, out, err) = texts(&done);
    assert_eq!((code, out.as_str(), err.as_str()), (Some(0), "", ""));
}
