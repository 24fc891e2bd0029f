//! Pictures of what workers did: a row of operators for each, and how many of them were busy at once.

use std::collections::BTreeMap;

use engine::time_line::{Noted, Span, Worker};
use report::{Bars, Cell, Report, Spans, Table, Unit};
use serde_json::{Value, json};

use super::figures::plain;
use super::parts::cut;
use super::scope::threads;

/// Columns of a picture: in each, the operator that a worker was longest at.
const COLUMNS: u64 = 800;
/// Operators with a colour of their own, those that took most of the time; the others share one.
const COLOURED: usize = 5;
/// Nanoseconds between two spans in which a worker does not count as idle: it reads the clock, and looks for the next rows.
const BREATH: u64 = 2_000;

/// What workers did from the first span to the last.
#[derive(Clone, Debug)]
pub struct Picture<'n> {
    noted: &'n Noted,
    /// Workers there were, at least those that did something.
    workers: usize,
    /// Nanoseconds from the beginning of the time line to the first span, and to the end of the last.
    first: u64,
    last: u64,
    /// Nanoseconds at each operator, and in how many spans.
    operators: Vec<(u64, u64)>,
}

impl<'n> Picture<'n> {
    /// Of what so many workers did; `None` if nothing was noted.
    pub fn new(noted: &'n Noted, workers: usize) -> Option<Picture<'n>> {
        let first = noted.spans.iter().map(|span| span.from).min()?;
        let last = noted.spans.iter().map(|span| span.to).max()?;
        let mut operators = vec![(0, 0); noted.operators.len()];
        for span in &noted.spans {
            let (time, spans) = &mut operators[span.operator];
            *time += span.to - span.from;
            *spans += 1;
        }
        Some(Picture {
            workers: workers.max(noted.workers.len()),
            noted,
            first,
            last,
            operators,
        })
    }

    /// Seconds from the first span to the end of the last.
    pub fn seconds(&self) -> f64 {
        (self.last - self.first) as f64 / 1e9
    }

    /// The share of that time in which 0, 1, 2, ... workers were busy.
    pub fn shares(&self) -> Vec<f64> {
        // The places at which one more worker is busy, or one less.
        let mut turns: BTreeMap<u64, i64> = BTreeMap::new();
        for stretch in self.stretches() {
            *turns.entry(stretch.from).or_default() += 1;
            *turns.entry(stretch.to).or_default() -= 1;
        }
        let mut times = vec![0; self.workers + 1];
        let (mut busy, mut since) = (0_i64, self.first);
        for (at, turn) in turns {
            times[(busy.max(0) as usize).min(self.workers)] += at - since;
            (busy, since) = (busy + turn, at);
        }
        let all = (self.last - self.first).max(1) as f64;
        times.into_iter().map(|time| time as f64 / all).collect()
    }

    /// How many workers were busy in the mean.
    pub fn busy(&self) -> f64 {
        let shares = self.shares();
        let weighed = shares.iter().enumerate().map(|(n, share)| n as f64 * share);
        weighed.sum()
    }

    /// When workers were busy, whatever with: spans that follow each other are one.
    fn stretches(&self) -> Vec<Span> {
        let mut all: Vec<Span> = Vec::new();
        for span in &self.noted.spans {
            match all.last_mut() {
                Some(last) if last.worker == span.worker && span.from <= last.to + BREATH => {
                    last.to = last.to.max(span.to);
                }
                _ => all.push(*span),
            }
        }
        all
    }

    /// The series of each operator, and the names of the series: those with most of the time have one each.
    fn series(&self) -> (Vec<usize>, Vec<String>) {
        // Operators of one name, such as those of several stages, are shown alike.
        let mut times: BTreeMap<&str, u64> = BTreeMap::new();
        for (operator, (time, _)) in self.noted.operators.iter().zip(&self.operators) {
            *times.entry(&operator.name).or_default() += time;
        }
        let mut names: Vec<(&str, u64)> = times.into_iter().filter(|(_, time)| *time > 0).collect();
        names.sort_by_key(|(_, time)| std::cmp::Reverse(*time));
        let several = names.len() > COLOURED + 1;
        if several {
            names.truncate(COLOURED);
        }
        let place = |name: &str| names.iter().position(|(own, _)| *own == name);
        let operators = self.noted.operators.iter();
        let operators = operators.map(|operator| place(&operator.name).unwrap_or(COLOURED));
        let mut series: Vec<String> = names.iter().map(|(name, _)| cut(&plain(name))).collect();
        if several {
            series.push("all others".to_owned());
        }
        (operators.collect(), series)
    }

    /// A row for each worker: which operator it was at. In each of 800 columns stands what it was longest at.
    pub fn spans(&self, title: impl Into<String>) -> Spans {
        let (series, names) = self.series();
        let mut plot = Spans::new(title, "since the first of it", Unit::Seconds)
            .series(names)
            .up_to(self.seconds());
        let mut order: Vec<(Worker, usize)> =
            (self.noted.workers.iter().copied().zip(0..)).collect();
        order.sort();
        for (worker, place) in order {
            let own = self.noted.spans.iter().filter(|span| span.worker == place);
            plot.row(name(worker), self.columns(own, &series));
        }
        plot
    }

    /// The spans of one worker, a series in each column.
    fn columns<'s>(
        &self,
        spans: impl Iterator<Item = &'s Span>,
        series: &[usize],
    ) -> Vec<report::Span> {
        let width = (self.last - self.first).div_ceil(COLUMNS).max(1);
        let mut columns: BTreeMap<u64, [u64; COLOURED + 1]> = BTreeMap::new();
        for span in spans {
            let (from, to) = (span.from - self.first, span.to - self.first);
            for column in from / width..=to / width {
                let (begin, end) = (column * width, (column + 1) * width);
                let inside = to.min(end).saturating_sub(from.max(begin));
                columns.entry(column).or_default()[series[span.operator]] += inside;
            }
        }
        let seconds = |column: u64| (column * width) as f64 / 1e9;
        let longest = |(column, times): (u64, [u64; COLOURED + 1])| {
            let idle = width - times.iter().sum::<u64>().min(width);
            let (series, time) = times
                .into_iter()
                .enumerate()
                .max_by_key(|(_, time)| *time)?;
            (time > 0 && time >= idle).then(|| report::Span {
                from: seconds(column),
                to: seconds(column + 1),
                series,
            })
        };
        columns.into_iter().filter_map(longest).collect()
    }

