//! Values of the command line: queries, ranges of block sizes and of threads.

use std::path::PathBuf;

use engine::BLOCK_ROWS;

use crate::error::{Error, Result};

/// Up to this many threads each number is tried; above, the powers of two and the last.
const EACH: usize = 8;

/// Rows of execution blocks, ascending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocks(pub Vec<usize>);

/// Numbers of threads, ascending; `None` stands for all cpus that this process may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Threads(Vec<(Option<usize>, Option<usize>)>);

/// Queries as typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queries(Vec<Query>);

/// A query as typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Query {
    /// Of TPC-H.
    Number(usize, &'static str),
    /// In a file.
    File(PathBuf),
}

/// Rows in short form: 64Ki, 2Mi, 65536.
pub fn rows(count: usize) -> String {
    match count {
        mebi if mebi % (1 << 20) == 0 => format!("{}Mi", mebi >> 20),
        kibi if kibi % (1 << 10) == 0 => format!("{}Ki", kibi >> 10),
        other => other.to_string(),
    }
}

fn size(text: &str) -> std::result::Result<usize, String> {
    let lower = text.trim().to_ascii_lowercase();
    let (digits, factor) = match lower.trim_end_matches('i') {
        rest if rest.ends_with('k') => (&rest[..rest.len() - 1], 1 << 10),
        rest if rest.ends_with('m') => (&rest[..rest.len() - 1], 1 << 20),
        _ => (lower.as_str(), 1),
    };
    let rows = digits.parse::<usize>().ok();
    let rows = rows.and_then(|rows| rows.checked_mul(factor));
    let rows = rows.filter(|rows| BLOCK_ROWS.contains(rows));
    rows.ok_or_else(|| {
        format!("{text:?} is no number of rows from 1Ki to 2Mi: take 64Ki, 32Ki..2Mi or 2Ki,64Ki")
    })
}

/// `32Ki..2Mi` (each twice the one before), `2Ki,64Ki`, or both.
pub fn blocks(text: &str) -> std::result::Result<Blocks, String> {
    let mut all = Vec::new();
    for part in text.split(',') {
        let (first, last) = match part.split_once("..") {
            Some((first, last)) => (size(first)?, size(last.trim_start_matches('='))?),
            None => (size(part)?, size(part)?),
        };
        if first > last {
            return Err(format!(
                "{part:?} is empty: {first} rows are more than {last}"
            ));
        }
        let doubled = std::iter::successors(Some(first), |rows| Some(rows * 2));
        all.extend(doubled.take_while(|rows| *rows < last));
        all.push(last);
    }
    all.sort_unstable();
    all.dedup();
    Ok(Blocks(all))
}

/// `1..N`, `1,2,4`, or both; N stands for the cpus that this process may use.
pub fn threads(text: &str) -> std::result::Result<Threads, String> {
    let number = |text: &str| match text.trim() {
        "n" | "N" => Ok(None),
        digits => match digits.parse::<usize>() {
            Ok(count) if (1..=workers::MAX_THREADS).contains(&count) => Ok(Some(count)),
            _ => Err(format!(
                "{text:?} is no number of threads from 1 to {}: take 2, 1..4, 1,2,8, or 1..N with N for all cpus",
                workers::MAX_THREADS
            )),
        },
    };
    let mut all = Vec::new();
    for part in text.split(',') {
        all.push(match part.split_once("..") {
            Some((first, last)) => {
                let (first, last) = (number(first)?, number(last.trim_start_matches('='))?);
                if let (Some(first), Some(last)) = (first, last)
                    && first > last
                {
                    return Err(format!("{part:?} is empty: {first} is more than {last}"));
                }
                (first, last)
            }
            None => (number(part)?, number(part)?),
        });
    }
    Ok(Threads(all))
}

impl Threads {
    /// The numbers of threads, if this process may use `cpus` cpus.
    ///
    /// # Errors
    ///
    /// [`Error::Given`] for a range that is empty here.
    pub fn on(&self, cpus: usize) -> Result<Vec<usize>> {
        let mut all = Vec::new();
        for (first, last) in &self.0 {
            let (first, last) = (first.unwrap_or(cpus), last.unwrap_or(cpus));
            if first > last {
                let why = format!(
                    "--threads {first}..N is empty: this process may use {cpus} cpus; take --threads {first}"
                );
                return Err(Error::Given { why });
            }
            let few = last - first < EACH;
            all.extend((first..=last).filter(|count| few || count.is_power_of_two()));
            all.extend([first, last]);
        }
        all.sort_unstable();
        all.dedup();
        Ok(all)
    }
}

