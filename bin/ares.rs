//! The command `ares`.

fn main() -> std::process::ExitCode {
    if std::env::args_os().nth(1).is_some_and(|argument| argument == ares::host::spawn::KEEPER_ARGUMENT) {
        return ares::host::keep::keeper_main();
    }
    std::process::ExitCode::SUCCESS
}
