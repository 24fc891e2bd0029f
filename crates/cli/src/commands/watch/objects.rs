//! Samples and the summary as JSON.

use counters::Summary;
use serde_json::{Value, json};

use crate::commands::watch::moment::{End, Moment};

/// A sample.
pub fn look(moment: &Moment) -> Value {
    let sample = &moment.sample;
    let memory = sample.memory();
    let processes: Vec<Value> = sample.processes.iter().map(process_json).collect();
    json!({
        "seconds": sample.at.as_secs_f64(),
        "load": sample.load(),
        "waiting": sample.waiting(),
        "threads": sample.threads(),
        "migrations": moment.migrations,
        "switches": moment.switches,
        "minor_faults": moment.minor_faults,
        "major_faults": moment.major_faults,
        "nodes": memory.keys().collect::<Vec<_>>(),
        "memory_bytes": memory.values().collect::<Vec<_>>(),
        "processes": processes,
        "started": sample.started,
        "ended": sample.ended,
        "unfollowed": sample.unfollowed,
    })
}

fn process_json(seen: &counters::Seen) -> Value {
    let activity = &seen.activity;
    let measured = |of: &counters::Measured| {
        let why = match &of.value {
            counters::Value::Unavailable(reason) => Some(&reason.text),
            _ => None,
        };
        let mut object = json!({ "value": of.value, "source": of.source.name() });
        if let Some(why) = why {
            object["unavailable"] = json!(why);
        }
        object
    };
    let memory = match &seen.memory {
        Ok(memory) => json!({
            "nodes": memory.nodes,
            "bytes": memory.bytes,
            "source": if memory.sampled { "move_pages" } else { "numa_maps" },
            "age_seconds": memory.age.as_secs_f64(),
        }),
        Err(why) => json!({ "unavailable": why }),
    };
    json!({
        "process": activity.process,
        "name": activity.name,
        "load": measured(&activity.load),
        "waiting": measured(&activity.waiting),
        "migrations": measured(&activity.migrations),
        "switches": measured(&activity.switches),
        "minor_faults": activity.minor_faults,
        "major_faults": activity.major_faults,
        "memory": memory,
        "threads": activity.threads,
        "threads_started": activity.started,
        "threads_ended": activity.ended,
    })
}

/// The summary.
pub fn summary(summary: &Summary, end: End) -> Value {
    let by_node = |of: &std::collections::BTreeMap<u32, u64>| json!({ "nodes": of.keys().collect::<Vec<_>>(), "bytes": of.values().collect::<Vec<_>>() });
    let seconds = &summary.seconds_by_node;
    let thread = |((process, _), thread): (&(u32, u32), &counters::ThreadSummary)| {
        let mut object = json!(thread.activity);
        object["process"] = json!(process);
        object["first_seconds"] = json!(thread.first_seconds);
        object["last_seconds"] = json!(thread.last_seconds);
        object["nodes"] = json!(thread.nodes);
        object
    };
    json!({
        "process": summary.process,
        "name": summary.name,
        "end": match end {
            End::Ended => "process ended",
            End::Time => "time",
            End::Interrupted => "interrupted",
        },
        "seconds": summary.watched.as_secs_f64(),
        "looks": summary.looks,
        "mean_load": summary.mean_load(),
        "most_load": summary.most_load,
        "most_threads": summary.most_threads,
        "threads_started": summary.threads_started,
        "threads_ended": summary.threads_ended,
        "processes": summary.processes,
        "processes_ended": summary.processes_ended,
        "migrations": summary.migrations,
        "switches": summary.switches,
        "minor_faults": summary.minor_faults,
        "major_faults": summary.major_faults,
        "cpu_seconds": {
            "nodes": seconds.keys().collect::<Vec<_>>(),
            "seconds": seconds.values().collect::<Vec<_>>(),
        },
        "first_memory": by_node(&summary.first_memory),
        "last_memory": by_node(&summary.last_memory),
        "threads": summary.threads.iter().map(thread).collect::<Vec<_>>(),
    })
}
