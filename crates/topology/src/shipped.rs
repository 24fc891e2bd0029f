//! The machines of the papers, as descriptions in `machines/`.
//!
//! A description is lines of a key and a value; `#` starts a comment, which says where the
//! figures are from. `about` is one line for people, `synthetic` an hwloc synthetic description,
//! each `distance` one row of the distance matrix, and each `rate` one of its [`Rates`], by its name.

use crate::error::{Error, Result};
use crate::machine::{Machine, Source};
use crate::rates::Rates;
use crate::synthetic;

/// Names of the machine descriptions that are part of this crate, for
/// [`Machine::parse`](crate::Machine::parse).
pub const SHIPPED: &[&str] = &["opteron-8387", "xeon-4114", "xeon-2630", "xeon-4657l"];

/// The texts, in the order of [`SHIPPED`].
const TEXTS: [&str; SHIPPED.len()] = [
    include_str!("../machines/opteron-8387.machine"),
    include_str!("../machines/xeon-4114.machine"),
    include_str!("../machines/xeon-2630.machine"),
    include_str!("../machines/xeon-4657l.machine"),
];

/// The shipped machine of that name; `None` where there is none.
pub(crate) fn machine(name: &str) -> Option<Result<Machine>> {
    let at = SHIPPED.iter().position(|shipped| *shipped == name)?;
    Some(describe(SHIPPED[at], TEXTS[at]))
}

fn describe(name: &'static str, text: &str) -> Result<Machine> {
    let wrong = |why: String| Error::Synthetic {
        spec: name.to_owned(),
        why,
    };
    let (mut about, mut synthetic, mut distances) = ("", "", Vec::new());
    let mut rates = Rates::NONE;
    for line in text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
    {
        match line.split_once(char::is_whitespace) {
            Some(("about", value)) => about = value.trim(),
            Some(("synthetic", value)) => synthetic = value.trim(),
            Some(("distance", row)) => {
                for cell in row.split_whitespace() {
                    let distance = cell.parse::<u32>();
                    distances.push(distance.map_err(|_| wrong(format!("'{cell}' in '{line}'")))?);
                }
            }
            Some(("rate", rate)) => {
                let set = rates.set(rate.trim());
                set.ok_or_else(|| wrong(format!("'{line}' is no rate above 0")))?;
            }
            _ => return Err(wrong(format!("'{line}' is not understood"))),
        }
    }
    let mut machine = synthetic::machine(synthetic, name)?;
    if distances.len() != machine.nodes.len().pow(2) {
        return Err(wrong(
            "the distances do not form a matrix of all nodes".into(),
        ));
    }
    if let Some(missing) = rates.missing() {
        return Err(wrong(format!("the rate {missing} is missing")));
    }
    machine.distances = distances;
    machine.rates = Some(rates);
    machine.source = Source::Shipped(name);
    machine.about = about.to_owned();
    machine.assembled()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_descriptions_are_refused() {
        for text in [
            "synthetic node:2 core:1 pu:1\ndistance 10 20",
            "synthetic node:1 core:1 pu:1\ndistance ten",
            "synthetic node:1 core:1 pu:1\ndistance 10\ncolour red",
            "distance 10",
            "synthetic node:1 core:1 pu:1\ndistance 10",
            "synthetic node:1 core:1 pu:1\ndistance 10\nrate speed 4",
            "synthetic node:1 core:1 pu:1\ndistance 10\nrate lines 0",
        ] {
            let error = describe("test", text).unwrap_err();
            assert!(error.to_string().contains("test"), "{error}");
        }
    }
}
