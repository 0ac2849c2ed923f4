//! Secrets: from files, and never printed.

use super::{load, problems};

const WORD: &str = "sample-secret-0123456789";

#[test]
fn secrets_are_never_printed() {
    let words = ["my-own-admin-token", "0123456789abcdef-key", "db-password"];
    let env = [
        ("ADMIN_TOKEN", words[0]),
        ("TOLLGATE_SECRET_KEY", words[1]),
        ("DATABASE_URL", "postgres://me:db-password@db:5432/gate?x=db-password"),
    ];
    let config = load("", &env).unwrap();
    let changes = load("", &[]).unwrap().changes(&config);
    let bad = problems(
        "auth: {admin_token: [db-password]}\ndatabase: {url: 'mysql://db-password'}",
        &[("TOLLGATE_SECRET_KEY", "db-password")],
    );
    let printed = format!("{config:?} {} {changes:?} {bad:?}", config.describe());
    for word in words {
        assert!(!printed.contains(word), "{word} in {printed}");
    }
    assert!(config.describe().contains("database.url: postgres://***@db:5432/gate "));
    assert_eq!(bad.len(), 3);
}

#[test]
fn a_secret_comes_from_a_file_as_from_its_setting() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, content: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    };
    for end in ["", "\n", "\r\n"] {
        let file = write("token", format!("{WORD}{end}").as_bytes());
        let config = load("", &[("ADMIN_TOKEN_FILE", &file)]).unwrap();
        assert_eq!(config.auth.admin_token.as_ref().unwrap().expose(), WORD);
        let shown = config.describe();
        assert!(!shown.contains(WORD) && !format!("{config:?}").contains(WORD), "{shown}");
        let line = shown.lines().find(|line| line.starts_with("auth.admin_token: ***")).unwrap();
        assert!(line.ends_with(&format!("# {file}")), "{line}");
        let by_yaml = load(&format!("auth: {{ admin_token_file: {file} }}"), &[]).unwrap();
        assert_eq!(by_yaml.auth.admin_token.unwrap().expose(), WORD);
    }
    let sentinel = write("sentinel", WORD.as_bytes());
    let env = [
        ("REDIS_URL", "redis+sentinel://host/main"),
        ("TOLLGATE_REDIS_SENTINEL_PASSWORD_FILE", sentinel.as_str()),
    ];
    let redis = load("", &env).unwrap().redis.unwrap();
    assert_eq!(redis.sentinel_password.unwrap().expose(), WORD);
    // systemd's folder of credentials.
    let env = [
        ("TOLLGATE_SECRET_KEY_FILE", "credential:token"),
        ("CREDENTIALS_DIRECTORY", folder.path().to_str().unwrap()),
    ];
    assert_eq!(load("", &env).unwrap().auth.secret_key.unwrap().expose(), WORD);
}

/// Variables, the path of the only problem reported, and a part of its text. `{}` in a value is the
/// folder of the files of the test below.
type Fault = (&'static [(&'static str, &'static str)], &'static str, &'static str);

const FAULTS: [Fault; 12] = [
    (
        &[("ADMIN_TOKEN_FILE", "{}/good"), ("ADMIN_TOKEN", WORD)],
        "auth.admin_token_file",
        "is given beside auth.admin_token",
    ),
    (
        &[("ADMIN_TOKEN_FILE", "no/such/file")],
        "auth.admin_token_file",
        "`no/such/file` cannot be read",
    ),
    (&[("ADMIN_TOKEN_FILE", "{}")], "auth.admin_token_file", "is not a file"),
    (&[("ADMIN_TOKEN_FILE", "")], "auth.admin_token_file", ""),
    (&[("TOLLGATE_SECRET_KEY_FILE", "{}/empty")], "auth.secret_key_file", "is empty"),
    (
        &[("TOLLGATE_SECRET_KEY_FILE", "{}/several")],
        "auth.secret_key_file",
        "line ends around the value",
    ),
    (
        &[("TOLLGATE_SECRET_KEY_FILE", "{}/binary")],
        "auth.secret_key_file",
        "bytes that are not text",
    ),
    (&[("DATABASE_URL_FILE", "{}/database")], "database.url_file", "is not a PostgreSQL address"),
    (&[("REDIS_URL_FILE", "{}/good")], "redis.url_file", "is not a Redis address"),
    (
        &[("REDIS_URL_FILE", "credential:redis")],
        "redis.url_file",
        "CREDENTIALS_DIRECTORY is not set",
    ),
    (
        &[("REDIS_URL_FILE", "credential:../redis"), ("CREDENTIALS_DIRECTORY", "{}")],
        "redis.url_file",
        "is not a name of a systemd credential",
    ),
    (
        &[("TOLLGATE_SECRET_KEY_PREVIOUS_FILE", "{}/good")],
        "auth.secret_key_previous",
        "no effect without auth.secret_key",
    ),
];

#[test]
fn mistakes_in_files_of_secrets_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let files: [(&str, &[u8]); 5] = [
        ("good", WORD.as_bytes()),
        ("database", b"mysql://me:hidden-word@db/x"),
        ("several", b"first-secret-0123456789\nsecond-secret-0123456789\n"),
        ("empty", b"\n"),
        ("binary", b"\xff\xfe-0123456789-0123456789"),
    ];
    for (name, content) in files {
        std::fs::write(folder.path().join(name), content).unwrap();
    }
    for (variables, path, expected) in FAULTS {
        let env: Vec<(&str, String)> = variables
            .iter()
            .map(|(name, value)| (*name, value.replace("{}", folder.path().to_str().unwrap())))
            .collect();
        let env: Vec<(&str, &str)> =
            env.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let found = problems("", &env);
        assert_eq!(found.len(), 1, "{env:?}: {found:?}");
        assert!(found[0].0 == path && found[0].1.contains(expected), "{env:?}: {found:?}");
        assert!(
            !found[0].1.contains("hidden-word") && !found[0].1.contains("first-secret"),
            "{found:?}"
        );
    }
}
