//! Machines from hwloc's synthetic descriptions, such as `node:4 l3:1 core:4 pu:2`. Their size is checked before hwloc
//! sees them.

use crate::error::{Error, Result};
use crate::hwloc;
use crate::machine::{MAX_CPUS, MAX_NODES, Machine, Source};

/// The longest synthetic description.
const MAX_SYNTHETIC_BYTES: usize = 16 << 10;

/// The highest cpu number that a synthetic description may give.
const MAX_INDEX: u64 = 65_535;

/// The machine that hwloc makes of a synthetic description; `name` is what the user gave.
pub(crate) fn machine(description: &str, name: &str) -> Result<Machine> {
    let spec = || name.to_owned();
    check(description).map_err(|bad| match bad {
        Bad::Large(why) => Error::TooLarge { spec: spec(), why },
        Bad::Wrong(why) => Error::Synthetic { spec: spec(), why },
    })?;
    // hwloc wants the hardware threads spelled out.
    let threads = levels(description).any(|level| level.to_ascii_lowercase().starts_with("pu"));
    let description = format!("{description}{}", if threads { "" } else { " pu:1" });
    let parts =
        hwloc::synthetic(&description).map_err(|why| Error::Synthetic { spec: spec(), why })?;
    parts.into_machine(spec(), Source::Synthetic(spec()))
}

/// What is wrong with a synthetic description.
#[derive(Debug, PartialEq)]
enum Bad {
    Large(String),
    Wrong(String),
}

/// Refuses descriptions on which hwloc would spend minutes and gigabytes: it notices how large a machine is
/// only while it builds it.
fn check(description: &str) -> std::result::Result<(), Bad> {
    if description.trim().is_empty() {
        return Err(Bad::Wrong("it is empty".into()));
    }
    if description.len() > MAX_SYNTHETIC_BYTES || description.contains('\0') {
        return Err(Bad::Wrong("it is not a short line of text".into()));
    }
    let mut objects = 1u64;
    for level in levels(description) {
        let (head, attributes) = level.split_once('(').unwrap_or((level, ""));
        indexes(attributes)?;
        let attached = head.starts_with('[');
        let head = head.trim_matches(['[', ']']);
        let (kind, count) = head
            .split_once(':')
            .unwrap_or((if attached { head } else { "" }, "1"));
        let count = if kind.is_empty() { head } else { count };
        let digits = !count.is_empty() && count.bytes().all(|byte| byte.is_ascii_digit());
        if !digits {
            return Err(Bad::Wrong(format!("'{head}' does not say how many")));
        }
        // Only an absurdly long number does not fit.
        let count = count.parse::<u64>().unwrap_or(u64::MAX);
        if count == 0 {
            return Err(Bad::Wrong(format!("'{head}' has nothing in it")));
        }
        let sum = objects.saturating_mul(count);
        if !attached {
            objects = sum;
        }
        let node = ["nu", "no"]
            .iter()
            .any(|start| kind.to_ascii_lowercase().starts_with(start));
        let (most, what) = if node {
            (MAX_NODES, "nodes")
        } else {
            (MAX_CPUS, "cpus")
        };
        if sum > most as u64 {
            return Err(Bad::Large(format!(
                "'{head}' makes it {sum} {what}, at most {most} are supported"
            )));
        }
    }
    Ok(())
}

/// The parts between white space, but not inside parentheses.
fn levels(description: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0usize;
    let parts = description.split(move |c: char| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && c.is_whitespace()
    });
    parts.filter(|part| !part.is_empty())
}

/// Refuses cpu numbers above [`MAX_INDEX`]: hwloc keeps them in bit maps as long as the highest.
fn indexes(attributes: &str) -> std::result::Result<(), Bad> {
    let Some((_, list)) = attributes.split_once("indexes=") else {
        return Ok(());
    };
    let list = list.split([')', ' ']).next().unwrap_or_default();
    let numbers = list
        .split(|c: char| !c.is_ascii_digit())
        .filter(|number| !number.is_empty());
    for number in numbers {
        if number
            .parse::<u64>()
            .is_ok_and(|number| number <= MAX_INDEX)
        {
            continue;
        }
        return Err(Bad::Large(format!("index {number} is above {MAX_INDEX}")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absurd_sizes_are_refused_before_hwloc_sees_them() {
        for large in [
            "node:100000000 core:100000",
            "node:257 pu:1",
            "core:4097",
            "pack:64 core:64 pu:2",
            "group:99999999999999999999999999 pu:1",
            "node:2 core:2 pu:2(indexes=0,1,2,4000000000,3,4,5,6)",
            "node:16 [numa:17] core:1 pu:1",
        ] {
            assert!(
                matches!(check(large), Err(Bad::Large(_))),
                "{large}: {:?}",
                check(large)
            );
        }
        for wrong in [
            "",
            "node:0 core:4",
            "node: core:2",
            "node:-1",
            "node:two",
            "(((",
            "x",
        ] {
            assert!(
                matches!(check(wrong), Err(Bad::Wrong(_))),
                "{wrong}: {:?}",
                check(wrong)
            );
        }
    }

    #[test]
    fn what_hwloc_understands_passes() {
        for good in [
            "node:4 l3:1 core:4 pu:2",
            "4 4 2",
            "pack:2 [numa(memory=1GB)] [numa] l3:1(size=1000000) core:4 pu:1",
            "Package:256 NUMA:1 Core:8 PU:2",
            "node:2 core:2 pu:2(indexes=4*2:1*4)",
        ] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
    }
}
