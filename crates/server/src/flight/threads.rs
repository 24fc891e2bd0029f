//! Threads of calls. One that has answered waits a while for the next call: to start and to end one takes longer than what
//! many calls do, and a query is three or four calls.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

/// The stack of a thread. What is deep runs on the workers.
const STACK: usize = 2 << 20;

/// How long a thread waits for something to do.
const LASTS: Duration = Duration::from_secs(5);

/// Most threads that wait.
const MOST: usize = 16;

type Work = Box<dyn FnOnce() + Send>;

/// Threads that do what they are given, and wait for more. Those that wait hold nothing but this.
#[derive(Default)]
pub(crate) struct Threads {
    state: Mutex<State>,
    /// Told when there is something to do, and at the end.
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// What is to be done by threads that wait: there is one for each.
    work: VecDeque<Work>,
    /// Threads that wait.
    waiting: usize,
    closed: bool,
}

impl Threads {
    /// Has a thread do `work`: one that waits, or a new one.
    ///
    /// # Errors
    /// If the system gives no thread; `work` is dropped then.
    pub(crate) fn run(self: &Arc<Threads>, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
        let work: Work = Box::new(work);
        {
            let mut state = self.state.lock();
            if state.waiting > state.work.len() {
                state.work.push_back(work);
                self.changed.notify_one();
                return Ok(());
            }
        }
        let own = Arc::clone(self);
        let thread = thread::Builder::new()
            .name("atoll-call".into())
            .stack_size(STACK);
        let serve = move || {
            let mut next = Some(work);
            while let Some(work) = next {
                work();
                next = own.next();
            }
        };
        thread.spawn(serve).map(drop)
    }

    /// What a thread does next; none if it is to end.
    fn next(&self) -> Option<Work> {
        let until = Instant::now() + LASTS;
        let mut state = self.state.lock();
        if state.closed || state.waiting >= MOST {
            return None;
        }
        state.waiting += 1;
        let mut late = false;
        loop {
            // Whoever gave it counts on a thread that waits, also on one that has waited for long enough.
            if let Some(work) = state.work.pop_front() {
                state.waiting -= 1;
                return Some(work);
            }
            if late || state.closed {
                state.waiting -= 1;
                return None;
            }
            late = self.changed.wait_until(&mut state, until).timed_out();
        }
    }

    /// Ends the threads that wait, and those that work once they have done so.
    pub(crate) fn close(&self) {
        self.state.lock().closed = true;
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use std::sync::mpsc::channel;

    /// The thread that does some work.
    fn who(threads: &Arc<Threads>) -> thread::ThreadId {
        let (sender, receiver) = channel();
        threads
            .run(move || sender.send(thread::current().id()).unwrap())
            .unwrap();
        receiver.recv().unwrap()
    }

    fn wait_for(threads: &Threads, waiting: usize) {
        let until = Instant::now() + Duration::from_secs(60);
        while threads.state.lock().waiting != waiting {
            assert!(Instant::now() < until, "{}", threads.state.lock().waiting);
            thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn a_thread_that_waits_is_given_the_next_work() {
        let threads = Arc::new(Threads::default());
        let first = who(&threads);
        for _ in 0..10 {
            wait_for(&threads, 1);
            assert_eq!(who(&threads), first);
        }
        threads.close();
        wait_for(&threads, 0);
        // What comes after the end is done, too.
        assert_ne!(who(&threads), first);
        wait_for(&threads, 0);
    }

    #[test]
    fn work_at_a_time_has_a_thread_each_and_few_wait_afterwards() {
        let threads = Arc::new(Threads::default());
        let (done, seen) = channel();
        let mut going = Vec::new();
        for _ in 0..3 * MOST {
            let (go, wait) = channel::<()>();
            let done = done.clone();
            threads
                .run(move || {
                    let _ = wait.recv();
                    done.send(thread::current().id()).unwrap();
                })
                .unwrap();
            going.push(go);
        }
        drop(going);
        let all: HashSet<_> = seen.iter().take(3 * MOST).collect();
        assert_eq!(all.len(), 3 * MOST, "one was given two while it worked");
        wait_for(&threads, MOST);
        threads.close();
        wait_for(&threads, 0);
    }

    #[test]
    fn a_panic_ends_its_thread_and_nothing_else() {
        let threads = Arc::new(Threads::default());
        let first = who(&threads);
        wait_for(&threads, 1);
        let (done, ended) = channel::<()>();
        threads
            .run(move || {
                let _done = done;
                panic!("a call fails");
            })
            .unwrap();
        assert!(ended.recv().is_err());
        wait_for(&threads, 0);
        assert_ne!(who(&threads), first);
        threads.close();
    }
}
