//! The report.

use std::path::Path;

use report::{Axis, Cell, Heat, Line, Lines, Point, Report, Roofline, Table, Unit};
use serde_json::json;

use super::bare::Bare;
use super::bench::Bench;
use super::figures::{ByThreads, Figures, loops};
use super::given::rows;
use super::measure::{Measured, cached};
use super::parts::{
    KINDS, about_reuse, about_waits, compared_table, cut, kind, operator_table, plan_table, ratio,
    reuse_table, task_bars, task_table, thread_bars,
};
use super::scope::{Scope, name, threads};
use super::time_line::{Picture, histogram};

/// The share of their time for which workers may wait for a cpu before they count as disturbed.
const DISTURBED: f64 = 0.05;
/// Rows below which an operator's time is mostly that of reading the clock.
const VECTOR: u64 = 2_048;

/// The contents of a report.
pub struct Page<'a> {
    /// The store.
    pub store: &'a Path,
    /// The engine that ran the queries, and its machine.
    pub bench: &'a Bench,
    /// What was compared.
    pub scope: &'a Scope,
    /// The runs.
    pub measured: &'a Measured,
    /// The figures of each query.
    pub figures: &'a [Figures],
}

fn point(x: f64, span: super::figures::Span) -> Point {
    Point {
        x,
        y: span.median,
        low: span.lower,
        high: span.upper,
    }
}

