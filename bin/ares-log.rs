//! Runs `ares-log`; its story is in `src/cli/log.rs`.
fn main() -> std::process::ExitCode {
    ares::cli::main::<ares::cli::log::Args>()
}
