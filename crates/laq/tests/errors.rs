//! Every error names a place: line, column, and what is wrong there.

#[allow(dead_code, reason = "each test program uses a part of it")]
mod shop;

use shop::Shop;

fn check(cases: &[(&str, &str)]) {
    let shop = Shop::open();
    for (text, expected) in cases {
        assert_eq!(shop.error(text), *expected, "{text}");
    }
}

#[test]
fn of_the_text() {
    check(&[
        (
            "",
            "line 1, column 1: expected `name = ...` or `return(...)`, found the end",
        ),
        (
            "x = filter(sale.price > 1)",
            "line 1, column 27: expected `name = ...` or `return(...)`, found the end",
        ),
        ("x filter", "line 1, column 3: expected `=`, found `filter`"),
        (
            "sum = 1",
            "line 1, column 1: `sum` is a keyword; expected the name of a matrix, or `return` (a name may stand in backquotes)",
        ),
        (
            "x = dot(sale.id)",
            "line 1, column 5: `dot` takes two matrices, not 1",
        ),
        (
            "x = krao()",
            "line 1, column 5: `krao` takes 2 matrices or more, not 0",
        ),
        (
            "x = filter(1 < 2 < 3)",
            "line 1, column 18: comparisons do not chain; write `a < b and b < c`",
        ),
        ("return(\"abc)", "line 1, column 8: this \" is never closed"),
        (
            "/* x",
            "line 1, column 1: this comment has no end; close it with */",
        ),
        (
            "// one\n\n  return(?)",
            "line 3, column 10: '?' has no meaning here",
        ),
        (
            "x = 12ab",
            "line 1, column 5: a name must not begin with a digit; write `...` around it",
        ),
        (
            "return(sale.id) limit many",
            "line 1, column 23: expected how many rows, a whole number",
        ),
        (
            "return(sale.id) x",
            "line 1, column 17: expected the end after `return`, found `x`",
        ),
        (
            "x = filter(match(sale.mode, \"(\")) return(x)",
            "line 1, column 29: not a regular expression: error: unclosed group",
        ),
    ]);
}

#[test]
fn of_names() {
    check(&[
        (
            "return(sales.id)",
            "line 1, column 8: no table `sales`; did you mean sale?",
        ),
        (
            "return(sale.prise)",
            "line 1, column 13: `sale` has no attribute `prise`; did you mean price?",
        ),
        (
            "abc = filter(sale.id > 1)\nreturn(abd)",
            "line 2, column 8: no matrix `abd` before this; did you mean abc?",
        ),
        (
            "return(sale)",
            "line 1, column 8: `sale` is a table; name one of its attributes: sale.attribute",
        ),
        (
            "a = sale.id\na = sale.day\nreturn(a)",
            "line 2, column 1: `a` has a value already; each name gets one",
        ),
        (
            "return(sale.id) order by sale.day",
            "line 1, column 26: `sale.day` is not returned; order by one of id",
        ),
    ]);
}

#[test]
fn of_shapes() {
    check(&[
        (
            "h = filter(customer.segment = \"home\")\nx = dot(h, customer.country)\nreturn(x)",
            "line 2, column 9: the inner dimensions of `dot` differ: `h` has 5 columns (rows of customer), \
             `customer.country` has 3 rows (labels of country.key); rows of customer are found by labels of \
             customer.key, see `relabel`",
        ),
        (
            "x = dot(filter(sale.price > 1), sale.price)\nreturn(x)",
            "line 1, column 9: the inner dimensions of `dot` differ: `filter(sale.price > 1)` has 10 columns (rows \
             of sale), `sale.price` has 1 row; the second operand needs labels: an attribute, or what `bitmap` makes",
        ),
        (
            "x = krao(sale.mode,\n         customer.segment)\nreturn(x)",
            "line 2, column 10: `krao` of `sale.mode` with 10 columns (rows of sale) and `customer.segment` with 5 \
             columns (rows of customer): they must have the same",
        ),
        (
            "x = hadamard(sale.mode, sale.price) return(x)",
            "line 1, column 25: `hadamard` of `sale.mode` with ? rows (labels of sale.mode) and `sale.price` with 1 \
             row: they must have the same; `krao` combines rows",
        ),
        (
            "x = filter(sale.price > customer.balance) return(x)",
            "line 1, column 25: `sale.price` and `customer.balance` do not go together element by element: the one \
             has 10 columns (rows of sale), the other 5 columns (rows of customer)",
        ),
        (
            "x = krao(sale.price, sale.rate) return(x)",
            "line 1, column 22: `sale.price` and `sale.rate` both have values; multiply them with `lift`",
        ),
        (
            "return(sum(sale.mode))",
            "line 1, column 12: `sale.mode` is a bitmap matrix without values to fold; `lift` makes values, `count` \
             counts ones",
        ),
        (
            "return(tr(sale.mode))",
            "line 1, column 8: a transposed matrix can only be the second operand of `dot`",
        ),
        (
            "a = dot(filter(customer.balance > 0), tr(sale.customer)) return(count(a))",
            "line 1, column 9: the inner dimensions of `dot` differ: `filter(customer.balance > 0)` has 5 columns \
             (rows of customer), `tr(sale.customer)` has 10 rows (rows of sale)",
        ),
        (
            "n = count(sale.mode)\nm = count(krao(filter(sale.id > 3), sale.mode))\nreturn(n, m)",
            "line 3, column 11: `n` and `m` are not zero in different places; make them one by `hadamard` with the \
             bit vector of the places that are meant, or count with `case`",
        ),
        (
            "n = count(sale.mode) return(sale.day, n)",
            "line 1, column 29: `sale.day` is not among the rows of `n`: they are labels of sale.mode",
        ),
        (
            "a = filter(sale.id > 1) return(a)",
            "line 1, column 25: there are no values or labels to return; return an attribute too, or a `count`",
        ),
    ]);
}