impl Page<'_> {
    /// The report, and its tables for a terminal.
    pub fn report(&self, command: &str) -> (Report, Vec<Table>) {
        let names: Vec<&str> = self.figures.iter().map(|one| one.query.as_str()).collect();
        let mut report = Report::new(
            format!("{}: executors, blocks, threads", names.join(", ")),
            command,
        )
        .lead(self.lead())
        .machine(self.bench.live.clone());
        for (name, value) in self.facts() {
            report = report.fact(name, value);
        }
        let mut tables = Vec::new();
        for figures in self.figures {
            report = self.query(report, figures, &mut tables);
        }
        (report.results(self.raw()), tables)
    }

    /// The raw numbers: every run, and the figures of each query.
    fn raw(&self) -> serde_json::Value {
        let (scope, measured) = (self.scope, self.measured);
        let runs = measured.variants.iter().map(|one| {
            json!({
                "query": self.figures[one.query].query,
                "executor": name(one.way.executor),
                "block_rows": one.way.block,
                "threads": one.way.threads,
                "reuse": one.way.reuse,
                "seconds": one.seconds,
                "page_faults": one.faults,
            })
        });
        let executors = scope.executors.iter().map(|executor| name(*executor));
        json!({
            "store": self.store,
            "executors": executors.collect::<Vec<_>>(),
            "block_rows": scope.blocks,
            "threads": scope.threads,
            "repeat": scope.repeat,
            "rounds": measured.rounds,
            "ended_early": measured.ended,
            "nodes": self.bench.machine.nodes().len(),
            "pages_loaded_in_runs": measured.loads,
            "bare_loops": loops(scope, measured),
            "bare_loop_bytes": measured.field,
            "queries": self.figures,
            "busy_threads": self.busy(),
            "runs": runs.collect::<Vec<_>>(),
        })
    }

    /// For each query and executor the share of its time in which 0, 1, 2, ... threads were busy.
    fn busy(&self) -> Vec<serde_json::Value> {
        let queries = self.figures.iter().zip(&self.measured.lines);
        let all = queries.flat_map(|(figures, lines)| {
            lines.iter().filter_map(|(executor, noted)| {
                let picture = Picture::new(noted, self.most())?;
                let (query, executor) = (&figures.query, name(*executor));
                Some(json!({"query": query, "executor": executor, "shares": picture.shares(), "mean": picture.busy()}))
            })
        });
        all.collect()
    }

    /// The result, in a sentence for each query.
    fn lead(&self) -> String {
        let mut all = Vec::new();
        for figures in self.figures {
            let times = figures.by_block.iter();
            let Some(best) = times.min_by(|a, b| a.seconds.median.total_cmp(&b.seconds.median))
            else {
                continue;
            };
            all.push(format!(
                "{} takes {} at best, {} with blocks of {} rows",
                figures.query,
                Unit::Seconds.show(best.seconds.median),
                best.executor,
                rows(best.block_rows)
            ));
        }
        format!("{}.", all.join("; "))
    }

    fn most(&self) -> usize {
        self.scope.threads.last().copied().unwrap_or(1)
    }

    fn facts(&self) -> Vec<(&'static str, String)> {
        let (scope, measured) = (self.scope, self.measured);
        let mut facts = vec![
            ("Store", self.store.display().to_string()),
            (
                "Runs",
                format!(
                    "{} rounds; in each, every configuration and every bare loop once, in an order of chance, \
                     those that are compared side by side, one run that does not count before what is new; medians, in \
                     figures with a band that holds half of the runs; ratios are medians of those within a round",
                    measured.rounds
                ),
            ),
            (
                "Time",
                "execution without planning, hot: each query was answered twice by each executor before; answers agree"
                    .to_owned(),
            ),
            (
                "Pool",
                format!(
                    "{}; {} pages were read from the file in timed runs{}",
                    Unit::Bytes.show(self.bench.pool as f64),
                    measured.loads,
                    if measured.loads > 0 { ": not all was hot, give it a larger --pool" } else { "" }
                ),
            ),
            (
                "Bare loop over memory",
                format!(
                    "adds up {}; the last caches hold {}, which what a query reads may fit into",
                    Unit::Bytes.show(measured.field as f64),
                    Unit::Bytes.show(cached(&self.bench.live) as f64)
                ),
            ),
        ];
        if let Some(share) = self.disturbed() {
            facts.push((
                "Disturbed",
                format!(
                    "workers of the fused executor, no more than there are cpus, were ready and had no cpu for {} of the time: \
                     the machine was busy with others, take times with care",
                    Unit::Share.show(share)
                ),
            ));
        }
        if cfg!(debug_assertions) {
            let why = "not a release build: its times say little";
            facts.push(("Program", why.to_owned()));
        }
        if measured.ended {
            facts.push((
                "Ended early",
                format!("after {} of {} rounds", measured.rounds, scope.repeat),
            ));
        }
        let cpus = self.bench.live.cpus();
        if self.most() > cpus {
            facts.push((
                "Threads",
                format!("more than the {cpus} cpus that this process may use: they share them"),
            ));
        }
        facts
    }

    /// The share of their time in which workers were ready and had no cpu, if other programs took it and it is large.
    fn disturbed(&self) -> Option<f64> {
        let runs = self.measured.waits.iter().flatten();
        let fused = runs.filter(|(executor, _)| name(*executor) == "fused");
        let seen = fused.flat_map(|(_, runs)| runs);
        let (mut waiting, mut all) = (0.0, 0.0);
        for one in seen {
            waiting += one.spent.iter().map(|spent| spent.waiting).sum::<f64>();
            all += one.seconds * one.spent.len() as f64;
        }
        let share = waiting / all;
        (self.most() <= self.bench.live.cpus() && share > DISTURBED).then_some(share)
    }

    fn query(&self, mut report: Report, of: &Figures, tables: &mut Vec<Table>) -> Report {
        let (name, most) = (&of.query, self.most());
        let mut add = |report: Report, table: Table| {
            tables.push(table.clone());
            report.table(table)
        };
        report = report
            .section(format!("{name}: size of blocks"))
            .text(self.about_blocks(of));
        report = add(report, self.block_table(of)).plot(self.block_plot(of));
        report = report
            .section(format!("{name}: threads"))
            .text(self.about_threads(of));
        report = add(report, self.thread_table(of));
        if self.scope.threads.len() > 1 {
            report = report.plot(self.speedup_plot(of));
        }
        report = report
            .section(format!("{name}: blocks used again"))
            .text(about_reuse(of));
        if !of.reuse.is_empty() {
            report = add(report, reuse_table(of));
        }
        if !of.compared.is_empty() {
            report = report.section(format!("{name}: how blocks are allocated, passed on and shared out")).text(
                "How many blocks are allocated when none is free; channels that are a ring behind a lock or a queue without locks, \
                 between so many tasks that send and that receive; and how many threads process one block at the same time.",
            );
            report = add(report, compared_table(of));
        }
        report = report
            .section(format!("{name}: operators under the machine's roofs"))
            .text(self.about_operators(of));
        report = add(report, operator_table(of)).plot(self.roofline(of));
        report = report
            .section(format!("{name}: what threads wait for"))
            .text(about_waits(of, most));
        if !of.threads.is_empty() {
            report = report.plot(thread_bars(of));
        }
        if !of.tasks.is_empty() {
            report = add(report, task_table(of));
            for executor in self.scope.executors.iter().map(|e| self::name(*e)) {
                if of.tasks.iter().any(|task| task.executor == executor) {
                    report = report.plot(task_bars(of, executor));
                }
            }
        }
        report = self.lines(report, name);
        report = report
            .section(format!("{name}: bytes by node"))
            .text(self.about_plans());
        report = add(report, plan_table(of));
        if self.bench.machine.nodes().len() > 1 {
            let heat = |plan: &super::figures::ByPlan| {
                let row = |row: &Vec<u64>| row.iter().map(|bytes| *bytes as f64).collect();
                let bytes: Vec<Vec<f64>> = plan.bytes.iter().map(row).collect();
                Heat::nodes(format!("{}: bytes read", plan.plan), Unit::Bytes, &bytes)
            };
            report = report.plots(of.plans.iter().map(heat));
        }
        report
    }

    /// What each thread did, by executor.
    fn lines(&self, mut report: Report, query: &str) -> Report {
        let place = self.figures.iter().position(|one| one.query == query);
        let Some(lines) = place.and_then(|at| self.measured.lines.get(at)) else {
            return report;
        };
        let pictures = lines.iter().filter_map(|(executor, noted)| {
            let picture = Picture::new(noted, self.most())?;
            Some((self::name(*executor), picture))
        });
        let pictures: Vec<(&str, Picture<'_>)> = pictures.collect();
        let busy = pictures.iter().map(|(executor, picture)| {
            let (busy, time) = (picture.busy(), Unit::Seconds.show(picture.seconds()));
            format!("{executor} {busy:.2} in {time}")
        });
        report = report
            .section(format!("{query}: what each thread did, and when"))
            .text(format!(
                "One run of each executor, with {}, whose operators were noted; where a row is empty, a thread had no work. Busy in \
                 the mean: {}.",
                threads(self.most()),
                busy.collect::<Vec<_>>().join(", ")
            ));
        for (executor, picture) in &pictures {
            report =
                report.plot(picture.spans(format!("{query}, {executor}: operators by thread")));
        }
        let bars = pictures.iter().map(|(name, picture)| (*name, picture));
        report.plot(histogram(
            format!("{query}: threads that were busy at once"),
            bars,
        ))
    }

    fn about_blocks(&self, of: &Figures) -> String {
        let mut text = format!(
            "The same query by {} with execution blocks of each size: the most rows that are handed on at once.",
            threads(self.most())
        );
        for executor in self.scope.executors.iter().map(|e| name(*e)) {
            let own = of.by_block.iter().filter(|one| one.executor == executor);
            let by = |a: &&super::figures::ByBlock, b: &&super::figures::ByBlock| {
                a.seconds.median.total_cmp(&b.seconds.median)
            };
            if let (Some(best), Some(worst)) = (own.clone().min_by(by), own.max_by(by)) {
                text += &format!(
                    " {executor} is fastest with {} rows and slowest with {}, which takes {} as long.",
                    rows(best.block_rows),
                    rows(worst.block_rows),
                    ratio(worst.seconds.median / best.seconds.median)
                );
            }
        }
        text
    }

    fn block_table(&self, of: &Figures) -> Table {
        let names: Vec<&str> = self.scope.executors.iter().map(|e| name(*e)).collect();
        let (first, others) = names.split_first().unwrap_or((&"", &[]));
        let mut header = vec!["rows of a block".to_owned()];
        header.extend(names.iter().map(|name| (*name).to_owned()));
        header.extend(others.iter().map(|name| format!("{name}, speed")));
        let mut table = Table::new(header).caption(format!(
            "{}, {}. Speed: how many times as fast as {first} with such blocks, within a round.",
            of.query,
            threads(self.most())
        ));
        for rows in &self.scope.blocks {
            let own = |name: &str| {
                let mut all = of.by_block.iter();
                all.find(|one| one.block_rows == *rows && one.executor == name)
            };
            let time = |name: &&str| own(name).map_or(f64::NAN, |one| one.seconds.median);
            let speed = |name: &&str| own(name).map_or(f64::NAN, |one| one.speed);
            let best = names.iter().map(time).fold(f64::INFINITY, f64::min);
            let mut cells = vec![Cell::number(*rows as f64, Unit::Doubled)];
            cells.extend(names.iter().map(|name| {
                let cell = Cell::number(time(name), Unit::Seconds);
                if time(name) == best {
                    cell.strong()
                } else {
                    cell
                }
            }));
            cells.extend(
                others
                    .iter()
                    .map(|name| Cell::number(speed(name), Unit::Ratio)),
            );
            table.row(cells);
        }
        table
    }

    fn block_plot(&self, of: &Figures) -> Lines {
        let mut plot = Lines::new(
            format!("{}: time by rows of a block", of.query),
            Axis::new("rows of a block", Unit::Doubled).log(),
            Axis::new("time", Unit::Seconds).from_zero(),
        );
        for executor in self.scope.executors.iter().map(|e| name(*e)) {
            let own = of.by_block.iter().filter(|one| one.executor == executor);
            let points = own.map(|one| point(one.block_rows as f64, one.seconds));
            plot = plot.line(Line::new(executor, points));
        }
        plot
    }

    fn about_threads(&self, of: &Figures) -> String {
        let (first, most) = (self.scope.threads[0], self.most());
        if first == most {
            return format!(
                "One number of threads was asked for, {most}: there is no speed-up to show."
            );
        }
        let bare = loops(self.scope, self.measured);
        let speedup = |bare_: Bare| {
            let mut own = bare
                .iter()
                .filter(|one| one.bare == bare_ && one.threads == most);
            own.next().map_or(f64::NAN, |one| one.speedup)
        };
        let own = of.by_threads.iter().filter(|one| one.threads == most);
        let own: Vec<String> = own
            .map(|one: &ByThreads| format!("{} {}", one.executor, ratio(one.speedup)))
            .collect();
        format!(
            "From {first} to {most} threads: {}. A loop that only adds up memory becomes {} as fast, one that only \
             computes in registers {}: that is what the machine gives.",
            own.join(", "),
            ratio(speedup(Bare::Memory)),
            ratio(speedup(Bare::Wide))
        )
    }

    fn thread_table(&self, of: &Figures) -> Table {
        let mut table = Table::new([
            "what runs",
            "threads",
            "time",
            "speed-up",
            "bytes of pages per second",
            "of the bare loop",
        ])
        .caption(format!(
            "{}, blocks as each executor has them by itself. Speed-up: against {}, within a round.",
            of.query,
            threads(self.scope.threads[0])
        ));
        for one in &of.by_threads {
            table.row([
                Cell::from(one.executor),
                Cell::number(one.threads as f64, Unit::Count),
                Cell::number(one.seconds.median, Unit::Seconds),
                Cell::number(one.speedup, Unit::Ratio),
                Cell::number(one.bytes_per_second, Unit::Bytes),
                Cell::number(one.of_bare, Unit::Share),
            ]);
        }
        for one in self.loops() {
            let (name, bytes) = match one.bare {
                Bare::Memory => ("bare loop over memory", one.rate.median),
                _ => ("bare loop in registers", f64::NAN),
            };
            table.row([
                Cell::from(name),
                Cell::number(one.threads as f64, Unit::Count),
                Cell::from(""),
                Cell::number(one.speedup, Unit::Ratio),
                Cell::number(bytes, Unit::Bytes),
                Cell::from(""),
            ]);
        }
        table
    }

    /// Both loops at the numbers of threads that were asked for.
    fn loops(&self) -> impl Iterator<Item = super::figures::ByLoop> {
        let all = loops(self.scope, self.measured).into_iter();
        let both = all.filter(|one| matches!(one.bare, Bare::Memory | Bare::Wide));
        both.filter(|one| self.scope.threads.contains(&one.threads))
    }

    fn speedup_plot(&self, of: &Figures) -> Lines {
        let mut plot = Lines::new(
            format!("{}: speed-up by threads", of.query),
            Axis::new("threads", Unit::Doubled).log(),
            Axis::new("speed-up", Unit::Ratio).from_zero(),
        );
        for executor in self.scope.executors.iter().map(|e| name(*e)) {
            let own = of.by_threads.iter().filter(|one| one.executor == executor);
            let points = own.map(|one| (one.threads as f64, one.speedup));
            plot = plot.line(Line::new(executor, points));
        }
        for (bare, name) in [
            (Bare::Memory, "bare loop over memory"),
            (Bare::Wide, "bare loop in registers"),
        ] {
            let own = self.loops().filter(|one| one.bare == bare);
            let points = own.map(|one| (one.threads as f64, one.speedup));
            plot = plot.line(Line::new(name, points.collect::<Vec<_>>()));
        }
        plot
    }

    fn about_operators(&self, of: &Figures) -> String {
        let shown = of.operators.iter().filter(|one| one.operations > 0);
        let (all, below) = shown.fold((0, 0), |(all, below), one| {
            (all + 1, below + usize::from(one.intensity < 0.4))
        });
        let slowest = of
            .operators
            .iter()
            .max_by(|a, b| a.seconds.total_cmp(&b.seconds));
        let slowest = slowest.map_or(String::new(), |one| {
            format!(
                " Most of the time, {}, goes to {}, which moves {} a second: bare loops take {} of its time for as many bytes.",
                Unit::Share.show(one.share),
                cut(&one.name),
                Unit::Bytes.show(one.bytes as f64 / one.seconds),
                Unit::Share.show(one.of_roof)
            )
        });
        format!(
            "Each operator of the fused executor on one thread: how much it computes per byte that it reads or writes, and \
             how fast. Under the rising lines bytes are the limit, under the level ones operations; both were measured \
             with bare loops in the same rounds. An operation is a comparison, a sum, a product, a look-up, a value widened \
             or added to its group, whatever instructions that takes; pages count with their stored width. {below} of {all} \
             operators are below 0.4 operations per byte.{slowest} Measuring takes two readings of the clock for each 2,048 \
             rows and operator."
        )
    }

    fn roofline(&self, of: &Figures) -> Roofline {
        let rate = |bare| self.measured.rate(bare, 1);
        let bytes = |bare| format!("{}/s", Unit::Bytes.show(rate(bare)));
        let operations = |bare| format!("{} operations/s", Unit::Count.show(rate(bare)));
        let mut plot = Roofline::new(
            format!("{}: operators under the roofs, one thread", of.query),
            KINDS,
        )
        .bandwidth(
            format!("memory, {}", bytes(Bare::Memory)),
            rate(Bare::Memory),
        )
        .bandwidth(format!("cache, {}", bytes(Bare::Cache)), rate(Bare::Cache))
        .peak(
            format!("64-bit values, {}", operations(Bare::Wide)),
            rate(Bare::Wide),
        )
        .peak(
            format!("8-bit values, {}", operations(Bare::Narrow)),
            rate(Bare::Narrow),
        );
        let some = of.operators.iter().enumerate();
        for (at, one) in some.filter(|(_, one)| one.rows >= VECTOR) {
            let label = (at + 1).to_string();
            plot.point(
                kind(one),
                label,
                one.name.clone(),
                (one.intensity, one.rate),
            );
        }
        plot
    }

    fn about_plans(&self) -> String {
        let nodes = self.bench.machine.nodes().len();
        let live = self.bench.live.nodes().len();
        let about = "Bytes that kernels read from pages of the pool, counted by the engine by node of the reader and node of the page, fused, at the most threads.";
        match (nodes, live) {
            (1, _) => format!(
                "{about} This machine has one memory node: all bytes are local, and the three plans do not differ in that. \
                 With --machine 4x1 pages and threads are laid out, and counted, as on four."
            ),
            (nodes, 1) => format!(
                "{about} Pages and threads are laid out as on {} with {nodes} nodes, which this machine has not: the counts say \
                 who would read from where, and times say nothing about plans.",
                self.bench.machine.name()
            ),
            (nodes, _) => format!("{about} There are {nodes} nodes."),
        }
    }
}
