//! Running one command on an emulated machine.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use serde::Serialize;
use topology::Machine;

use crate::count::{Count, Counting};
use crate::error::{Error, Result};
use crate::image::{Archive, Image};
use crate::qemu::arguments::{self, Engine};
use crate::qemu::channel::{Decoder, Frame};
use crate::qemu::kvm;
use crate::qemu::process::{Emulator, Piece, last_lines, memory_file};
use crate::shape::Shape;
use crate::variables::MACHINE_VARIABLE;

/// The exit status of a command that the time limit ended, as `timeout` has it.
pub const LIMIT_STATUS: i32 = 124;

/// The exit status of a command that the user ended with Ctrl-C.
pub const INTERRUPT_STATUS: i32 = 130;

/// How often the time limit and the wish to stop are looked at.
const TICK: Duration = Duration::from_millis(50);

/// How long the emulator may take to end after the command has.
const POWER_OFF: Duration = Duration::from_secs(20);

/// Where hardware works, a guest is up in two seconds. Some hosts offer virtualisation that Debian's
/// kernel does not come up on.
const BY_HARDWARE: Duration = Duration::from_secs(10);

/// A command, and the machine to run it on.
///
/// The command sees the whole file system of this system, read-only: what it writes is kept in
/// the guest's memory and is lost with it, but for what it writes below [`share`](Launch::share).
/// It runs as root of the guest, with the rights of the calling user to files.
#[derive(Debug, Clone)]
pub struct Launch {
    /// The machine.
    pub shape: Shape,
    /// The command's words.
    pub command: Vec<OsString>,
    /// Its working directory.
    pub directory: PathBuf,
    /// Its environment; [`MACHINE_VARIABLE`] is added.
    pub environment: Vec<(OsString, OsString)>,
    /// A directory that it may write to, under its own path.
    pub share: Option<PathBuf>,
    /// What to count of its memory accesses.
    pub counting: Option<Counting>,
    /// When to end it, counted from the start of the machine.
    pub limit: Duration,
    /// Whether the kernel moves pages to where they are used (AutoNUMA).
    pub balancing: bool,
    /// Whether each processor is a thread of the host: real races, but slower where the host has
    /// few cores.
    pub races: bool,
    /// Whether the host's processors may run it where they can; never while counting.
    pub hardware: bool,
}

/// Why a machine ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Ended {
    /// The command came to its end.
    Itself,
    /// The time limit.
    Limit,
    /// The user.
    Interrupted,
}

/// What became of a [`Launch`].
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Outcome {
    /// The command's exit status: 127 where there is no such command, 128 and the number of the
    /// signal that ended it, [`LIMIT_STATUS`] or [`INTERRUPT_STATUS`].
    pub exit: i32,
    /// Why the machine ended.
    pub ended: Ended,
    /// Number of memory nodes.
    pub nodes: usize,
    /// Number of cores.
    pub cores: usize,
    /// Seconds from the start until the command was about to run; `None` where it never was.
    pub boot_seconds: Option<f64>,
    /// Seconds from the start to the end.
    pub seconds: f64,
    /// What was counted.
    #[serde(flatten)]
    pub count: Option<Count>,
}

impl Launch {
    /// A command on a machine, with the working directory and environment of this process,
    /// nothing shared or counted, and a limit of 15 minutes.
    pub fn new<S: AsRef<OsStr>>(shape: Shape, command: impl IntoIterator<Item = S>) -> Launch {
        Launch {
            shape,
            command: command
                .into_iter()
                .map(|word| word.as_ref().to_owned())
                .collect(),
            directory: std::env::current_dir().unwrap_or_else(|_| "/".into()),
            environment: std::env::vars_os().collect(),
            share: None,
            counting: None,
            limit: Duration::from_secs(900),
            balancing: false,
            races: false,
            hardware: true,
        }
    }

