//! Threads that serve a queue of tasks each.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use parking_lot::Mutex;
use topology::Machine;
use workers::{Counter, Error, Layout, Queues, here, yield_now};

/// Queues of four threads on a synthetic machine of two nodes.
fn queues() -> Queues {
    let live = Machine::live().unwrap();
    let machine = Machine::parse("2x2").unwrap();
    Queues::start(&Layout::of(&machine, &live, 4, true)).unwrap()
}

#[test]
fn a_task_stays_on_its_queue_and_knows_its_node() {
    let queues = queues();
    assert_eq!((queues.len(), queues.is_empty()), (4, false));
    assert_eq!(queues.notes(), &[] as &[String]);
    for queue in 0..4 {
        let (begun, ended) = queues
            .run_on(queue, async {
                let begun = (here().unwrap().worker, thread::current().id());
                yield_now().await;
                tokio::time::sleep(std::time::Duration::from_millis(1)).await;
                (begun, (here().unwrap().worker, thread::current().id()))
            })
            .unwrap();
        assert_eq!(begun, ended);
        assert_eq!(begun.0, queue);
    }
    let nodes: Vec<usize> = (0..4)
        .map(|queue| {
            queues
                .run_on(queue, async { here().unwrap().node })
                .unwrap()
        })
        .collect();
    assert_eq!(nodes, [0, 1, 0, 1]);
}

#[test]
fn tasks_of_a_queue_start_in_their_order_and_take_turns_when_they_yield() {
    let queues = queues();
    let told = Arc::new(Mutex::new(vec![]));
    let all = Counter::default();
    // Holds the queue until all tasks were given to it.
    let open = Arc::new(tokio::sync::Notify::new());
    let gate = open.clone();
    let holding = queues
        .spawn_on(2, async move { gate.notified().await })
        .unwrap();
    let (go, wait) = std::sync::mpsc::channel::<()>();
    let blocked = queues
        .spawn_on(2, async move { wait.recv().is_ok() })
        .unwrap();
    for task in 0..5 {
        let told = told.clone();
        let one = all.count(async move {
            told.lock().push(task);
            yield_now().await;
            told.lock().push(task + 10);
        });
        drop(queues.spawn_on(2, one).unwrap());
    }
    go.send(()).unwrap();
    all.wait_blocking();
    let mut told = told.lock().clone();
    told[5..].sort_unstable();
    assert_eq!(told, [0, 1, 2, 3, 4, 10, 11, 12, 13, 14]);
    open.notify_one();
    queues.stop();
    assert!(holding.is_finished() && blocked.is_finished());
}

#[test]
fn stopping_waits_for_all_tasks_and_dropping_cancels_them() {
    let queues_of_both = [queues(), queues()];
    for (queues, stops) in queues_of_both.into_iter().zip([true, false]) {
        let ended = Arc::new(AtomicUsize::new(0));
        let (dropped, begun) = (Arc::new(AtomicUsize::new(0)), Counter::default());
        struct Told(Arc<AtomicUsize>);
        impl Drop for Told {
            fn drop(&mut self) {
                self.0.fetch_add(1, Ordering::SeqCst);
            }
        }
        for queue in 0..4 {
            let (ended, told, pending) = (ended.clone(), Told(dropped.clone()), begun.pending());
            let task = async move {
                let _told = told;
                drop(pending);
                tokio::time::sleep(std::time::Duration::from_millis(if stops {
                    30
                } else {
                    60_000
                }))
                .await;
                ended.fetch_add(1, Ordering::SeqCst);
            };
            drop(queues.spawn_on(queue, task).unwrap());
        }
        begun.wait_blocking();
        if stops {
            queues.stop();
        } else {
            drop(queues);
        }
        let of = |count: &AtomicUsize| count.load(Ordering::SeqCst);
        assert_eq!((of(&ended), of(&dropped)), (if stops { 4 } else { 0 }, 4));
    }
}

#[test]
fn statistics_count_tasks_however_they_end() {
    let queues = queues();
    queues.run_on(3, async {}).unwrap();
    let panicked = queues.run_on(3, async { panic!("no way") });
    assert!(matches!(panicked, Err(Error::Panicked { message }) if message == "no way"));
    let aborted = queues.spawn_on(3, std::future::pending::<()>()).unwrap();
    aborted.abort();
    assert!(matches!(
        queues.run_on(0, aborted).unwrap(),
        Err(Error::Cancelled)
    ));
    let all = queues.statistics();
    assert_eq!((all[3].spawned, all[3].finished), (3, 3));
    assert!((2..=3).contains(&all[3].started));
    assert_eq!((all[0].spawned, all[0].started, all[0].finished), (1, 1, 1));
    assert_eq!(all[1].spawned, 0);
}

#[test]
fn what_cannot_be_is_refused() {
    let queues = Arc::new(queues());
    let missing = queues.spawn_on(4, async {}).unwrap_err();
    assert_eq!(missing.to_string(), "there is no queue 4: choose 0 to 3");
    let inner = queues.clone();
    let waits = queues
        .run_on(0, async move { inner.run_on(1, async {}) })
        .unwrap();
    assert!(matches!(waits, Err(Error::OnWorker)));
    let live = Machine::live().unwrap();
    let none = Layout::of(&live, &live, 0, false);
    assert!(matches!(
        Queues::start(&none),
        Err(Error::Threads { threads: 0 })
    ));
}

#[test]
fn the_last_handle_may_be_dropped_by_a_task() {
    let queues = Arc::new(queues());
    let done = Arc::new(AtomicBool::new(false));
    let (own, told) = (queues.clone(), done.clone());
    let (go, wait) = std::sync::mpsc::channel::<()>();
    let task = queues
        .spawn_on(1, async move {
            let _ = wait.recv();
            drop(own);
            told.store(true, Ordering::SeqCst);
        })
        .unwrap();
    drop(queues);
    go.send(()).unwrap();
    while !task.is_finished() {
        thread::yield_now();
    }
    assert!(done.load(Ordering::SeqCst));
}

#[test]
fn a_counter_counts_from_many_threads() {
    let queues = queues();
    let counter = Counter::default();
    for round in 0..200 {
        for queue in 0..4 {
            let task = counter.count(async move {
                if round % 3 == 0 {
                    yield_now().await;
                }
            });
            drop(queues.spawn_on(queue, task).unwrap());
        }
        let (one, two) = (counter.clone(), counter.clone());
        let waiting = queues
            .spawn_on(round % 4, async move { one.wait().await })
            .unwrap();
        two.wait_blocking();
        queues.run_on(0, waiting).unwrap().unwrap();
        assert_eq!(counter.left(), 0);
    }
}
