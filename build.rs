//! Tells Cargo to look at the built web UI: files that come or go there are part of the binary
//! (`src/admin/ui.rs`).
//!
//! On Linux it also asks the linker to pack relocations, where the C library can read them: 1.5 MB
//! of the binary that would be resident from the first moment on. A program that was built so needs
//! a C library as new as this machine's, as any does.

use std::process::Command;

/// The first version of the GNU C library that reads packed relocations.
const PACKED_SINCE: (u32, u32) = (2, 36);

fn main() {
    println!("cargo::rerun-if-changed=admin/dist");
    println!("cargo::rerun-if-changed=build.rs");
    if glibc().is_some_and(|version| version >= PACKED_SINCE) {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}

/// The version of the GNU C library, if the program is built for this machine and that has one.
#[expect(clippy::disallowed_methods, reason = "Cargo tells a build script by the environment")]
fn glibc() -> Option<(u32, u32)> {
    let of = |name: &str| std::env::var(name).unwrap_or_default();
    if of("HOST") != of("TARGET") {
        return None;
    }
    let told = Command::new("getconf").arg("GNU_LIBC_VERSION").output().ok()?.stdout;
    let (major, minor) = std::str::from_utf8(&told).ok()?.trim().strip_prefix("glibc ")?.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}
