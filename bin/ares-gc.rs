//! Runs `ares-gc`; its story is in `src/cli/gc.rs`.
fn main() -> std::process::ExitCode {
    ares::cli::main::<ares::cli::gc::Args>()
}
