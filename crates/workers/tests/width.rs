//! The width: exact, elastic, and never in the way of progress.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use topology::Machine;
use workers::{Error, Layout, Workers};

/// Generous: the machine that runs the tests may be busy. Only a hang takes this long.
const HANG: Duration = Duration::from_secs(60);

fn workers(threads: usize) -> Arc<Workers> {
    let live = Machine::live().unwrap();
    let machine = Machine::parse("4x2").unwrap();
    Workers::new(Layout::of(&machine, &live, threads, true)).unwrap()
}

/// Waits until the width has taken effect.
fn settle(workers: &Workers) {
    let start = Instant::now();
    while workers.running() != workers.width() {
        assert!(
            start.elapsed() < HANG,
            "{} of {} workers",
            workers.running(),
            workers.width()
        );
        std::thread::sleep(Duration::from_micros(200));
    }
}

/// Counts who is between `enter` and `leave`.
#[derive(Default)]
struct Meter {
    now: AtomicUsize,
    most: AtomicUsize,
    polls: AtomicUsize,
}

impl Meter {
    fn compute(&self) {
        let now = self.now.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(now, Ordering::SeqCst);
        self.polls.fetch_add(1, Ordering::SeqCst);
        let start = Instant::now();
        while start.elapsed() < Duration::from_micros(50) {
            std::hint::spin_loop();
        }
        self.now.fetch_sub(1, Ordering::SeqCst);
    }

    /// Waits until that many more polls have happened.
    fn more(&self, polls: usize) {
        let target = self.polls.load(Ordering::SeqCst) + polls;
        let start = Instant::now();
        while self.polls.load(Ordering::SeqCst) < target {
            assert!(start.elapsed() < HANG, "no progress");
            std::thread::sleep(Duration::from_micros(200));
        }
    }
}

/// Tasks that never end: some yield, some wait for a timer, some spawn and await others.
fn load(workers: &Workers, tasks: usize, meter: &Arc<Meter>) -> Vec<workers::JoinHandle<()>> {
    let task = |n: usize| {
        let meter = meter.clone();
        workers.spawn(async move {
            loop {
                meter.compute();
                match n % 3 {
                    0 => tokio::task::yield_now().await,
                    1 => tokio::time::sleep(Duration::from_micros(100)).await,
                    _ => {
                        let meter = meter.clone();
                        // Fails only when the test is over and the workers shut down.
                        let _ = tokio::spawn(async move { meter.compute() }).await;
                    }
                }
            }
        })
    };
    (0..tasks).map(|n| task(n).abort_on_drop()).collect()
}

#[test]
fn never_more_tasks_at_once_than_the_width() {
    let workers = workers(8);
    let meter = Arc::new(Meter::default());
    let load = load(&workers, 40, &meter);
    for width in [8, 3, 1, 5, 2, 8, 1] {
        workers.set_width(width).unwrap();
        settle(&workers);
        // Whoever was computing when the last worker parked is still counted for a moment.
        meter.more(20);
        meter.most.store(0, Ordering::SeqCst);
        meter.more(1000);
        let most = meter.most.load(Ordering::SeqCst);
        assert!(most <= width, "{most} tasks at once at width {width}");
        assert_eq!((workers.width(), workers.running()), (width, width));
    }
    drop(load);
}

/// Each round strands tasks if parking a worker loses any: they yield, wake each other, sleep.
#[test]
fn all_work_is_done_while_the_width_changes() {
    let workers = workers(6);
    let stop = Arc::new(AtomicBool::new(false));
    let jitter = {
        let (workers, stop) = (workers.clone(), stop.clone());
        std::thread::spawn(move || {
            let mut n = 0usize;
            while !stop.load(Ordering::Relaxed) {
                n += 1;
                workers.set_width(1 + n * 7 % 6).unwrap();
                std::thread::sleep(Duration::from_micros((n * 37 % 900) as u64));
            }
        })
    };
    for round in 0..30 {
        let tasks: Vec<_> = (0..60)
            .map(|n| {
                workers.spawn(async move {
                    let (send, mut receive) = tokio::sync::mpsc::channel(1);
                    let sender = tokio::spawn(async move {
                        for item in 0..20 {
                            send.send(item).await.unwrap();
                            if n % 2 == 0 {
                                tokio::task::yield_now().await;
                            }
                        }
                    });
                    let mut sum = 0;
                    while let Some(item) = receive.recv().await {
                        sum += item;
                        if n % 7 == 0 {
                            tokio::time::sleep(Duration::from_micros(50)).await;
                        }
                    }
                    sender.await.unwrap();
                    sum
                })
            })
            .collect();
        let total = workers.block_on(async move {
            let all = async {
                let mut total = 0;
                for task in tasks {
                    total += task.await.unwrap();
                }
                total
            };
            tokio::time::timeout(HANG, all).await
        });
        assert_eq!(total, Ok(60 * 190), "round {round}");
    }
    stop.store(true, Ordering::Relaxed);
    jitter.join().unwrap();
}

