//! What programs mean: their answers over a small shop, worked out by hand.

#[allow(dead_code, reason = "each test program uses a part of it")]
mod shop;

use shop::Shop;

fn check(cases: &[(&str, &[&str])]) {
    let shop = Shop::open();
    for (text, expected) in cases {
        assert_eq!(shop.rows(text), *expected, "{text}");
    }
}

#[test]
fn filters_and_sums() {
    check(&[
        ("return(sum(sale.price))", &["550.00"]),
        (
            "a = filter(sale.price > 50) return(sum(krao(a, sale.price)))",
            &["400.00"],
        ),
        ("a = filter(sale.price > 50) return(count(a))", &["5"]),
        (
            "a = filter(sale.price > 50.005 and sale.price <= 99.999) return(count(a))",
            &["4"],
        ),
        (
            "a = filter(sale.rate between 0.05 and 0.06) return(count(a))",
            &["6"],
        ),
        (
            "a = filter(sale.rate not between 0.05 and 0.06) return(count(a))",
            &["4"],
        ),
        (
            "a = filter(sale.day < \"2020-02-10\") return(count(a))",
            &["2"],
        ),
        (
            "a = filter(\"2020-02-10\" <= sale.day) return(count(a))",
            &["8"],
        ),
        (
            "a = filter(sale.day in (\"2020-02-10\", \"2020-01-01\")) return(count(a))",
            &["3"],
        ),
        ("a = filter(sale.sent < sale.day) return(count(a))", &["3"]),
        (
            "a = filter(sale.mode = \"AIR\" or sale.mode = \"RAIL\") return(count(a))",
            &["6"],
        ),
        ("a = filter(sale.mode <> \"AIR\") return(count(a))", &["5"]),
        ("a = filter(sale.mode is null) return(count(a))", &["1"]),
        (
            "a = filter(sale.mode in (\"AIR\", \"none\")) return(count(a))",
            &["4"],
        ),
        (
            "a = filter(not sale.mode in (\"AIR\")) return(count(a))",
            &["5"],
        ),
        (
            "a = filter(match(sale.mode, \"[AR]\")) return(count(a))",
            &["0"],
        ),
        (
            "a = filter(match(sale.mode, \"[AR].*\")) return(count(a))",
            &["6"],
        ),
        ("a = filter(sale.pieces & 1 = 1) return(count(a))", &["5"]),
        ("a = filter(year(sale.day) = 2021) return(count(a))", &["4"]),
        (
            "return(min(sale.price), max(lift(sale.day)), avg(sale.rate), count(sale.price))",
            &["10.00 2021-02-04 0.063000 10"],
        ),
        ("return(avg(lift(sale.pieces)))", &["5.5"]),
    ]);
}

#[test]
fn an_argument_may_stand_twice() {
    check(&[
        (
            "x = lift(sale.price * sale.price - sale.price) return(sum(x))",
            &["37950.0000"],
        ),
        (
            "x = lift(sale.rate * sale.price + sale.rate) return(sum(x))",
            &["35.5300"],
        ),
        ("a = sum(sale.price) b = lift(a / a) return(b)", &["1.0"]),
        (
            "a = filter(sale.price > 50) return(sum(hadamard(a, a, sale.price)))",
            &["400.00"],
        ),
    ]);
}

#[test]
fn groups_have_their_labels() {
    check(&[
        (
            "return(count(krao(sale.mode, sale.customer)))",
            &[
                "AIR 3 2",
                "AIR 5 1",
                "AIR 900 1",
                "RAIL 1 1",
                "RAIL 8 1",
                "SHIP 3 1",
                "SHIP 5 1",
                "SHIP 77 1",
            ],
        ),
        (
            "n = sum(krao(sale.mode, sale.price)) return(n as total, sale.mode) order by total desc",
            &["210.00 AIR", "160.00 SHIP", "140.00 RAIL"],
        ),
        (
            "n = sum(krao(sale.mode, sale.price)) return(sale.mode, n) order by n limit 1",
            &["RAIL 140.00"],
        ),
        (
            "y = bitmap(year(sale.day)) return(y, count(y))",
            &["2020 6", "2021 4"],
        ),
        (
            "p = bitmap(sale.rate) return(count(p))",
            &["0.05 3", "0.06 3", "0.07 2", "0.08 2"],
        ),
        // Those without a label are in no row.
        (
            "s = count(customer.segment) return(s)",
            &["home 2", "trade 2"],
        ),
        // Folds of one matrix come together; what is missing counts for nothing.
        (
            "g = customer.segment return(g, sum(krao(g, customer.balance)), count(krao(g, customer.balance)), count(g))",
            &["home 120.00 2 2", "trade -5.50 2 2"],
        ),
        // A fold of what a fold found.
        (
            "n = sum(krao(sale.customer, sale.price)) return(max(n), count(n))",
            &["140.00 6"],
        ),
        (
            "n = count(sale.customer) many = count(krao(filter(n > 1), n)) return(many)",
            &["3"],
        ),
    ]);
}

