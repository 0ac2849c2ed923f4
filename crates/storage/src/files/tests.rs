//! Complete writes, and what prevents them.

use super::*;

#[test]
fn a_placed_file_is_complete_and_is_never_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a").join("b").join("secret.key");
    make_dir(&parent(&path)).unwrap();
    make_dir(&parent(&path)).unwrap();
    assert!(place_new(&path, b"first").unwrap());
    assert!(!place_new(&path, b"second").unwrap());
    assert!(!place_without_links(&path, b"third").unwrap());
    assert_eq!(fs::read(&path).unwrap(), b"first");
    assert_eq!(fs::read_dir(parent(&path)).unwrap().count(), 1, "nothing is left beside it");
}

#[test]
fn a_file_in_the_way_of_a_directory_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("file"), "").unwrap();
    make_dir(&dir.path().join("file")).unwrap_err();
    make_dir(&dir.path().join("file").join("below")).unwrap_err();
}
