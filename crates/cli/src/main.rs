//! The program `atoll`: the command line of the library of this crate, with an allocator.

mod heap;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main(cli::Program::of_process(heap::HEAP)).into()
}