/// Numbers of TPC-H, `1..22`, and names of files, with commas between them.
pub fn queries(text: &str) -> std::result::Result<Queries, String> {
    let mut all = Vec::new();
    for part in text.split(',') {
        match part.split_once("..") {
            Some((first, last)) if number(first).is_some() => {
                let last = last.trim_start_matches('=');
                let ends = number(first).zip(number(last));
                let (first, last) = ends
                    .filter(|(first, last)| first <= last)
                    .ok_or_else(|| format!("{part:?} is no range of queries: take 1..22"))?;
                for number in first..=last {
                    all.push(of_tpch(number)?);
                }
            }
            _ => all.push(query(part)?),
        }
    }
    Ok(Queries(all))
}

/// The number of a query of TPC-H: `6` or `q6`.
fn number(text: &str) -> Option<usize> {
    text.trim_start_matches(['q', 'Q']).parse().ok()
}

fn query(text: &str) -> std::result::Result<Query, String> {
    match number(text) {
        Some(number) => of_tpch(number),
        None if text.is_empty() => Err("name a number of TPC-H or a file".to_owned()),
        None => Ok(Query::File(text.into())),
    }
}

fn of_tpch(number: usize) -> std::result::Result<Query, String> {
    let found = laq::TPCH.iter().find(|(own, _)| *own == number);
    found
        .map(|(number, text)| Query::Number(*number, text))
        .ok_or_else(|| format!("TPC-H has no query {number}: take 1 to 22, or a file of your own"))
}

impl Queries {
    /// What each is called, and its text.
    ///
    /// # Errors
    ///
    /// Those of [`Query::read`].
    pub fn read(&self) -> Result<Vec<(String, String)>> {
        self.0.iter().map(Query::read).collect()
    }
}

impl Query {
    /// What it is called, and its text.
    ///
    /// # Errors
    ///
    /// [`Error::Given`] for a file that cannot be read.
    pub fn read(&self) -> Result<(String, String)> {
        match self {
            Query::Number(number, text) => Ok((format!("Q{number}"), (*text).to_owned())),
            Query::File(path) => {
                let text = std::fs::read_to_string(path).map_err(|error| Error::Given {
                    why: format!(
                        "cannot read the query {}: {error}; name a file in LAQ or a number of TPC-H",
                        path.display()
                    ),
                })?;
                let name = path.file_stem().unwrap_or(path.as_os_str());
                Ok((name.to_string_lossy().into_owned(), text))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_doubled_up_to_the_end() {
        let read = |text| blocks(text).unwrap().0;
        assert_eq!(read("32Ki..128Ki"), [32 << 10, 64 << 10, 128 << 10]);
        assert_eq!(read("64Ki,2ki"), [2048, 65536]);
        assert_eq!(read("3000..10000,64Ki"), [3000, 6000, 10000, 65536]);
        assert_eq!(read("2Mi..2Mi"), [2 << 20]);
        for wrong in [
            "",
            "512",
            "4Mi",
            "64KiB",
            "64Ki..32Ki",
            "..",
            "2Ki..",
            "a..b",
            "64Ki,",
        ] {
            assert!(blocks(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn threads_are_each_or_doubled() {
        let read = |text, cpus| threads(text).unwrap().on(cpus).unwrap();
        assert_eq!(read("1..N", 4), [1, 2, 3, 4]);
        assert_eq!(read("1..48", 2), [1, 2, 4, 8, 16, 32, 48]);
        assert_eq!(read("5,1..2,N", 8), [1, 2, 5, 8]);
        for wrong in ["", "0", "1..0", "2..1", "-1", "1e9", "x", "1..100000"] {
            assert!(threads(wrong).is_err(), "{wrong:?}");
        }
        let error = threads("8..N").unwrap().on(2).unwrap_err().to_string();
        assert!(
            error.contains("8..N") && error.contains("2 cpus"),
            "{error}"
        );
    }

    #[test]
    fn queries_are_numbers_or_files() {
        assert!(matches!(query("6"), Ok(Query::Number(6, _))));
        assert!(matches!(query("Q14"), Ok(Query::Number(14, _))));
        assert_eq!(query("own.laq"), Ok(Query::File("own.laq".into())));
        let refused = query("23").unwrap_err();
        assert!(refused.contains("no query 23"), "{refused}");
        let all = queries("1..22,own.laq").unwrap().0;
        assert_eq!(all.len(), 23);
        assert_eq!(queries("6,q1").unwrap().0.len(), 2);
        assert_eq!(
            queries("../own.laq").unwrap().0,
            [Query::File("../own.laq".into())]
        );
        for wrong in ["", "1..", "3..1", "0..2", "20..23", "6,"] {
            assert!(queries(wrong).is_err(), "{wrong:?}");
        }
        let missing = query("missing.laq")
            .unwrap()
            .read()
            .unwrap_err()
            .to_string();
        assert!(missing.contains("missing.laq"), "{missing}");
    }

    #[test]
    fn rows_are_short() {
        assert_eq!([2048, 1 << 20, 3000].map(rows), ["2Ki", "1Mi", "3000"]);
    }
}
