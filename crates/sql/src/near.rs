//! Names that come close to one.

use datafusion::common::utils::datafusion_strsim::levenshtein;

/// Names among `names` that a person may have meant by `name`, nearest first, at most three.
pub(crate) fn nearest(name: &str, names: impl IntoIterator<Item = String>) -> Vec<String> {
    let wanted = name.to_lowercase();
    let mut near: Vec<(usize, String)> = names
        .into_iter()
        .filter_map(|candidate| {
            let lower = candidate.to_lowercase();
            let distance = levenshtein(&wanted, &lower);
            let related = wanted.len() >= 3
                && (lower.contains(&wanted) || wanted.contains(&lower) && lower.len() >= 3);
            // At most half of it is written otherwise, as in PostgreSQL.
            (related || distance <= (wanted.chars().count() / 2).min(3))
                .then_some((distance, candidate))
        })
        .collect();
    near.sort();
    near.dedup();
    near.into_iter().map(|(_, name)| name).take(3).collect()
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
    }
}
