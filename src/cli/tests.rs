//! Valid and invalid command lines.

use clap::CommandFactory as _;

use super::*;

fn parse(line: &str) -> Result<Cli, clap::Error> {
    Cli::try_parse_from(line.split_whitespace())
}

#[test]
fn the_definition_is_sound() {
    Cli::command().debug_assert();
}

#[test]
fn the_file_may_stand_before_or_after_the_command() {
    for line in [
        "tollgate --config here.yaml",
        "tollgate check --config here.yaml",
        "tollgate --config here.yaml check",
    ] {
        assert_eq!(parse(line).unwrap().config, Some(PathBuf::from("here.yaml")), "{line}");
    }
    let upgrading = parse("tollgate serve -u").unwrap().command;
    assert!(matches!(upgrading, Some(Command::Serve(ServeArgs { upgrade: true }))));
}

#[test]
fn wrong_lines_are_refused() {
    for line in [
        "tollgate srve",
        "tollgate check --upgrade",
        "tollgate mock --addr localhost",
        "tollgate serve extra",
        "tollgate move",
        "tollgate move --to postgres://h/x --to-file address",
        "tollgate apply",
        "tollgate apply -f x --token-file y",
        "tollgate import",
        "tollgate import litellm",
        "tollgate import other --from x",
        "tollgate import new-api --from x --from-file y",
        "tollgate export --secrets plain",
        "tollgate export --schema --url http://127.0.0.1:8081",
    ] {
        assert!(parse(line).is_err(), "{line}");
    }
}
