//! Reading a set of cpus from the kernel's list format, such as `0-3,8`.

use std::str::FromStr;

use crate::cpus::CpuSet;
use crate::error::{Error, Result};

/// The highest cpu number that is read from a text; no kernel is built for more.
const MAX_CPU: u32 = 65_535;

impl FromStr for CpuSet {
    type Err = Error;

    /// Reads `0-3,8`; white space around numbers is ignored.
    fn from_str(text: &str) -> Result<CpuSet> {
        let wrong = |why: &str| Error::List {
            text: text.trim().chars().take(60).collect(),
            why: why.to_owned(),
        };
        let number = |text: &str| match text.trim().parse::<u32>() {
            Ok(cpu) if cpu <= MAX_CPU => Ok(cpu),
            Ok(_) => Err(wrong("its numbers go up to 65535")),
            Err(_) => Err(wrong("it is not made of numbers and ranges")),
        };
        let mut cpus = Vec::new();
        for part in text.split(',') {
            match part.split_once('-') {
                None => cpus.push(number(part)?),
                Some((first, last)) => {
                    let (first, last) = (number(first)?, number(last)?);
                    if first > last {
                        return Err(wrong("a range ends before it begins"));
                    }
                    cpus.extend(first..=last);
                }
            }
        }
        Ok(CpuSet::from(cpus))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_list_format_is_read_and_written() {
        for (text, cpus, written) in [
            ("0", vec![0], "0"),
            (" 3 - 5, 1", vec![1, 3, 4, 5], "1,3-5"),
            ("0-1,1-2", vec![0, 1, 2], "0-2"),
        ] {
            let set: CpuSet = text.parse().unwrap();
            assert_eq!(set.as_slice(), cpus, "{text}");
            assert_eq!(set.to_string(), written);
        }
        for text in ["", "a", "1-", "3-1", "-1", "1,,2", "0-99999999", "70000"] {
            let error = text.parse::<CpuSet>().unwrap_err().to_string();
            assert!(error.contains("0-3,8"), "{text}: {error}");
        }
    }
}
