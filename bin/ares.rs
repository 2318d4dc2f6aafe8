//! Runs `ares`, the front of the suite; its story is in `src/cli/front.rs`.
fn main() -> std::process::ExitCode {
    ares::cli::front::main()
}
