//! Accesses counted in several runs of one variant.

use emulator::count::Region;
use report::{Bars, Cell, Heat, Sample, Table, Unit};
use serde::Serialize;

use crate::guest::parts;

/// The runs of a variant, such as one workload under one strategy.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Counted {
    /// What was run.
    pub(crate) workload: String,
    /// The variant.
    pub(crate) variant: String,
    /// One region for each run.
    pub(crate) runs: Vec<Region>,
}

impl Counted {
    fn sample(&self, figure: impl Fn(&Region) -> f64) -> Sample {
        self.runs.iter().map(figure).collect()
    }

    pub(crate) fn local(&self) -> Sample {
        self.sample(|run| parts(&run.dram).0 as f64)
    }

    pub(crate) fn remote(&self) -> Sample {
        self.sample(|run| parts(&run.dram).1 as f64)
    }

    /// Lines read from memory.
    pub(crate) fn lines(&self) -> Sample {
        self.sample(|run| run.dram.iter().flatten().sum::<u64>() as f64)
    }

    /// The share of lines that came from the memory of one node.
    pub(crate) fn of_node(&self, node: usize) -> Sample {
        self.sample(|run| {
            let from: u64 = run.dram.iter().filter_map(|row| row.get(node)).sum();
            from as f64 / run.dram.iter().flatten().sum::<u64>() as f64
        })
    }

    /// The share of remote lines.
    pub(crate) fn share(&self) -> Sample {
        self.sample(|run| run.remote_share().unwrap_or(f64::NAN))
    }

    /// The median number of lines, divided into local and remote ones by the median share.
    pub(crate) fn parted(&self) -> [f64; 2] {
        let (lines, share) = (self.lines().median(), self.share().median());
        // Of no line nothing is remote; that none was counted at all stays NaN.
        let remote = if lines == 0.0 { 0.0 } else { lines * share };
        [lines - remote, remote]
    }

    fn misses(&self) -> Sample {
        self.sample(|run| run.llc_miss_ratio().unwrap_or(f64::NAN))
    }

    /// The median lines of each pair of nodes, as a matrix.
    pub(crate) fn matrix(&self) -> Vec<Vec<f64>> {
        let nodes = self.runs.first().map_or(0, |run| run.dram.len());
        let cell =
            |core: usize, page: usize| self.sample(|run| run.dram[core][page] as f64).median();
        (0..nodes)
            .map(|core| (0..nodes).map(|page| cell(core, page)).collect())
            .collect()
    }

    /// The matrix as a plot.
    pub(crate) fn heat(&self) -> Heat {
        Heat::nodes(self.variant.as_str(), Unit::Count, &self.matrix())
    }
}

/// Local and remote lines of each variant, as bars.
pub(crate) fn bars<'a>(title: String, all: impl IntoIterator<Item = &'a Counted>) -> Bars {
    let mut bars = Bars::new(title, "lines of 64 bytes", Unit::Count)
        .series(["local", "remote"])
        .stacked();
    for one in all {
        bars.category(one.variant.as_str(), one.parted());
    }
    bars
}

/// A row per variant.
pub(crate) fn table(all: &[Counted], variant: &str) -> Table {
    let runs = all.iter().map(|one| one.runs.len()).max().unwrap_or(0);
    let header = [
        "workload",
        variant,
        "lines from memory",
        "local",
        "remote",
        "remote share",
        "variation",
        "last-level misses",
    ];
    let caption = format!(
        "Lines of 64 bytes; each figure is the median of {runs} runs by itself; variation: standard deviation of the lines over their mean; last-level misses: of what that cache was asked for."
    );
    let mut table = Table::new(header).caption(caption);
    for one in all {
        table.row([
            Cell::from(one.workload.as_str()),
            Cell::from(one.variant.as_str()),
            Cell::number(one.lines().median(), Unit::Count),
            Cell::number(one.local().median(), Unit::Count),
            Cell::number(one.remote().median(), Unit::Count),
            Cell::number(one.share().median(), Unit::Share),
            Cell::number(one.lines().variation(), Unit::Share),
            Cell::number(one.misses().median(), Unit::Share),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn region(dram: Vec<Vec<u64>>) -> Region {
        Region {
            dram,
            l2_misses: 100,
            ..Region::default()
        }
    }

    #[test]
    fn medians_are_taken_cell_by_cell() {
        let runs = vec![
            region(vec![vec![4, 1], vec![0, 9]]),
            region(vec![vec![6, 3], vec![0, 1]]),
            region(vec![vec![5, 2], vec![0, 5]]),
        ];
        let counted = Counted {
            workload: "w".to_owned(),
            variant: "v".to_owned(),
            runs,
        };
        assert_eq!(counted.matrix(), [[5.0, 2.0], [0.0, 5.0]]);
        assert_eq!(
            (counted.local().median(), counted.remote().median()),
            (10.0, 2.0)
        );
        assert_eq!(
            table(std::slice::from_ref(&counted), "strategy").rows()[0][2].as_str(),
            "12"
        );
        // Shares of 1/14, 3/10 and 2/12 of 14, 10 and 12 lines.
        assert_eq!(counted.parted(), [10.0, 2.0]);
    }

    #[test]
    fn nothing_counted_is_no_share() {
        let counted = Counted {
            workload: String::new(),
            variant: String::new(),
            runs: vec![region(vec![vec![0]])],
        };
        assert!(counted.share().median().is_nan());
        assert_eq!(counted.parted(), [0.0, 0.0]);
        assert_eq!(table(&[counted], "").rows()[0][5].as_str(), "–");
    }
}
