//! Expressions that tables keep, as PostgreSQL writes them out: with the casts that it adds where the types of two sides differ, and
//! with parentheses around everything, or for people with as few as it needs.
//!
//! What PostgreSQL may write in another way is not written at all: whoever asks has the text then.

mod node;
mod read;
mod types;
mod view;

use sqlparser::ast::{Expr, Ident};
use sqlparser::parser::Parser;
use sqlparser::tokenizer::Token;

use crate::deparse::read::{Reading, as_it_is};
use crate::deparse::types::Resolve;
pub use crate::deparse::types::{Type, TypeOf};
pub use crate::deparse::view::{pretty_view, view};
use crate::dialect::DIALECT;
use crate::domains::VALUE;
use crate::names::{column_name, quoted};

/// The expression in `text`, over columns of these types, with all parentheses; none of what is not known here.
pub fn kept(text: &str, columns: &TypeOf<'_>) -> Option<String> {
    let resolve = |name: &[Ident]| {
        let [name] = name else {
            return None;
        };
        let name = column_name(name);
        Some((quoted(&name), columns(&name)?))
    };
    written(text, (&resolve, true), false)
}

/// The same of the check of a domain over a type, which PostgreSQL writes with `VALUE` in capitals.
pub fn kept_of_domain(text: &str, own: Type) -> Option<String> {
    let resolve = |name: &[Ident]| match name {
        [name] if column_name(name) == VALUE => Some((VALUE.to_uppercase(), own)),
        _ => None,
    };
    written(text, (&resolve, true), false)
}

/// An expression that [`kept`] has written, for people.
pub fn pretty(text: &str) -> Option<String> {
    written(text, (&as_it_is, false), true)
}

