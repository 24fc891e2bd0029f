//! Whether the host's processors can run a guest.

use std::fs::{self, OpenOptions};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether a guest comes up by hardware. Found out by `attempt`, once for each kernel of the host; the answer is kept in
/// `directory`. Not kept where `stop` came true meanwhile, which may have ended the attempt.
pub(crate) fn works(directory: &Path, stop: &AtomicBool, attempt: impl FnOnce() -> bool) -> bool {
    let device = OpenOptions::new().read(true).write(true).open("/dev/kvm");
    if device.is_err() {
        return false;
    }
    let note = directory.join("kvm");
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let release = release.trim();
    let known = fs::read_to_string(&note).unwrap_or_default();
    for (answer, works) in [("works", true), ("fails", false)] {
        if known == format!("{release} {answer}\n") {
            return works;
        }
    }
    let works = attempt();
    if !stop.load(Ordering::Relaxed) {
        let answer = if works { "works" } else { "fails" };
        // Not kept, it is found out again.
        let _ = fs::write(&note, format!("{release} {answer}\n"));
    }
    works
}
