//! `atoll`, the command: a thin layer over the crate of the same name.
//!
//! Results go to standard output; progress, messages and times to standard error. The exit status
//! is 0 on success, 2 on wrong usage, 130 after Ctrl-C and otherwise 1, with one line that says
//! what failed, where, and what to do.

mod args;
mod examples;
mod excerpt;
mod govern;
mod heap;
mod import;
mod interrupt;
mod lab;
mod laq;
mod man;
mod opened;
mod out;
mod output;
mod pager;
mod pages;
mod pin;
mod progress;
mod quickstart;
mod raw;
mod residency;
mod set;
mod shell;
mod sql;
mod statement;
mod store;
mod top;
mod topology;
mod tune;
mod units;
mod watch;

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use args::Command;

fn main() -> ExitCode {
    heap::set_up();
    quiet_panics();
    let cli = examples::parse();
    interrupt::listen();
    let ran = std::panic::catch_unwind(|| run(&cli.command));
    let failure = match ran {
        Ok(Ok(())) => return ExitCode::SUCCESS,
        Ok(Err(failure)) => failure,
        Err(_) => Failure::from(anyhow::anyhow!(
            "a defect in Atoll ended the command; run it again with RUST_BACKTRACE=1 and report what it prints"
        )),
    };
    if out::closed() {
        return ExitCode::SUCCESS;
    }
    match failure {
        Failure::Told => ExitCode::from(1),
        Failure::Status(status) => ExitCode::from(status),
        Failure::Interrupted => {
            eprintln!("atoll: interrupted; what was committed before is kept");
            ExitCode::from(interrupt::STATUS as u8)
        }
        Failure::Error(error) => {
            eprintln!("atoll: {}", one_line(&error));
            ExitCode::from(1)
        }
    }
}

fn run(command: &Command) -> Result<(), Failure> {
    match command {
        Command::Quickstart(args) => quickstart::run(args),
        Command::Import(args) => import::run(args),
        Command::Laq(args) => laq::run(args),
        Command::Sql(args) => sql::run(args),
        Command::Topology(args) => topology::run(args),
        Command::Pages(args) => pages::run(args),
        Command::Set(args) => set::run(args),
        Command::Lab(args) => lab::run(args),
        Command::Where(args) => residency::run(args),
        Command::Watch(args) => watch::run(args),
        Command::Pin(args) => pin::run(args),
        Command::Tune(args) => tune::run(args),
        Command::Govern(args) => govern::run(args),
        Command::Top(args) => top::run(args),
        Command::Man(args) => man::run(args),
    }
}

/// Why a command failed.
pub enum Failure {
    /// To be told in one line.
    Error(anyhow::Error),
    /// Told already.
    Told,
    /// That of a command which was run for the user: its exit status.
    Status(u8),
    /// By Ctrl-C.
    Interrupted,
}

impl<E: Into<anyhow::Error>> From<E> for Failure {
    fn from(error: E) -> Failure {
        let error = error.into();
        match error.downcast_ref::<atoll::Error>() {
            Some(atoll::Error::Interrupted) => Failure::Interrupted,
            _ => Failure::Error(error),
        }
    }
}

/// Bytes of the longest text that is read from a file: a device may have no end.
const LONGEST: u64 = 256 << 20;

/// The text in a file.
pub fn text_of(path: &Path) -> anyhow::Result<String> {
    let mut text = String::new();
    let read = File::open(path).and_then(|file| file.take(LONGEST + 1).read_to_string(&mut text));
    let read = read.with_context(|| {
        format!(
            "cannot read {}; check the path, and that it is UTF-8 text",
            path.display()
        )
    })?;
    if read as u64 > LONGEST {
        anyhow::bail!(
            "{}: longer than {}; split it",
            path.display(),
            units::bytes(LONGEST)
        );
    }
    Ok(text)
}

/// An error, with its causes as far as they say more, as one line.
pub fn one_line(error: &anyhow::Error) -> String {
    let mut line = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        // The library's errors tell of their causes themselves.
        if !line.contains(&cause) {
            line = format!("{line}: {cause}");
        }
    }
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A panic is a defect: it becomes an error with one line, unless a backtrace is asked for.
fn quiet_panics() {
    if std::env::var_os("RUST_BACKTRACE").is_none() {
        std::panic::set_hook(Box::new(|_| {}));
    }
}
