//! [`Reading`]: a value with its unit, source, scope and age, or the reason why there is none.

use std::borrow::Cow;
use std::fmt;
use std::io;
use std::time::Duration;

use serde::ser::{SerializeStruct, Serializer};
use serde::{Deserialize, Serialize};

/// One value that a sensor read, with its unit, source, scope and age.
///
/// As JSON: `{"name", "value", "unit", "source", "standing", "scope", "age_seconds"}`, and
/// `"unavailable"` with the reason where `"value"` is `null`. Integers beyond 2^53, NaN and
/// infinities are strings.
///
/// ```
/// use counters::{Reading, Scope, Source, Unit, Value};
///
/// let reading = Reading::new("migrations", Value::Count(3), Unit::Events, Source::Sched, Scope::Process(7));
/// assert_eq!(reading.value.number(), Some(3.0));
/// assert_eq!(reading.to_string(), "migrations of process 7: 3 events (/proc sched)");
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Reading {
    /// What was read, such as `faults.minor`. The name alone fixes unit and meaning.
    pub name: Cow<'static, str>,
    /// The number, or why there is none.
    pub value: Value,
    /// Of the number.
    pub unit: Unit,
    /// Which back end read it.
    pub source: Source,
    /// What it is a value of.
    pub scope: Scope,
    /// How old the value was when it was handed out.
    pub age: Duration,
}

impl Reading {
    /// A reading taken just now.
    pub fn new(
        name: impl Into<Cow<'static, str>>,
        value: Value,
        unit: Unit,
        source: Source,
        scope: Scope,
    ) -> Reading {
        Reading {
            name: name.into(),
            value,
            unit,
            source,
            scope,
            age: Duration::ZERO,
        }
    }
}

impl fmt::Display for Reading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}: {}", self.name, self.scope, self.value)?;
        if self.value.number().is_some() {
            write!(f, " {}", self.unit.name())?;
        }
        write!(f, " ({}", self.source.name())?;
        match self.source.standing() {
            Standing::Proven => {}
            Standing::Unproven => write!(f, ", never run on hardware")?,
            Standing::Emulated => write!(f, ", emulated")?,
        }
        if self.age >= Duration::from_millis(1) {
            write!(f, ", {:.1} s old", self.age.as_secs_f64())?;
        }
        write!(f, ")")
    }
}

impl Serialize for Reading {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_struct("Reading", 8)?;
        out.serialize_field("name", &self.name)?;
        out.serialize_field("value", &self.value)?;
        match &self.value {
            Value::Unavailable(reason) => out.serialize_field("unavailable", &reason.text)?,
            _ => out.skip_field("unavailable")?,
        }
        out.serialize_field("unit", self.unit.name())?;
        out.serialize_field("source", self.source.name())?;
        out.serialize_field("standing", &self.source.standing())?;
        out.serialize_field("scope", &self.scope)?;
        out.serialize_field("age_seconds", &self.age.as_secs_f64())?;
        out.end()
    }
}

/// A number, or why there is none. There is no zero that means "unknown".
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Counted, exactly.
    Count(u64),
    /// Measured or computed.
    Number(f64),
    /// There is no value.
    Unavailable(Reason),
}

impl Value {
    /// The number, where there is one.
    pub fn number(&self) -> Option<f64> {
        match self {
            Value::Count(count) => Some(*count as f64),
            Value::Number(number) => Some(*number),
            Value::Unavailable(_) => None,
        }
    }

    /// No value, and why.
    pub fn unavailable(why: Why, text: impl Into<String>) -> Value {
        let text = text.into();
        Value::Unavailable(Reason { why, text })
    }

    /// No value, as a file of the system cannot be read.
    pub(crate) fn unreadable(path: &str, error: &io::Error) -> Value {
        Value::Unavailable(Reason::unreadable(path, error))
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Count(count) => write!(f, "{count}"),
            Value::Number(number) => write!(f, "{number:.3}"),
            Value::Unavailable(reason) => write!(f, "unavailable: {}", reason.text),
        }
    }
}

