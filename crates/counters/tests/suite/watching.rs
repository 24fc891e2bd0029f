//! Processes over time.

use std::time::{Duration, Instant};

use counters::{Error, Process, Sample, Sensor, Source, Tasks, Value, Watch};

use crate::child::{MOVES, PAGES, Subject, THREADS, nodes, real};

fn cpus() -> usize {
    topology::Machine::live().unwrap().cpus()
}

fn watch(subject: &Subject) -> Watch {
    Watch::new(&real(), &nodes(), subject.pid(), false).unwrap()
}

fn only(sample: &Sample) -> &counters::Activity {
    assert_eq!(sample.processes.len(), 1);
    &sample.processes[0].activity
}

#[test]
fn each_first_touch_is_a_fault() {
    let mut subject = Subject::start("faults");
    let mut watch = watch(&subject);
    assert!(only(&watch.look().unwrap()).minor_faults < 100);
    subject.go_on();
    let sample = watch.look().unwrap();
    let faults = only(&sample).minor_faults;
    assert!(
        (PAGES as u64..PAGES as u64 + 200).contains(&faults),
        "{faults}"
    );
    assert_eq!(only(&sample).major_faults, 0);
    assert_eq!(watch.summary().minor_faults, faults);
    let memory = sample.processes[0].memory.as_ref().unwrap();
    assert_eq!(memory.bytes.len(), memory.nodes.len());
    subject.end();
}

/// By perf and by /proc, which agree, and by thread.
#[test]
fn each_move_is_counted() {
    if cpus() < 2 {
        return notrun::not_run("with one cpu there is nowhere to move to");
    }
    let mut subject = Subject::start("moves");
    let process = Process::open(&real(), subject.pid()).unwrap();
    let mut tasks = Tasks::attach(&real(), &nodes(), process).unwrap();
    tasks.look().unwrap();
    subject.go_on();
    let activity = tasks.look().unwrap();
    let counted = activity.migrations.value.number().unwrap() as u64;
    assert!((MOVES..MOVES + 50).contains(&counted), "{counted}");
    let by_thread: u64 = activity
        .threads
        .iter()
        .filter_map(|thread| thread.migrations)
        .sum();
    assert!(
        by_thread.abs_diff(counted) <= 2,
        "{by_thread} by thread, {counted} in all"
    );
    let one = activity
        .threads
        .iter()
        .filter_map(|thread| thread.migrations)
        .max();
    assert!(one.is_some_and(|one| one >= MOVES), "one thread moved");
    match tasks.without_perf() {
        None => assert_eq!(activity.migrations.source, Source::Software),
        Some(reason) => {
            assert_eq!(activity.migrations.source, Source::Sched);
            notrun::not_run(format!("the comparison with perf: {}", reason.text));
        }
    }
    let switches = activity.switches.value.number().unwrap() as u64;
    // Each move to another cpu takes it off the one it has.
    assert!(switches >= MOVES, "{switches}");
    subject.end();
}

/// Somebody who may not use perf is told what /proc says, and no zero.
#[test]
fn without_perf_moves_are_counted_too() {
    if cpus() < 2 {
        return notrun::not_run("with one cpu there is nowhere to move to");
    }
    let mut subject = Subject::start("moves");
    // What follows is this thread's own: it becomes nobody, and ends.
    let counted = std::thread::scope(|scope| {
        let look = || {
            // SAFETY: the call changes the users of this thread only, as it is made directly.
            // Where we are nobody much already it is refused, which is as good.
            unsafe { libc::syscall(libc::SYS_setresuid, 65534, 65534, 65534) };
            let process = Process::open(&real(), subject.pid()).unwrap();
            let mut tasks = Tasks::attach(&real(), &nodes(), process).unwrap();
            subject.go_on();
            let activity = tasks.look().unwrap();
            (activity, tasks.without_perf().is_some())
        };
        scope.spawn(look).join().unwrap()
    });
    let (activity, without) = counted;
    if !without {
        notrun::not_run("everybody may use perf here");
    }
    assert_eq!(activity.migrations.source == Source::Sched, without);
    let count = activity.migrations.value.number().unwrap() as u64;
    assert!(
        (MOVES..MOVES + 50).contains(&count),
        "{:?}",
        activity.migrations
    );
    assert!(activity.switches.value.number().unwrap() as u64 >= MOVES);
    subject.end();
}

#[test]
fn a_busy_thread_is_a_load() {
    let mut subject = Subject::start("busy");
    let mut watch = watch(&subject);
    let begun = Instant::now();
    let mut loads = Vec::new();
    while begun.elapsed() < Duration::from_millis(1200) {
        std::thread::sleep(Duration::from_millis(200));
        let sample = watch.look().unwrap();
        loads.push(sample.load().unwrap());
        let threads: f64 = only(&sample).threads.iter().filter_map(|t| t.load).sum();
        // The kernel brings a running thread's time up to date with the clock tick.
        assert!(
            (threads - sample.load().unwrap()).abs() < 0.15,
            "{threads} {loads:?}"
        );
    }
    assert!(
        loads.iter().all(|load| *load <= cpus() as f64 + 0.1),
        "{loads:?}"
    );
    // What it does not get, as others want the cpus too, it waits for.
    let waiting = watch.look().unwrap().waiting().unwrap_or(0.0);
    let mean = watch.summary().mean_load().unwrap();
    assert!(
        mean > 0.1 && mean < 1.3 && waiting < 3.0,
        "{mean} {waiting}"
    );
    let seconds: f64 = watch.summary().seconds_by_node.values().sum();
    assert!((seconds - mean * watch.summary().watched.as_secs_f64()).abs() < 0.2);
    subject.let_go();
    subject.end();
}

