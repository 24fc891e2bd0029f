//! Explicit placements, read from a file that a person or a program wrote.
//!
//! Two forms are read, told apart by the first character that is no white space:
//!
//! * text: one line per thread, in the order they are created, with the cpus it may run on as
//!   `0-3,8`; `#` starts a comment, empty lines do not count;
//! * JSON: `[[0, 1], [2]]`, or an object with that as `placements` (what `atoll pin --json`
//!   prints) or as `cpus`; a number stands for a set of one cpu.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use serde_json::Value;

use crate::{CpuSet, Error, Result};

/// The largest file that is read.
const MAX_BYTES: u64 = 16 << 20;

/// The cpus of each thread in the file at `path`.
///
/// # Errors
///
/// [`Error::File`] where it cannot be read, [`Error::Mapping`] with the line or thread where it
/// makes no sense.
pub fn read(path: &Path) -> Result<Vec<CpuSet>> {
    let text = text(path)?;
    parse(&text).map_err(|why| Error::Mapping {
        from: path.display().to_string(),
        why,
    })
}

/// The text of a file of reasonable size.
pub(crate) fn text(path: &Path) -> Result<String> {
    let mut text = String::new();
    let file = File::open(path).and_then(|file| file.take(MAX_BYTES + 1).read_to_string(&mut text));
    let wrong = |why: &str| {
        Err(Error::Mapping {
            from: path.display().to_string(),
            why: why.to_owned(),
        })
    };
    match file {
        Err(error) if error.kind() == std::io::ErrorKind::InvalidData => wrong("it is no text"),
        Err(source) => Err(Error::File {
            path: path.to_owned(),
            source,
        }),
        Ok(_) if text.len() as u64 > MAX_BYTES => wrong("it is larger than 16 MiB"),
        Ok(_) => Ok(text),
    }
}

/// The mapping in a text, or what is wrong with it.
fn parse(text: &str) -> std::result::Result<Vec<CpuSet>, String> {
    let sets = if text.trim_start().starts_with(['[', '{']) {
        json(text)?
    } else {
        lines(text)?
    };
    if sets.is_empty() {
        return Err("it names no thread".to_owned());
    }
    Ok(sets)
}

fn lines(text: &str) -> std::result::Result<Vec<CpuSet>, String> {
    let mut sets = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if !line.is_empty() {
            let set = line.parse::<CpuSet>();
            sets.push(set.map_err(|error| format!("line {}: {error}", at + 1))?);
        }
    }
    Ok(sets)
}

fn json(text: &str) -> std::result::Result<Vec<CpuSet>, String> {
    let value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let list = match &value {
        Value::Object(object) => object.get("placements").or_else(|| object.get("cpus")),
        other => Some(other),
    };
    let list = list.and_then(Value::as_array);
    let list = list.ok_or("it has no list of placements")?;
    let set = |(thread, value): (usize, &Value)| {
        let cpus = match value {
            Value::Array(cpus) => cpus.iter().map(cpu).collect::<Option<Vec<u32>>>(),
            other => cpu(other).map(|cpu| vec![cpu]),
        };
        let cpus = cpus.filter(|cpus| !cpus.is_empty());
        cpus.map(CpuSet::from)
            .ok_or_else(|| format!("thread {thread} is given {value}, which is no list of cpus"))
    };
    list.iter().enumerate().map(set).collect()
}

fn cpu(value: &Value) -> Option<u32> {
    value.as_u64().and_then(|cpu| u32::try_from(cpu).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_are_read() {
        let expected = vec![CpuSet::from(vec![0, 1]), CpuSet::from(vec![5])];
        for text in [
            "0-1\n5",
            "# a comment\n 0,1 # the first\n\n5\n",
            "[[0, 1], [5]]",
            "[[1, 0], 5]",
            "  {\"strategy\": \"x\", \"placements\": [[0, 1], [5]], \"classes\": 1}",
            "{\"cpus\": [[0, 1], 5]}",
        ] {
            assert_eq!(parse(text).as_ref(), Ok(&expected), "{text}");
        }
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        for (text, place) in [
            ("0\nx", "line 2"),
            ("", "no thread"),
            ("[]", "no thread"),
            ("[[0], []]", "thread 1"),
            ("[[0], [-1]]", "thread 1"),
            ("[\"a\"]", "thread 0"),
            ("{\"placement\": []}", "placements"),
            ("[[0]", "line 1"),
        ] {
            let why = parse(text).unwrap_err();
            assert!(why.contains(place), "{text}: {why}");
        }
    }
}
