//! `information_schema.sql_features`: the features of the standard, by its numbers, and whether they are there.

use crate::pg_catalog::build::Built;

/// A feature to a line: its number and name, the number and name of a part of it, and whether it is supported.
const FEATURES: &str = include_str!("system/features.tsv");

/// Their rows.
pub(super) fn features() -> Built {
    let rows: Vec<Vec<&str>> = FEATURES
        .lines()
        .map(|line| line.split('\t').collect())
        .collect();
    let column = |at: usize| {
        let values = rows.iter();
        values.map(move |row| row.get(at).copied().unwrap_or_default())
    };
    Built::default()
        .names("feature_id", column(0))
        .names("feature_name", column(1))
        .names("sub_feature_id", column(2))
        .names("sub_feature_name", column(3))
        .names("is_supported", column(4))
}

#[cfg(test)]
mod tests {
    use super::FEATURES;

    #[test]
    fn each_line_is_a_feature() {
        let mut before = "";
        for line in FEATURES.lines() {
            let parts: Vec<&str> = line.split('\t').collect();
            assert_eq!(parts.len(), 5, "{line}");
            assert!(matches!(parts[4], "YES" | "NO"), "{line}");
            assert!(before <= parts[0], "{line}");
            before = parts[0];
        }
    }
}
