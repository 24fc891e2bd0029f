//! The command line: the console script `atoll` of the package is this module.

use std::ffi::OsString;
use std::path::PathBuf;

use cli::{Allocator, Program};
use pyo3::prelude::*;

/// Runs a command of `atoll` and ends the process with its status. `arguments` begin with the program's name; `file` is
/// what starts it, if that is a file that can be run; `again` are the words that start it again.
#[pyfunction]
pub(crate) fn command(
    py: Python<'_>,
    arguments: Vec<OsString>,
    file: Option<PathBuf>,
    again: Vec<OsString>,
) {
    let program = Program {
        arguments,
        file,
        again,
        // Others in the process have allocators of their own.
        allocator: Allocator::SYSTEM,
    };
    as_a_program();
    py.detach(|| std::process::exit(cli::main(program).into()));
}

/// Takes back what the interpreter has done to signals. That broken pipes are ignored stays: programs of Rust do so, too.
fn as_a_program() {
    // SAFETY: nothing of the interpreter runs any more until the process ends, so its handlers are not missed.
    unsafe {
        libc::signal(libc::SIGINT, libc::SIG_DFL);
        libc::signal(libc::SIGXFSZ, libc::SIG_DFL);
    }
}
