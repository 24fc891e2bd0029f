//! What boots emulated machines: the machine itself, and the self-test of its access counter.
//!
//! Run by `./test-lab`, which sees to it that the emulator is there.

mod counter;
mod machine;

use std::sync::atomic::AtomicBool;

use emulator::{Launch, Outcome, Shape};

/// What a run printed, and how it went.
struct Run {
    out: String,
    err: String,
    outcome: Outcome,
}

fn shape(spec: &str, mib: u64) -> Shape {
    let machine = topology::Machine::parse(spec).unwrap();
    Shape::of(&machine, mib, 0).unwrap()
}

fn run(launch: &Launch) -> Run {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let outcome = launch.run(&mut out, &mut err, &AtomicBool::new(false));
    let err = String::from_utf8_lossy(&err).into_owned();
    Run {
        out: String::from_utf8_lossy(&out).into_owned(),
        outcome: outcome.unwrap_or_else(|error| panic!("{error}\n{err}")),
        err,
    }
}
