//! `GET /machine`: what the machine is, and what it does at this moment; `GET /memory`: where tables lie in it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use counters::{Board, CpuLoad, Nodes, Scope, System, Unit};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::errors;
use crate::http::refusal::Refusal;
use crate::security::identity::Identity;
use crate::seen::Seen;
use crate::sessions::Sessions;
use crate::shared::Shared;

/// The load of cpus is looked at no more often.
const EVERY: Duration = Duration::from_millis(400);

/// Decisions of the governor that are told.
const DECISIONS: usize = 40;

/// What reads the load of the cpus: several pages that ask share its looks.
pub(crate) struct Machine {
    /// None if the machine at hand cannot be read.
    board: Option<Mutex<Board>>,
}

impl Machine {
    pub(crate) fn new(database: &atoll::Database) -> Machine {
        // Without a machine of its own the database is laid out for the one at hand.
        let live = atoll::Machine::live();
        let nodes = Nodes::new(live.as_ref().unwrap_or_else(|_| database.machine()));
        let mut board = Board::new();
        board.add(CpuLoad::new(&System::real(), &nodes), EVERY);
        Machine {
            board: live.is_ok().then(|| Mutex::new(board)),
        }
    }

    /// The load of each cpu, 0 to 1, by its number; those that cannot be read are left out.
    fn load(&self) -> BTreeMap<String, f64> {
        let Some(board) = &self.board else {
            return BTreeMap::new();
        };
        let readings = board.lock().read(Instant::now());
        let of_cpu = |reading: &counters::Reading| match reading.scope {
            Scope::Cpu(cpu) if reading.unit == Unit::Ratio => {
                Some((cpu.to_string(), reading.value.number()?))
            }
            _ => None,
        };
        readings.iter().filter_map(of_cpu).collect()
    }

    /// All of it.
    pub(crate) fn told(&self, shared: &Shared, who: &Identity) -> Value {
        let database = &shared.database;
        let found = database.statistics();
        let machine = database.machine();
        let workers = database.workers();
        let pool = &found.pool;
        let bytes = |frames: usize| frames as u64 * pool.page_size as u64;
        let nodes = machine.nodes().iter().map(|node| {
            let held = pool.nodes.get(node.index);
            json!({
                "index": node.index,
                "os_index": node.os_index,
                "memory_bytes": node.memory_bytes,
                "cores": node.cores.iter().map(|core| &core.cpus).collect::<Vec<_>>(),
                "pool_bytes": held.map(|held| bytes(held.frames)),
                "resident_bytes": held.map(|held| bytes(held.resident)),
            })
        });
        let count = machine.nodes().len();
        let distances: Vec<Vec<u32>> = (0..count)
            .map(|a| (0..count).map(|b| machine.distance(a, b)).collect())
            .collect();
        let places = workers.places();
        let places = places
            .iter()
            .map(|place| json!({ "node": place.node, "cpu": place.cpu }));
        let decisions = database.decisions();
        let last = decisions.len().saturating_sub(DECISIONS);
        json!({
            "name": machine.name(),
            "about": machine.about(),
            "live": matches!(machine.source(), topology::Source::Live),
            "nodes": nodes.collect::<Vec<_>>(),
            "distances": distances,
            "load": self.load(),
            "workers": {
                "threads": workers.threads(),
                "width": workers.width(),
                "running": workers.running(),
                "places": places.collect::<Vec<_>>(),
            },
            "memory": { "used": found.memory_in_use(), "reserved": found.memory_used, "limit": found.memory_limit },
            "pool": { "hits": pool.hits, "misses": pool.misses, "evictions": pool.evictions },
            "bytes_read": database.bytes_read(),
            "counts": {
                "statements": shared.counts.statements.get(),
                "errors": shared.counts.errors.get(),
                "rows": shared.counts.rows.get(),
            },
            "sessions": sessions(shared, who),
            "decisions": decisions[last..],
        })
    }
}

/// What sessions do, those that run something first.
fn sessions(shared: &Shared, who: &Identity) -> Vec<Value> {
    let now = SystemTime::now();
    let since = |time: SystemTime| now.duration_since(time).unwrap_or_default().as_secs_f64();
    let clients = shared.sessions.list();
    let logins = shared.database.logins().ok();
    let all = logins.is_some_and(|logins| !logins.has_roles() || logins.is_superuser(&who.user));
    let told = clients.iter().map(|client| {
        let mut activity = client.activity();
        if !all && !client.is_of(who) {
            // As `pg_stat_activity` has it.
            activity.query = "<insufficient privilege>".into();
        }
        json!({
            "process": client.process,
            "user": client.user,
            "application": *client.application.lock(),
            "address": client.address.to_string(),
            "state": activity.doing.name(),
            "query": activity.query,
            "seconds": activity.query_start.map(since),
            "own": client.is_of(who),
        })
    });
    told.collect()
}

/// Where the pages of tables are: at home on which node, and which of them in memory.
///
/// # Errors
/// If the catalog cannot be read.
pub(crate) fn memory(shared: &Shared, who: &Identity) -> Result<Value, Refusal> {
    let session = shared.database.session().of_role(&who.user, who.role);
    let seen = Seen::of(&session)?;
    let found = shared.database.residency(false);
    let found = found.map_err(|e| errors::report(&e, ""))?;
    let mut tables: BTreeMap<&str, (Vec<u64>, Vec<u64>)> = BTreeMap::new();
    let bytes = found.page_size as u64;
    for part in found.parts.iter().filter(|part| seen.has(&part.table)) {
        let (pages, resident) = tables
            .entry(&part.table)
            .or_insert_with(|| (vec![0; part.pages.len()], vec![0; part.pages.len()]));
        for (sum, more) in pages.iter_mut().zip(&part.pages) {
            *sum += more * bytes;
        }
        for (sum, more) in resident.iter_mut().zip(&part.resident) {
            *sum += more * bytes;
        }
    }
    let tables = tables.into_iter().map(
        |(name, (pages, resident))| json!({ "table": name, "bytes": pages, "resident": resident }),
    );
    Ok(json!({ "tables": tables.collect::<Vec<_>>(), "notes": found.notes }))
}

/// `POST /cancel`: stops the statement of a session, as `pg_cancel_backend` does.
///
/// # Errors
/// If the body does not name a session, or the user may not stop it.
pub(crate) fn cancel(shared: &Shared, who: &Identity, body: &[u8]) -> Result<Value, Refusal> {
    let body: Option<Value> = serde_json::from_slice(body).ok();
    let process = body
        .as_ref()
        .and_then(|body| body["process"].as_u64())
        .and_then(|process| i32::try_from(process).ok());
    let Some(process) = process else {
        let message = "name a session: {\"process\": 7}";
        return Err(Refusal::new("400 Bad Request", errors::BAD_VALUE, message));
    };
    // A session that is none of those that may be stopped.
    let sessions: Arc<Sessions> = Arc::clone(&shared.sessions);
    let session = shared.database.session().of_role(&who.user, who.role);
    let session = session.of_backend(sql::Backend::new(0, sessions));
    let cancelled = session.stop_session(process, false);
    let cancelled = cancelled.map_err(|e| errors::report(&e, ""))?;
    Ok(json!({ "cancelled": cancelled }))
}
