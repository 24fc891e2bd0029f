//! Names that come close to one.

use datafusion_common::utils::datafusion_strsim::levenshtein;

/// Names among `names` that a person may have meant by `name`, nearest first, at most three.
pub(crate) fn nearest(name: &str, names: impl IntoIterator<Item = String>) -> Vec<String> {
    let wanted = name.to_lowercase();
    // At most a third of it is written otherwise, or one of two characters.
    let most = match wanted.chars().count() {
        length @ ..=2 => length / 2,
        length => (length / 3).min(3),
    };
    let mut near: Vec<(usize, String)> = names
        .into_iter()
        .filter_map(|candidate| {
            let lower = candidate.to_lowercase();
            let distance = levenshtein(&wanted, &lower);
            let related = wanted.len() >= 3
                && (lower.contains(&wanted) || wanted.contains(&lower) && lower.len() >= 3);
            (related || distance <= most).then_some((distance, candidate))
        })
        .collect();
    near.sort();
    near.dedup();
    near.into_iter().map(|(_, name)| name).take(3).collect()
}

/// Whether any of these names comes close to that of a column; all may have a table before them.
pub(crate) fn is_near(column: &str, names: &[String]) -> bool {
    let bare = |name: &str| name.rsplit('.').next().unwrap_or(name).to_owned();
    let names = names.iter().map(|name| bare(name));
    !nearest(&bare(column), names).is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_near() {
        let names = || ["lineitem", "orders", "part", "partsupp", "nation"].map(String::from);
        assert_eq!(nearest("linitem", names()), ["lineitem"]);
        assert_eq!(nearest("order", names()), ["orders"]);
        assert_eq!(nearest("zzz", names()), Vec::<String>::new());
        // All names of one letter are as near to each other.
        assert!(nearest("a", ["b", "c"].map(String::from)).is_empty());
        assert_eq!(nearest("A", ["a", "c"].map(String::from)), ["a"]);
        assert!(nearest("nosuch", ["cosh".to_string()]).is_empty());
    }
}
