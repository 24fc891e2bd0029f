//! Work done per second, as the database itself counts it.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use governor::Measure;

use crate::error::{Error, Result};
use crate::group::target::Group;
use crate::sensors::instructions::Instructions;
use crate::sensors::published::Own;

/// What counts the work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Counter {
    /// PostgreSQL, asked through `psql -d` with this connection string: transactions, or rows.
    Postgres {
        /// The connection string of `psql -d`; empty: taken from the environment.
        connection: String,
        /// Rows that were read, instead of transactions that ended.
        rows: bool,
    },
    /// MariaDB or MySQL, asked through `mariadb` with these arguments: statements, or rows.
    Mariadb {
        /// The arguments, such as `--socket=/run/mysqld/mysqld.sock`, separated by blanks.
        arguments: String,
        /// Rows that were read, instead of statements.
        rows: bool,
    },
    /// Atoll processes, which publish what they count: bytes that statements read, or statements that
    /// ended.
    Atoll {
        /// Statements instead of bytes.
        statements: bool,
    },
    /// Instructions completed, where the processor counts them.
    Instructions,
    /// A file that holds a number which grows, written by the program.
    File(PathBuf),
    /// A shell command that prints, whenever it is due, a line with a number that grows.
    Command(String),
}

impl FromStr for Counter {
    type Err = Error;

    /// `postgres:CONNECTION`, `postgres-rows:...`, `mariadb:ARGUMENTS`, `mariadb-rows:...`,
    /// `atoll`, `atoll-statements`, `instructions`, `file:PATH`, `command:SHELL`.
    fn from_str(text: &str) -> Result<Counter> {
        let (kind, rest) = text.split_once(':').unwrap_or((text, ""));
        let rows = kind.ends_with("-rows");
        let given = rest.to_owned();
        match kind {
            "postgres" | "postgres-rows" => Ok(Counter::Postgres {
                connection: given,
                rows,
            }),
            "mariadb" | "mariadb-rows" => Ok(Counter::Mariadb {
                arguments: given,
                rows,
            }),
            "atoll" | "atoll-statements" if rest.is_empty() => Ok(Counter::Atoll {
                statements: kind != "atoll",
            }),
            "instructions" if rest.is_empty() => Ok(Counter::Instructions),
            "file" if !rest.is_empty() => Ok(Counter::File(PathBuf::from(rest))),
            "command" if !rest.is_empty() => Ok(Counter::Command(given)),
            _ => Err(Error::Governor(governor::Error::Name {
                what: "counter of throughput",
                name: text.to_owned(),
                known: "postgres:CONNECTION, postgres-rows:CONNECTION, mariadb:ARGUMENTS, mariadb-rows:ARGUMENTS, atoll, atoll-statements, instructions, file:PATH, command:SHELL",
            })),
        }
    }
}

impl Counter {
    /// The counter of a database with this name.
    pub fn of_name(name: &str) -> Option<Counter> {
        let rows = false;
        match name {
            "postgres" | "postgresql" => Some(Counter::Postgres {
                connection: String::new(),
                rows,
            }),
            "mariadbd" | "mysqld" => Some(Counter::Mariadb {
                arguments: String::new(),
                rows,
            }),
            "atoll" => Some(Counter::Atoll { statements: false }),
            _ => None,
        }
    }

    /// As text.
    fn name(&self) -> &'static str {
        match self {
            Counter::Postgres { .. } => "PostgreSQL statistics",
            Counter::Mariadb { .. } => "MariaDB status",
            Counter::Atoll { .. } => "Atoll's own counter",
            Counter::Instructions => "perf",
            Counter::File(_) => "file",
            Counter::Command(_) => "command",
        }
    }

    /// The unit of what is counted.
    fn unit(&self) -> &'static str {
        match self {
            Counter::Postgres { rows: true, .. } | Counter::Mariadb { rows: true, .. } => {
                "rows per second"
            }
            Counter::Postgres { .. } => "transactions per second",
            Counter::Atoll { statements: false } => "bytes per second",
            Counter::Mariadb { .. } | Counter::Atoll { .. } => "statements per second",
            Counter::Instructions => "instructions per second",
            Counter::File(_) | Counter::Command(_) => "per second",
        }
    }

    /// The least useful seconds between two decisions: PostgreSQL's processes report their work once a second at
    /// most.
    pub fn period(&self) -> Duration {
        match self {
            Counter::Postgres { .. } => Duration::from_secs(2),
            Counter::Mariadb { .. } => Duration::from_millis(500),
            Counter::File(_)
            | Counter::Command(_)
            | Counter::Instructions
            | Counter::Atoll { .. } => Duration::from_millis(200),
        }
    }
}

/// The answers of the thread that asks.
#[derive(Debug, Default)]
struct State {
    /// The last total and when it was read.
    now: Option<(Instant, f64)>,
    why: Option<String>,
}