    /// The operators: stage, time of all workers, share of it, spans.
    pub fn table(&self) -> Table {
        let mut table = Table::new(["stage", "operator", "time", "share", "spans"]).caption(
            "Time: of all workers together, the operator's own. Share: of all that was noted.",
        );
        let all = self
            .operators
            .iter()
            .map(|(time, _)| time)
            .sum::<u64>()
            .max(1);
        for (operator, (time, spans)) in self.noted.operators.iter().zip(&self.operators) {
            if *spans == 0 {
                continue;
            }
            table.row([
                Cell::number(operator.stage as f64, Unit::Count),
                Cell::from(cut(&plain(&operator.name))),
                Cell::number(*time as f64 / 1e9, Unit::Seconds),
                Cell::number(*time as f64 / all as f64, Unit::Share),
                Cell::number(*spans as f64, Unit::Count),
            ]);
        }
        table
    }

    /// The raw numbers.
    pub fn json(&self) -> Value {
        let operators = self.noted.operators.iter().zip(&self.operators);
        let operators = operators.map(|(operator, (time, spans))| {
            let seconds = *time as f64 / 1e9;
            json!({"stage": operator.stage, "name": operator.name, "seconds": seconds, "spans": spans})
        });
        let span = |span: &Span| json!([span.worker, span.operator, span.from, span.to]);
        json!({
            "seconds": self.seconds(),
            "workers": self.workers,
            "busy": self.busy(),
            "share_by_busy_workers": self.shares(),
            "operators": operators.collect::<Vec<_>>(),
            "spans_of": self.noted.workers.iter().map(|worker| name(*worker)).collect::<Vec<_>>(),
            "spans": self.noted.spans.iter().map(span).collect::<Vec<_>>(),
            "spans_lost": self.noted.lost,
        })
    }
}

