//! What the text says, by figure: S. Dominico, E. C. de Almeida, M. A. Z. Alves, "On the performance limits of thread
//! placement for array databases in non-uniform memory architectures", Computing, 2022.
//!
//! Its figures have no tables; these are all numbers that its sentences give of them.

use report::{Bars, Cell, Table, Unit};
use serde::Serialize;
use serde_json::{Value, json};

/// Where it was taken from.
pub(super) const SOURCE: &str = "S. Dominico, E. C. de Almeida, M. A. Z. Alves: On the performance limits of thread placement for array databases in non-uniform memory architectures. Computing, 2022";

/// A number of the text, for each of its two systems as far as it has one.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Said {
    /// The figure it belongs to.
    pub figure: u32,
    /// What is counted here beside it has the same key.
    pub key: &'static str,
    /// What it is.
    pub what: &'static str,
    /// The section that says it.
    pub section: &'static str,
    pub unit: Unit,
    pub savime: Option<f64>,
    pub scidb: Option<f64>,
}

const fn said(
    (figure, section): (u32, &'static str),
    key: &'static str,
    what: &'static str,
    unit: Unit,
    savime: Option<f64>,
    scidb: Option<f64>,
) -> Said {
    Said {
        figure,
        key,
        what,
        section,
        unit,
        savime,
        scidb,
    }
}

use Unit::{Ratio, Share};

/// All of them.
pub(super) const SAID: [Said; 17] = [
    said(
        (4, "5.1"),
        "speed",
        "best of 20 random mappings, 1,000 chunks: speed-up over the system at 100 chunks",
        Ratio,
        Some(1.7),
        Some(1.5),
    ),
    said(
        (4, "5.1"),
        "remote",
        "fewer remote accesses, the system's against the best random mapping's",
        Ratio,
        Some(4.9),
        Some(3.5),
    ),
    said(
        (4, "abstract"),
        "reached",
        "of the attainable speed-up the named strategies reach",
        Share,
        Some(0.48),
        Some(0.48),
    ),
    said(
        (5, "5.2"),
        "speed",
        "best mapping: speed-up over the system",
        Ratio,
        Some(2.25),
        Some(5.83),
    ),
    said(
        (5, "5.2"),
        "remote",
        "fewer remote accesses, the system's against the best random mapping's, in the mean",
        Ratio,
        Some(5.0),
        Some(4.1),
    ),
    said(
        (6, "5.2"),
        "saved",
        "energy of memory that the best random mapping saves, in the mean",
        Share,
        Some(0.68),
        Some(0.16),
    ),
    said(
        (6, "abstract"),
        "energy",
        "less energy, at most",
        Ratio,
        Some(3.1),
        Some(1.17),
    ),
    said(
        (6, "abstract"),
        "reached",
        "of the attainable energy saving the named strategies reach",
        Share,
        Some(0.26),
        Some(0.26),
    ),
    said(
        (7, "5.3"),
        "mappings",
        "mappings of 12 threads that differ",
        Unit::Count,
        Some(462.0),
        None,
    ),
    said(
        (7, "1"),
        "speed",
        "best of all mappings: speed-up over the system",
        Ratio,
        Some(3.89),
        None,
    ),
    said(
        (7, "5.3"),
        "slower",
        "of the mappings are slower than the system",
        Share,
        Some(0.07),
        None,
    ),
    said(
        (7, "5.3"),
        "accesses",
        "more accesses to memory with these than with the best",
        Ratio,
        Some(2.5),
        None,
    ),
    said(
        (7, "5.3"),
        "best",
        "of the mappings (200 to 462) have the best performance",
        Share,
        Some(0.56),
        None,
    ),
    said(
        (7, "5.3"),
        "far",
        "of the mappings (0 to 100) read more remotely than locally",
        Share,
        Some(0.22),
        None,
    ),
    said(
        (9, "5.4"),
        "factor",
        "a remote access takes, of a local one: 2x10",
        Ratio,
        Some(1.36),
        None,
    ),
    said(
        (9, "5.4"),
        "factor2",
        "a remote access takes, of a local one: 2x6",
        Ratio,
        Some(1.32),
        None,
    ),
    said(
        (4, "5"),
        "variation",
        "coefficient of variation over ten runs, at most",
        Share,
        Some(0.16),
        Some(0.16),
    ),
];

/// What was counted here: a key, and a value for groups that share chunks and for instances.
pub(super) type Found = (&'static str, Option<f64>, Option<f64>);

/// The numbers of a figure beside those that were counted.
pub(super) fn table(figure: u32, found: &[Found]) -> Table {
    let header = [
        "of the text",
        "section",
        "SAVIME",
        "SciDB",
        "model: groups",
        "model: instances",
    ];
    let mut table = Table::new(header)
        .caption("The text's numbers were measured on its machines; those at the right are of a model: it counts bytes, and computes time and energy from them.");
    for said in SAID.iter().filter(|said| said.figure == figure) {
        let own = found.iter().find(|(key, ..)| *key == said.key);
        let cell = |value: Option<f64>| match value {
            Some(value) => Cell::number(value, said.unit),
            None => Cell::written("–"),
        };
        table.row([
            Cell::from(said.what),
            Cell::from(said.section),
            cell(said.savime),
            cell(said.scidb),
            cell(own.and_then(|own| own.1)),
            cell(own.and_then(|own| own.2)),
        ]);
    }
    table
}

/// A number of a figure as bars: the text's beside the counted one.
pub(super) fn bars(figure: u32, key: &str, found: &[Found]) -> Option<Bars> {
    let said = SAID
        .iter()
        .find(|said| said.figure == figure && said.key == key)?;
    let own = found.iter().find(|(other, ..)| *other == key)?;
    let mut bars = Bars::new(said.what, "times", said.unit).series(["the text's", "the model's"]);
    if let (Some(text), Some(here)) = (said.savime, own.1) {
        bars.category("SAVIME; groups", [text, here]);
    }
    if let (Some(text), Some(here)) = (said.scidb, own.2) {
        bars.category("SciDB; instances", [text, here]);
    }
    Some(bars)
}

/// The numbers of a figure, raw.
pub(super) fn raw(figure: u32) -> Value {
    let all = SAID.iter().filter(|said| said.figure == figure);
    json!({ "source": SOURCE, "numbers": all.collect::<Vec<_>>() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stand_beside_each_other() {
        let found = [("remote", Some(4.0), None)];
        let table = table(4, &found);
        let row = table
            .rows()
            .iter()
            .find(|row| row[0].as_str().contains("fewer remote"));
        let texts: Vec<&str> = row.unwrap().iter().map(Cell::as_str).collect();
        assert_eq!(texts[2..], ["4.90×", "3.50×", "4.00×", "–"]);
        assert!(bars(4, "remote", &found).is_some() && bars(4, "speed", &found).is_none());
        for (at, one) in SAID.iter().enumerate() {
            let mut before = SAID[..at].iter();
            assert!(before.all(|other| (other.figure, other.key) != (one.figure, one.key)));
        }
    }
}