/// A thread that asks, so that a database that does not answer holds nothing up.
#[derive(Debug)]
pub(crate) struct Throughput {
    counter: Counter,
    state: Arc<Mutex<State>>,
    used: Option<(Instant, f64)>,
    last: Option<(Instant, f64)>,
    stop: Arc<Mutex<bool>>,
    /// The counters that are read without a thread: Atoll's, and the processor's.
    own: Own,
    instructions: Instructions,
}

impl Throughput {
    pub(crate) fn new(counter: Counter, period: Duration) -> Throughput {
        let state = Arc::new(Mutex::new(State::default()));
        let stop = Arc::new(Mutex::new(false));
        let every = (period / 2).max(Duration::from_millis(20));
        let (told, ended, of) = (state.clone(), stop.clone(), counter.clone());
        // It ends by itself once nobody holds the other end of `stop`.
        if !matches!(counter, Counter::Atoll { .. } | Counter::Instructions) {
            std::thread::spawn(move || ask(&of, every, &told, &ended));
        }
        Throughput {
            counter,
            state,
            used: None,
            last: None,
            stop,
            own: Own::default(),
            instructions: Instructions::default(),
        }
    }

    /// The rate since the last call that had something new.
    pub(crate) fn read(&mut self, group: &Group) -> Measure {
        let (unit, source) = (self.counter.unit(), self.counter.name());
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Counter::Atoll { statements } = self.counter {
            let counted = self.own.read(group);
            let number = counted.map(|counted| {
                if statements {
                    counted.statements as f64
                } else {
                    counted.bytes as f64
                }
            });
            state.why = number.clone().err();
            state.now = number.ok().map(|number| (Instant::now(), number));
        }
        if self.counter == Counter::Instructions {
            let number = self.instructions.read(group);
            state.why = number.clone().err();
            state.now = number.ok().map(|number| (Instant::now(), number));
        }
        if let Some(why) = &state.why {
            return Measure::unavailable(unit, source, why);
        }
        if let (Some((at, total)), Some((before, old))) = (state.now, self.used)
            && at > before
        {
            // A counter that starts again says nothing this time.
            let rate = (total - old) / (at - before).as_secs_f64();
            self.last = (rate >= 0.0).then_some((at, rate));
        }
        self.used = state.now;
        let Some((at, rate)) = self.last else {
            return Measure::unavailable(unit, source, "it takes a second look");
        };
        let age = at.elapsed();
        if age > self.counter.period() * 10 {
            let why = format!("it has not answered for {:.0} s", age.as_secs_f64());
            return Measure::unavailable(unit, source, &why);
        }
        let mut measure = Measure::new(rate, unit, source);
        measure.age_seconds = (age.as_secs_f64() * 1000.0).round() / 1000.0;
        measure
    }
}

impl Drop for Throughput {
    fn drop(&mut self) {
        *self.stop.lock().unwrap_or_else(PoisonError::into_inner) = true;
    }
}

/// The pause before a client is started again.
const AGAIN: Duration = Duration::from_secs(2);

fn ask(counter: &Counter, every: Duration, state: &Mutex<State>, stop: &Mutex<bool>) {
    let mut client = None;
    let ended = || *stop.lock().unwrap_or_else(PoisonError::into_inner);
    while !ended() {
        let answer = total(counter, &mut client);
        let failed = answer.is_err();
        {
            let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
            match answer {
                Ok(total) => {
                    state.now = Some((Instant::now(), total));
                    state.why = None;
                }
                Err(why) => state.why = Some(why),
            }
        }
        if failed {
            client = None;
        }
        let until = Instant::now() + if failed { AGAIN.max(every) } else { every };
        while Instant::now() < until && !ended() {
            std::thread::sleep(every.min(Duration::from_millis(50)));
        }
    }
}

