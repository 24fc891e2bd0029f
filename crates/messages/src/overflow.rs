//! Results that a type of whole numbers has no room for.

/// The types of PostgreSQL, and the least and the greatest value of each.
const TYPES: [(&str, i128, i128); 3] = [
    ("smallint", i16::MIN as i128, i16::MAX as i128),
    ("integer", i32::MIN as i128, i32::MAX as i128),
    ("bigint", i64::MIN as i128, i64::MAX as i128),
];

/// The message for the operation `what`, as `32767 * 2`, whose result its type cannot hold. Of whole numbers PostgreSQL's: the
/// type is the one that has both operands, and has not their result.
pub(super) fn message(what: &str) -> String {
    match overflown(what) {
        Some(name) => format!("{name} out of range"),
        None => format!("arithmetic overflow: {what}"),
    }
}

fn overflown(what: &str) -> Option<&'static str> {
    let (left, rest) = what.split_once(' ')?;
    let (operator, right) = rest.split_once(' ')?;
    let (left, right): (i128, i128) = (left.parse().ok()?, right.parse().ok()?);
    let result = match operator {
        "+" => left.checked_add(right),
        "-" => left.checked_sub(right),
        "*" => left.checked_mul(right),
        "/" => left.checked_div(right),
        _ => None,
    }?;
    let mut types = TYPES
        .into_iter()
        .map(|(name, least, most)| (name, least..=most));
    let (name, values) =
        types.find(|(_, values)| values.contains(&left) && values.contains(&right))?;
    (!values.contains(&result)).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_type_follows_from_the_operands() {
        for (what, told) in [
            ("32767 * 2", "smallint out of range"),
            ("-32768 / -1", "smallint out of range"),
            ("2147483647 + 1", "integer out of range"),
            ("-2147483648 - 1", "integer out of range"),
            ("100000 * 100000", "integer out of range"),
            ("9223372036854775807 + 1", "bigint out of range"),
            // Of a smaller type, or of one without signs.
            ("127 + 1", "arithmetic overflow: 127 + 1"),
            ("0 - 1", "arithmetic overflow: 0 - 1"),
            ("1.5 * 2", "arithmetic overflow: 1.5 * 2"),
            ("- -128", "arithmetic overflow: - -128"),
        ] {
            assert_eq!(message(what), told);
        }
    }
}