    /// Boots the machine, runs the command and switches the machine off. What the command writes
    /// goes to `out` and `err` as it comes, and so do a few lines where something has to be
    /// fetched or compiled first. Ends early, and soon, once `stop` is true.
    ///
    /// # Errors
    ///
    /// [`Error::Missing`] where programs are not installed; others where the image cannot be
    /// made, the machine does not come up, or the output cannot be written. That the command
    /// fails or is ended is no error: see [`Outcome`].
    pub fn run(
        &self,
        out: &mut dyn Write,
        err: &mut dyn Write,
        stop: &AtomicBool,
    ) -> Result<Outcome> {
        let image = Image::ready(err)?;
        let hardware = self.hardware && self.counting.is_none();
        let engine = if hardware && kvm::works(&image.directory, stop, || comes_up(&image, stop)) {
            Engine::Hardware
        } else if self.races {
            Engine::ManyThreads
        } else {
            Engine::OneThread
        };
        self.run_with(&image, engine, out, err, stop)
    }

    fn run_with(
        &self,
        image: &Image,
        engine: Engine,
        out: &mut dyn Write,
        err: &mut dyn Write,
        stop: &AtomicBool,
    ) -> Result<Outcome> {
        let share = self.shared()?;
        let mut initrd = image.archive()?;
        initrd.extend(self.job(share.as_ref())?);
        let initrd = memory_file(&initrd)?;
        let console = memory_file(&[])?;
        let counts = memory_file(&[])?;
        let plugin = match &self.counting {
            Some(counting) => {
                let plugin = image.plugin()?;
                Some(counting.plugin(&plugin, &self.shape, counts.as_raw_fd()))
            }
            None => None,
        };
        let parts = arguments::Parts {
            engine,
            kernel: &image.kernel(),
            initrd: initrd.as_raw_fd(),
            console: console.as_raw_fd(),
            share: share.as_deref(),
            balancing: self.balancing,
            plugin,
        };
        let inherited = [&initrd, &console, &counts].map(AsRawFd::as_raw_fd);
        let mut watch = Watch {
            emulator: Emulator::start(&arguments::arguments(&self.shape, &parts), &inherited)?,
            console,
            begun: Instant::now(),
            booted: None,
        };
        let (exit, ended) = watch.follow(self.limit, out, err, stop)?;
        let count = match &self.counting {
            Some(counting) => Some(counting.read(&counts, &self.shape)?),
            None => None,
        };
        Ok(Outcome {
            exit,
            ended,
            nodes: self.shape.nodes().len(),
            cores: self.shape.cores(),
            boot_seconds: watch.booted.map(|time| time.as_secs_f64()),
            seconds: watch.begun.elapsed().as_secs_f64(),
            count,
        })
    }

    /// The shared directory, absolute.
    fn shared(&self) -> Result<Option<PathBuf>> {
        let Some(share) = &self.share else {
            return Ok(None);
        };
        let failed = |source| Error::File {
            what: "share",
            path: share.clone(),
            source,
        };
        let path = share.canonicalize().map_err(failed)?;
        if !path.is_dir() {
            return Err(failed(io::ErrorKind::NotADirectory.into()));
        }
        if path.parent().is_none() {
            let why = "the root directory cannot be shared: name one below it".to_owned();
            return Err(Error::Command { why });
        }
        Ok(Some(path))
    }

