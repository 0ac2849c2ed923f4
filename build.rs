//! Tells Cargo to look at the built web UI: in an optimised build, files that come or go there are
//! part of the binary (`src/admin/ui.rs`). A debug build reads them when it runs.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    #[expect(
        clippy::disallowed_methods,
        reason = "Cargo's own variable; no setting of the gateway"
    )]
    let profile = std::env::var("PROFILE");
    if profile.as_deref() == Ok("release") {
        println!("cargo::rerun-if-changed=admin/dist");
    }
}
