//! Runs `ares-reconcile`; its story is in `src/cli/reconcile.rs`.
fn main() -> std::process::ExitCode {
    ares::cli::main::<ares::cli::reconcile::Args>()
}
