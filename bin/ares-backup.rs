//! Runs `ares-backup`; its story is in `src/cli/backup.rs`.
fn main() -> std::process::ExitCode {
    ares::cli::main::<ares::cli::backup::Args>()
}
