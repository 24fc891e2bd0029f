//! What is not there, ends while it is looked at, or may not be seen.

use std::time::{Duration, Instant};

use counters::{Depth, Error, Looker, Process, System, Watch};

use crate::child::{Subject, nodes, real};

#[test]
fn no_such_process() {
    for pid in [0, 4_194_305, u32::MAX] {
        let error = Process::open(&real(), pid).unwrap_err();
        assert!(
            matches!(error, Error::NoProcess { pid: p } if p == pid),
            "{error:?}"
        );
        assert!(error.to_string().contains(&pid.to_string()));
        assert!(Watch::new(&real(), &nodes(), pid, true).is_err());
    }
}

#[test]
fn a_threads_number_is_told_from_a_processs() {
    let subject = Subject::start("stacks");
    let process = Process::open(&real(), subject.pid()).unwrap();
    let threads = process.threads().unwrap();
    assert!(threads.len() >= 4);
    let thread = threads
        .into_iter()
        .find(|thread| *thread != subject.pid())
        .unwrap();
    let error = Process::open(&real(), thread).unwrap_err();
    assert!(
        matches!(error, Error::Thread { process, .. } if process == subject.pid()),
        "{error}"
    );
    subject.end();
}

#[test]
fn what_has_no_memory_is_not_shown_as_empty() {
    let mut subject = Subject::start("idle");
    let process = Process::open(&real(), subject.pid()).unwrap();
    let looker = Looker::new(&real(), &nodes());
    assert!(looker.look(&process).unwrap().total() > 0);
    subject.kill();
    let begun = Instant::now();
    // Until it has ended; nobody has collected it.
    while process.stat().is_ok_and(|stat| !stat.ended()) {
        assert!(begun.elapsed() < Duration::from_secs(20));
    }
    let error = looker.look(&process).unwrap_err();
    assert!(matches!(error, Error::NoMemory { .. }), "{error}");
    subject.end();
    let error = looker.look(&process).unwrap_err();
    assert!(matches!(error, Error::Ended { .. }), "{error}");

    match Process::open(&real(), 2) {
        Ok(kernel) if kernel.stat().unwrap().of_kernel() => {
            let error = looker.look(&kernel).unwrap_err();
            assert!(error.to_string().contains("kernel"), "{error}");
        }
        _ => notrun::not_run("there is no thread of the kernel to be seen here"),
    }
}

/// Many processes, each killed at another moment of the look at it.
#[test]
fn death_in_the_middle_of_a_look() {
    let looker = Looker::new(&real(), &nodes()).stacks().huge();
    let (mut whole, mut ended) = (0, 0);
    for turn in 0..60u64 {
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let process = Process::open(&real(), child.id()).unwrap();
        let looker = match turn % 2 {
            0 => looker.clone(),
            _ => looker.clone().depth(Depth::Sample(1000)),
        };
        let killer = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_micros(turn * 37 % 1500));
            child.kill().unwrap();
            child.wait().unwrap();
        });
        let mut looks = 0;
        loop {
            match looker.look(&process) {
                Ok(residency) => assert!(residency.total() > 0, "{residency:?}"),
                Err(Error::Ended { .. } | Error::NoMemory { .. }) => break,
                Err(error) => panic!("{error}"),
            }
            looks += 1;
        }
        killer.join().unwrap();
        whole += usize::from(looks > 0);
        ended += usize::from(looks == 0);
        assert!(matches!(process.stat(), Err(Error::Ended { .. })));
    }
    println!("{whole} were seen alive, {ended} were not");
}

#[test]
fn other_peoples_memory_is_refused_in_words() {
    // What follows is this thread's own: it becomes nobody, and ends.
    let refused = std::thread::spawn(|| {
        // SAFETY: the call changes the users of this thread only, as it is made directly.
        let changed = unsafe { libc::syscall(libc::SYS_setresuid, 65534, 65534, 65534) };
        // Refused to those who are nobody much already.
        assert!(changed == 0 || !running_as_root());
        let looker = Looker::new(&real(), &nodes());
        let process = match Process::open(&real(), 1) {
            Ok(process) => process,
            // Hidden: the message says that this may be so.
            Err(error) => return error.to_string(),
        };
        let watched = Watch::new(&real(), &nodes(), 1, false).and_then(|mut watch| watch.look());
        if let Ok(sample) = watched {
            // What everybody may know is told, and where its memory lies is not.
            let memory = sample.processes[0].memory.as_ref().unwrap_err();
            assert!(memory.contains("process 1"), "{memory}");
        }
        looker.look(&process).unwrap_err().to_string()
    });
    let message = refused.join().unwrap();
    assert!(
        message.contains("as root") || message.contains("hidden"),
        "{message}"
    );
}

#[test]
fn a_system_without_files_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let system = System::at(folder.path());
    assert!(matches!(
        Process::open(&system, 7),
        Err(Error::NoProcess { pid: 7 })
    ));
    use counters::Sensor;
    for reading in counters::Pressure::new(&system).read() {
        assert_eq!(reading.value.number(), None, "{reading}");
    }
}

fn running_as_root() -> bool {
    // SAFETY: getuid has no preconditions.
    unsafe { libc::getuid() == 0 }
}
