//! Runs `ares-stop`; its story is in `src/cli/stop.rs`.
fn main() -> std::process::ExitCode {
    ares::cli::main::<ares::cli::stop::Args>()
}
