//! Figures as they are typed.

/// The figures that have numbers, and are repeated.
pub(super) const FIRST: u32 = 4;
/// The last of them.
pub(super) const LAST: u32 = 9;

/// Figures of the text, ascending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Figures(pub Vec<u32>);

impl Default for Figures {
    /// All of them.
    fn default() -> Figures {
        Figures((FIRST..=LAST).collect())
    }
}

impl Figures {
    /// Whether one is asked for.
    pub(super) fn has(&self, number: u32) -> bool {
        self.0.contains(&number)
    }
}

/// Reads `4`, `4,7` or `4..9`.
pub fn figures(text: &str) -> Result<Figures, String> {
    let read = |text: &str| {
        let number = text.trim().parse().ok();
        number
            .filter(|number| (FIRST..=LAST).contains(number))
            .ok_or_else(|| {
                format!("{text:?} is no figure from {FIRST} to {LAST}: take 4, 4,7 or 4..9")
            })
    };
    let mut all = Vec::new();
    for part in text.split(',') {
        let (first, last) = match part.split_once("..") {
            Some((first, last)) => (read(first)?, read(last.trim_start_matches('='))?),
            None => (read(part)?, read(part)?),
        };
        if first > last {
            return Err(format!("{part:?} is empty: {first} comes after {last}"));
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
        assert_eq!(figures("4"), Ok(Figures(vec![4])));
        assert_eq!(figures("7..9, 4"), Ok(Figures(vec![4, 7, 8, 9])));
        assert_eq!(figures("4..9"), Ok(Figures::default()));
        for wrong in ["", "3", "10", "4.1", "9..4", "4..", "x"] {
            assert!(figures(wrong).is_err(), "{wrong:?}");
        }
    }
}
