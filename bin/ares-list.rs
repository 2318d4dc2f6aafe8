//! Runs `ares-list`; its story is in `src/cli/list.rs`.
fn main() -> std::process::ExitCode {
    ares::cli::main::<ares::cli::list::Args>()
}
