//! Whether the host's processors can run a guest.

use std::fs::{self, OpenOptions};
use std::io;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use topology::Machine;

use crate::machine::image::Image;
use crate::machine::qemu::Engine;
use crate::machine::{Launch, Shape};

/// Where it works, a guest is up in two seconds. Some hosts offer virtualisation that Debian's
/// kernel does not come up on.
const LONGEST: Duration = Duration::from_secs(10);

/// Whether a guest comes up by hardware. Found out by trying, once for each kernel of the host.
pub(crate) fn works(image: &Image, stop: &AtomicBool) -> bool {
    let device = OpenOptions::new().read(true).write(true).open("/dev/kvm");
    if device.is_err() {
        return false;
    }
    let note = image.directory.join("kvm");
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let release = release.trim();
    let known = fs::read_to_string(&note).unwrap_or_default();
    for (answer, works) in [("works", true), ("fails", false)] {
        if known == format!("{release} {answer}\n") {
            return works;
        }
    }
    let works = attempt(image, stop);
    if !stop.load(std::sync::atomic::Ordering::Relaxed) {
        let answer = if works { "works" } else { "fails" };
        // Not kept, it is found out again.
        let _ = fs::write(&note, format!("{release} {answer}\n"));
    }
    works
}

fn attempt(image: &Image, stop: &AtomicBool) -> bool {
    let Ok(machine) = Machine::parse("2x1") else {
        return false;
    };
    let Ok(shape) = Shape::of(&machine, 128, 0) else {
        return false;
    };
    let mut launch = Launch::new(shape, ["true"]);
    launch.directory = "/".into();
    launch.limit = LONGEST;
    let (out, err) = (&mut io::sink(), &mut io::sink());
    let outcome = launch.run_with(image, Engine::Hardware, out, err, stop);
    outcome.is_ok_and(|outcome| outcome.exit == 0)
}
