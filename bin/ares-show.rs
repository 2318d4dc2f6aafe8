//! Runs `ares-show`; its story is in `src/cli/show.rs`.
fn main() -> std::process::ExitCode {
    ares::cli::main::<ares::cli::show::Args>()
}