#[test]
fn an_empty_intermediate_does_not_collapse_groups() {
    check(&[
        (
            "a = filter(sale.price > 1000) return(count(krao(a, sale.mode)))",
            &[],
        ),
        (
            "a = filter(sale.price > 1000) return(sum(krao(a, sale.price)), count(a))",
            &["null 0"],
        ),
        ("return(count(krao(nothing.customer, nothing.price)))", &[]),
        ("return(sum(nothing.price))", &["null"]),
    ]);
}

#[test]
fn compositions_look_records_up_by_their_keys() {
    check(&[
        // Keys are no positions: 900 is the third record, 3 the second.
        (
            "h = filter(customer.segment = \"home\") return(sale.id, dot(h, sale.customer))",
            &["2", "6", "7"],
        ),
        (
            "h = filter(customer.segment = \"trade\") return(sum(krao(dot(h, sale.customer), sale.price)))",
            &["270.00"],
        ),
        // Labels, values and through two tables.
        (
            "s = dot(customer.segment, sale.customer) return(s, count(s))",
            &["home 3", "trade 5"],
        ),
        (
            "n = dot(dot(country.name, customer.country), sale.customer) return(n, sum(krao(n, sale.price)))",
            &["Cuba 80.00", "Fiji 230.00", "Peru 190.00"],
        ),
        (
            "b = dot(customer.balance, sale.customer) x = lift(b + sale.price) return(sum(x))",
            &["623.50"],
        ),
        (
            "f = dot(filter(country.name = \"Fiji\"), customer.country) return(customer.key, f)",
            &["5", "900"],
        ),
        // Nobody has the key 77: there is nothing to compose with.
        (
            "all = dot(filter(customer.key > 0), sale.customer) return(count(all))",
            &["9"],
        ),
        (
            "s = filter(dot(customer.segment, sale.customer) is null) return(sale.id, s)",
            &["8"],
        ),
    ]);
}

#[test]
fn a_transposed_matrix_tells_which_labels_there_are() {
    check(&[
        (
            "big = filter(sale.price > 75) who = dot(big, tr(sale.customer)) return(customer.key, dot(who, customer.key))",
            &["3", "8", "900"],
        ),
        // Those that have none.
        (
            "big = filter(sale.price > 75) who = dot(big, tr(sale.customer)) none = filter(not dot(who, customer.key)) return(customer.key, none)",
            &["1", "5"],
        ),
        (
            "big = filter(sale.price > 75) return(count(dot(big, tr(sale.customer))))",
            &["3"],
        ),
        // The same through a fold.
        (
            "n = count(krao(filter(sale.price > 75), sale.customer)) return(customer.key, dot(filter(n > 0), customer.key))",
            &["3", "8", "900"],
        ),
        (
            "n = count(sale.customer) return(customer.key, dot(filter(n >= 3), customer.key))",
            &["3"],
        ),
        (
            "n = sum(krao(sale.customer, sale.price)) c = krao(customer.country, dot(n, customer.key)) return(sum(c))",
            &["10 230.00", "40 80.00", "70 190.00"],
        ),
        (
            "h = dot(filter(nothing.price > 0), tr(nothing.customer)) return(count(krao(dot(h, customer.key), customer.segment)))",
            &[],
        ),
    ]);
}

