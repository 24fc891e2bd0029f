//! A process that publishes what its workers do.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use governor::runtime::{Crew, Runtime};
use governor::{Policy, Sensor, THROUGHPUT};
use governor_live::{Live, Means, Options, Target, Wanted};
use placement::CpuSet;

/// After so long it counts as stuck.
const HANG: Duration = Duration::from_secs(60);

/// Workers that read a little whenever they are looked at.
#[derive(Default)]
struct Readers {
    bytes: AtomicU64,
    placed: AtomicBool,
}

impl Crew for Readers {
    fn threads(&self) -> Vec<u32> {
        Vec::new()
    }

    fn bytes(&self) -> Vec<(u32, u64)> {
        vec![(0, self.bytes.fetch_add(1000, Ordering::Relaxed))]
    }

    fn place(&self, _: &CpuSet) -> Result<(), String> {
        self.placed.store(true, Ordering::Relaxed);
        Ok(())
    }
}

/// What a process publishes is read by a governor of that process, this one.
#[test]
fn what_is_counted_is_read_from_outside() {
    let readers = Arc::new(Readers::default());
    let counting = Runtime::start(readers.clone(), None).unwrap();
    let wanted = Wanted {
        target: Target::Pid(std::process::id()),
        weight: 1.0,
        counter: Some("atoll-statements".parse().unwrap()),
    };
    let folder = tempfile::tempdir().unwrap();
    let policy = Policy::default().thresholds_of(Sensor::Throughput);
    let options = Options {
        period: Duration::from_millis(10),
        dry_run: true,
        means: Means::Affinity,
        ..Options::new(policy, folder.path().to_owned()).unwrap()
    };
    let mut live = Live::begin(vec![wanted], options).unwrap();
    let begun = Instant::now();
    loop {
        // Short ones, which nobody sees run.
        (0..10).for_each(|_| drop(counting.begin()));
        std::thread::sleep(Duration::from_millis(20));
        let decision = live.check().unwrap().remove(0);
        let rate = &decision.readings[THROUGHPUT];
        assert_eq!(
            (&*rate.source, &*rate.unit),
            ("Atoll's own counter", "statements per second")
        );
        if rate.value.is_some_and(|rate| rate > 0.0) {
            break;
        }
        assert!(begun.elapsed() < HANG, "{rate:?}");
    }
    live.end().unwrap();
    assert!(
        !readers.placed.load(Ordering::Relaxed),
        "nothing is governed"
    );
}
