//! Runs `ares-submit`; its story is in `src/cli/submit.rs`.
fn main() -> std::process::ExitCode {
    ares::cli::main::<ares::cli::submit::Args>()
}