/// A number, a string where JSON's numbers would not hold it, or `null`.
impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Value::Count(count) if *count > 1 << 53 => serializer.collect_str(count),
            Value::Count(count) => serializer.serialize_u64(*count),
            Value::Number(number) if number.is_finite() => serializer.serialize_f64(*number),
            Value::Number(number) => serializer.collect_str(number),
            Value::Unavailable(_) => serializer.serialize_none(),
        }
    }
}

/// Why there is no value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    /// For programs.
    pub why: Why,
    /// For people: what is missing, and where something can be done about it, what.
    pub text: String,
}

impl Reason {
    /// A file of the system cannot be read.
    pub(crate) fn unreadable(path: &str, error: &io::Error) -> Reason {
        let why = match error.raw_os_error() {
            Some(libc::EACCES | libc::EPERM) => Why::Refused,
            _ => Why::Absent,
        };
        Reason {
            why,
            text: format!("{path}: {error}"),
        }
    }
}

/// Why there is no value, for programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Why {
    /// This machine or kernel does not have it.
    Absent,
    /// It is there, and this user may not read it.
    Refused,
    /// It takes a second look, later.
    NotYet,
    /// What it was a value of has ended.
    Ended,
    /// It is there, and says something that is not understood.
    NotUnderstood,
}

/// What a number counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Unit {
    /// Bytes.
    Bytes,
    /// Things that happened.
    Events,
    /// Accesses to memory, one cache line each.
    Accesses,
    /// Of time.
    Seconds,
    /// Of energy.
    Joules,
    /// Cpus kept busy: 2.0 is two cpus all the time.
    Cpus,
    /// Between 0 and 1.
    Ratio,
    /// Threads or processes.
    Tasks,
    /// What the kernel's description of the event does not name.
    Unnamed,
}

impl Unit {
    /// As it stands in JSON and in tables.
    pub fn name(self) -> &'static str {
        match self {
            Unit::Bytes => "bytes",
            Unit::Events => "events",
            Unit::Accesses => "accesses",
            Unit::Seconds => "seconds",
            Unit::Joules => "joules",
            Unit::Cpus => "cpus",
            Unit::Ratio => "ratio",
            Unit::Tasks => "tasks",
            Unit::Unnamed => "counts",
        }
    }
}

/// The back end that read a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Source {
    /// The engine counted what its kernels consumed.
    Engine,
    /// `/proc/PID/numa_maps`: every page.
    NumaMaps,
    /// `move_pages` on a sample of addresses.
    MovePages,
    /// `/proc/PID/stat`, `/proc/stat`.
    Stat,
    /// `/proc/PID/task/TID/schedstat`.
    Schedstat,
    /// `/proc/PID/task/TID/sched`.
    Sched,
    /// The process's cpu clock.
    Clock,
    /// `/proc/pressure`.
    Pressure,
    /// `perf_event_open`, events of the kernel.
    Software,
    /// `perf_event_open`, events of a core.
    Core,
    /// `perf_event_open`, events of a memory controller or an interconnect.
    Uncore,
    /// `perf_event_open`, loads sampled with where their data came from (IBS, PEBS).
    Samples,
    /// The resource control file system.
    Resctrl,
    /// `/sys/class/powercap`.
    Powercap,
    /// The access counter of an emulated machine.
    Emulator,
}

impl Source {
    /// As it stands in JSON and in tables.
    pub fn name(self) -> &'static str {
        match self {
            Source::Engine => "engine",
            Source::NumaMaps => "numa_maps",
            Source::MovePages => "move_pages",
            Source::Stat => "/proc stat",
            Source::Schedstat => "/proc schedstat",
            Source::Sched => "/proc sched",
            Source::Clock => "cpu clock",
            Source::Pressure => "/proc pressure",
            Source::Software => "perf software",
            Source::Core => "perf core",
            Source::Uncore => "perf uncore",
            Source::Samples => "perf samples",
            Source::Resctrl => "resctrl",
            Source::Powercap => "powercap",
            Source::Emulator => "emulator",
        }
    }

    /// Whether this back end has ever shown that it works.
    pub fn standing(self) -> Standing {
        match self {
            Source::Core
            | Source::Uncore
            | Source::Samples
            | Source::Resctrl
            | Source::Powercap => Standing::Unproven,
            Source::Emulator => Standing::Emulated,
            _ => Standing::Proven,
        }
    }
}

