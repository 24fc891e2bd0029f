//! `lab`: the experiments of `atoll lab` without the database in the same program.

use std::io::{stderr, stdout};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Parser;
use lab::Desk;
use lab::experiment::Experiment;
use report::quoted;

/// As the program `atoll` has it: queries are measured with it.
#[cfg(feature = "laq")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Experiments on emulated NUMA machines
#[derive(Parser)]
#[command(name = "lab", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    experiment: Experiment,
}

static STOP: AtomicBool = AtomicBool::new(false);

fn main() -> ExitCode {
    let cli = Cli::parse();
    // Without it Ctrl-C ends us at once, and the machine with us.
    let _ = ctrlc::set_handler(|| STOP.store(true, Ordering::Relaxed));
    let own = std::env::current_exe().unwrap_or_else(|_| "lab".into());
    let mut desk = Desk {
        lab: vec![own.into()],
        database: None,
        command: format!(
            "cargo run -p lab --bin lab -- {}",
            quoted(std::env::args_os().skip(1))
        ),
        // `cargo run` has built it from what lies there.
        commit: report::commit(std::path::Path::new(env!("CARGO_MANIFEST_DIR"))),
        out: &mut stdout(),
        err: &mut stderr(),
        stop: &STOP,
    };
    match cli.experiment.run(&mut desk) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("lab: {error}");
            ExitCode::from(if STOP.load(Ordering::Relaxed) { 130 } else { 1 })
        }
    }
}
