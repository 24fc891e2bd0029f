//! The databases that experiments drive, and their data.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clap::{Args, ValueEnum};
use serde::Serialize;

use crate::desk::Desk;
use crate::error::{Error, Result};
use crate::workload::drive::Task;

/// TPC-H's first query.
pub(crate) const Q1: &str = "select l_returnflag, l_linestatus, sum(l_quantity), sum(l_extendedprice), sum(l_extendedprice * (1 - l_discount)), sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)), avg(l_quantity), avg(l_extendedprice), avg(l_discount), count(*) from lineitem where l_shipdate <= date '1998-09-02' group by l_returnflag, l_linestatus order by l_returnflag, l_linestatus;";

/// TPC-H's sixth query.
pub(crate) const Q6: &str = "select sum(l_extendedprice * l_discount) from lineitem where l_shipdate >= date '1994-01-01' and l_shipdate < date '1995-01-01' and l_discount between 0.05 and 0.07 and l_quantity < 24;";

/// The columns that both need.
const COLUMNS: &str =
    "l_quantity, l_extendedprice, l_discount, l_tax, l_returnflag, l_linestatus, l_shipdate";

/// Reads statements, one a line, and writes rows. Words: threads, the file of the table.
const DUCKDB: &str = r#"
import sys, duckdb
database = duckdb.connect()
database.execute(f"set threads = {int(sys.argv[1])}")
database.execute("create table lineitem as from read_parquet(?)", [sys.argv[2]])
for line in sys.stdin:
    for row in database.execute(line).fetchall():
        print(*row, sep="|")
    sys.stdout.flush()
"#;

/// Makes a database in the memory of the machine and goes on as its client. Words: the folder of
/// the programs, threads, the file of the table. The server refuses to run as root.
const POSTGRES: &str = r#"
set -e
bin=$1 threads=$2 table=$3
data=$(mktemp -d /tmp/atoll-lab.XXXXXX)
as() { "$@"; }
if [ "$(id -u)" = 0 ]; then
    chown postgres "$data"
    as() { setpriv --reuid=postgres --regid=postgres --clear-groups "$@"; }
fi
as "$bin/initdb" -D "$data/db" -U postgres -A trust --no-sync >"$data/log" 2>&1 || { cat "$data/log" >&2; exit 1; }
as "$bin/postgres" -D "$data/db" -k "$data" -h '' -c fsync=off -c autovacuum=off -c shared_buffers=64MB \
    -c max_worker_processes="$threads" -c max_parallel_workers="$threads" \
    -c max_parallel_workers_per_gather="$((threads - 1))" -c min_parallel_table_scan_size=0 \
    -c parallel_setup_cost=0 -c parallel_tuple_cost=0 -c jit=off >"$data/server" 2>&1 </dev/null &
tries=0
until "$bin/pg_isready" -q -h "$data"; do
    tries=$((tries + 1))
    [ $tries -lt 300 ] || { cat "$data/server" >&2; exit 1; }
    sleep 0.2
done
"$bin/psql" -X -q -h "$data" -U postgres -v ON_ERROR_STOP=1 >&2 <<END
create table lineitem (l_quantity numeric, l_extendedprice numeric, l_discount numeric, l_tax numeric,
    l_returnflag text, l_linestatus text, l_shipdate date);
alter table lineitem set (parallel_workers = $((threads - 1)));
\copy lineitem from '$table' with (format csv, header)
analyze lineitem;
END
exec "$bin/psql" -X -q -A -t -h "$data" -U postgres
"#;

/// What the scripts of databases begin with whose clients share a server.
const SHARING: &str = r#"
set -e
# Whether this client is the first of its parent's: then it makes the database. What one has left whose parent is gone is removed.
first() {
    data=$1.$PPID
    mkdir "$data" 2>/dev/null || return 1
    for old in "$1".*; do
        [ -d "/proc/${old##*.}" ] || rm -rf "$old"
    done
}
# Waits for a command to succeed, 0.2 s as often as said.
await() {
    tries=$1
    shift
    until "$@" >/dev/null 2>&1; do
        tries=$((tries - 1))
        [ $tries -gt 0 ] || { cat "$data/server" >&2; exit 1; }
        sleep 0.2
    done
}
"#;

