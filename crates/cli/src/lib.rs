//! `atoll`, the command: a thin layer over the crate of the same name. The program calls [`main`], and so does the module
//! of the Python package, whose command it is, too.
//!
//! Results go to standard output; progress, messages and times to standard error. The exit status
//! is 0 on success, 2 on wrong usage, 130 after Ctrl-C and otherwise 1, with one line that says
//! what failed, where, and what to do.
//!
//! The layers, from the top; each uses those below it:
//!
//! | modules | what they do |
//! |---|---|
//! | this file | reads the command line, runs the command, tells of its failure |
//! | [`help`] | help texts with examples, the reference as Markdown |
//! | [`command_line`] | lists the commands |
//! | [`commands`] | a file for each command: what can be typed, what then happens |
//! | [`shell`] | the shell of `atoll sql` |
//! | [`statement`] | cuts text into statements, runs them |
//! | [`options`], [`placed`], [`transfer`] | what several commands share |
//! | [`output`], [`store`] | results in their formats, stores as files |
//! | [`terminal`] | Ctrl-C, standard output, the pager, progress |
//! | [`program`], [`allocator`], [`failure`], [`text`], [`units`], [`version`] | stand alone |

#![cfg_attr(
    not(feature = "sql"),
    expect(
        dead_code,
        reason = "what commands share has parts that only those of tables use"
    )
)]

mod allocator;
mod command_line;
mod commands;
mod failure;
mod help;
mod options;
#[cfg(feature = "sql")]
mod output;
mod placed;
mod program;
#[cfg(feature = "sql")]
mod shell;
#[cfg(feature = "sql")]
mod statement;
mod store;
mod terminal;
mod text;
mod transfer;
mod units;
mod version;

use anyhow::anyhow;

use crate::command_line::Command;
#[cfg(feature = "lab")]
use crate::commands::lab;
use crate::commands::{
    afl, array, export, govern, graph, load, man, pages, pin, reference, residency, top, topology,
    tune, watch,
};
#[cfg(feature = "sql")]
use crate::commands::{import, laq, quickstart, serve, set, sql};
use crate::failure::{Failure, one_line};
use crate::terminal::{interrupt, out};

pub use crate::allocator::Allocator;
pub use crate::commands::residency::process::described as where_process;
pub use crate::program::Program;

/// Runs the command that the words of `program` are, and returns the status to exit with. Wrong usage, `--help` and
/// `--version` end the process, as does Ctrl-C pressed twice. It is called once in a process, from any thread.
pub fn main(program: Program) -> u8 {
    let program = program::set(program);
    allocator::choose(program.allocator);
    quiet_panics();
    let cli = help::parse(&program.arguments);
    interrupt::listen();
    let ran = std::panic::catch_unwind(|| run(&cli.command));
    let failure = match ran {
        Ok(Ok(())) => return 0,
        Ok(Err(failure)) => failure,
        Err(_) => Failure::from(anyhow!(
            "a defect in Atoll ended the command; run it again with RUST_BACKTRACE=1 and report what it prints"
        )),
    };
    if out::closed() {
        return 0;
    }
    match failure {
        Failure::Told => 1,
        Failure::Status(status) => status,
        Failure::Interrupted => {
            eprintln!("atoll: interrupted; what was committed before is kept");
            interrupt::STATUS as u8
        }
        Failure::Error(error) => {
            eprintln!("atoll: {}", one_line(&error));
            1
        }
    }
}

fn run(command: &Command) -> Result<(), Failure> {
    match command {
        #[cfg(feature = "sql")]
        Command::Quickstart(args) => quickstart::run(args),
        #[cfg(feature = "sql")]
        Command::Import(args) => import::run(args),
        Command::Export(args) => export::run(args),
        #[cfg(feature = "sql")]
        Command::Laq(args) => laq::run(args),
        #[cfg(feature = "sql")]
        Command::Sql(args) => sql::run(args),
        #[cfg(feature = "sql")]
        Command::Serve(args) => serve::run(args),
        Command::Afl(args) => afl::run(args),
        Command::Topology(args) => topology::run(args),
        Command::Load(args) => load::run(args),
        Command::Graph(args) => graph::run(args),
        Command::Array(args) => array::run(args),
        Command::Pages(args) => pages::run(args),
        #[cfg(feature = "sql")]
        Command::Set(args) => set::run(args),
        #[cfg(feature = "lab")]
        Command::Lab(args) => lab::run(args),
        Command::Where(args) => residency::run(args),
        Command::Watch(args) => watch::run(args),
        Command::Pin(args) => pin::run(args),
        Command::Tune(args) => tune::run(args),
        Command::Govern(args) => govern::run(args),
        Command::Top(args) => top::run(args),
        Command::Man(args) => man::run(args, help::command()),
        Command::Reference => reference::run(&help::markdown::page(help::command())),
    }
}

/// Reports a panic, which is a defect, as an error in one line, unless a backtrace is asked for.
fn quiet_panics() {
    if std::env::var_os("RUST_BACKTRACE").is_none() {
        std::panic::set_hook(Box::new(|_| {}));
    }
}