/// Whether a back end has ever shown that it works.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Standing {
    /// It has run where its readings could be checked.
    Proven,
    /// Written against the documentation; nobody has run it on hardware that has the thing.
    Unproven,
    /// It counts what an emulated machine does.
    Emulated,
}

/// What a value is a value of. Nodes and cpus are the operating system's numbers.
///
/// As JSON: an object with the fields that apply, such as `{"process": 7, "thread": 9}`, and
/// `{}` for the whole machine.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Scope {
    /// A process.
    Process(u32),
    /// A thread of a process.
    Thread {
        /// The process.
        process: u32,
        /// The thread's number.
        thread: u32,
    },
    /// The memory of one process on one node.
    Memory {
        /// The process.
        process: u32,
        /// The node.
        node: u32,
    },
    /// One cpu.
    Cpu(u32),
    /// One node.
    Node(u32),
    /// From the cores of one node to the memory of another, or of the same.
    NodePair {
        /// Whose cores access.
        reader: u32,
        /// Whose memory is accessed.
        page: u32,
    },
    /// A part of the machine with a name of its own: a cache domain, a power zone, a
    /// memory controller.
    Part(String),
    /// All of it.
    Machine,
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scope::Process(pid) => write!(f, "process {pid}"),
            Scope::Thread { process, thread } => write!(f, "thread {thread} of process {process}"),
            Scope::Memory { process, node } => write!(f, "process {process} on node {node}"),
            Scope::Cpu(cpu) => write!(f, "cpu {cpu}"),
            Scope::Node(node) => write!(f, "node {node}"),
            Scope::NodePair { reader, page } => write!(f, "node {reader} reading node {page}"),
            Scope::Part(name) => write!(f, "{name}"),
            Scope::Machine => write!(f, "the machine"),
        }
    }
}

impl Serialize for Scope {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let fields: Vec<(&str, u32)> = match self {
            Scope::Process(pid) => vec![("process", *pid)],
            Scope::Thread { process, thread } => vec![("process", *process), ("thread", *thread)],
            Scope::Memory { process, node } => vec![("process", *process), ("node", *node)],
            Scope::Cpu(cpu) => vec![("cpu", *cpu)],
            Scope::Node(node) => vec![("node", *node)],
            Scope::NodePair { reader, page } => vec![("reader", *reader), ("page", *page)],
            Scope::Part(name) => return serializer.collect_map([("part", name)]),
            Scope::Machine => vec![],
        };
        serializer.collect_map(fields)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(value: Value) -> serde_json::Value {
        let scope = Scope::NodePair { reader: 0, page: 1 };
        let reading = Reading::new("x", value, Unit::Bytes, Source::Uncore, scope);
        serde_json::to_value(&reading).unwrap()
    }

    #[test]
    fn an_unknown_value_is_never_a_number() {
        let gone = Value::unavailable(Why::Absent, "no such counter");
        assert_eq!(gone.number(), None);
        let json = json(gone);
        assert!(json["value"].is_null());
        assert_eq!(json["unavailable"], "no such counter");
    }

    #[test]
    fn what_json_cannot_hold_is_a_string() {
        assert_eq!(json(Value::Count(1 << 53))["value"], 1u64 << 53);
        assert_eq!(json(Value::Count(u64::MAX))["value"], u64::MAX.to_string());
        assert_eq!(json(Value::Number(0.5))["value"], 0.5);
        assert_eq!(json(Value::Number(f64::NAN))["value"], "NaN");
        assert_eq!(json(Value::Number(f64::INFINITY))["value"], "inf");
    }

    #[test]
    fn source_and_scope_are_told() {
        let json = json(Value::Count(0));
        assert_eq!(json["standing"], "unproven");
        assert_eq!(json["scope"], serde_json::json!({ "reader": 0, "page": 1 }));
        assert!(json.get("unavailable").is_none());
        let reading = Reading::new(
            "energy",
            Value::Number(1.5),
            Unit::Joules,
            Source::Powercap,
            Scope::Part("package-0".into()),
        );
        assert_eq!(
            reading.to_string(),
            "energy of package-0: 1.500 joules (powercap, never run on hardware)"
        );
    }
}