/// A task that yielded on the worker that is about to park must go on elsewhere.
#[test]
fn a_yielded_task_is_not_stranded() {
    let workers = workers(2);
    for _ in 0..300 {
        workers.set_width(2).unwrap();
        let tasks: Vec<_> = (0..4)
            .map(|_| {
                workers.spawn(async {
                    for _ in 0..20 {
                        tokio::task::yield_now().await;
                    }
                })
            })
            .collect();
        workers.set_width(1).unwrap();
        workers.block_on(async move {
            for task in tasks {
                tokio::time::timeout(HANG, task)
                    .await
                    .expect("stranded")
                    .unwrap();
            }
        });
    }
}

#[test]
fn width_one_still_serves_timers_and_blocking_callers() {
    let workers = workers(4);
    workers.set_width(1).unwrap();
    settle(&workers);
    let start = Instant::now();
    for _ in 0..20 {
        workers.block_on(async {
            tokio::time::sleep(Duration::from_millis(1)).await;
            let inner = tokio::spawn(async { tokio::task::yield_now().await });
            inner.await.unwrap();
        });
    }
    assert!(start.elapsed() < HANG);
}

#[test]
fn the_width_is_set_from_inside_a_task() {
    let workers = workers(4);
    for width in [1, 4, 2, 1, 3, 4] {
        let inner = workers.clone();
        workers
            .block_on(async move { inner.set_width(width) })
            .unwrap();
        settle(&workers);
        assert_eq!(workers.width(), width);
    }
}

#[test]
fn a_width_out_of_range_is_refused_and_changes_nothing() {
    let workers = workers(3);
    for width in [0, 4, usize::MAX] {
        let error = workers.set_width(width).unwrap_err();
        assert!(matches!(error, Error::Width { threads: 3, .. }), "{error}");
        assert!(error.to_string().contains("1 to 3"), "{error}");
    }
    assert_eq!((workers.width(), workers.running()), (3, 3));
}

#[test]
fn dropping_releases_parked_workers() {
    for round in 0..20 {
        let workers = workers(4);
        workers.set_width(1).unwrap();
        if round % 2 == 0 {
            settle(&workers);
        }
        let start = Instant::now();
        drop(workers);
        assert!(
            start.elapsed() < Duration::from_secs(8),
            "waited for a parked worker"
        );
    }
}

#[test]
fn the_last_reference_may_be_dropped_by_a_task() {
    let workers = workers(2);
    let (send, receive) = std::sync::mpsc::channel();
    let last = workers.clone();
    let gate = Arc::new(tokio::sync::Notify::new());
    let open = gate.clone();
    let task = workers.spawn(async move {
        open.notified().await;
        drop(last);
        send.send(()).unwrap();
    });
    drop(workers);
    gate.notify_one();
    receive.recv_timeout(HANG).expect("the task ran to its end");
    drop(task);
}

/// The nodes on which tasks are seen, until each of `many` polls in a row was on one of `allowed`.
fn seen_only_on(workers: &Workers, allowed: &[usize], many: usize) {
    let start = Instant::now();
    let mut calm = 0;
    while calm < many {
        let at = workers.block_on(async { workers::here().unwrap().node });
        calm = if allowed.contains(&at) { calm + 1 } else { 0 };
        assert!(
            start.elapsed() < HANG,
            "a task on node {at}, not {allowed:?}"
        );
    }
}

#[test]
fn workers_run_where_they_are_placed_and_go_back() {
    let workers = workers(8);
    let meter = Arc::new(Meter::default());
    let tasks = load(&workers, 24, &meter);
    let all = workers.layout().places().to_vec();
    for node in [2, 0, 3] {
        let there: Vec<_> = all
            .iter()
            .filter(|place| place.node == node)
            .copied()
            .collect();
        workers.place(&there).unwrap();
        assert_eq!(workers.places(), there);
        settle(&workers);
        seen_only_on(&workers, &[node], 200);
        meter.more(200);
    }
    // A place of each of two nodes.
    let two: Vec<_> = [1, 2]
        .map(|node| *all.iter().find(|p| p.node == node).unwrap())
        .to_vec();
    workers.place(&two).unwrap();
    settle(&workers);
    seen_only_on(&workers, &[1, 2], 200);
    workers.set_width(8).unwrap();
    settle(&workers);
    assert_eq!(workers.places(), all);
    assert_eq!(workers.thread_ids().len(), 8);
    for none in [&[][..], &[all.clone(), all.clone()].concat()] {
        assert!(matches!(workers.place(none), Err(Error::Width { .. })));
    }
    drop(tasks);
}
