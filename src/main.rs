//! The binary: everything is in the library.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: tollgate_allocator::Allocator = tollgate_allocator::Allocator;

fn main() -> ExitCode {
    tollgate::cli::run()
}
