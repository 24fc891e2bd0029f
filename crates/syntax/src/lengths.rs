//! The lengths of `varchar(n)` and `char(n)`: texts have one type, and a column's length is kept as a check of its own, which
//! is called what no statement can call one.

use sqlparser::ast::{CharacterLength, ColumnDef, DataType, ExactNumberInfo};
use table::{Check, Definition};

/// What names of these checks begin with.
const MARK: char = '\u{2}';

/// What the standard calls the two types.
const VARCHAR: &str = "character varying";
const CHAR: &str = "character";

/// How many digits a decimal has in a table.
const DIGITS: u64 = 76;

/// Most digits of PostgreSQL's decimals.
const MOST_DIGITS: u64 = 1000;

/// The standard's name of a type of texts, and how many characters they have at most.
pub fn of_type(data_type: &DataType) -> Option<(&'static str, u64)> {
    let (title, length) = match data_type {
        DataType::Varchar(length)
        | DataType::CharacterVarying(length)
        | DataType::CharVarying(length)
        | DataType::Nvarchar(length) => (VARCHAR, (*length)?),
        DataType::Char(length) | DataType::Character(length) => {
            let one = CharacterLength::IntegerLength {
                length: 1,
                unit: None,
            };
            (CHAR, length.unwrap_or(one))
        }
        _ => return None,
    };
    match length {
        CharacterLength::IntegerLength { length, .. } => Some((title, length)),
        CharacterLength::Max => None,
    }
}

/// The checks for the lengths that these columns have.
pub fn checks(columns: &[(String, DataType)]) -> Vec<Check> {
    let lengths = columns.iter().filter_map(|(name, data_type)| {
        let (title, length) = of_type(data_type)?;
        Some((name.as_str(), length, title == CHAR))
    });
    of_columns(lengths)
}

/// The checks for columns of so many characters at most, by their names; of a `char(n)`, or else of a `varchar(n)`.
pub fn of_columns<'c>(columns: impl IntoIterator<Item = (&'c str, u64, bool)>) -> Vec<Check> {
    let columns = columns.into_iter().enumerate();
    let named = columns.map(|(at, (name, length, of_char))| {
        let title = if of_char { CHAR } else { VARCHAR };
        Check {
            name: format!("{MARK}{at} {length} {title}"),
            text: format!("char_length(\"{}\") <= {length}", name.replace('"', "\"\"")),
            unchecked: false,
        }
    });
    named.collect()
}

/// Whether a check is the length of a column.
pub fn is_one(check: &Check) -> bool {
    check.name.starts_with(MARK)
}

/// A check of another table's column with a name that no check of `definition` has.
pub fn named_anew(mut check: Check, definition: &Definition) -> Check {
    let rest = check.name.split_once(' ').map_or("", |(_, rest)| rest);
    let rest = rest.to_string();
    let taken = |name: &String| definition.checks.iter().any(|own| own.name == *name);
    let mut names = (0u32..).map(|at| format!("{MARK}{at} {rest}"));
    if let Some(free) = names.find(|name| !taken(name)) {
        check.name = free;
    }
    check
}

/// Most characters of the texts of a column, and the type as the standard writes it, if a check is such a length.
pub fn read(check: &Check) -> Option<(usize, String)> {
    let mut parts = check.name.strip_prefix(MARK)?.splitn(3, ' ').skip(1);
    let most = parts.next()?.parse().ok()?;
    let title = format!("{}({most})", parts.next()?);
    Some((most, title))
}

/// Most characters of the texts of a column, if it has a length, and whether it is a `char(n)`.
pub fn of_column(definition: &Definition, column: &str) -> Option<(usize, bool)> {
    let begin = format!("char_length(\"{}\") <= ", column.replace('"', "\"\""));
    let mut own = definition.checks.iter().filter(|check| is_one(check));
    let check = own.find(|check| check.text.starts_with(&begin))?;
    let (most, title) = read(check)?;
    Some((most, title.starts_with("character(")))
}

/// Whether a column of a table is a `char(n)`, which keeps no blanks at the end of its texts.
pub fn is_char(definition: &Definition, column: &str) -> bool {
    of_column(definition, column).is_some_and(|(_, of_char)| of_char)
}

/// Gives decimals with more digits than there are those that there are, and tells of it.
pub fn narrow(columns: &mut [ColumnDef]) -> Vec<String> {
    let mut notices = Vec::new();
    for column in columns {
        let (DataType::Numeric(digits) | DataType::Decimal(digits) | DataType::Dec(digits)) =
            &mut column.data_type
        else {
            continue;
        };
        let (precision, scale) = match digits {
            ExactNumberInfo::Precision(precision) => (precision, 0),
            ExactNumberInfo::PrecisionAndScale(precision, scale) => (precision, *scale),
            ExactNumberInfo::None => continue,
        };
        if (DIGITS + 1..=MOST_DIGITS).contains(&*precision) && (0..=DIGITS as i64).contains(&scale)
        {
            notices.push(format!(
                "column \"{}\" is numeric({DIGITS},{scale}): numbers with more than {DIGITS} digits are refused",
                column.name.value
            ));
            *precision = DIGITS;
        }
    }
    notices
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_kept_in_checks() {
        let of = |length| Some(CharacterLength::IntegerLength { length, unit: None });
        let columns = [
            ("a".to_string(), DataType::Varchar(of(3))),
            ("b".to_string(), DataType::Text),
            ("c d".to_string(), DataType::Char(None)),
        ];
        let found = checks(&columns);
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].name, "\u{2}0 3 character varying");
        assert_eq!(found[1].text, "char_length(\"c d\") <= 1");
        assert!(found.iter().all(is_one));
        assert_eq!(read(&found[0]), Some((3, "character varying(3)".into())));
    }
}