#[test]
fn undeclared_keys_compose_when_they_are_said_to_be_such() {
    check(&[
        (
            "h = filter(customer.segment = \"trade\") v = dot(h, relabel(visit.who, customer.key)) return(visit.at, v)",
            &["x", "y"],
        ),
        (
            "w = count(visit.who) return(customer.key, dot(w, relabel(customer.key, visit.who)) as visits)",
            &["3 2", "8 1"],
        ),
    ]);
}

#[test]
fn numbers_of_other_folds() {
    check(&[
        (
            "t = sum(sale.price) big = filter(sale.price > t * 0.15) return(sale.id, big)",
            &["10", "9"],
        ),
        (
            "t = sum(sale.price) n = sum(krao(sale.mode, sale.price)) big = filter(n > t * 0.3) return(sale.mode, hadamard(n, big) as n)",
            &["AIR 210.00"],
        ),
        (
            "a = sum(sale.price) b = sum(customer.balance) return(a, b, lift(100 * b / a) as share)",
            &["550.00 114.50 20.818181818181817"],
        ),
        ("return(lift(1 + 1.5))", &["2.5"]),
    ]);
}

#[test]
fn choices_and_functions() {
    check(&[
        (
            "x = lift(case when sale.mode = \"AIR\" then sale.price when sale.rate > 0.07 then 1 else 0.001 end) return(sum(x))",
            &["212.004"],
        ),
        (
            "x = lift(case when sale.price > 50 then 1 end) return(sum(x), count(x))",
            &["5 5"],
        ),
        (
            "x = lift(power(sale.price, 2)) return(sum(x))",
            &["38500.0"],
        ),
        (
            "x = lift(sqrt(sale.price * 10)) a = filter(x = 10) return(sale.id, a)",
            &["1"],
        ),
        ("x = lift(-sale.price) return(sum(x))", &["-550.00"]),
        (
            "x = lift((sale.pieces << 2 | 1) ^ 1) return(sum(x))",
            &["220"],
        ),
        ("x = lift(~sale.pieces) return(sum(x))", &["-65"]),
    ]);
}

#[test]
fn products_of_matrices_with_the_same_labels() {
    check(&[(
        "both = hadamard(sale.customer, relabel(sale.id, customer.key)) return(count(both))",
        &["3 1", "8 1"],
    )]);
}

#[test]
fn many_wide_keys_do_not_collide() {
    let keys = "krao(sale.id, sale.customer, sale.day, sale.sent, sale.pieces, sale.mode)";
    check(&[(&format!("n = count({keys}) return(count(n))"), &["9"])]);
}

#[test]
fn explain_shows_matrices_operators_and_pipelines() {
    let shop = Shop::open();
    let text = "h = filter(customer.segment = \"home\")
                s = dot(h, sale.customer)
                n = sum(krao(s, sale.mode, sale.price))
                return(sale.mode, n)";
    let lines = shop.compile(text).unwrap().explain().join("\n");
    for part in [
        "h : filtered bit vector    1 x 5 (rows of customer)",
        "s : filtered bit vector    1 x 10 (rows of sale)",
        "n : filtered decimal vector 1 x ? (labels of sale.mode)",
        "return(sale.mode, n)",
        "fold by",
        "scan sale (",
        "filter customer.segment = \"home\"",
    ] {
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words(&lines).contains(&words(part)), "{part}\n{lines}");
    }
}

