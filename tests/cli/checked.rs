//! What `tollgate check` finds before a start does: certificates and a database out of reach. What
//! a start refuses.

use super::{run, texts};

/// A certificate, and the key of another.
fn mismatched() -> [String; 2] {
    let file = |name: &str| format!("{}/tests/{name}", env!("CARGO_MANIFEST_DIR"));
    [file("admin/tls/cert.pem"), file("doctor/tls/key.pem")]
}

#[test]
fn a_key_of_another_certificate_is_refused_before_anything_is_made() {
    let folder = tempfile::tempdir().unwrap();
    let [cert, key] = mismatched();
    for (part, name) in [("PROXY", "proxy.tls"), ("ADMIN", "admin.tls")] {
        let names = [format!("TOLLGATE_{part}_TLS_CERT"), format!("TOLLGATE_{part}_TLS_KEY")];
        let env = [(names[0].as_str(), cert.as_str()), (names[1].as_str(), key.as_str())];
        for command in ["check", "serve"] {
            let (code, out, err) = texts(&run(folder.path(), &[command], &env));
            assert_eq!(code, Some(1), "{command}: {out}{err}");
            let expected = format!("{name}: {key} is not the certificate's key");
            assert!(err.contains(&expected), "{command}: {err}");
        }
        assert!(!folder.path().join("data").exists());
    }
}

#[test]
fn a_postgresql_out_of_reach_is_found_before_there_is_a_data_directory() {
    let folder = tempfile::tempdir().unwrap();
    let address = format!("postgres://x:y@127.0.0.1:{}/z", crate::support::ports::free_port());
    let (code, out, err) = texts(&run(folder.path(), &["check"], &[("DATABASE_URL", &address)]));
    assert!(code == Some(1) && err.contains("connecting to PostgreSQL"), "{out}{err}");
    assert!(!folder.path().join("data").exists(), "it makes nothing");
}

#[test]
fn an_empty_postgresql_is_what_a_first_start_finds() {
    let folder = tempfile::tempdir().unwrap();
    let address = crate::support::postgres::fresh_database();
    let (code, out, err) = texts(&run(folder.path(), &["check"], &[("DATABASE_URL", &address)]));
    assert!(code == Some(0) && err.contains("the first start migrates it"), "{out}{err}");
}

#[test]
fn no_command_makes_a_database_where_none_is() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("data")).unwrap();
    for command in [
        &["secret", "rotate"][..],
        &["secret", "forget"],
        &["backup", "file"],
        &["export"],
        &["move", "--check", "--to", "postgres://x:y@127.0.0.1:1/z"],
    ] {
        let (code, out, err) = texts(&run(folder.path(), command, &[]));
        assert!(code == Some(1) && err.contains("there is no"), "{command:?}: {out}{err}");
        assert_eq!(std::fs::read_dir(folder.path().join("data")).unwrap().count(), 0);
    }
    // One without a table is not the gateway's.
    std::fs::write(folder.path().join("data/tollgate.db"), "").unwrap();
    let (code, out, err) = texts(&run(folder.path(), &["backup", "file"], &[]));
    assert!(code == Some(1) && err.contains("has no tables"), "{out}{err}");
    assert!(!folder.path().join("file").exists());
}
