//! Parts of the report: text, tables and plots of blocks, operators, waits and plans.

use report::{Bars, Cell, Table, Unit};

use super::figures::{Figures, Operator, Task, Thread};
use super::scope::threads;

/// `1.20×`
pub fn ratio(value: f64) -> String {
    Unit::Ratio.show(value)
}

/// Kinds of operators, each of which has its own colour.
pub const KINDS: [&str; 6] = [
    "filter on stored codes",
    "read and widen",
    "filter, lift",
    "dot",
    "fold",
    "collect",
];
/// Characters of the longest name in a table.
const NAME: usize = 40;

/// The name, cut to [`NAME`] characters.
pub fn cut(name: &str) -> String {
    if name.chars().count() > NAME {
        name.chars().take(NAME).chain(['…']).collect()
    } else {
        name.to_owned()
    }
}

/// Which of [`KINDS`] an operator is.
pub fn kind(one: &Operator) -> usize {
    let word = one.name.split_whitespace().next().unwrap_or("");
    match word {
        "filter" if one.name.starts_with("filter codes") => 0,
        "read" => 1,
        "filter" | "lift" => 2,
        "dot" => 3,
        "fold" | "krao" => 4,
        _ => 5,
    }
}

/// What reuse of blocks changes, as text.
pub fn about_reuse(of: &Figures) -> String {
    if of.reuse.is_empty() {
        return "The fused executor has no execution blocks: each worker keeps one vector of 2,048 rows and uses it again. \
                Ask for stream or staged to compare."
            .to_owned();
    }
    let mut text = "With reuse, whoever consumes a block last gives it back, and it is filled again; without, each block is \
                    allocated and freed (the fused executor has none)."
        .to_owned();
    for one in of.reuse.iter().filter(|one| !one.reuse) {
        text += &format!(
            " {} takes {} the time without.",
            one.executor,
            ratio(one.times)
        );
    }
    text
}

/// Runs with reuse of blocks and without, as a table.
pub fn reuse_table(of: &Figures) -> Table {
    let mut table = Table::new([
        "executor",
        "reuse",
        "time",
        "against reuse",
        "blocks allocated",
        "used again",
        "page faults",
        "peak memory",
    ])
    .caption(format!(
        "{}. Peak memory: of a process that opens the store and runs the query once, its pool included; page faults: of a hot run.",
        of.query
    ));
    let count = |count: Option<u64>| count.map_or(f64::NAN, |count| count as f64);
    for one in &of.reuse {
        table.row([
            Cell::from(one.executor),
            Cell::from(if one.reuse { "on" } else { "off" }),
            Cell::number(one.seconds.median, Unit::Seconds),
            Cell::number(one.times, Unit::Ratio),
            Cell::number(count(one.blocks_made), Unit::Count),
            Cell::number(count(one.blocks_reused), Unit::Count),
            Cell::number(one.page_faults, Unit::Count),
            Cell::number(one.peak_bytes.unwrap_or(f64::NAN), Unit::Bytes),
        ]);
    }
    table
}

/// Ways to allocate blocks, to pass them on and to share them out, as a table.
pub fn compared_table(of: &Figures) -> Table {
    let mut table = Table::new([
        "executor",
        "what",
        "way",
        "time",
        "against the first",
        "blocks allocated",
        "used again",
        "page faults",
    ])
    .caption(format!(
        "{}. All blocks go through channels here, or through the ring. Against the first of the same kind, within a round.",
        of.query
    ));
    for one in &of.compared {
        let (made, again) = one.blocks.unwrap_or_default();
        table.row([
            Cell::from(one.executor),
            Cell::from(one.what),
            Cell::from(one.way.clone()),
            Cell::number(one.seconds.median, Unit::Seconds),
            Cell::number(one.times, Unit::Ratio),
            Cell::number(made as f64, Unit::Count),
            Cell::number(again as f64, Unit::Count),
            Cell::number(one.page_faults, Unit::Count),
        ]);
    }
    table
}

/// The operators and their rooflines, as a table.
pub fn operator_table(of: &Figures) -> Table {
    let mut table = Table::new([
        "operator",
        "rows",
        "time",
        "share",
        "operations per byte",
        "operations a second",
        "bytes a second",
        "of the roof",
    ])
    .caption(format!(
        "{}, fused, one thread; numbers as in the figure. Of the roof: the time that bare loops take for as many \
         bytes, those of pages from memory and the others from the cache, as a share of the operator's. What makes no operations, \
         or came to fewer rows than a vector has (2,048), has no place in the figure.",
        of.query
    ));
    for (at, one) in of.operators.iter().enumerate() {
        table.row([
            Cell::from(format!("{} {}", at + 1, cut(&one.name))),
            Cell::number(one.rows as f64, Unit::Count),
            Cell::number(one.seconds, Unit::Seconds),
            Cell::number(one.share, Unit::Share),
            Cell::number(one.intensity, Unit::Plain),
            Cell::number(one.rate, Unit::Count),
            Cell::number(one.bytes as f64 / one.seconds, Unit::Bytes),
            Cell::number(one.of_roof, Unit::Share),
        ]);
    }
    table
}

