//! Which secrets a backup holds, who can read it, and the message when the key is missing.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::{Bed, data, system};

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_secret_key_is_in_a_backup_only_when_it_is_asked_for() {
    let mut bed = Bed::start(&[], 1).await;
    bed.fixture.gateway.unset("ADMIN_TOKEN");
    std::fs::write(data(&bed.fixture.gateway).join("admin.token"), "an-admin-token-of-the-file\n")
        .unwrap();
    let said = bed.backup("plain", &[]);
    assert!(
        said.contains("the secret key (") && said.contains("is not in the backup: keep"),
        "{said}"
    );
    let said = bed.backup("full", &["--with-secrets"]);
    assert!(
        said.contains("it holds secrets (secret.key, admin.token)") && !said.contains("is not in"),
        "{said}"
    );
    let listed = |name: &str| system("tar", &["--zstd", "-tf", bed.file(name).to_str().unwrap()]);
    assert!(
        listed("full").starts_with("manifest.json\n") && listed("full").contains("secret.key\n")
    );
    assert!(!listed("plain").contains("secret.key") && !listed("plain").contains("admin.token"));
    let names: Vec<_> =
        std::fs::read_dir(bed.files.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names.len(), 2, "nothing is left beside them: {names:?}");
    assert_eq!((mode(&bed.file("plain")), mode(&bed.file("full"))), (0o600, 0o600));

    let full = bed.other(&[]);
    assert!(bed.restore(&full, "full", &[]).0);
    for name in ["secret.key", "admin.token"] {
        let (there, here) = (data(&full).join(name), data(&bed.fixture.gateway).join(name));
        assert_eq!(std::fs::read(&there).unwrap(), std::fs::read(here).unwrap());
        assert_eq!(mode(&there), 0o600);
    }
    assert_eq!((mode(&data(&full)), mode(&data(&full).join("tollgate.db"))), (0o700, 0o600));

    // Without the key: said at once, and no gateway makes another one and starts.
    let mut plain = bed.other(&[]);
    let (well, said) = bed.restore(&plain, "plain", &[]);
    assert!(well && said.contains("which is not here: put it into"), "{said}");
    assert!(!data(&plain).join("secret.key").exists());
    let (well, said) = plain.run(&["serve"]);
    assert!(!well && said.contains("secret key"), "{said}");
    std::fs::copy(data(&full).join("secret.key"), data(&plain).join("secret.key")).unwrap();
    plain.spawn();
    plain.ready().await;
    bed.ask_of(&plain).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_of_the_settings_is_never_in_a_backup() {
    let key = ("TOLLGATE_SECRET_KEY", "a-secret-key-of-the-settings-0123456789");
    let bed = Bed::start(&[key], 1).await;
    let said = bed.backup("file", &["--with-secrets"]);
    assert!(said.contains("keep auth.secret_key (TOLLGATE_SECRET_KEY) apart from it"), "{said}");
    let (well, said) = bed.restore(&bed.other(&[key]), "file", &[]);
    assert!(well && !said.contains("warning"), "{said}");
    let other = ("TOLLGATE_SECRET_KEY", "another-secret-key-0123456789-0123456789");
    let (well, said) = bed.restore(&bed.other(&[other]), "file", &[]);
    assert!(well && said.contains("put it into auth.secret_key (TOLLGATE_SECRET_KEY)"), "{said}");
}
