//! What is special about an optimised build. Files of the built web UI are part of its binary, so
//! Cargo looks at them (`src/admin/ui.rs`; a debug build reads them when it runs). The linker packs
//! the relocations.
//!
//! See docs/decisions/43-optimisations-not-kept.md.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    #[expect(
        clippy::disallowed_methods,
        reason = "Cargo's own variable; no setting of the gateway"
    )]
    let profile = std::env::var("PROFILE");
    if profile.as_deref() == Ok("release") {
        println!("cargo::rerun-if-changed=admin/dist");
        // 28 KB of relocations in place of 1.8 MB, all of which the start would read: 25.5 MB idle
        // in place of 29.1. The program then needs glibc 2.36 (README.md).
        println!("cargo::rustc-link-arg-bin=tollgate=-Wl,-z,pack-relative-relocs");
    }
}
