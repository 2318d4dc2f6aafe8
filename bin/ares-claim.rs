//! Runs `ares-claim`; its story is in `src/cli/claim.rs`.
fn main() -> std::process::ExitCode {
    ares::cli::main::<ares::cli::claim::Args>()
}
