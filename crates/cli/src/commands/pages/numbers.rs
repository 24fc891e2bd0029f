//! Lists of numbers as they are typed: `4`, `1,2,4`, `0..8`.

/// Numbers, each once, in the order in which they were typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Numbers(pub Vec<usize>);

/// Numbers of threads.
pub fn threads(text: &str) -> Result<Numbers, String> {
    numbers(text, 1, 1024)
}

/// Numbers of partitions.
pub fn partitions(text: &str) -> Result<Numbers, String> {
    numbers(text, 1, pages::MAX_PARTITIONS)
}

/// Numbers of pages to prefetch.
pub fn prefetch(text: &str) -> Result<Numbers, String> {
    numbers(text, 0, pages::MAX_PREFETCH)
}

/// Reads `1,2,4`, or `0..8`: each twice the one before, both ends included.
fn numbers(text: &str, least: usize, most: usize) -> Result<Numbers, String> {
    let number = |text: &str| match text.trim().parse::<usize>() {
        Ok(number) if (least..=most).contains(&number) => Ok(number),
        _ => Err(format!(
            "{text:?} is no number from {least} to {most}: take 4, or 1,2,4, or 1..8"
        )),
    };
    let mut all = Vec::new();
    for part in text.split(',') {
        let (first, last) = match part.split_once("..") {
            Some((first, last)) => (number(first)?, number(last.trim_start_matches('='))?),
            None => (number(part)?, number(part)?),
        };
        if first > last {
            return Err(format!("{part:?} is empty: {first} is more than {last}"));
        }
        let doubled = std::iter::successors(Some(first), |&number| Some((2 * number).max(1)));
        all.extend(doubled.take_while(|&number| number < last));
        all.push(last);
    }
    let mut seen = std::collections::HashSet::new();
    all.retain(|&number| seen.insert(number));
    Ok(Numbers(all))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_ranges_are_read() {
        assert_eq!(threads("1,2,4"), Ok(Numbers(vec![1, 2, 4])));
        assert_eq!(prefetch("0..8"), Ok(Numbers(vec![0, 1, 2, 4, 8])));
        assert_eq!(threads("3..8,1"), Ok(Numbers(vec![3, 6, 8, 1])));
        assert_eq!(partitions("4,4..4"), Ok(Numbers(vec![4])));
        for wrong in ["", "0", "1,,2", "8..1", "1025", "-1", "a", "1..", "..2"] {
            assert!(threads(wrong).is_err(), "{wrong:?}");
        }
    }
}
