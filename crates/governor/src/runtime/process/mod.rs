//! The thread that governs, and all that this crate reads of the system: the clock, the cpu times of the workers, and the
//! counter that is published.

pub mod published;
mod statements;
mod threads;

use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::policy::decision::Decision;
use crate::runtime::activity::Next;
use crate::runtime::control::{Control, Look, Options, Stretch};
use crate::runtime::crew::Crew;
use crate::runtime::history::History;
use published::{Counted, Published};
pub use statements::Running;
use statements::Statements;
use threads::Threads;

/// Time after the last statement until the workers get all of their cpus back.
const REST: Duration = Duration::from_secs(1);

/// How often the counter is published if nothing is governed.
const PUBLISH: Duration = Duration::from_millis(50);

/// Governs the workers until it is dropped; they then get all of their cpus back.
#[derive(Debug)]
pub struct Runtime {
    activity: Arc<Statements>,
    history: Arc<Mutex<History>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Runtime {
    /// Starts governing these workers, which have all of the options' `cpus` at this moment; without options, only
    /// publishes what they do.
    ///
    /// # Errors
    ///
    /// [`Error::Policy`]; [`Error::Thread`] if no thread can be started.
    pub fn start(crew: Arc<dyn Crew>, options: Option<Options>) -> Result<Runtime> {
        let activity = Arc::new(Statements::default());
        let cores = options.as_ref().map_or(0, |options| options.cpus.len());
        let history = Arc::new(Mutex::new(History::new(cores)));
        let mut publish = Publish {
            crew: crew.clone(),
            // Where there is no memory for it nobody can read it.
            to: Published::new().ok(),
        };
        let watch = match options {
            Some(options) => Some(Watch::new(crew, options, history.clone())?),
            None => None,
        };
        let told = activity.clone();
        let thread = thread::Builder::new().name("atoll-govern".into());
        let thread = thread.spawn(move || match watch {
            Some(watch) => watch.run(&told, &mut publish),
            None => publish.run(&told),
        });
        let thread = thread.map_err(|source| Error::Thread { source })?;
        Ok(Runtime {
            activity,
            history,
            thread: Some(thread),
        })
    }

    /// Begins a statement, which ends when the returned value is dropped.
    pub fn begin(&self) -> Running {
        Statements::begin(&self.activity)
    }

    /// The decisions since then as text: the cores over time, and each change with its reason.
    pub fn since(&self, began: Instant) -> Vec<String> {
        let history = self.history.lock().unwrap_or_else(PoisonError::into_inner);
        history.since(began, Instant::now())
    }

    /// The last few hundred decisions, oldest first.
    pub fn decisions(&self) -> Vec<Decision> {
        let history = self.history.lock().unwrap_or_else(PoisonError::into_inner);
        history.decisions()
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        self.activity.stop();
        if let Some(thread) = self.thread.take()
            && thread.thread().id() != thread::current().id()
        {
            // Its panic, if any, has been reported by itself.
            let _ = thread.join();
        }
    }
}

/// The counter that other processes read.
struct Publish {
    crew: Arc<dyn Crew>,
    to: Option<Published>,
}

impl Publish {
    fn write(&mut self, activity: &Statements) {
        if let Some(to) = &mut self.to {
            let bytes = self.crew.bytes().iter().map(|(_, bytes)| bytes).sum();
            let statements = activity.ended();
            // It is tried again soon.
            let _ = to.write(Counted { statements, bytes });
        }
    }

    /// The thread is to end.
    fn run(&mut self, activity: &Statements) {
        while activity.wait_for_work() {
            loop {
                let next = activity.wait(PUBLISH, REST);
                self.write(activity);
                match next {
                    Next::Decide(_) | Next::Look => {}
                    Next::Rest => break,
                    Next::Stop => return,
                }
            }
        }
    }
}

/// The loop of the thread.
struct Watch {
    crew: Arc<dyn Crew>,
    control: Control,
    history: Arc<Mutex<History>>,
    begun: Instant,
}

impl Watch {
    fn new(crew: Arc<dyn Crew>, options: Options, history: Arc<Mutex<History>>) -> Result<Watch> {
        Ok(Watch {
            crew,
            // A policy that cannot be is refused here and not in the thread.
            control: Control::new(options)?,
            history,
            begun: Instant::now(),
        })
    }

    fn run(&self, activity: &Statements, publish: &mut Publish) {
        let period = self.control.options().period;
        while activity.wait_for_work() {
            let mut threads = Threads::default();
            // The first look is what the next is compared with.
            threads.read(&self.crew.threads());
            // As it was possible before.
            let Ok(mut stretch) = self.control.stretch(self.time(), self.crew.bytes()) else {
                return;
            };
            loop {
                let next = activity.wait(period, REST);
                publish.write(activity);
                match next {
                    Next::Decide(active) => self.decide(&mut stretch, &mut threads, active),
                    Next::Look => {}
                    Next::Rest => break,
                    Next::Stop => {
                        self.give_back(&stretch);
                        return;
                    }
                }
            }
            self.give_back(&stretch);
        }
    }

    /// Seconds for which the workers have been governed.
    fn time(&self) -> f64 {
        self.begun.elapsed().as_secs_f64()
    }

    /// Makes one decision; statements ran for `active` since the last one.
    fn decide(&self, stretch: &mut Stretch, threads: &mut Threads, active: Duration) {
        let begun = Instant::now();
        let look = Look {
            time: self.time(),
            active,
            busy: threads.read(&self.crew.threads()),
            bytes: self.crew.bytes(),
        };
        let Ok(mut decision) = self.control.decide(stretch, look) else {
            return;
        };
        let cpus = decision.cpus();
        if cpus != stretch.cpus && !cpus.is_empty() {
            match self.crew.place(&cpus) {
                Ok(()) => stretch.cpus = cpus,
                Err(why) => decision.why = format!("{}; it could not be set: {why}", decision.why),
            }
        }
        decision.decision_seconds = begun.elapsed().as_secs_f64();
        let mut history = self.history.lock().unwrap_or_else(PoisonError::into_inner);
        history.add(Instant::now(), decision, stretch.cpus.len());
    }

    /// Gives the workers all cpus back.
    fn give_back(&self, stretch: &Stretch) {
        let cpus = &self.control.options().cpus;
        if stretch.cpus != *cpus && self.crew.place(cpus).is_ok() {
            let mut history = self.history.lock().unwrap_or_else(PoisonError::into_inner);
            history.reset(cpus.len());
        }
    }
}