/// Makes a database in the memory of the machine, or waits for the one that another client of the same parent makes, and
/// goes on as its client. Words: the server, the client, the file of the table. The server ends with the client that
/// started it.
const MARIADB: &str = r#"
server=$1 client=$2 table=$3
data=/tmp/atoll-lab-mariadb.$PPID
ask="$client --no-defaults --socket=$data/socket --user=root --batch --skip-column-names --unbuffered --local-infile=1"
if first /tmp/atoll-lab-mariadb; then
    mkdir "$data/db"
    user=
    [ "$(id -u)" != 0 ] || user=--user=root
    setpriv --pdeathsig KILL "$server" --no-defaults --datadir="$data/db" --socket="$data/socket" --pid-file="$data/pid" \
        --skip-networking --skip-grant-tables --innodb-buffer-pool-size=96M --innodb-log-file-size=8M \
        --innodb-flush-log-at-trx-commit=0 --innodb-doublewrite=0 --max-connections=300 $user >"$data/server" 2>&1 </dev/null &
    await 300 $ask -e 'select 1'
    $ask >&2 <<END
create database tpch;
use tpch;
create table lineitem (l_quantity decimal(15,2), l_extendedprice decimal(15,2), l_discount decimal(15,2), l_tax decimal(15,2),
    l_returnflag varchar(1), l_linestatus varchar(1), l_shipdate date);
load data local infile '$table' into table lineitem fields terminated by ',' ignore 1 lines;
analyze table lineitem;
END
    : >"$data/ready"
fi
await 3000 test -e "$data/ready"
exec $ask -D tpch
"#;

/// The same for PostgreSQL, with a process for each client and none beside it. Words: the folder of the programs, the file
/// of the table.
const BACKENDS: &str = r#"
bin=$1 table=$2
data=/tmp/atoll-lab-postgres.$PPID
if first /tmp/atoll-lab-postgres; then
    user=
    if [ "$(id -u)" = 0 ]; then
        chown postgres "$data"
        user='--reuid=postgres --regid=postgres --clear-groups'
    fi
    ${user:+setpriv $user} "$bin/initdb" -D "$data/db" -U postgres -A trust --no-sync >"$data/log" 2>&1 || { cat "$data/log" >&2; exit 1; }
    setpriv $user --pdeathsig KILL "$bin/postgres" -D "$data/db" -k "$data" -h '' -c fsync=off -c autovacuum=off \
        -c shared_buffers=64MB -c max_connections=300 -c max_parallel_workers_per_gather=0 -c jit=off >"$data/server" 2>&1 </dev/null &
    await 300 "$bin/pg_isready" -q -h "$data"
    "$bin/psql" -X -q -h "$data" -U postgres -v ON_ERROR_STOP=1 >&2 <<END
create table lineitem (l_quantity numeric, l_extendedprice numeric, l_discount numeric, l_tax numeric,
    l_returnflag text, l_linestatus text, l_shipdate date);
\copy lineitem from '$table' with (format csv, header)
vacuum analyze lineitem;
END
    : >"$data/ready"
fi
await 3000 test -e "$data/ready"
exec "$bin/psql" -X -q -A -t -h "$data" -U postgres
"#;

/// A database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Engine {
    /// Atoll
    Atoll,
    /// DuckDB, unchanged, its table in memory
    Duckdb,
    /// PostgreSQL, unchanged, with parallel scans
    Postgres,
    /// PostgreSQL, unchanged: a process for each client
    #[value(name = "postgres-clients")]
    #[serde(rename = "postgres-clients")]
    Backends,
    /// MariaDB, unchanged: a thread for each client, as it answers a statement with one
    Mariadb,
}

