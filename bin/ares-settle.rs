//! Runs `ares-settle`; its story is in `src/cli/settle.rs`.
fn main() -> std::process::ExitCode {
    ares::cli::main::<ares::cli::settle::Args>()
}