#[test]
fn threads_that_come_and_go_are_told() {
    let subject = Subject::start("threads come and go");
    let mut watch = watch(&subject);
    for _ in 0..40 {
        std::thread::sleep(Duration::from_millis(5));
        let sample = watch.look().unwrap();
        let activity = only(&sample);
        assert!(!activity.threads.is_empty());
        for thread in &activity.threads {
            assert!(thread.load.is_none_or(|load| load >= 0.0), "{thread:?}");
        }
    }
    let summary = watch.summary();
    assert!(
        summary.threads_started > 10 && summary.threads_ended > 10,
        "{summary:?}"
    );
    assert_eq!(summary.processes, 1);
    subject.end();
}

#[test]
fn children_are_followed_and_their_ends_survived() {
    if !std::path::Path::new("/proc/self/task").exists()
        || std::fs::read(format!("/proc/self/task/{}/children", std::process::id())).is_err()
    {
        return notrun::not_run("this kernel does not list children (CONFIG_PROC_CHILDREN)");
    }
    let mut subject = Subject::start("forks");
    let mut followed = Watch::new(&real(), &nodes(), subject.pid(), true).unwrap();
    let mut alone = watch(&subject);
    subject.let_go();
    let mut unfollowed = 0;
    let begun = Instant::now();
    let ended = loop {
        match followed.look() {
            Ok(sample) => assert!(!sample.processes.is_empty()),
            Err(error) => break error,
        }
        if let Ok(sample) = alone.look() {
            assert_eq!(sample.processes.len(), 1);
            unfollowed += sample.unfollowed.len();
        }
        assert!(begun.elapsed() < Duration::from_secs(300));
    };
    assert!(
        matches!(ended, Error::Ended { pid } if pid == subject.pid()),
        "{ended}"
    );
    let summary = followed.summary();
    assert!(summary.processes > 10, "{summary:?}");
    assert_eq!(summary.processes, summary.processes_ended);
    assert!(unfollowed > 0, "children that are not followed are told");
    assert!(matches!(alone.look(), Err(Error::Ended { .. })));
}

#[test]
fn the_end_of_a_process_is_an_end_and_no_zero() {
    let mut subject = Subject::start("idle");
    let process = Process::open(&real(), subject.pid()).unwrap();
    let mut tasks = Tasks::attach(&real(), &nodes(), process).unwrap();
    let mut watch = watch(&subject);
    watch.look().unwrap();
    // Not collected: it is there still, and has ended.
    subject.kill();
    let begun = Instant::now();
    let error = loop {
        match watch.look() {
            Ok(_) => assert!(begun.elapsed() < Duration::from_secs(20)),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, Error::Ended { .. }), "{error}");
    assert_eq!(watch.summary().processes_ended, 1);
    for reading in tasks.read() {
        let Value::Unavailable(reason) = &reading.value else {
            panic!("{reading}");
        };
        assert_eq!(reason.why, counters::Why::Ended, "{reading}");
    }
}

/// Five looks a second at a process of 256 threads that all run now and then. What a look takes is
/// compared with reading the two files of a thread once, as machines, emulated ones too, differ.
#[test]
fn watching_many_threads_is_cheap() {
    let subject = Subject::start("many threads");
    let mut watch = watch(&subject);
    let used = || {
        // SAFETY: the call writes one time, to a variable of ours.
        unsafe {
            let mut time: libc::timespec = std::mem::zeroed();
            libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time);
            time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
        }
    };
    let before = used();
    for _ in 0..THREADS {
        std::fs::read("/proc/thread-self/stat").unwrap();
        std::fs::read("/proc/thread-self/schedstat").unwrap();
    }
    let files = used() - before;
    let (begun, before) = (Instant::now(), used());
    for _ in 0..10 {
        std::thread::sleep(Duration::from_millis(200));
        let sample = watch.look().unwrap();
        assert!(sample.threads() > THREADS);
    }
    let looks = used() - before;
    println!(
        "watching {THREADS} threads five times a second: {:.2} % of a cpu, {:.1} times reading their files",
        100.0 * looks / begun.elapsed().as_secs_f64(),
        looks / 10.0 / files
    );
    // About 5 on a quiet machine, up to 12 where other tests share the core; what grows with the square of the
    // threads would be hundreds.
    assert!(looks / 10.0 < 40.0 * files, "{looks} {files}");
    subject.end();
}
