//! No text makes the parser panic, and what it reads it can write.

use laq::Program;
use proptest::prelude::*;

/// A program out of what programs are made of, most of them wrong.
fn pieces() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "return",
        "filter",
        "lift",
        "dot",
        "krao",
        "distinct",
        "substring",
        "hadamard",
        "tr",
        "sum",
        "count",
        "case",
        "when",
        "then",
        "else",
        "end",
        "in",
        "between",
        "and",
        "or",
        "not",
        "is",
        "null",
        "match",
        "power",
        "(",
        ")",
        "(",
        ")",
        ",",
        "=",
        "<",
        "<=",
        "<>",
        "+",
        "-",
        "*",
        "/",
        "&",
        "|",
        "<<",
        "~",
        ".",
        ";",
        "a",
        "b",
        "t.x",
        "\"text\"",
        "'",
        "1",
        "0.05",
        "1e9",
        "`q``r`",
        "// c\n",
        "/*",
        "*/",
        "order",
        "by",
        "limit",
        "as",
        "\u{e4}\u{1f41f}",
        "\n",
    ]);
    prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.join(" "))
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z][a-z0-9_]{0,6}".prop_map(|name| format!("`{name}`")),
        Just("x".to_string()),
        Just("`A ``b`".to_string()),
    ]
}

fn operand(e: BoxedStrategy<String>) -> BoxedStrategy<String> {
    let leaf = prop_oneof![
        name(),
        (name(), name()).prop_map(|(t, c)| format!("{t}.{c}")),
        (
            prop::sample::select(vec!["filter", "lift", "map", "bitmap"]),
            e
        )
            .prop_map(|(each, e)| format!("{each}({e})")),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        let two = prop::sample::select(vec!["dot", "krao", "hadamard", "relabel", "distinct"]);
        let one = prop::sample::select(vec!["sum", "count", "avg", "min", "max", "tr"]);
        prop_oneof![
            (two, inner.clone(), inner.clone()).prop_map(|(o, a, b)| format!("{o}({a}, {b})")),
            (inner.clone(), inner.clone(), 0u8..9)
                .prop_map(|(a, b, default)| format!("dot({a}, {b}, {default})")),
            (one, inner).prop_map(|(o, a)| format!("{o}({a})")),
        ]
    })
    .boxed()
}

fn element() -> BoxedStrategy<String> {
    let leaf = prop_oneof![
        name(),
        (name(), name()).prop_map(|(t, c)| format!("{t}.{c}")),
        "[0-9]{1,5}(\\.[0-9]{1,3})?(e-?[0-9]{1,2})?",
        "[ -~]{0,5}".prop_map(|text| format!("\"{}\"", text.replace('"', "\"\""))),
        Just("true".to_string()),
    ];
    leaf.prop_recursive(4, 40, 4, |e| {
        let sign = prop::sample::select(vec![
            "or", "and", "=", "<>", "<", ">=", "|", "^", "&", "<<", ">>", "+", "-", "*", "/",
        ]);
        prop_oneof![
            (e.clone(), sign, e.clone()).prop_map(|(a, s, b)| format!("({a}) {s} ({b})")),
            e.clone().prop_map(|e| format!("not ({e})")),
            e.clone().prop_map(|e| format!("-({e})")),
            e.clone().prop_map(|e| format!("~ -({e})")),
            e.clone().prop_map(|e| format!("({e}) is not null")),
            (e.clone(), e.clone()).prop_map(|(a, b)| format!("({a}) not in ({b}, 1)")),
            (e.clone(), e.clone(), e.clone())
                .prop_map(|(a, b, c)| format!("({a}) between ({b}) and ({c})")),
            (e.clone(), e.clone(), e.clone())
                .prop_map(|(a, b, c)| format!("case when {a} then {b} else {c} end")),
            e.clone().prop_map(|e| format!("match({e}, \"a.*\")")),
            (e.clone(), e.clone()).prop_map(|(a, b)| format!("power({a}, {b})")),
            (e.clone(), e.clone()).prop_map(|(a, b)| format!("substring({a}, {b}, 2)")),
            e.prop_map(|e| format!("sum(lift({e}))")),
        ]
    })
    .boxed()
}

fn program() -> impl Strategy<Value = String> {
    let value = operand(element());
    let item = (value.clone(), prop::option::of(name())).prop_map(|(value, alias)| {
        alias.map_or(value.clone(), |alias| format!("{value} as {alias}"))
    });
    (
        prop::collection::vec((name(), value), 0..4),
        prop::collection::vec(item, 1..4),
        prop::collection::vec((name(), any::<bool>()), 0..3),
        prop::option::of(0usize..1000),
    )
        .prop_map(|(assignments, items, order, limit)| {
            let mut text = String::new();
            for (name, value) in assignments {
                text += &format!("{name} = {value};\n");
            }
            text += &format!("return({})", items.join(", "));
            let keys: Vec<String> = order
                .into_iter()
                .map(|(name, desc)| format!("{name}{}", if desc { " desc" } else { "" }))
                .collect();
            if !keys.is_empty() {
                text += &format!(" order by {}", keys.join(", "));
            }
            if let Some(limit) = limit {
                text += &format!(" limit {limit}");
            }
            text
        })
}

/// Reads `text`; an error must point into it.
fn read(text: &str) -> Option<Program> {
    match text.parse::<Program>() {
        Ok(program) => Some(program),
        Err(e) => {
            let fault = e.fault().expect("a syntax error has a place");
            let lines: Vec<&str> = text.split('\n').collect();
            assert_eq!(lines[fault.line - 1].trim_end_matches('\r'), fault.text);
            assert!(
                fault.column >= 1 && fault.column <= fault.text.chars().count() + 2,
                "{e}"
            );
            assert!(!fault.excerpt().is_empty());
            None
        }
    }
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        read(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn any_pieces_are_read_or_refused(text in pieces()) {
        read(&text);
    }

    #[test]
    fn what_is_written_is_read_again(text in program()) {
        let first = read(&text).unwrap_or_else(|| panic!("{}", text.parse::<Program>().unwrap_err())).to_string();
        let again = read(&first).unwrap_or_else(|| panic!("{}\n{first}", first.parse::<Program>().unwrap_err()));
        prop_assert_eq!(&first, &again.to_string());
    }
}

#[test]
fn deep_and_long_texts_are_refused() {
    let deep = |open: &str, close: &str| {
        format!("return({}1{})", open.repeat(100_000), close.repeat(100_000))
    };
    for text in [
        deep("lift((", "))"),
        deep("not ", ""),
        deep("- ", ""),
        deep("sum(", ")"),
        format!("return(lift({}))", vec!["a.b"; 100_000].join(" + ")),
        format!("return(lift({}))", "case when ".repeat(100_000)),
    ] {
        let error = text.parse::<Program>().unwrap_err();
        assert_eq!(error.fault().unwrap().line, 1, "{error}");
    }
}

#[test]
fn the_queries_of_tpch_are_read_and_written() {
    for (number, text) in laq::TPCH {
        let first = read(text)
            .unwrap_or_else(|| panic!("query {number}"))
            .to_string();
        assert_eq!(read(&first).unwrap().to_string(), first, "query {number}");
    }
}
