//! `emulator`: what `atoll lab machine` does, without the database. `cargo test` uses it to run
//! tests on an emulated machine: see `crates/emulator/runner`.

use std::io::{stderr, stdout};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Parser;

/// Run a command on an emulated NUMA machine
#[derive(Parser)]
#[command(name = "emulator", version)]
struct Cli {
    #[command(flatten)]
    arguments: emulator::Arguments,
}

static STOP: AtomicBool = AtomicBool::new(false);

fn main() -> ExitCode {
    let cli = Cli::parse();
    // Without it Ctrl-C ends us at once, and the machine with us.
    let _ = ctrlc::set_handler(|| STOP.store(true, Ordering::Relaxed));
    match cli.arguments.run(&mut stdout(), &mut stderr(), &STOP) {
        Ok(status) => ExitCode::from(u8::try_from(status).unwrap_or(1)),
        Err(error) => {
            eprintln!("emulator: {error}");
            ExitCode::from(1)
        }
    }
}
