//! Runs `ares-run`; its story is in `src/cli/run.rs`.
fn main() -> std::process::ExitCode {
    ares::cli::main::<ares::cli::run::Args>()
}