/// How many workers were busy, as bars: for each picture, the share of its time with 0, 1, 2, ... of them.
pub fn histogram<'p>(
    title: impl Into<String>,
    pictures: impl IntoIterator<Item = (&'static str, &'p Picture<'p>)>,
) -> Bars {
    let all: Vec<(&str, Vec<f64>)> = pictures
        .into_iter()
        .map(|(name, picture)| (name, picture.shares()))
        .collect();
    let most = all
        .iter()
        .map(|(_, shares)| shares.len())
        .max()
        .unwrap_or(0);
    let mut bars = Bars::new(title, "share of the time", Unit::Share)
        .series(all.iter().map(|(name, _)| *name))
        .up_to(1.0);
    for busy in 0..most {
        let share = |(_, shares): &(&str, Vec<f64>)| shares.get(busy).copied().unwrap_or(0.0);
        bars.category(format!("{busy} busy"), all.iter().map(share));
    }
    bars
}

/// The page of one time line.
pub fn page(noted: &Noted, workers: usize, command: impl Into<String>) -> Option<Report> {
    let picture = Picture::new(noted, workers)?;
    let (busy, all) = (picture.busy(), picture.workers);
    let lead = format!(
        "{} from the first operator to the last; {busy:.2} of {} were busy in the mean.",
        Unit::Seconds.show(picture.seconds()),
        threads(all)
    );
    let mut report = Report::new("What each thread did, and when", command).lead(lead);
    if noted.lost > 0 {
        let lost = format!(
            "{} spans came after the first {} and are not shown",
            noted.lost,
            noted.spans.len()
        );
        report = report.fact("Not shown", lost);
    }
    Some(
        report
            .section("Operators by thread")
            .text(
                "A row for each thread. In each column stands the operator that it was longest at; where nothing stands, it had \
                 no work or waited for a device.",
            )
            .plot(picture.spans("Operators by thread"))
            .section("Busy threads")
            .plot(histogram("Threads that were busy at once", [("share", &picture)]))
            .section("Operators")
            .table(picture.table())
            .results(picture.json()),
    )
}

/// `worker 3, node 1`
fn name(worker: Worker) -> String {
    match (worker.number, worker.node) {
        (Some(number), Some(node)) => format!("worker {number}, node {node}"),
        _ => "caller".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two workers: one busy from 0 to 60, the other from 40 to 100, at two operators each; times in microseconds.
    fn noted() -> Noted {
        let span = |worker, operator, from: u64, to: u64| Span {
            worker,
            operator,
            from: from * 1000,
            to: to * 1000,
        };
        let operator = |name: &str| engine::time_line::Operator {
            stage: 0,
            name: name.to_owned(),
        };
        let worker = |number| Worker {
            node: Some(0),
            number: Some(number),
        };
        Noted {
            operators: vec![operator("scan t"), operator("fold (x)")],
            workers: vec![worker(0), worker(1)],
            spans: vec![
                span(0, 0, 0, 50),
                span(0, 1, 51, 60),
                span(1, 0, 40, 90),
                span(1, 1, 90, 100),
            ],
            lost: 0,
        }
    }

    #[test]
    fn shares_tell_how_many_were_busy_at_once() {
        let noted = noted();
        let picture = Picture::new(&noted, 3).unwrap();
        let shares = picture.shares();
        assert_eq!(shares.len(), 4);
        for (share, wanted) in shares.iter().zip([0.0, 0.8, 0.2, 0.0]) {
            assert!((share - wanted).abs() < 1e-9, "{shares:?}");
        }
        assert!((picture.busy() - 1.2).abs() < 1e-9);
        assert!(Picture::new(&Noted::default(), 2).is_none());
    }
}
