//! `ares-synthetic`: a worker without a model, see `ares::worker::synthetic`.

fn main() -> std::process::ExitCode {
    std::process::ExitCode::from(ares::worker::synthetic::main(std::env::args_os().skip(1)))
}