#[test]
fn of_defaults_and_distinct_labels() {
    check(&[
        (
            "n = count(sale.customer) return(dot(n, customer.key, 0, 1))",
            "line 1, column 33: `dot` takes two matrices and a default, not more",
        ),
        (
            "n = count(sale.customer) return(customer.key, dot(n, customer.key, \"none\"))",
            "line 1, column 68: the default is a text, and what it stands for is a number",
        ),
        (
            "n = count(sale.customer) return(customer.key, dot(n, customer.key, customer.balance))",
            "line 1, column 68: the default of a `dot` is one value, such as 0",
        ),
        (
            "n = krao(customer.segment, customer.balance) return(sale.id, dot(n, sale.customer, 0))",
            "line 1, column 66: `n` is a map of ? x 5 (labels of customer.segment x rows of customer): a default stands for one label or one value",
        ),
        (
            "x = dot(filter(sale.price > 1), tr(sale.customer), 0) return(count(x))",
            "line 1, column 33: a `dot` with a transposed matrix has no default: its result is a bit vector",
        ),
        (
            "return(sale.id, dot(customer.balance, krao(sale.customer, sale.price), 0))",
            "line 1, column 39: `krao(sale.customer, sale.price)` must be a bitmap matrix",
        ),
        (
            "return(distinct(sale.mode, sale.price))",
            "line 1, column 28: `sale.price` must be an attribute that is a dimension: `distinct` counts its labels",
        ),
        (
            "return(distinct(sale.price, sale.mode))",
            "line 1, column 17: `sale.price` must have labels or be a bit vector: the second matrix says what is counted",
        ),
        (
            "return(distinct(sale.mode, customer.segment))",
            "line 1, column 28: `distinct` of `sale.mode` with 10 columns (rows of sale) and `customer.segment` with 5 columns (rows of customer): they must have the same",
        ),
        (
            "return(distinct(sale.mode))",
            "line 1, column 8: `distinct` takes two matrices, not 1",
        ),
        (
            "return(bitmap(substring(sale.price, 1, 2)))",
            "line 1, column 25: `substring` takes a text, the place of its first character (1 for the first), and how many; this is a number",
        ),
        (
            "return(bitmap(case when sale.price > 1 then \"a\" else 1 end))",
            "line 1, column 54: this is a number, the value before it a text: a `case` has one type",
        ),
    ]);
}

#[test]
fn of_types() {
    check(&[
        (
            "x = filter(sale.day > 3) return(x)",
            "line 1, column 12: a date cannot be compared with a number",
        ),
        (
            "x = filter(sale.day > \"1994-13-01\") return(x)",
            "line 1, column 23: \"1994-13-01\" is no date; write it like \"1994-01-31\"",
        ),
        (
            "x = lift(sale.mode * 2) return(x)",
            "line 1, column 10: `*` takes numbers; this is a text",
        ),
        (
            "x = filter(sale.price) return(x)",
            "line 1, column 12: `filter` takes a condition, such as `x > 1`",
        ),
        (
            "x = filter(sale.price and sale.id > 1) return(x)",
            "line 1, column 12: `and` takes truth values; this is a number",
        ),
        (
            "x = filter(1 = 1) return(x)",
            "line 1, column 12: `filter` needs a vector or an attribute in its expression",
        ),
        (
            "x = lift(sale.price & 1) return(x)",
            "line 1, column 10: bits are those of whole numbers; this is a number",
        ),
        (
            "x = lift(year(sale.price)) return(x)",
            "line 1, column 15: `year` takes a date; this is a number",
        ),
        (
            "x = filter(match(sale.price, \"a\")) return(x)",
            "line 1, column 18: `match` looks at texts; this is a number",
        ),
        (
            "x = lift(123456789012345678901234567890123456789) return(x)",
            "line 1, column 10: a number has at most 38 digits",
        ),
    ]);
}

#[test]
fn the_line_is_shown() {
    let shop = Shop::open();
    let text = "a = filter(sale.price > 1)\n\tb = dot(a, sale.prise)\nreturn(b)";
    let error = shop.compile(text).unwrap_err();
    let fault = error.fault().unwrap();
    assert_eq!((fault.line, fault.column, fault.length), (2, 18, 5));
    assert_eq!(
        fault.excerpt(),
        "2 | \tb = dot(a, sale.prise)\n  | \t                ^^^^^"
    );
}
