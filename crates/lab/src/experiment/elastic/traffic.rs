//! Counted accesses over time: the memory traffic of each node, and the part that crossed between nodes.

use emulator::count::{LINE_BYTES, Matrix, Region};
use report::{Axis, Line, Lines, Unit};

use super::trial::Trial;

/// Regions that a trial has marked.
pub(super) fn windows(trial: &Trial) -> usize {
    trial.windows.len().saturating_sub(1)
}

/// The counts of its last phase, as one region.
pub(super) fn last_phase(trial: &Trial, windows: &[Region]) -> Region {
    let begun = trial.phases.last().map_or(0.0, |told| told.from);
    let within = stretches(trial, windows).filter(|(from, ..)| *from >= begun);
    let mut sum = Region::default();
    for (.., window) in within {
        if sum.dram.is_empty() {
            sum = window.clone();
        } else {
            sum.add(window);
        }
    }
    sum
}

/// A stretch of time, and the bytes that each node read and wrote in the memory of each.
fn stretches<'a>(
    trial: &'a Trial,
    windows: &'a [Region],
) -> impl Iterator<Item = (f64, f64, &'a Region)> {
    let ends = trial.windows.windows(2).zip(windows);
    ends.filter(|(ends, _)| ends[1] > ends[0])
        .map(|(ends, region)| (ends[0], ends[1], region))
}

/// Bytes per second of the memory of each node.
pub(super) fn by_node(name: &str, trial: &Trial, windows: &[Region]) -> Lines {
    let nodes = windows.first().map_or(0, |window| window.dram.len());
    let mut lines = empty(format!("{name}: memory traffic per node"));
    for node in 0..nodes {
        let of = |matrix: &Matrix| -> u64 { matrix.iter().map(|row| row[node]).sum() };
        let rate = |region: &Region| of(&region.dram) + of(&region.write_backs);
        lines = lines.line(curve(
            format!("memory of node {node}"),
            trial,
            windows,
            rate,
        ));
    }
    lines
}

/// Bytes per second that cores took from, or gave to, memory of their own node and of others.
pub(super) fn remote(name: &str, trial: &Trial, windows: &[Region]) -> Lines {
    let own = |matrix: &Matrix| -> u64 { (0..matrix.len()).map(|at| matrix[at][at]).sum() };
    let all = |matrix: &Matrix| -> u64 { matrix.iter().flatten().sum() };
    let local = |region: &Region| own(&region.dram) + own(&region.write_backs);
    let crossed = |region: &Region| all(&region.dram) + all(&region.write_backs) - local(region);
    empty(format!("{name}: memory traffic between nodes"))
        .line(curve("own node".to_owned(), trial, windows, local))
        .line(curve("other nodes".to_owned(), trial, windows, crossed))
}

fn empty(title: String) -> Lines {
    Lines::new(
        title,
        Axis::new("time", Unit::Seconds).from_zero(),
        Axis::new("bytes per second of the emulated machine", Unit::Bytes).from_zero(),
    )
}

fn curve(name: String, trial: &Trial, windows: &[Region], of: impl Fn(&Region) -> u64) -> Line {
    let point = |(from, to, region): (f64, f64, &Region)| {
        let bytes = of(region) * LINE_BYTES;
        (f64::midpoint(from, to), bytes as f64 / (to - from))
    };
    Line::new(name, stretches(trial, windows).map(point))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn region(local: u64, remote: u64) -> Region {
        Region {
            dram: vec![vec![local, remote], vec![0, 0]],
            write_backs: vec![vec![0, 0], vec![0, 0]],
            ..Region::default()
        }
    }

    #[test]
    fn windows_of_the_last_phase_are_one_region() {
        let mut trial = super::super::verdict::tests::step();
        let begun = trial.phases.last().unwrap().from;
        // The caches are emptied when the last one begins.
        trial.windows = vec![0.0, begun, begun, begun + 0.5, begun + 1.0];
        let all = [region(1, 2), region(7, 7), region(10, 20), region(100, 200)];
        assert_eq!(windows(&trial), 4);
        assert_eq!(last_phase(&trial, &all).dram[0], [110, 220]);
        let rows: Vec<(f64, f64, u64)> = stretches(&trial, &all)
            .map(|(from, to, region)| (from, to, region.dram[0][0]))
            .collect();
        assert_eq!(
            rows[1..],
            [(begun, begun + 0.5, 10), (begun + 0.5, begun + 1.0, 100)]
        );
        trial.windows.clear();
        assert_eq!(windows(&trial), 0);
    }
}
