//! PostgreSQL's keywords that are no plain names, and names as statements must write them.

/// How far a keyword is from being a name, as `pg_get_keywords()` tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reserved {
    /// `C`: a name, but none of a function or a type.
    NoFunction,
    /// `T`: a name only of a function or a type.
    OnlyFunction,
    /// `R`: no name.
    Fully,
}

use Reserved::{Fully, NoFunction, OnlyFunction};

/// The keywords of PostgreSQL 15 that are reserved in some way, in their order.
const RESERVED: [(&str, Reserved); 151] = [
    ("all", Fully),
    ("analyse", Fully),
    ("analyze", Fully),
    ("and", Fully),
    ("any", Fully),
    ("array", Fully),
    ("as", Fully),
    ("asc", Fully),
    ("asymmetric", Fully),
    ("authorization", OnlyFunction),
    ("between", NoFunction),
    ("bigint", NoFunction),
    ("binary", OnlyFunction),
    ("bit", NoFunction),
    ("boolean", NoFunction),
    ("both", Fully),
    ("case", Fully),
    ("cast", Fully),
    ("char", NoFunction),
    ("character", NoFunction),
    ("check", Fully),
    ("coalesce", NoFunction),
    ("collate", Fully),
    ("collation", OnlyFunction),
    ("column", Fully),
    ("concurrently", OnlyFunction),
    ("constraint", Fully),
    ("create", Fully),
    ("cross", OnlyFunction),
    ("current_catalog", Fully),
    ("current_date", Fully),
    ("current_role", Fully),
    ("current_schema", OnlyFunction),
    ("current_time", Fully),
    ("current_timestamp", Fully),
    ("current_user", Fully),
    ("dec", NoFunction),
    ("decimal", NoFunction),
    ("default", Fully),
    ("deferrable", Fully),
    ("desc", Fully),
    ("distinct", Fully),
    ("do", Fully),
    ("else", Fully),
    ("end", Fully),
    ("except", Fully),
    ("exists", NoFunction),
    ("extract", NoFunction),
    ("false", Fully),
    ("fetch", Fully),
    ("float", NoFunction),
    ("for", Fully),
    ("foreign", Fully),
    ("freeze", OnlyFunction),
    ("from", Fully),
    ("full", OnlyFunction),
    ("grant", Fully),
    ("greatest", NoFunction),
    ("group", Fully),
    ("grouping", NoFunction),
    ("having", Fully),
    ("ilike", OnlyFunction),
    ("in", Fully),
    ("initially", Fully),
    ("inner", OnlyFunction),
    ("inout", NoFunction),
    ("int", NoFunction),
    ("integer", NoFunction),
    ("intersect", Fully),
    ("interval", NoFunction),
    ("into", Fully),
    ("is", OnlyFunction),
    ("isnull", OnlyFunction),
    ("join", OnlyFunction),
    ("lateral", Fully),
    ("leading", Fully),
    ("least", NoFunction),
    ("left", OnlyFunction),
    ("like", OnlyFunction),
    ("limit", Fully),
    ("localtime", Fully),
    ("localtimestamp", Fully),
    ("national", NoFunction),
    ("natural", OnlyFunction),
    ("nchar", NoFunction),
    ("none", NoFunction),
    ("normalize", NoFunction),
    ("not", Fully),
    ("notnull", OnlyFunction),
    ("null", Fully),
    ("nullif", NoFunction),
    ("numeric", NoFunction),
    ("offset", Fully),
    ("on", Fully),
    ("only", Fully),
    ("or", Fully),
    ("order", Fully),
    ("out", NoFunction),
    ("outer", OnlyFunction),
    ("overlaps", OnlyFunction),
    ("overlay", NoFunction),
    ("placing", Fully),
    ("position", NoFunction),
    ("precision", NoFunction),
    ("primary", Fully),
    ("real", NoFunction),
    ("references", Fully),
    ("returning", Fully),
    ("right", OnlyFunction),
    ("row", NoFunction),
    ("select", Fully),
    ("session_user", Fully),
    ("setof", NoFunction),
    ("similar", OnlyFunction),
    ("smallint", NoFunction),
    ("some", Fully),
    ("substring", NoFunction),
    ("symmetric", Fully),
    ("table", Fully),
    ("tablesample", OnlyFunction),
    ("then", Fully),
    ("time", NoFunction),
    ("timestamp", NoFunction),
    ("to", Fully),
    ("trailing", Fully),
    ("treat", NoFunction),
    ("trim", NoFunction),
    ("true", Fully),
    ("union", Fully),
    ("unique", Fully),
    ("user", Fully),
    ("using", Fully),
    ("values", NoFunction),
    ("varchar", NoFunction),
    ("variadic", Fully),
    ("verbose", OnlyFunction),
    ("when", Fully),
    ("where", Fully),
    ("window", Fully),
    ("with", Fully),
    ("xmlattributes", NoFunction),
    ("xmlconcat", NoFunction),
    ("xmlelement", NoFunction),
    ("xmlexists", NoFunction),
    ("xmlforest", NoFunction),
    ("xmlnamespaces", NoFunction),
    ("xmlparse", NoFunction),
    ("xmlpi", NoFunction),
    ("xmlroot", NoFunction),
    ("xmlserialize", NoFunction),
    ("xmltable", NoFunction),
];

/// How a word in lower case is reserved; none if it is a name like others.
pub fn reserved(word: &str) -> Option<Reserved> {
    let place = RESERVED.binary_search_by(|(own, _)| (*own).cmp(word));
    place.ok().map(|at| RESERVED[at].1)
}

/// A name as a statement writes it: in quotes unless it has only small letters, digits and `_`, begins with no digit, and is
/// no reserved word.
pub fn identifier(name: &str) -> String {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let starts = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_');
    if starts && name.chars().all(plain) && reserved(name).is_none() {
        return name.to_string();
    }
    format!("\"{}\"", name.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found() {
        assert!(RESERVED.is_sorted_by(|a, b| a.0 < b.0));
        for (word, wanted) in [
            ("select", Some(Fully)),
            ("ilike", Some(OnlyFunction)),
            ("timestamp", Some(NoFunction)),
            ("xmltable", Some(NoFunction)),
            ("all", Some(Fully)),
            ("date", None),
            ("Select", None),
        ] {
            assert_eq!(reserved(word), wanted, "{word}");
        }
    }

    #[test]
    fn names_are_quoted_where_they_must_be() {
        for (name, wanted) in [
            ("a_b1", "a_b1"),
            ("_1", "_1"),
            ("select", "\"select\""),
            ("between", "\"between\""),
            ("left", "\"left\""),
            ("name", "name"),
            ("1a", "\"1a\""),
            ("Ab", "\"Ab\""),
            ("a$", "\"a$\""),
            ("", "\"\""),
            ("a\"b", "\"a\"\"b\""),
            ("ä", "\"ä\""),
        ] {
            assert_eq!(identifier(name), wanted, "{name}");
        }
    }
}
