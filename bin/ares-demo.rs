//! Runs `ares-demo`; its story is in `src/cli/demo.rs`.
fn main() -> std::process::ExitCode {
    ares::cli::main::<ares::cli::demo::Args>()
}
