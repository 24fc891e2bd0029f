//! What the planner says in its own words, said as PostgreSQL says it, or as somebody who has never seen a plan would.

use std::sync::LazyLock;

use regex::Regex;

/// What the planner says, and what is said instead; the first that fits is taken.
const SAID: &[(&str, &str)] = &[
    (
        r"(?i)cannot coerce arithmetic expression (.+) to valid types",
        "operator does not exist: $1",
    ),
    (
        r"(?i)cannot infer common string type for string concat operation (.+)",
        "operator does not exist: $1",
    ),
    (
        r"(?i)cannot infer common argument type for comparison operation (.+) IS (?:NOT )?DISTINCT FROM (.+)",
        "operator does not exist: $1 = $2",
    ),
    (
        r"(?i)cannot infer common argument type for comparison operation (.+)",
        "operator does not exist: $1",
    ),
    (
        r"(?i)failed to coerce case \((.+)\) and when \((.+?)(?:, .+)?\) to common types in CASE WHEN expression",
        "operator does not exist: $1 = $2",
    ),
    (
        r"(?i)there isn't a common type to coerce (.+) and (.+) in (\w+) expression",
        "operator does not exist: $1 $3 $2",
    ),
    (
        r#"(?i)column in [\w ]+ must be in GROUP BY or an aggregate function: (?:While expanding wildcard, )?column "(.*)" must appear in the GROUP BY clause or must be part of an aggregate function, currently only .* satisfies this requirement"#,
        "column \"$1\" must appear in the GROUP BY clause or be used in an aggregate function",
    ),
    (
        r"HAVING clause references: (.+) must appear in the GROUP BY clause or be used in an aggregate function",
        "$1 must appear in the GROUP BY clause or be used in an aggregate function",
    ),
    (
        r"(?i)cannot create filter with non-boolean predicate '(.+)' returning (.+)",
        "a condition must be of type boolean, not $2: $1",
    ),
    (
        r"(?i)join condition must be boolean type, but got (.+)",
        "argument of JOIN/ON must be type boolean, not type $1",
    ),
    (
        r"(?i)unary operator 'NOT' requires a boolean expression, got (.+)",
        "argument of NOT must be type boolean, not type $1",
    ),
    (
        r"(?i)unary operator '(.)' only supports .*",
        "the sign $1 takes a number or an interval behind it",
    ),
    (
        r"(?i)too many columns! The subquery should only return one column.*",
        "subquery has too many columns",
    ),
    (
        r"(?i)\b(UNION|INTERSECT|EXCEPT) queries have different number of columns",
        "each $1 query must have the same number of columns",
    ),
    (
        r"(?i)incompatible inputs for Union: Previous inputs were of type (.+), but got incompatible type (.+) on column .*",
        "UNION types $1 and $2 cannot be matched",
    ),
    (
        r"(?i)inconsistent data length across values list: .*",
        "VALUES lists must all be the same length",
    ),
    (
        r"(?i)order by column out of bounds, specified: (\d+), max: \d+",
        "ORDER BY position $1 is not in select list",
    ),
    (
        r"(?i)cannot find column with position (\d+) in SELECT clause\. Valid columns: .*",
        "GROUP BY position $1 is not in select list",
    ),
    (
        r"(?i)source table contains (\d+) columns but only (\d+) names given as column alias",
        "the number of names, $2, is not that of the columns, $1",
    ),
    (
        r"(?i)failed to coerce arguments to satisfy a call to '(\w+)' function: coercion from (.+?) to the signature .* failed",
        "function '$1' does not take arguments of these types: $2",
    ),
    (
        r"(?i)function '(\w+)' expects (\d+) arguments? but received (\d+)",
        "function '$1' takes $2 arguments, not $3",
    ),
    (
        r"(?i)function '(\w+)' expects [A-Z]\w+ but received [A-Z]\w+",
        "function '$1' does not take arguments of these types",
    ),
    (
        r"(?i)(?:the )?function '(\w+)' expected zero arguments? but received \d+",
        "function '$1' takes no arguments",
    ),
    (
        r"(?i)for function 'nullif' (.+) and (.+) is not comparable",
        "operator does not exist: $1 = $2",
    ),
    (
        r"(?i)failed to coerce types (.+) and (.+) in BETWEEN expression",
        "operator does not exist: $1 >= $2",
    ),
    (
        r"(?i)\bmin/max was called with (\d+) arguments?\. It requires only (\d+)",
        "the function takes $2 arguments, not $1",
    ),
    (
        r"(?i)\b(\w+) was called with (\d+) arguments?\. It requires only (\d+)",
        "function '$1' takes $3 arguments, not $2",
    ),
    (
        r"(?i)\b(\w+) was called without any arguments\. It requires at least (\d+)",
        "function '$1' takes at least $2 arguments",
    ),
    (
        r"'(\w+)' does not support zero arguments",
        "function '$1' takes arguments",
    ),
    (
        r"(?i)substring without for/from is not valid .*",
        "substring takes a text, and where it begins",
    ),
    (
        r"(?i)physical plan does not support logical expression WindowFunction.*",
        "window functions are not allowed here: name them in a subquery",
    ),
    (
        r"(?i)physical plan does not support logical expression .*",
        "this expression cannot stand where it does",
    ),
    (
        r"(?i)there is only support Literal types for field at idx: \d+ in Window Function",
        "the window function takes constants here",
    ),
];

