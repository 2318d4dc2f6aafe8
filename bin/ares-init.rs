//! Runs `ares-init`; its story is in `src/cli/init.rs`.
fn main() -> std::process::ExitCode {
    ares::cli::main::<ares::cli::init::Args>()
}