impl Engine {
    /// Its name, as typed.
    pub fn name(self) -> &'static str {
        match self {
            Engine::Atoll => "atoll",
            Engine::Duckdb => "duckdb",
            Engine::Postgres => "postgres",
            Engine::Backends => "postgres-clients",
            Engine::Mariadb => "mariadb",
        }
    }

    /// Clients that ask at the same time where so many threads are to be busy.
    pub(crate) fn clients(self, threads: usize) -> usize {
        match self {
            Engine::Atoll | Engine::Duckdb | Engine::Postgres => 1,
            Engine::Backends | Engine::Mariadb => threads,
        }
    }

    /// Threads or processes that start before those that work.
    pub(crate) fn skip(self) -> usize {
        match self {
            // The main thread waits.
            Engine::Atoll | Engine::Duckdb => 1,
            // The client, the server, and its five helpers.
            Engine::Postgres | Engine::Backends => 7,
            // The client, and the server's main thread and helpers.
            Engine::Mariadb => 9,
        }
    }
}

/// Where the databases are.
#[derive(Args, Clone, Debug)]
pub struct Databases {
    /// Atoll's program [default: this one]
    #[arg(long, value_name = "PATH")]
    pub program: Option<PathBuf>,
    /// A Python that has DuckDB's package
    #[arg(long, value_name = "PATH", default_value = "python3")]
    pub python: PathBuf,
    /// The folder of PostgreSQL's programs [default: the last one in /usr/lib/postgresql]
    #[arg(long, value_name = "FOLDER")]
    pub postgres: Option<PathBuf>,
    /// TPC-H scale factor of the data
    #[arg(long, value_name = "SCALE", default_value_t = 0.1, value_parser = scale)]
    pub scale: f64,
    /// Where data is kept from run to run [default: atoll/lab in the user's cache folder]
    #[arg(long, value_name = "FOLDER")]
    pub data: Option<PathBuf>,
}

fn scale(text: &str) -> std::result::Result<f64, String> {
    match text.parse::<f64>() {
        Ok(scale) if (0.001..=10.0).contains(&scale) => Ok(scale),
        _ => Err("take a number from 0.001 to 10: everything runs in an emulator".to_owned()),
    }
}

impl Databases {
    /// Sees to it that the engine's data is there, and returns the task that makes the engine
    /// answer on `threads` threads; what to ask is left to the caller.
    ///
    /// # Errors
    ///
    /// [`Error::Drive`] where a program is missing or the data cannot be made.
    pub(crate) fn task(&self, engine: Engine, threads: usize, desk: &mut Desk<'_>) -> Result<Task> {
        let store = self.store(desk)?;
        let threads = threads.to_string();
        let command = match engine {
            Engine::Atoll => {
                let program = text(&self.atoll(desk)?);
                let words = [
                    "sql",
                    &text(&store),
                    "--read-only",
                    "--threads",
                    &threads,
                    "--govern",
                    "off",
                    "--format",
                    "csv",
                ];
                std::iter::once(program)
                    .chain(words.map(str::to_owned))
                    .collect()
            }
            Engine::Duckdb => {
                let table = self.table(&store, "parquet", desk)?;
                vec![
                    text(&self.python()?),
                    "-c".to_owned(),
                    DUCKDB.to_owned(),
                    threads,
                    text(&table),
                ]
            }
            Engine::Postgres => {
                let table = self.table(&store, "csv", desk)?;
                let bin = self.postgres_folder()?;
                shell(POSTGRES, &[&text(&bin), &threads, &text(&table)])
            }
            Engine::Backends => {
                let table = self.table(&store, "csv", desk)?;
                let bin = self.postgres_folder()?;
                shell(&[SHARING, BACKENDS].concat(), &[&text(&bin), &text(&table)])
            }
            Engine::Mariadb => {
                let table = self.table(&store, "csv", desk)?;
                let [server, client] = ["mariadbd", "mariadb"].map(mariadb);
                shell(
                    &[SHARING, MARIADB].concat(),
                    &[&text(&server?), &text(&client?), &text(&table)],
                )
            }
        };
        Ok(Task {
            command,
            ..Task::default()
        })
    }

