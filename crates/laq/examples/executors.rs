//! The executors beside each other on a TPC-H store:
//! `MIMALLOC_PURGE_DELAY=10000 cargo run --release -p laq --example executors -- STORE [RUNS] [THREADS] [QUERY,...] [PLAN] [BLOCK]`.
//!
//! The queries (6 and 14 unless told otherwise) in LAQ, hot, each executor in turn in one run; of each executor the
//! median time of execution and the median of the ratios to the fused run beside it. `TOLD=1` shows what the last
//! run of each tells of itself.

use std::error::Error;
use std::io::Write;
use std::sync::Arc;
use std::time::Instant;

use engine::{Execution, Executor, NumaPolicy, Prepared, Runtime};
use workers::{Layout, Workers};

/// As the program `atoll` has it; `MIMALLOC_PURGE_DELAY=10000` makes it keep freed memory as that does.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Seconds of one execution, and what is told of it.
fn once(
    prepared: &Arc<Prepared>,
    runtime: &Runtime,
    execution: &Execution,
) -> Result<(f64, Vec<String>), engine::Error> {
    let (prepared, runs, how) = (prepared.clone(), runtime.clone(), execution.clone());
    let (seconds, done) = runtime.workers.block_on(async move {
        let begun = Instant::now();
        let done = prepared.run_by(&runs, &how).await;
        (begun.elapsed().as_secs_f64(), done)
    });
    done.map(|(_, told)| (seconds, told))
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let given = |at: usize| arguments.get(at).map(String::as_str);
    let path = given(0).ok_or("which store?")?;
    let runs: usize = given(1).unwrap_or("21").parse()?;
    let threads: usize = given(2).unwrap_or("2").parse()?;
    let numbers = given(3).unwrap_or("6,14").split(',').map(str::parse);
    let numbers = numbers.collect::<Result<Vec<usize>, _>>()?;
    let plan = match given(4) {
        None | Some("shard") => NumaPolicy::Shard,
        Some("obliv") => NumaPolicy::Obliv,
        Some("distr") => NumaPolicy::Distr,
        Some(other) => return Err(format!("{other} is not obliv, shard or distr").into()),
    };

    let live = topology::Machine::live()?;
    let workers = Workers::new(Layout::of(&live, &live, threads, true))?;
    let mut options = store::Options {
        access: store::Access::Read,
        ..store::Options::default()
    };
    options.pool.nodes = vec![None; workers.nodes()];
    options.pool.bytes = 1 << 30;
    let store = store::Store::open(path, &options)?;
    let tables = table::Catalog::new().tables(&store.snapshot())?;
    let runtime = Runtime {
        nearness: workers.layout().nearness().clone(),
        traffic: Arc::new(memory::Traffic::new(workers.nodes())),
        budget: memory::Budget::new(2 << 30),
        workers,
        stop: engine::Stop::default(),
    };
    let executors = [Executor::Fused, Executor::Stream, Executor::Staged];
    let mut executions = executors.map(Execution::by);
    for execution in &mut executions {
        execution.numa_policy = plan;
        execution.block_rows = given(5).map(str::parse).transpose()?;
    }
    let mut out = std::io::stdout().lock();
    for number in numbers {
        let text = laq::TPCH.iter().find(|(n, _)| *n == number);
        let (_, text) = text.ok_or("that query is not in LAQ")?;
        let compiled = futures::executor::block_on(laq::compile(text, &tables))?;
        let prepared = Arc::new(compiled.prepared);
        let mut times = [const { Vec::new() }; 3];
        let mut last = [const { Vec::new() }; 3];
        for run in 0..=runs {
            for (at, execution) in executions.iter().enumerate() {
                let (seconds, told) = once(&prepared, &runtime, execution)?;
                // The first fills the pool.
                if run > 0 {
                    times[at].push(seconds);
                }
                last[at] = told;
            }
        }
        for (at, executor) in executors.iter().enumerate() {
            let ratios = times[0].iter().zip(&times[at]);
            writeln!(
                out,
                "Q{number} {executor:?}: {:.3} ms, speed {:.3} of fused",
                median(times[at].clone()) * 1e3,
                median(ratios.map(|(fused, own)| fused / own).collect()),
            )?;
            if std::env::var_os("TOLD").is_some() {
                writeln!(out, "{}", last[at].join("\n"))?;
            }
        }
    }
    Ok(())
}