/// What was found about waiting, as text.
pub fn about_waits(of: &Figures, most: usize) -> String {
    let mut text = format!(
        "The run of the median time of each executor, by {}. A thread computes, could run while another has its cpu, \
         or is asleep for want of work.",
        threads(most)
    );
    let mean = |executor: &str, part: fn(&Thread) -> f64| {
        let own = of.threads.iter().filter(|one| one.executor == executor);
        let (sum, all) = own.fold((0.0, 0.0), |(sum, all), one| {
            (sum + part(one), all + one.seconds)
        });
        sum / all
    };
    for executor in ["fused", "staged", "stream"] {
        let computing = mean(executor, |one| one.spent.computing);
        if computing.is_finite() {
            text += &format!(
                " {executor}: {} of the threads' time is computing, {} asleep.",
                Unit::Share.show(computing),
                Unit::Share.show(mean(executor, |one| one.spent.asleep))
            );
        }
    }
    if of.threads.is_empty() {
        text += " This system does not tell what threads do (no /proc/self/task/*/schedstat).";
    }
    let staged = |part: fn(&Task) -> f64| {
        let own = of.tasks.iter().filter(|task| task.executor == "staged");
        own.map(part).sum::<f64>()
    };
    let (input, output) = (
        staged(|task| task.for_input),
        staged(|task| task.for_output),
    );
    if input + output > 0.0 {
        text += &format!(
            " Tasks of the staged executor were asleep for {} because nothing was ready to be processed, and for {} because no \
             block was empty to be set up; fused execution has neither, as each thread takes its own rows all the way.",
            Unit::Seconds.show(input),
            Unit::Seconds.show(output)
        );
    }
    text
}

/// Times of each worker, as bars.
pub fn thread_bars(of: &Figures) -> Bars {
    let mut bars = Bars::new(
        format!("{}: what threads do", of.query),
        "time",
        Unit::Seconds,
    )
    .series(["computing", "waiting for a cpu", "asleep"])
    .stacked();
    for one in &of.threads {
        let name = format!("{}, thread {}", one.executor, one.thread + 1);
        let spent = one.spent;
        bars.category(name, [spent.computing, spent.waiting, spent.asleep]);
    }
    bars
}

/// Times of each task of an executor, as bars.
pub fn task_bars(of: &Figures, executor: &str) -> Bars {
    let mut bars = Bars::new(
        format!(
            "{}: what tasks of the {executor} executor do and wait for",
            of.query
        ),
        "time",
        Unit::Seconds,
    )
    .series([
        "working",
        "asleep: nothing to take",
        "asleep: no room behind",
        "waiting for a worker",
    ])
    .stacked();
    for one in of.tasks.iter().filter(|task| task.executor == executor) {
        let name = format!("{} {}, {}", one.stage, one.operator, one.task + 1);
        bars.category(
            name,
            [one.working, one.for_input, one.for_output, one.for_worker],
        );
    }
    bars
}

/// Times of the tasks of all executors, as a table.
pub fn task_table(of: &Figures) -> Table {
    let mut table = Table::new([
        "executor",
        "stage, operator",
        "task",
        "blocks",
        "rows",
        "working",
        "nothing to take",
        "no room behind",
        "for a worker",
    ])
    .caption(format!(
        "{}. Times of each task: at work; asleep because the operator before it, or the one behind, was slower; the rest, in \
         which it was ready and workers were busy with others, had not begun, or was done.",
        of.query
    ));
    for one in &of.tasks {
        table.row([
            Cell::from(one.executor),
            Cell::from(format!("{} {}", one.stage, one.operator)),
            Cell::number((one.task + 1) as f64, Unit::Count),
            Cell::number(one.blocks as f64, Unit::Count),
            Cell::number(one.rows as f64, Unit::Count),
            Cell::number(one.working, Unit::Seconds),
            Cell::number(one.for_input, Unit::Seconds),
            Cell::number(one.for_output, Unit::Seconds),
            Cell::number(one.for_worker, Unit::Seconds),
        ]);
    }
    table
}

/// Local and remote bytes under each plan, as a table.
pub fn plan_table(of: &Figures) -> Table {
    let mut table = Table::new(["plan", "time", "local", "remote", "remote share"])
        .caption(format!("{}, fused.", of.query));
    for one in &of.plans {
        table.row([
            Cell::from(one.plan),
            Cell::number(one.seconds.median, Unit::Seconds),
            Cell::number(one.local as f64, Unit::Bytes),
            Cell::number(one.remote as f64, Unit::Bytes),
            Cell::number(
                // Of nothing there is no share.
                one.remote as f64 / (one.local + one.remote) as f64,
                Unit::Share,
            ),
        ]);
    }
    table
}