    /// Atoll's program, absolute.
    fn atoll(&self, desk: &Desk<'_>) -> Result<PathBuf> {
        let own = desk.database.clone();
        let Some(path) = self.program.clone().or(own) else {
            return Err(Error::Drive {
                program: "atoll".to_owned(),
                why: "this program is not it; name it with --program".to_owned(),
            });
        };
        path.canonicalize().map_err(|error| Error::Drive {
            program: path.display().to_string(),
            why: format!("{error}; name it with --program"),
        })
    }

    /// A Python that has the package; the path as given where it has no folder.
    fn python(&self) -> Result<PathBuf> {
        let tried = Command::new(&self.python)
            .args(["-c", "import duckdb"])
            .stderr(Stdio::null())
            .status();
        match tried {
            Ok(status) if status.success() => Ok(self.python.clone()),
            _ => Err(Error::Drive {
                program: self.python.display().to_string(),
                why: "it has no DuckDB; make one with: python3 -m venv duck && duck/bin/pip install duckdb, and name it with --python duck/bin/python".to_owned(),
            }),
        }
    }

    fn postgres_folder(&self) -> Result<PathBuf> {
        let bin = self.postgres.clone().or_else(newest_postgres);
        bin.filter(|bin| bin.join("initdb").exists()).ok_or_else(|| Error::Drive {
            program: "postgres".to_owned(),
            why: "it is not in /usr/lib/postgresql; install it with: sudo apt-get install -y postgresql, or name its folder with --postgres".to_owned(),
        })
    }

    fn folder(&self) -> Result<PathBuf> {
        let folder = match &self.data {
            Some(folder) => folder.clone(),
            None => cache().join("atoll/lab"),
        };
        let folder = folder.join(format!("tpch-{}", self.scale));
        std::fs::create_dir_all(&folder).map_err(|source| Error::Write {
            path: folder.clone(),
            source,
        })?;
        folder.canonicalize().map_err(|source| Error::Write {
            path: folder.clone(),
            source,
        })
    }

    /// The store of TPC-H tables, absolute, made if it is not there.
    pub(crate) fn store(&self, desk: &mut Desk<'_>) -> Result<PathBuf> {
        let store = self.folder()?.join("store.atoll");
        if store.exists() {
            return Ok(store);
        }
        desk.progress(&format!(
            "making TPC-H data at scale {} in {}",
            self.scale,
            store.display()
        ));
        let new = store.with_file_name("new.atoll");
        let words = [
            "quickstart",
            "--repeat",
            "1",
            "--json",
            "--scale",
            &self.scale.to_string(),
            "--store",
        ];
        self.call(
            desk,
            words.iter().map(OsString::from).chain([new.clone().into()]),
        )?;
        let log = |path: &Path| PathBuf::from(format!("{}.log", path.display()));
        rename(&log(&new), &log(&store))?;
        rename(&new, &store)?;
        Ok(store)
    }

    /// The columns of lineitem as a file, made if it is not there.
    fn table(&self, store: &Path, format: &str, desk: &mut Desk<'_>) -> Result<PathBuf> {
        let table = store.with_file_name(format!("lineitem.{format}"));
        if table.exists() {
            return Ok(table);
        }
        desk.progress(&format!("writing {}", table.display()));
        let new = table.with_extension("new");
        let query = format!("select {COLUMNS} from lineitem");
        let words = [
            "sql".into(),
            store.into(),
            query.into(),
            "--format".into(),
            format.into(),
            "--output".into(),
            new.clone().into(),
        ];
        self.call(desk, words)?;
        rename(&new, &table)?;
        Ok(table)
    }

    /// Runs Atoll to its end.
    fn call(&self, desk: &Desk<'_>, words: impl IntoIterator<Item = OsString>) -> Result<()> {
        let program = self.atoll(desk)?;
        let failed = |why: String| Error::Drive {
            program: program.display().to_string(),
            why,
        };
        let ran = Command::new(&program)
            .args(words)
            .stdin(Stdio::null())
            .output();
        let ran = ran.map_err(|error| failed(format!("cannot start it: {error}")))?;
        if ran.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&ran.stderr);
        let last = said.lines().rev().find(|line| !line.trim().is_empty());
        Err(failed(format!(
            "{}: {}",
            ran.status,
            last.unwrap_or("it said nothing")
        )))
    }
}