#[test]
fn an_outer_composition_has_a_default() {
    check(&[
        // Every customer, those without sales, too; a zero that `sum` counts in and a filter sees.
        (
            "n = count(sale.customer) return(customer.key, dot(n, customer.key, 0) as sales)",
            &["1 1", "3 3", "5 2", "8 1", "900 2"],
        ),
        (
            "n = count(krao(filter(sale.price > 75), sale.customer)) return(customer.key, dot(n, customer.key, 0) as n)",
            &["1 0", "3 1", "5 0", "8 1", "900 1"],
        ),
        (
            "n = count(krao(filter(sale.price > 75), sale.customer)) c = bitmap(dot(n, customer.key, 0)) return(c, count(c))",
            &["0 2", "1 3"],
        ),
        // A value that is NULL is not there, and neither is the customer 77.
        (
            "b = dot(customer.balance, sale.customer, -1) return(sale.id, b)",
            &[
                "1 -5.50", "10 0.00", "2 100.00", "3 -5.50", "4 0.00", "5 -1.00", "6 20.00",
                "7 100.00", "8 -1.00", "9 -5.50",
            ],
        ),
        // Labels, through two tables.
        (
            "s = dot(dot(country.name, customer.country), sale.customer, \"nowhere\") return(s, count(s))",
            &["Cuba 1", "Fiji 4", "Peru 4", "nowhere 1"],
        ),
        // Of a bit vector ones and zeros, which can stand anywhere.
        (
            "h = dot(filter(customer.segment = \"home\"), sale.customer, 0) \
             a = filter(h = 1 or sale.price > 90) return(sale.id, a)",
            &["10", "2", "6", "7"],
        ),
        (
            "h = dot(filter(customer.segment = \"home\"), sale.customer, 0) return(count(filter(h = 0)))",
            &["7"],
        ),
        // What is looked up by what an outer composition gave.
        (
            "k = bitmap(dot(customer.country, sale.customer, 70)) \
             n = dot(country.name, relabel(k, country.key)) return(n, count(n))",
            &["Cuba 1", "Fiji 4", "Peru 5"],
        ),
        // A default that is found by another fold.
        (
            "m = max(sale.price) n = sum(krao(filter(sale.price > 75), sale.customer, sale.price)) \
             return(customer.key, dot(n, customer.key, lift(m * 2)) as n)",
            &["1 200.00", "3 90.00", "5 200.00", "8 80.00", "900 100.00"],
        ),
    ]);
}

#[test]
fn distinct_labels_are_counted() {
    check(&[
        (
            "return(distinct(sale.mode, sale.customer))",
            &["AIR 3", "RAIL 2", "SHIP 3"],
        ),
        (
            "d = distinct(krao(filter(sale.price > 20), sale.mode), sale.customer) return(sale.mode, d)",
            &["AIR 3", "RAIL 2", "SHIP 2"],
        ),
        (
            "a = filter(sale.price > 0) return(distinct(a, sale.customer), distinct(a, sale.mode))",
            &["6 3"],
        ),
        // As often as a label stands there, with another fold of the same groups; one without a label is none.
        (
            "g = sale.customer return(g, count(g), distinct(g, sale.mode))",
            &["1 1 1", "3 3 2", "5 2 2", "77 1 1", "8 1 1", "900 2 1"],
        ),
        (
            "return(distinct(filter(sale.price > 1000), sale.mode))",
            &["0"],
        ),
        (
            "return(distinct(sale.mode, bitmap(year(sale.day))))",
            &["AIR 2", "RAIL 2", "SHIP 2"],
        ),
    ]);
}

#[test]
fn texts_are_chosen_cut_and_folded() {
    check(&[
        (
            "s = bitmap(substring(sale.mode, 2, 2)) return(s, count(s))",
            &["AI 2", "HI 3", "IR 4"],
        ),
        (
            "a = filter(substring(sale.mode, 1, 1) in (\"A\", \"R\")) return(count(a))",
            &["6"],
        ),
        // Places before the first character count, as they do in SQL.
        (
            "s = bitmap(substring(country.name, 0, 2)) return(s, count(s))",
            &["C 1", "F 1", "P 1"],
        ),
        (
            "s = bitmap(substring(country.name, 4, 9)) return(s, count(s))",
            &["a 1", "i 1", "u 1"],
        ),
        (
            "s = bitmap(substring(country.name, 9, 1)) return(s, count(s))",
            &[" 3"],
        ),
        (
            "b = bitmap(case when sale.mode = \"AIR\" then \"fast\" when sale.mode is null then \"unknown\" else sale.mode end) return(b, count(b))",
            &["RAIL 2", "SHIP 3", "fast 4", "unknown 1"],
        ),
        (
            "b = bitmap(case when sale.price > 75 then \"dear\" end) return(b, count(b))",
            &["dear 3"],
        ),
        (
            "return(min(lift(sale.mode)), max(lift(customer.segment)))",
            &["AIR trade"],
        ),
        (
            "m = max(krao(sale.customer, lift(sale.mode))) return(sale.customer, m)",
            &["1 RAIL", "3 SHIP", "5 SHIP", "77 SHIP", "8 RAIL", "900 AIR"],
        ),
    ]);
}