/// A client that answers each line with a line.
struct Client {
    child: Child,
    answers: BufReader<std::process::ChildStdout>,
    asked: u64,
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Client {
    fn start(mut command: Command) -> std::result::Result<Client, String> {
        let program = command.get_program().to_string_lossy().into_owned();
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        // What it complains of is the last line of its messages.
        command.stderr(Stdio::piped());
        let mut child = command
            .spawn()
            .map_err(|error| format!("{program}: {error}"))?;
        let Some(answers) = child.stdout.take() else {
            return Err(format!("{program} has no output"));
        };
        Ok(Client {
            child,
            answers: BufReader::new(answers),
            asked: 0,
        })
    }

    /// The last number in the answer to a question.
    fn ask(&mut self, question: &str) -> std::result::Result<f64, String> {
        self.asked += 1;
        let sent = match &mut self.child.stdin {
            Some(to) => writeln!(to, "{question}").and_then(|()| to.flush()),
            None => Ok(()),
        };
        let mut line = String::new();
        let got = sent.and_then(|()| self.answers.read_line(&mut line));
        match (got, line.split_whitespace().next_back().map(str::parse)) {
            (Ok(1..), Some(Ok(number))) => Ok(number),
            (Ok(1..), _) => Err(format!("'{}' is not a number", line.trim())),
            _ => Err(self.complaint()),
        }
    }

    fn complaint(&mut self) -> String {
        let _ = self.child.kill();
        let mut said = String::new();
        if let Some(from) = &mut self.child.stderr {
            let _ = std::io::Read::read_to_string(from, &mut said);
        }
        let last = said.lines().rfind(|line| !line.trim().is_empty());
        last.unwrap_or("the client ended without an answer")
            .to_owned()
    }
}

fn total(counter: &Counter, client: &mut Option<Client>) -> std::result::Result<f64, String> {
    match counter {
        // Read where the processes are known.
        Counter::Atoll { .. } | Counter::Instructions => Err("it is not asked".to_owned()),
        Counter::File(path) => {
            let text = std::fs::read_to_string(path);
            let text = text.map_err(|error| format!("{}: {error}", path.display()))?;
            let number = text.split_whitespace().next().map(str::parse);
            match number {
                Some(Ok(number)) => Ok(number),
                _ => Err(format!("{} holds no number", path.display())),
            }
        }
        Counter::Command(shell) => {
            let ran = Command::new("/bin/sh").arg("-c").arg(shell).output();
            let ran = ran.map_err(|error| error.to_string())?;
            let said = String::from_utf8_lossy(&ran.stdout);
            let number = said.split_whitespace().next_back().map(str::parse);
            match number {
                Some(Ok(number)) if ran.status.success() => Ok(number),
                _ => Err(format!("'{shell}' printed no number ({})", ran.status)),
            }
        }
        Counter::Postgres { connection, rows } => {
            let question = if *rows {
                "SELECT coalesce(sum(tup_returned + tup_fetched), 0) FROM pg_stat_database;"
            } else {
                "SELECT coalesce(sum(xact_commit + xact_rollback), 0) FROM pg_stat_database;"
            };
            if client.is_none() {
                let mut psql = Command::new("psql");
                psql.args(["-X", "-q", "-A", "-t", "-w", "-v", "ON_ERROR_STOP=1"]);
                if !connection.is_empty() {
                    psql.arg("-d").arg(connection);
                }
                *client = Some(Client::start(psql)?);
            }
            answered(client, question, !rows)
        }
        Counter::Mariadb { arguments, rows } => {
            let question = if *rows {
                "SELECT SUM(VARIABLE_VALUE) FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME LIKE 'Handler_read%';"
            } else {
                "SHOW GLOBAL STATUS WHERE Variable_name = 'Questions';"
            };
            if client.is_none() {
                let mut mariadb = Command::new("mariadb");
                mariadb.args(arguments.split_whitespace());
                mariadb.args(["--batch", "--skip-column-names", "--unbuffered", "--quick"]);
                *client = Some(Client::start(mariadb)?);
            }
            answered(client, question, !rows)
        }
    }
}

/// The answer, less our own questions.
fn answered(
    client: &mut Option<Client>,
    question: &str,
    counts_questions: bool,
) -> std::result::Result<f64, String> {
    let client = client.as_mut().ok_or("there is no client")?;
    let number = client.ask(question)?;
    let own = if counts_questions { client.asked } else { 0 };
    Ok(number - own as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::target::Target;

    #[test]
    fn counters_by_name() {
        for (text, counter) in [
            (
                "postgres:host=/tmp user=x",
                Counter::Postgres {
                    connection: "host=/tmp user=x".to_owned(),
                    rows: false,
                },
            ),
            (
                "mariadb-rows:",
                Counter::Mariadb {
                    arguments: String::new(),
                    rows: true,
                },
            ),
            ("atoll", Counter::Atoll { statements: false }),
            ("atoll-statements", Counter::Atoll { statements: true }),
            ("instructions", Counter::Instructions),
            ("file:/a:b", Counter::File(PathBuf::from("/a:b"))),
        ] {
            assert_eq!(text.parse::<Counter>().unwrap(), counter);
        }
        for wrong in ["", "file:", "atoll:x", "oracle:x", "command"] {
            let error = wrong.parse::<Counter>().unwrap_err().to_string();
            assert!(error.contains("postgres:CONNECTION"), "{error}");
        }
    }

    fn until(throughput: &mut Throughput, done: impl Fn(&Measure) -> bool) -> Measure {
        let group = Group::find(Target::Pid(std::process::id())).unwrap();
        loop {
            let measure = throughput.read(&group);
            if done(&measure) {
                return measure;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn a_file_that_grows_and_one_that_is_missing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("count");
        let counter = Counter::File(path.clone());
        let mut throughput = Throughput::new(counter, Duration::ZERO);
        let missing = until(&mut throughput, |m| {
            m.unavailable
                .as_deref()
                .is_some_and(|why| why.contains("count"))
        });
        assert_eq!(missing.value, None);
        std::fs::write(&path, "100\n").unwrap();
        let mut throughput = Throughput::new(Counter::File(path.clone()), Duration::ZERO);
        let still = until(&mut throughput, |m| m.value.is_some());
        assert_eq!(still.value, Some(0.0), "zero is a number here");
        std::fs::write(&path, "1000000\n").unwrap();
        let grown = until(&mut throughput, |m| m.value != Some(0.0));
        assert!(grown.value.is_some_and(|rate| rate > 0.0), "{grown:?}");
    }
}