fn written(text: &str, (resolve, typed): (&Resolve<'_>, bool), pretty: bool) -> Option<String> {
    let (node, _) = Reading { resolve, typed }.node(&parsed(text)?)?;
    Some(node.text(pretty))
}

fn parsed(text: &str) -> Option<Expr> {
    let mut parser = Parser::new(&DIALECT).try_with_sql(text).ok()?;
    let expr = parser.parse_expr().ok()?;
    (parser.peek_token().token == Token::EOF).then_some(expr)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Columns of several types: `a` and `b` whole, `n` a decimal, `f` and `r` that float, `t` and `v` texts, `c` of characters.
    fn column(name: &str) -> Option<Type> {
        Some(match name {
            "a" => Type::Integer,
            "b" => Type::Bigint,
            "s" => Type::Smallint,
            "n" => Type::Numeric,
            "f" => Type::Double,
            "r" => Type::Real,
            "t" => Type::Text,
            "v" => Type::Varchar,
            "c" => Type::Bpchar,
            "d" => Type::Date,
            "ts" => Type::Timestamp,
            "o" => Type::Boolean,
            "u" => Type::Other,
            _ => return None,
        })
    }

    /// Checks, and what PostgreSQL 15 gives for them, with `false` and with `true`.
    const CHECKS: &[(&str, &str, &str)] = &[
        ("a > 0", "(a > 0)", "a > 0"),
        ("n > 0", "(n > (0)::numeric)", "n > 0::numeric"),
        (
            "n >= 0.5 and n < 100",
            "((n >= 0.5) AND (n < (100)::numeric))",
            "n >= 0.5 AND n < 100::numeric",
        ),
        ("t <> 'x'", "(t <> 'x'::text)", "t <> 'x'::text"),
        (
            "v <> 'x'",
            "((v)::text <> 'x'::text)",
            "v::text <> 'x'::text",
        ),
        (
            "f > 0.5",
            "(f > (0.5)::double precision)",
            "f > 0.5::double precision",
        ),
        ("a > 0.5", "((a)::numeric > 0.5)", "a::numeric > 0.5"),
        (
            "d > '2020-01-01'",
            "(d > '2020-01-01'::date)",
            "d > '2020-01-01'::date",
        ),
        (
            "ts > '2020-01-01'",
            "(ts > '2020-01-01 00:00:00'::timestamp without time zone)",
            "ts > '2020-01-01 00:00:00'::timestamp without time zone",
        ),
        ("o", "o", "o"),
        (
            "not o or a is not null",
            "((NOT o) OR (a IS NOT NULL))",
            "NOT o OR a IS NOT NULL",
        ),
        (
            "a in (1, 2, 3)",
            "(a = ANY (ARRAY[1, 2, 3]))",
            "a = ANY (ARRAY[1, 2, 3])",
        ),
        (
            "v in ('a', 'b')",
            "((v)::text = ANY ((ARRAY['a'::character varying, 'b'::character varying])::text[]))",
            "v::text = ANY (ARRAY['a'::character varying, 'b'::character varying]::text[])",
        ),
        ("t in ('a')", "(t = 'a'::text)", "t = 'a'::text"),
        (
            "b in (1, 2)",
            "(b = ANY (ARRAY[(1)::bigint, (2)::bigint]))",
            "b = ANY (ARRAY[1::bigint, 2::bigint])",
        ),
        (
            "r in (1, 2.5)",
            "(r = ANY (ARRAY[(1)::real, (2.5)::real]))",
            "r = ANY (ARRAY[1::real, 2.5::real])",
        ),
        (
            "a between 0.5 and 2",
            "(((a)::numeric >= 0.5) AND (a <= 2))",
            "a::numeric >= 0.5 AND a <= 2",
        ),
        (
            "v not like 'x%'",
            "((v)::text !~~ 'x%'::text)",
            "v::text !~~ 'x%'::text",
        ),
        (
            "length(v) > 3",
            "(length((v)::text) > 3)",
            "length(v::text) > 3",
        ),
        ("a > -5", "(a > '-5'::integer)", "a > '-5'::integer"),
        (
            "n > -5",
            "(n > ('-5'::integer)::numeric)",
            "n > '-5'::integer::numeric",
        ),
        (
            "coalesce(v, 'x') <> 'y'",
            "((COALESCE(v, 'x'::character varying))::text <> 'y'::text)",
            "COALESCE(v, 'x'::character varying)::text <> 'y'::text",
        ),
        ("c = 'x'", "(c = 'x'::bpchar)", "c = 'x'::bpchar"),
        ("a::text <> t", "((a)::text <> t)", "a::text <> t"),
        (
            "a in (1, 2) and b > 0",
            "((a = ANY (ARRAY[1, 2])) AND (b > 0))",
            "(a = ANY (ARRAY[1, 2])) AND b > 0",
        ),
        (
            "a > 1 and not (b > 0 and a > 2) or a is null",
            "(((a > 1) AND (NOT ((b > 0) AND (a > 2)))) OR (a IS NULL))",
            "a > 1 AND NOT (b > 0 AND a > 2) OR a IS NULL",
        ),
        (
            "a is not distinct from b",
            "(NOT (a IS DISTINCT FROM b))",
            "NOT a IS DISTINCT FROM b",
        ),
        ("-a + 1 > 0", "(((- a) + 1) > 0)", "((- a) + 1) > 0"),
        (
            "a - (b - 1) > 0",
            "((a - (b - 1)) > 0)",
            "(a - (b - 1)) > 0",
        ),
        ("a - b - 1 > 0", "(((a - b) - 1) > 0)", "(a - b - 1) > 0"),
        (
            "a + b * 2 > (a + b) * 2",
            "((a + (b * 2)) > ((a + b) * 2))",
            "(a + b * 2) > ((a + b) * 2)",
        ),
        ("r > f", "(r > f)", "r > f"),
        (
            "r + 1 > 2",
            "((r + (1)::double precision) > (2)::double precision)",
            "(r + 1::double precision) > 2::double precision",
        ),
        ("(a > 1) is true", "((a > 1) IS TRUE)", "(a > 1) IS TRUE"),
        (
            "b > 5000000000",
            "(b > '5000000000'::bigint)",
            "b > '5000000000'::bigint",
        ),
        ("u is null", "(u IS NULL)", "u IS NULL"),
        (
            "n::numeric(4, 1) > 0",
            "((n)::numeric(4,1) > (0)::numeric)",
            "n::numeric(4,1) > 0::numeric",
        ),
        (
            "v::varchar(3) = 'a'",
            "(((v)::character varying(3))::text = 'a'::text)",
            "v::character varying(3)::text = 'a'::text",
        ),
        (
            "cast(t as char(2)) = 'ab'",
            "((t)::character(2) = 'ab'::bpchar)",
            "t::character(2) = 'ab'::bpchar",
        ),
        (
            "a::numeric(5,2) = 1.5::numeric(4,1)",
            "((a)::numeric(5,2) = 1.5::numeric(4,1))",
            "a::numeric(5,2) = 1.5::numeric(4,1)",
        ),
        (
            "n::decimal(5) in (1, 2)",
            "((n)::numeric(5,0) = ANY (ARRAY[(1)::numeric, (2)::numeric]))",
            "n::numeric(5,0) = ANY (ARRAY[1::numeric, 2::numeric])",
        ),
        (
            "n > '5'::numeric(3,1)",
            "(n > '5'::numeric(3,1))",
            "n > '5'::numeric(3,1)",
        ),
        (
            "n > '2.50'::numeric(3,1)",
            "(n > 2.50::numeric(3,1))",
            "n > 2.50::numeric(3,1)",
        ),
        (
            "n > -5::numeric(4,1)",
            "(n > (- (5)::numeric(4,1)))",
            "n > (- 5::numeric(4,1))",
        ),
        (
            "ts::timestamp(0) < '2020-01-01 10:00:00'::timestamp(3)",
            "((ts)::timestamp(0) without time zone < '2020-01-01 10:00:00'::timestamp(3) without time zone)",
            "ts::timestamp(0) without time zone < '2020-01-01 10:00:00'::timestamp(3) without time zone",
        ),
        ("d < current_date", "(d < CURRENT_DATE)", "d < CURRENT_DATE"),
        (
            "t = upper('x')",
            "(t = upper('x'::text))",
            "t = upper('x'::text)",
        ),
    ];

    #[test]
    fn checks_are_written_as_postgresql_writes_them() {
        for (text, wanted, shown) in CHECKS {
            let found = kept(text, &column);
            assert_eq!(found.as_deref(), Some(*wanted), "{text}");
            assert_eq!(pretty(wanted).as_deref(), Some(*shown), "{text}");
            // What is restored of a dump is written as it was.
            assert_eq!(kept(wanted, &column).as_deref(), Some(*wanted), "{text}");
        }
        assert_eq!(
            kept_of_domain("value > 0 and VALUE < 9", Type::Numeric).as_deref(),
            Some("((VALUE > (0)::numeric) AND (VALUE < (9)::numeric))")
        );
        for other in [
            "nothing > 0",
            "u = 'x'",
            "md5(t) = 'a'",
            "a > (select 1)",
            "a >",
        ] {
            assert_eq!(kept(other, &column), None, "{other}");
        }
    }
}
