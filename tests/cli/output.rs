//! Where results go: a full disk behind standard output, and the file of an export.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use super::{run, texts};

fn prepared() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(texts(&run(folder.path(), &["migrate"], &[])).0, Some(0));
    fs::write(folder.path().join("wanted.yaml"), "version: 1\nusers: [{ name: anna }]\n").unwrap();
    folder
}

fn exported(folder: &Path) -> String {
    let (code, out, err) = texts(&run(folder, &["export"], &[]));
    assert_eq!(code, Some(0), "{err}");
    out
}

#[test]
fn a_report_that_cannot_be_written_says_that_the_changes_were_made() {
    let folder = prepared();
    let apply = |more: &[&str]| {
        let done = Command::new(env!("CARGO_BIN_EXE_tollgate"))
            .args([&["apply", "--file", "wanted.yaml"], more].concat())
            .current_dir(folder.path())
            .env_clear()
            .stdout(File::options().write(true).open("/dev/full").unwrap())
            .output()
            .unwrap();
        texts(&done)
    };
    let (code, _, err) = apply(&["--dry-run"]);
    assert!(code == Some(1) && !err.contains("everything was done"), "{err}");
    assert!(!exported(folder.path()).contains("anna"));
    let (code, _, err) = apply(&[]);
    assert!(code == Some(1) && err.contains("everything was done, but the report"), "{err}");
    assert!(exported(folder.path()).contains("anna"));
}

#[test]
fn an_export_replaces_its_file_in_one_step_for_its_owner_alone() {
    let folder = prepared();
    let file = folder.path().join("state.yaml");
    fs::write(&file, "the last export").unwrap();
    fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
    std::os::unix::fs::symlink("state.yaml", folder.path().join("link")).unwrap();
    let (code, out, err) = texts(&run(folder.path(), &["export", "-o", "link"], &[]));
    assert_eq!((code, out.as_str()), (Some(0), ""), "{err}");
    assert!(folder.path().join("link").is_symlink());
    assert_eq!(fs::read_to_string(&file).unwrap(), exported(folder.path()));
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    // A full disk leaves the old one.
    let before = fs::read_to_string(&file).unwrap();
    let limited = "trap '' XFSZ; ulimit -f 0; exec \"$0\" export -o state.yaml";
    let done = Command::new("sh")
        .args(["-c", limited, env!("CARGO_BIN_EXE_tollgate")])
        .current_dir(folder.path())
        .env_clear()
        .output()
        .unwrap();
    let (code, _, err) = texts(&done);
    assert_eq!(code, Some(1), "{err}");
    assert_eq!(fs::read_to_string(&file).unwrap(), before);
    // A device is written to, not replaced.
    let (code, out, err) = texts(&run(folder.path(), &["export", "-o", "/dev/stdout"], &[]));
    assert!(code == Some(0) && out.contains("tollgate export"), "{err}");
}
