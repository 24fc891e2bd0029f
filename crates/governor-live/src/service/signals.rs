//! Signals and priority of the own process: SIGTERM and SIGHUP end it after everything is put back, and it is
//! scheduled soon even if cpus are scarce.

use std::sync::atomic::{AtomicBool, Ordering};

static ASKED: AtomicBool = AtomicBool::new(false);

extern "C" fn note(_: libc::c_int) {
    ASKED.store(true, Ordering::Relaxed);
}

/// From now on SIGTERM and SIGHUP only make [`asked_to_end`] true.
pub fn listen() {
    let handler = note as extern "C" fn(libc::c_int);
    for signal in [libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: the handler stores to an atomic, which is allowed in a signal handler.
        unsafe { libc::signal(signal, handler as libc::sighandler_t) };
    }
}

/// Whether one of these signals came.
pub fn asked_to_end() -> bool {
    ASKED.load(Ordering::Relaxed)
}

/// Lets the calling thread run soon after it wakes, however many others want its cpu: a governor is needed most when
/// cpus are scarce. Processes that it starts do not inherit this. `false` if this user may not do so.
pub fn hurry() -> bool {
    let ordinary = libc::sched_param { sched_priority: 0 };
    let kind = libc::SCHED_OTHER | libc::SCHED_RESET_ON_FORK;
    // SAFETY: the kernel reads one sched_param; 0 is the calling thread.
    let kept_apart = unsafe { libc::sched_setscheduler(0, kind, &raw const ordinary) } == 0;
    // SAFETY: no pointers; 0 is the calling thread.
    kept_apart && unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, -10) } == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_hurries_starts_others_that_do_not() {
        if !hurry() {
            return notrun::not_run("this user may not take precedence");
        }
        // SAFETY: no pointers; 0 is the calling thread.
        assert_eq!(unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) }, -10);
        let other = std::thread::spawn(|| {
            // SAFETY: as above.
            unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) }
        });
        assert_eq!(other.join().unwrap(), 0);
    }
}
