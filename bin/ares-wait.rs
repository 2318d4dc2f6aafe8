//! Runs `ares-wait`; its story is in `src/cli/wait.rs`.
fn main() -> std::process::ExitCode {
    ares::cli::main::<ares::cli::wait::Args>()
}
