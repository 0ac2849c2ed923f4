//! What is special about an optimised build. Files of the built web UI are part of its binary, so
//! Cargo looks at them (`src/admin/ui.rs`; a debug build reads them when it runs). The linker packs
//! the relocations, or keeps what `scripts/layout.sh` needs to move code.
//!
//! See docs/decisions/43-optimisations-not-kept.md.
//! See docs/decisions/47-code-laid-out.md.

use std::path::Path;

#[expect(clippy::disallowed_methods, reason = "Cargo's own variables; no settings of the gateway")]
fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_default()
}

/// Whether `scripts/layout.sh` lays out the program: in the profile `dist`, which Cargo tells a build
/// script only by the folder (target/dist/build/tollgate-…/out).
fn is_laid_out() -> bool {
    let profile = variable("OUT_DIR");
    let profile = Path::new(&profile).ancestors().nth(3).and_then(Path::file_name);
    profile.is_some_and(|name| name == "dist")
        && variable("CARGO_CFG_TARGET_ARCH") == "x86_64"
        && !variable("CARGO_FEATURE_MOCK").is_empty()
}

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if variable("PROFILE") == "release" {
        println!("cargo::rerun-if-changed=admin/dist");
        let option = match is_laid_out() {
            true => "--emit-relocs",
            // 28 KB of relocations in place of 1.8 MB, all of which the start would read. The
            // program then needs glibc 2.36 (README.md). BOLT cannot read them.
            false => "-z,pack-relative-relocs",
        };
        println!("cargo::rustc-link-arg-bin=tollgate=-Wl,{option}");
    }
}
