//! Tells Cargo to look at the built web UI: files that come or go there are part of the binary
//! (`src/admin/ui.rs`).

fn main() {
    println!("cargo::rerun-if-changed=admin/dist");
    println!("cargo::rerun-if-changed=build.rs");
}