    /// What the first process is to do, as files it knows.
    fn job(&self, share: Option<&PathBuf>) -> Result<Vec<u8>> {
        let Some(program) = self.command.first() else {
            let why = "there is none".to_owned();
            return Err(Error::Command { why });
        };
        if program.is_empty() {
            let why = "its first word is empty".to_owned();
            return Err(Error::Command { why });
        }
        let words = |words: &mut dyn Iterator<Item = Vec<u8>>| -> Vec<u8> {
            words
                .flat_map(|word| word.into_iter().chain(std::iter::once(0)))
                .collect()
        };
        let argv = words(&mut self.command.iter().map(|word| word.as_bytes().to_vec()));
        let name = OsString::from(self.shape.name());
        let own = (OsString::from(MACHINE_VARIABLE), name);
        let environment = self.environment.iter().chain([&own]);
        let environment = words(&mut environment.map(|(name, value)| {
            let mut value = value.as_bytes().to_vec();
            if name == "PATH" {
                value.extend(b":/run/atoll");
            }
            [name.as_bytes(), b"=", &value].concat()
        }));
        let now = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
        let nodes = match self.counting {
            Some(_) => self.shape.nodes().len(),
            None => 0,
        };
        let share = share.map_or(&[][..], |path| path.as_os_str().as_bytes());
        let mut archive = Archive::default();
        archive.directory("job");
        archive.file("job/argv", &argv);
        archive.file("job/env", &environment);
        archive.file("job/cwd", self.directory.as_os_str().as_bytes());
        archive.file("job/share", share);
        archive.file("job/time", now.as_secs().to_string().as_bytes());
        archive.file("job/nodes", nodes.to_string().as_bytes());
        Ok(archive.finish())
    }
}

/// Whether a small guest comes up by hardware.
fn comes_up(image: &Image, stop: &AtomicBool) -> bool {
    let shape = Machine::parse("2x1")
        .map_err(Error::from)
        .and_then(|machine| Shape::of(&machine, 128, 0));
    let Ok(shape) = shape else {
        return false;
    };
    let mut launch = Launch::new(shape, ["true"]);
    launch.directory = "/".into();
    launch.limit = BY_HARDWARE;
    let (out, err) = (&mut io::sink(), &mut io::sink());
    let outcome = launch.run_with(image, Engine::Hardware, out, err, stop);
    outcome.is_ok_and(|outcome| outcome.exit == 0)
}

/// A running machine.
#[derive(Debug)]
struct Watch {
    emulator: Emulator,
    console: File,
    begun: Instant,
    booted: Option<Duration>,
}

impl Watch {
    /// Passes on what comes until the machine has ended, or is to end.
    fn follow(
        &mut self,
        limit: Duration,
        out: &mut dyn Write,
        err: &mut dyn Write,
        stop: &AtomicBool,
    ) -> Result<(i32, Ended)> {
        let failed = |source| Error::Output { source };
        let mut decoder = Decoder::default();
        let mut buffer = vec![0; 64 << 10];
        loop {
            if stop.load(Ordering::Relaxed) {
                self.emulator.stop();
                return Ok((INTERRUPT_STATUS, Ended::Interrupted));
            }
            if self.begun.elapsed() > limit {
                self.emulator.stop();
                return Ok((LIMIT_STATUS, Ended::Limit));
            }
            let bytes = match self.emulator.read(&mut buffer, TICK).map_err(failed)? {
                Piece::Nothing => continue,
                Piece::End => return Err(self.failure("it ended before the command did")),
                Piece::Bytes(bytes) => &buffer[..bytes],
            };
            let frames = decoder.take(bytes).map_err(|why| self.failure(&why))?;
            for frame in frames {
                match frame {
                    Frame::Booted => self.booted = Some(self.begun.elapsed()),
                    Frame::Out(bytes) => out.write_all(&bytes).map_err(failed)?,
                    Frame::Err(bytes) => err.write_all(&bytes).map_err(failed)?,
                    Frame::Failed(why) => return Err(self.failure(&why)),
                    Frame::Exit(status) => {
                        if !self.emulator.ended_within(POWER_OFF) {
                            self.emulator.stop();
                        }
                        return Ok((status, Ended::Itself));
                    }
                }
            }
            out.flush().map_err(failed)?;
        }
    }

    fn failure(&mut self, what: &str) -> Error {
        // What it has to say it says before it ends.
        self.emulator.ended_within(Duration::from_secs(1));
        let mut why = what.to_owned();
        for said in [self.emulator.complaint(), last_lines(&self.console, 3)] {
            if !said.is_empty() {
                why += &format!(": {said}");
            }
        }
        Error::Emulator { why }
    }
}
