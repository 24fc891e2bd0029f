//! Figures as they are typed.

/// The last figure of the text's chapter.
const LAST: u32 = 11;

/// Figures of chapter 4, by the number after the point, ascending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Figures(pub Vec<u32>);

/// Reads `4.3`, `4.1,4.6` or `4.1..4.6`.
pub fn figures(text: &str) -> Result<Figures, String> {
    let number = |text: &str| {
        let after = text.trim().strip_prefix("4.")?.parse().ok()?;
        (1..=LAST).contains(&after).then_some(after)
    };
    let read = |text: &str| {
        number(text).ok_or_else(|| {
            format!("{text:?} is no figure from 4.1 to 4.{LAST}: take 4.3, 4.1,4.6 or 4.1..4.6")
        })
    };
    let mut all = Vec::new();
    for part in text.split(',') {
        let (first, last) = match part.split_once("..") {
            Some((first, last)) => (read(first)?, read(last.trim_start_matches('='))?),
            None => (read(part)?, read(part)?),
        };
        if first > last {
            return Err(format!("{part:?} is empty: 4.{first} comes after 4.{last}"));
        }
        all.extend(first..=last);
    }
    all.sort_unstable();
    all.dedup();
    Ok(Figures(all))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_read() {
        assert_eq!(figures("4.3"), Ok(Figures(vec![3])));
        assert_eq!(figures("4.9..4.11, 4.1"), Ok(Figures(vec![1, 9, 10, 11])));
        for wrong in ["", "4.0", "4.12", "5.1", "4", "4.3..4.1", "4.1..", "4.x"] {
            assert!(figures(wrong).is_err(), "{wrong:?}");
        }
    }
}
