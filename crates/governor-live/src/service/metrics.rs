//! Metrics for Prometheus, on loopback only.

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::error::{Error, Result};
use crate::journal::status::{Standing, Status};

/// Timeout of a request.
const PATIENCE: Duration = Duration::from_secs(2);

/// Answers `GET /metrics` for as long as the process runs.
#[derive(Debug)]
pub struct Metrics {
    address: SocketAddr,
}

impl Metrics {
    /// Listens. Port 0 takes a free one.
    ///
    /// # Errors
    ///
    /// [`Error::Command`] if the address is not a loopback address, or is taken.
    pub fn serve(address: SocketAddr, status: Arc<Mutex<Status>>) -> Result<Metrics> {
        let wrong = |why: String| Error::Command {
            what: format!("metrics on {address}"),
            why,
        };
        if !address.ip().is_loopback() {
            let why = "take an address of this machine alone, such as 127.0.0.1:9187";
            return Err(wrong(why.to_owned()));
        }
        let listener = TcpListener::bind(address).map_err(|error| wrong(error.to_string()))?;
        let address = listener
            .local_addr()
            .map_err(|error| wrong(error.to_string()))?;
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                match stream {
                    // One that does not answer holds up the next for a moment only.
                    Ok(stream) => drop(answer(stream, &status)),
                    Err(_) => std::thread::sleep(Duration::from_millis(100)),
                }
            }
        });
        Ok(Metrics { address })
    }

    /// The address it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

fn answer(mut stream: TcpStream, status: &Mutex<Status>) -> std::io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut request = [0; 4096];
    // To the end of the request: closing with bytes unread would take the answer back.
    let mut bytes = 0;
    while bytes < request.len() && !request[..bytes].ends_with(b"\r\n\r\n") {
        match stream.read(&mut request[bytes..])? {
            0 => break,
            more => bytes += more,
        }
    }
    let line = String::from_utf8_lossy(&request[..bytes]);
    let asks = line.starts_with("GET /metrics ") || line.starts_with("GET / ");
    let (code, body) = if asks {
        let status = status.lock().unwrap_or_else(PoisonError::into_inner);
        ("200 OK", text(&status))
    } else {
        ("404 Not Found", "there is /metrics\n".to_owned())
    };
    let kind = "text/plain; version=0.0.4; charset=utf-8";
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {code}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
}

/// A value of a target; `None` if it is not known.
type Value = fn(&Standing) -> Option<f64>;

/// Name, kind and help of each metric of a target.
const FAMILIES: [(&str, &str, &str, Value); 8] = [
    (
        "atoll_govern_cores",
        "gauge",
        "Cores that the target has.",
        |standing| Some(standing.last.as_ref()?.cpus.len() as f64),
    ),
    (
        "atoll_govern_decisions_total",
        "counter",
        "Decisions made.",
        |standing| Some(standing.decisions as f64),
    ),
    (
        "atoll_govern_processes",
        "gauge",
        "Processes of the target.",
        |standing| Some(standing.processes as f64),
    ),
    (
        "atoll_govern_decision_seconds",
        "gauge",
        "From the first reading to the cpus being set, of the last decision.",
        |standing| Some(standing.last.as_ref()?.decision_seconds),
    ),
    (
        "atoll_govern_core_seconds_total",
        "counter",
        "Cores that the target had, times seconds.",
        |standing| Some(standing.spent.as_ref()?.core_seconds),
    ),
    (
        "atoll_govern_used_core_seconds_total",
        "counter",
        "Cores that the target kept busy, times seconds.",
        |standing| Some(standing.spent.as_ref()?.used),
    ),
    (
        "atoll_govern_energy_estimated_joules_total",
        "counter",
        "Energy of the target's cores and of the bytes between nodes, as far as these are counted: an estimate.",
        |standing| {
            let energy = &standing.spent.as_ref()?.energy;
            Some(energy.cpu_joules + energy.link_joules.unwrap_or(0.0))
        },
    ),
    (
        "atoll_govern_machine_energy_joules_total",
        "counter",
        "Energy of the whole machine since the target is governed, measured (powercap).",
        |standing| standing.spent.as_ref()?.machine.joules,
    ),
];

/// Formats the metrics in Prometheus's text format.
pub(crate) fn text(status: &Status) -> String {
    let mut out = String::new();
    let mut family = |name: &str, kind: &str, help: &str, rows: Vec<(String, f64)>| {
        if rows.is_empty() {
            return;
        }
        // Writing to a string does not fail.
        let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
        for (labels, value) in rows {
            let _ = writeln!(out, "{name}{{{labels}}} {value}");
        }
    };
    let label = |target: &str| {
        let escaped = target.replace('\\', "\\\\").replace('"', "\\\"");
        format!("target=\"{}\"", escaped.replace('\n', "\\n"))
    };
    let each = |value: Value| -> Vec<(String, f64)> {
        let targets = status.targets.iter();
        targets
            .filter_map(|standing| Some((label(&standing.target), value(standing)?)))
            .collect()
    };
    for (name, kind, help, value) in FAMILIES {
        family(name, kind, help, each(value));
    }
    let mut rows = Vec::new();
    for standing in &status.targets {
        let last = standing.last.iter();
        for (name, measure) in last.flat_map(|decision| &decision.readings) {
            if let Some(value) = measure.value {
                let target = label(&standing.target);
                let (unit, source) = (&measure.unit, &measure.source);
                let labels =
                    format!("{target},reading=\"{name}\",unit=\"{unit}\",source=\"{source}\"");
                rows.push((labels, value));
            }
        }
    }
    family(
        "atoll_govern_reading",
        "gauge",
        "What the last decision was made from; readings that are missing are left out.",
        rows,
    );
    out
}