static PATTERNS: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    let pattern = |(said, instead): &(&'static str, &'static str)| match Regex::new(said) {
        Ok(regex) => (regex, *instead),
        Err(_) => unreachable!("a constant pattern, which the tests use"),
    };
    SAID.iter().map(pattern).collect()
});

/// The message without words of the planner.
pub(crate) fn reworded(message: &str) -> String {
    let found = PATTERNS.iter().find(|(said, _)| said.is_match(message));
    match found {
        Some((said, instead)) => said
            .replace(message, *instead)
            .replace("takes 1 arguments", "takes 1 argument")
            .replace("at least 1 arguments", "at least 1 argument"),
        None => message.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_have_no_words_of_the_planner() {
        for (said, wanted) in [
            (
                "Cannot coerce arithmetic expression integer + varchar to valid types",
                "operator does not exist: integer + varchar",
            ),
            (
                "There isn't a common type to coerce integer and varchar in LIKE expression",
                "operator does not exist: integer LIKE varchar",
            ),
            (
                "Column in SELECT must be in GROUP BY or an aggregate function: While expanding wildcard, column \"s.a\" must appear in the GROUP BY clause or must be part of an aggregate function, currently only \"count(1)\" appears in the SELECT clause satisfies this requirement",
                "column \"s.a\" must appear in the GROUP BY clause or be used in an aggregate function",
            ),
            (
                "Cannot create filter with non-boolean predicate 's.b' returning varchar",
                "a condition must be of type boolean, not varchar: s.b",
            ),
            (
                "Cannot infer common argument type for comparison operation bigint IS DISTINCT FROM boolean",
                "operator does not exist: bigint = boolean",
            ),
            (
                "Cannot infer common argument type for comparison operation decimal(2, 1) < boolean",
                "operator does not exist: decimal(2, 1) < boolean",
            ),
            (
                "Failed to coerce case (bigint) and when (boolean, varchar) to common types in CASE WHEN expression",
                "operator does not exist: bigint = boolean",
            ),
            (
                "Incompatible inputs for Union: Previous inputs were of type bigint, but got incompatible type boolean on column '?column?'",
                "UNION types bigint and boolean cannot be matched",
            ),
            (
                "Too many columns! The subquery should only return one column: s.a, s.b",
                "subquery has too many columns",
            ),
            (
                "Failed to coerce arguments to satisfy a call to 'lpad' function: coercion from varchar to the signature OneOf(Exact(varchar, bigint)) failed",
                "function 'lpad' does not take arguments of these types: varchar",
            ),
            (
                "Function 'upper' expects 1 arguments but received 2",
                "function 'upper' takes 1 argument, not 2",
            ),
            (
                "min/max was called with 2 arguments. It requires only 1",
                "the function takes 1 argument, not 2",
            ),
            (
                "The function 'now' expected zero argument but received 1",
                "function 'now' takes no arguments",
            ),
            (
                "For function 'nullif' bigint and boolean is not comparable",
                "operator does not exist: bigint = boolean",
            ),
            (
                "greatest was called without any arguments. It requires at least 1",
                "function 'greatest' takes at least 1 argument",
            ),
            (
                "Physical plan does not support logical expression WindowFunction(WindowFunction { fun",
                "window functions are not allowed here: name them in a subquery",
            ),
            ("division by zero", "division by zero"),
        ] {
            assert_eq!(reworded(said), wanted);
        }
    }
}