/// The folder of PostgreSQL's programs, of its latest version.
fn newest_postgres() -> Option<PathBuf> {
    let all = std::fs::read_dir("/usr/lib/postgresql").ok()?;
    let bins = all.flatten().map(|entry| entry.path().join("bin"));
    bins.max()
}

/// A program of MariaDB.
fn mariadb(name: &str) -> Result<PathBuf> {
    let folders = ["/usr/sbin", "/usr/bin", "/usr/libexec", "/usr/local/bin"];
    let mut paths = folders
        .map(|folder| Path::new(folder).join(name))
        .into_iter();
    paths.find(|path| path.exists()).ok_or_else(|| Error::Drive {
        program: name.to_owned(),
        why: "it is not there; install it with: sudo apt-get install -y mariadb-server-core mariadb-client-core".to_owned(),
    })
}

/// A script with its words.
fn shell(script: &str, words: &[&str]) -> Vec<String> {
    let command = ["sh", "-c", script, "sh"].into_iter();
    command
        .chain(words.iter().copied())
        .map(str::to_owned)
        .collect()
}

fn rename(from: &Path, to: &Path) -> Result<()> {
    std::fs::rename(from, to).map_err(|source| Error::Write {
        path: to.to_owned(),
        source,
    })
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// The user's folder for what can be made again.
fn cache() -> PathBuf {
    let named = std::env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute());
    let home = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache"));
    named.or_else(home).unwrap_or_else(std::env::temp_dir)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::drive::Driven;

    /// Two clients of one server, which ends with the first.
    fn share_a_server(script: &str, programs: &[&Path], server: &str, data: &str) {
        let folder = tempfile::tempdir().unwrap();
        let table = folder.path().join("lineitem.csv");
        let rows = "1.00,10.50,0.01,0.02,N,O,1996-03-13\n30.00,1.00,0.01,0.02,A,F,1996-03-14\n";
        std::fs::write(&table, format!("{COLUMNS}\n{rows}")).unwrap();
        let words: Vec<String> = programs.iter().map(|path| text(path)).collect();
        let mut words: Vec<&str> = words.iter().map(String::as_str).collect();
        let table = text(&table);
        words.push(&table);
        let task = Task {
            command: shell(script, &words),
            ..Task::default()
        };
        let mut clients = [(); 2].map(|()| Driven::start(&task).unwrap());
        let sum = "select sum(l_extendedprice) from lineitem where l_quantity < 23.5;";
        for client in &mut clients {
            assert_eq!(client.ask(sum).unwrap(), "10.50\n");
        }
        let threads = clients.each_ref().map(|client| client.look().unwrap());
        let has_server = threads.map(|look| look.threads.iter().any(|one| one.name == server));
        assert_eq!(has_server.iter().filter(|has| **has).count(), 1);
        drop(clients);
        let data = format!("{data}.{}", std::process::id());
        std::fs::remove_dir_all(data).unwrap();
    }

    #[test]
    fn clients_of_mariadb_share_a_server() {
        let (Ok(server), Ok(client)) = (mariadb("mariadbd"), mariadb("mariadb")) else {
            return notrun::not_run("this machine has no MariaDB");
        };
        let programs: [&Path; 2] = [&server, &client];
        share_a_server(
            &[SHARING, MARIADB].concat(),
            &programs,
            "mariadbd",
            "/tmp/atoll-lab-mariadb",
        );
    }

    #[test]
    fn clients_of_postgres_share_a_server() {
        let Some(bin) = newest_postgres() else {
            return notrun::not_run("this machine has no PostgreSQL");
        };
        share_a_server(
            &[SHARING, BACKENDS].concat(),
            &[&bin],
            "postgres",
            "/tmp/atoll-lab-postgres",
        );
    }
}
