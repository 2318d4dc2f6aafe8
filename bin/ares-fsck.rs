//! Runs `ares-fsck`; its story is in `src/cli/fsck.rs`.
fn main() -> std::process::ExitCode {
    ares::cli::main::<ares::cli::fsck::Args>()
}
