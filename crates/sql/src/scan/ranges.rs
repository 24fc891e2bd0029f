//! Sets of whole numbers as ranges.

/// Ranges with both ends included, in ascending order, without overlap.
pub(super) type Ranges = Vec<(i128, i128)>;

/// What both ranges have.
pub(super) fn intersect(a: &[(i128, i128)], b: &[(i128, i128)]) -> Ranges {
    let mut both = Vec::new();
    for (low, high) in a {
        for (from, to) in b {
            if low.max(from) <= high.min(to) {
                both.push((*low.max(from), *high.min(to)));
            }
        }
    }
    both.sort_unstable();
    both
}

/// What one of both ranges has.
pub(super) fn union(a: &[(i128, i128)], b: &[(i128, i128)]) -> Ranges {
    let mut all: Ranges = a.iter().chain(b).copied().collect();
    all.sort_unstable();
    let mut joined: Ranges = Vec::new();
    for (low, high) in all {
        match joined.last_mut() {
            Some((_, end)) if low <= end.saturating_add(1) => *end = high.max(*end),
            _ => joined.push((low, high)),
        }
    }
    joined
}

/// What ranges do not have; `None` if they end where numbers do.
pub(super) fn complement(ranges: &[(i128, i128)]) -> Option<Ranges> {
    let mut rest = Vec::new();
    let mut from = i128::MIN;
    for (low, high) in ranges {
        if from < *low {
            rest.push((from, low.checked_sub(1)?));
        }
        from = high.checked_add(1)?;
    }
    rest.push((from, i128::MAX));
    Some(rest)
}
