//! The codes of errors that come from other libraries as texts. Those of our own carry their code from where they are made.

/// The code of what cannot be done with a value, where the text says no more.
pub(crate) const VALUE: &str = "22000";

/// Words of a message, and the code that they stand for. The first that is found counts.
type Words = &'static [(&'static str, &'static str)];

/// Of the planner.
const PLAN: Words = &[
    ("more than one row returned by a subquery", "21000"),
    ("invalid input syntax", "22P02"),
    ("invalid input value for enum", "22P02"),
    ("cannot be read as", "22P02"),
    ("operator does not exist", "42883"),
    ("cannot infer common argument type", "42883"),
    ("cannot infer common type for bitwise", "42883"),
    (") does not exist", "42883"),
    ("could not identify", "42883"),
    ("could not determine actual enum type", "42804"),
    ("cannot cast type", "42846"),
    ("no function", "42883"),
    ("at least one argument", "42883"),
    ("a part of json is an array of texts", "42883"),
    ("invalid function", "42883"),
    ("does not take arguments of these types", "42883"),
    ("ambiguous", "42702"),
    ("values lists must all be the same length", "42601"),
    ("subquery has too many columns", "42601"),
    ("must have the same number of columns", "42601"),
    ("is not that of the columns", "42P10"),
    ("is not in select list", "42P10"),
    ("must appear in select list", "42P10"),
    ("different number of columns", "42601"),
    ("a condition must be of type boolean", "42804"),
    ("do not go together", "42804"),
    ("expected limit to be", "22P02"),
    ("expected offset to be", "22P02"),
    ("must appear in the group by", "42803"),
    ("group by", "42803"),
    ("aggregate function", "42803"),
    ("cannot be matched", "42804"),
    ("unrecognized privilege", "22023"),
    ("unsupported sql type", "42704"),
    ("type", "42804"),
    ("takes", "42883"),
];

/// Of what computes.
const COMPUTED: Words = &[
    ("unsupported Unicode escape sequence", "22P05"),
    ("invalid input syntax", "22P02"),
    ("invalid input value for enum", "22P02"),
    ("no valid cast exists", "42804"),
    ("to value of date", "22007"),
    ("to value of time", "22007"),
    ("to value of interval", "22007"),
    ("cannot cast string", "22P02"),
    ("can't cast value", "22003"),
    ("field position must not be zero", "22023"),
    ("ntile requires a positive", "22014"),
    ("percentile value must be", "22003"),
    ("square root of a negative", "2201F"),
    ("negative count not allowed", "22011"),
    ("overlay start position", "22011"),
    ("number of elements to trim", "2202E"),
    ("path element at position", "22P02"),
    ("division by zero", "22012"),
    ("divide by zero", "22012"),
    ("zero", "22012"),
    ("overflow", "22003"),
    ("out of range", "22003"),
    ("out of bounds", "22003"),
    ("does not fit", "22003"),
    ("too large to store", "22003"),
    ("too small to store", "22003"),
    ("timestamp", "22007"),
    ("date", "22008"),
    // A JSON value of another kind than is wanted.
    ("cannot cast jsonb", "22023"),
    ("cannot delete from", "22023"),
    ("cannot set path in scalar", "22023"),
    ("cannot get array length", "22023"),
    ("cannot call json", "22023"),
    ("cannot", "22P02"),
    ("invalid", "22P02"),
    ("no such file", "58P01"),
];

/// The code of a message of the planner, if it says enough.
pub(crate) fn of_plan(message: &str) -> Option<&'static str> {
    find(message, PLAN)
}

/// The code of a message about values.
pub(crate) fn of_value(message: &str) -> &'static str {
    find(message, COMPUTED).unwrap_or(VALUE)
}

fn find(message: &str, words: Words) -> Option<&'static str> {
    let plain = unquoted(message).to_lowercase();
    let found = words
        .iter()
        .find(|(word, _)| plain.contains(&word.to_lowercase()));
    found.map(|(_, code)| *code)
}

/// The message without what stands in quotes: names and values say nothing of what is wrong.
fn unquoted(message: &str) -> String {
    let (mut plain, mut end) = (String::new(), None);
    for letter in message.chars() {
        match end {
            Some(quote) if quote == letter => end = None,
            Some(_) => {}
            None if matches!(letter, '"' | '`') => end = Some(letter),
            // An apostrophe within a word is none that opens a quotation.
            None if letter == '\'' && !plain.ends_with(char::is_alphanumeric) => end = Some(letter),
            None => plain.push(letter),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_have_codes_whatever_names_they_quote() {
        for (message, wanted) in [
            ("division by zero", "22012"),
            ("cannot cast string 'division by zero' to a value", "22P02"),
            ("cannot cast string 'x' to value of date type", "22007"),
            ("value doesn't fit: out of range \"overflow", "22003"),
            ("a text that says nothing", VALUE),
            ("cannot set path in scalar", "22023"),
            (
                "number of elements to trim must be between 0 and 3",
                "2202E",
            ),
        ] {
            assert_eq!(of_value(message), wanted, "{message}");
        }
        assert_eq!(of_plan("invalid function \"group by\""), Some("42883"));
        assert_eq!(of_plan("\"type\" is there"), None);
    }
}
