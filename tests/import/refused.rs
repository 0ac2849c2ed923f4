//! What is not a peer's data is refused with one message, and changes nothing.

use tollgate::store::Backend;

use super::{Bed, execute};
use crate::support::ports::free_port;
use crate::support::postgres;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrong_data_is_refused_and_named() {
    let bed = Bed::new(Backend::Sqlite).await;
    let hub = bed.claude_code_hub().await;
    let empty = postgres::fresh_database();
    let older = postgres::fresh_database();
    execute(&older, "CREATE TABLE users (id serial, name text); CREATE TABLE keys (id serial)")
        .await;
    let new_api = bed.new_api().await;
    let dump = bed.new_api_dump();
    let cut = std::fs::read_to_string(&dump).unwrap();
    let cut = bed.file("cut.sql", cut.split("'it\\'s").next().unwrap());
    let broken =
        bed.file("broken.sql", "CREATE TABLE `users` (\n  `id` bigint sk-ada-0000 ,,\n);\n");
    let lacking = bed
        .file("lacking.sql", "CREATE TABLE `users` (`id` int);\nINSERT INTO `users` VALUES (1);\n");
    let text = bed.file("notes.txt", "nothing of use\n");
    let binary = bed.file("picture", "\u{0}\u{1}");
    let plain = bed.file("pg.sql", "--\n-- PostgreSQL database dump\n--\n");
    let yaml = bed.file("bad.yaml", "model_list: [\n");
    let other = bed.file("other.yaml", "users: []\n");
    let folder = bed.path("data").display().to_string();
    for (peer, from, code, parts) in [
        (
            "litellm",
            hub.as_str(),
            2,
            &["there is no table \"LiteLLM_VerificationToken\"", "LiteLLM at commit"][..],
        ),
        (
            "claude-code-hub",
            &empty,
            2,
            &["there is no table \"users\"", "claude-code-hub at commit"],
        ),
        ("claude-code-hub", &older, 2, &["the table \"users\" has no column \"role\""]),
        ("claude-code-hub", &new_api, 2, &["the table \"users\" has no column \"name\""]),
        ("new-api", &cut, 2, &["the file ends within a statement"]),
        ("new-api", &broken, 2, &["line 1 of the dump cannot be read"]),
        ("new-api", &lacking, 2, &["has no column \"username\""]),
        ("one-api", &text, 2, &["neither an SQLite database nor a MySQL dump"]),
        ("one-api", &binary, 2, &["neither an SQLite database nor a dump"]),
        ("new-api", &plain, 2, &["a PostgreSQL dump is not read"]),
        ("litellm", &yaml, 2, &["bad.yaml:", "it is not valid YAML"]),
        ("litellm", &other, 2, &["it has no model_list"]),
        ("new-api", &folder, 2, &["it is a folder"]),
        ("new-api", "mysql://root:password-of-the-address@localhost/x", 2, &["mysqldump"]),
        ("new-api", "/nowhere/at/all.db", 1, &["reading /nowhere/at/all.db: No such file"]),
    ] {
        let (got, said) = bed.refused(peer, from).await;
        assert_eq!(got, code, "{said}");
        for part in parts {
            assert!(said.contains(part), "{part} in {said}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_does_not_answer_is_reported_without_its_password() {
    let bed = Bed::new(Backend::Sqlite).await;
    let address = format!("postgres://me:password-of-the-address@127.0.0.1:{}/x", free_port());
    let (code, said) = bed.refused("claude-code-hub", &address).await;
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("the database cannot be reached"), "{said}");
    let there = bed.claude_code_hub().await;
    let nowhere = there.replace("/test_", "/no_such_test_");
    let (code, said) = bed.refused("claude-code-hub", &nowhere).await;
    assert!(code == 1 && said.contains("does not exist"), "{said}");
}

/// A reader that begins again at each line, or writes every alias out, does not end on these.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn data_that_is_made_to_cost_is_refused_soon() {
    let bed = Bed::new(Backend::Sqlite).await;
    let unclosed = format!("INSERT INTO `users` VALUES ('{}", "a;\n".repeat(500_000));
    let unclosed = bed.file("unclosed.sql", &unclosed);
    let long = format!("INSERT INTO `users` VALUES {}(1);\n", "(1),".repeat(5_000_000));
    let long = bed.file("long.sql", &long);
    let list = |of: &str| format!("[{}{of}]", format!("{of},").repeat(20_000));
    let aliases = format!("a: &a {}\nmodel_list: {}\n", list("x"), list("*a"));
    let aliases = bed.file("aliases.yaml", &aliases);
    for (peer, from, said_so) in [
        ("new-api", &unclosed, "the file ends within a statement"),
        ("new-api", &long, "the statement is longer than 16 MiB"),
        ("litellm", &aliases, "it is not valid YAML"),
    ] {
        let (code, said) = bed.refused(peer, from).await;
        assert!(code == 2 && said.contains(said_so), "{said}");
    }
}

/// Not made silently: it may be the wrong data directory.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gateway_without_a_database_says_how_to_make_one() {
    let bed = Bed::new(Backend::Sqlite).await;
    let from = bed.claude_code_hub().await;
    std::fs::remove_dir_all(bed.path("data")).unwrap();
    let (code, out, err) = bed.run("claude-code-hub", &from, &[]);
    assert_eq!((code, out.as_str()), (Some(1), ""));
    assert!(err.contains("`tollgate migrate` makes one"), "{err}");
}
