//! `atoll serve`: a database for any program that speaks PostgreSQL's protocol.

use std::io::{BufRead, IsTerminal, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, anyhow};
use clap::Args;

use crate::failure::Failure;
use crate::options::execution::{self, Execution};
use crate::options::resources::Resources;
use crate::store::{database, files};
use crate::terminal::{hidden, interrupt};
use crate::units::parse_seconds;

/// Between two looks whether the server is to stop.
const TICK: Duration = Duration::from_millis(100);

/// `atoll serve`
#[derive(Args, Debug)]
pub struct Serve {
    /// The store
    #[arg(required_unless_present = "add_user")]
    pub store: Option<PathBuf>,
    /// Where clients connect; an address that other machines reach needs --users. Port 0 takes a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:5432")]
    pub listen: SocketAddr,
    /// Who may connect: a file that --add-user writes [default: whoever reaches the address]
    #[arg(long, value_name = "FILE")]
    pub users: Option<PathBuf>,
    /// Add a user to the file of --users, or give one a new password, which is read from the terminal or standard input
    #[arg(long, value_name = "NAME", requires = "users")]
    pub add_user: Option<String>,
    /// Certificate and key in PEM; clients on other machines must use TLS then
    #[arg(long, num_args = 2, value_names = ["CERT", "KEY"])]
    pub tls: Vec<PathBuf>,
    /// Answer Prometheus there, on this machine alone
    #[arg(long, value_name = "ADDRESS")]
    pub metrics: Option<SocketAddr>,
    /// Answer browsers and programs by HTTP there: a page, and statements as JSON; an address that other machines reach
    /// needs --users and --tls
    #[arg(long, value_name = "ADDRESS")]
    pub http: Option<SocketAddr>,
    /// Answer clients of Arrow Flight SQL there; an address that other machines reach needs --users and --tls
    #[arg(long, value_name = "ADDRESS")]
    pub flight: Option<SocketAddr>,
    /// Most sessions at a time
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub max_connections: u32,
    /// How long a statement may take, such as 30s; a session may say otherwise [default: any time]
    #[arg(long, value_name = "TIME", value_parser = parse_seconds)]
    pub statement_timeout: Option<f64>,
    /// How long a transaction or a copy may wait for its client, while others that write wait; a session may say otherwise
    #[arg(long, value_name = "TIME", default_value = "5min", value_parser = parse_seconds)]
    pub idle_timeout: f64,
    /// How long statements may take to end once the server is asked to stop
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = parse_seconds)]
    pub grace: f64,
    /// Let clients read and write files of this machine by their statements
    #[arg(long)]
    pub files: bool,
    /// Make the store if it is not there
    #[arg(long, conflicts_with = "read_only")]
    pub create: bool,
    /// Open the store for reading: other processes may write to it
    #[arg(long)]
    pub read_only: bool,
    #[command(flatten)]
    pub resources: Resources,
    #[command(flatten)]
    pub execution: Execution,
}

/// Runs the command.
pub fn run(args: &Serve) -> Result<(), Failure> {
    if let (Some(name), Some(users)) = (&args.add_user, &args.users) {
        server::add_user(users, name, &password(name)?)?;
        return Ok(());
    }
    let path = args.store.as_ref().ok_or_else(|| anyhow!("name a store"))?;
    let options = execution::options(&args.resources, &args.execution, args.read_only)?;
    let database = if args.create {
        database::open_or_create(path, &options)?
    } else if args.read_only || path.exists() {
        database::open(path, &options)?
    } else {
        let missing = files::missing(path);
        return Err(anyhow!("{missing} (--create makes a new one)").into());
    };
    files::tell_dropped(&database.recovery().dropped);
    // Who reads where it is may end it at once.
    governor_live::listen();
    let server = server::Server::start(database.clone(), served(args))?;
    eprintln!(
        "atoll: {} is served at {}",
        path.display(),
        server.address()
    );
    if let Some(address) = server.metrics() {
        eprintln!("atoll: metrics at http://{address}/metrics");
    }
    if let Some(address) = server.http() {
        let scheme = if args.tls.is_empty() { "http" } else { "https" };
        eprintln!("atoll: a page, and statements by HTTP, at {scheme}://{address}");
    }
    if let Some(address) = server.flight() {
        let scheme = if args.tls.is_empty() {
            "grpc"
        } else {
            "grpc+tls"
        };
        eprintln!("atoll: Arrow Flight SQL at {scheme}://{address}");
    }
    while !interrupt::asked() && !governor_live::asked_to_end() {
        std::thread::sleep(TICK);
    }
    eprintln!("atoll: stopping");
    server.stop();
    database.close()?;
    Ok(())
}

/// The options of the server.
fn served(args: &Serve) -> server::Options {
    let mut options = server::Options::default();
    options.listen = args.listen;
    options.users.clone_from(&args.users);
    if let [certificate, key] = &args.tls[..] {
        options.tls = Some((certificate.clone(), key.clone()));
    }
    options.metrics = args.metrics;
    options.http = args.http;
    options.flight = args.flight;
    options.max_connections = args.max_connections as usize;
    options.statement_timeout = args.statement_timeout.map(Duration::from_secs_f64);
    options.idle_in_transaction_timeout = Some(Duration::from_secs_f64(args.idle_timeout));
    options.grace = Duration::from_secs_f64(args.grace);
    options.files = args.files;
    options
}

/// The password of a new user: a line of standard input, which a terminal does not show.
fn password(name: &str) -> anyhow::Result<String> {
    let terminal = std::io::stdin().is_terminal();
    if terminal {
        eprint!("password of {name}: ");
        std::io::stderr().flush()?;
    }
    let _hidden = terminal.then(hidden::hide);
    let mut line = String::new();
    std::io::stdin()
        .lock()
        .read_line(&mut line)
        .context("the password cannot be read")?;
    if terminal {
        eprintln!();
    }
    Ok(line.trim_end_matches(['\n', '\r']).to_string())
}
