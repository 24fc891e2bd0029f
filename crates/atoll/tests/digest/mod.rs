//! Reads `answers/tpch.digest` and decides whether a result equals the answer, as the README
//! beside that file defines.

use arrow::array::{Array, ArrayRef};
use arrow::record_batch::RecordBatch;
use arrow::util::display::{ArrayFormatter, FormatOptions};

const DIGESTS: &str = include_str!("../answers/tpch.digest");

/// A result: for each row its values as canonical text.
pub struct Rows(pub Vec<Vec<String>>);

/// What is known of one column of an answer.
struct Column {
    name: String,
    kind: String,
    nulls: usize,
    hash: String,
    sum: String,
    weighted: String,
    tolerance: String,
}

/// What is known of an answer.
struct Answer {
    rows: usize,
    hash: String,
    order: String,
    columns: Vec<Column>,
}

impl Rows {
    /// The values of a result.
    pub fn of(batches: &[RecordBatch]) -> Rows {
        let options = FormatOptions::new();
        let mut rows = Vec::new();
        for batch in batches {
            let columns = batch
                .columns()
                .iter()
                .map(|c| ArrayFormatter::try_new(c, &options).unwrap());
            let columns: Vec<_> = columns.zip(batch.columns()).collect();
            for row in 0..batch.num_rows() {
                let value = |(format, array): &(ArrayFormatter<'_>, &ArrayRef)| {
                    let text = if array.is_null(row) {
                        String::new()
                    } else {
                        format.value(row).to_string()
                    };
                    if array.data_type().is_numeric() && array.is_valid(row) {
                        plain(&text)
                    } else {
                        text
                    }
                };
                rows.push(columns.iter().map(value).collect());
            }
        }
        Rows(rows)
    }

    fn line(row: &[String], columns: &[usize]) -> String {
        columns
            .iter()
            .map(|at| row[*at].as_str())
            .collect::<Vec<_>>()
            .join("|")
    }
}

/// A number without zeros that say nothing.
fn plain(number: &str) -> String {
    let (sign, digits) = number
        .strip_prefix('-')
        .map_or(("", number), |digits| ("-", digits));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let whole = whole.trim_start_matches('0');
    let (whole, fraction) = (
        if whole.is_empty() { "0" } else { whole },
        fraction.trim_end_matches('0'),
    );
    match (whole, fraction) {
        ("0", "") => "0".to_owned(),
        (whole, "") => format!("{sign}{whole}"),
        (whole, fraction) => format!("{sign}{whole}.{fraction}"),
    }
}

fn fnv(lines: impl IntoIterator<Item = String>) -> String {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for line in lines {
        for byte in line.bytes().chain([b'\n']) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    format!("{hash:016x}")
}

fn answer(scale: &str, query: usize) -> Answer {
    let query = query.to_string();
    let fields = |line: &'static str| line.split(' ').collect::<Vec<_>>();
    let of = |line: &Vec<&str>, sort: &str| {
        line.len() > 2 && line[0] == sort && line[1] == scale && line[2] == query
    };
    let lines: Vec<_> = DIGESTS.lines().map(fields).collect();
    let head = lines
        .iter()
        .find(|line| of(line, "query"))
        .expect("the digests have this query");
    let columns = lines
        .iter()
        .filter(|line| of(line, "column"))
        .map(|line| Column {
            name: line[4].to_owned(),
            kind: line[5].to_owned(),
            nulls: line[6].parse().expect("a number of nulls"),
            hash: line[7].to_owned(),
            sum: line[8].to_owned(),
            weighted: line[9].to_owned(),
            tolerance: line[10].to_owned(),
        });
    Answer {
        rows: head[3].parse().expect("a number of rows"),
        hash: head[4].to_owned(),
        order: head[5].to_owned(),
        columns: columns.collect(),
    }
}

/// The columns that ORDER BY names, in its order.
fn order_by(query: usize) -> &'static [usize] {
    match query {
        1 => &[0, 1],
        2 => &[0, 2, 1, 3],
        3 => &[1, 2],
        5 | 11 => &[1],
        7 => &[0, 1, 2],
        9 => &[0, 1],
        10 => &[2],
        13 | 21 => &[1, 0],
        16 => &[3, 0, 1, 2],
        18 => &[4, 3],
        6 | 14 | 17 | 19 => &[],
        _ => &[0],
    }
}

/// Says what is wrong with a result; nothing if it equals the answer.
pub fn difference(scale: &str, query: usize, rows: &Rows) -> Option<String> {
    let answer = answer(scale, query);
    let of = |what: &str, wanted: &dyn std::fmt::Display, got: &dyn std::fmt::Display| {
        Some(format!(
            "scale {scale}, query {query}: {what} should be {wanted} and is {got}"
        ))
    };
    if rows.0.len() != answer.rows {
        return of("the number of rows", &answer.rows, &rows.0.len());
    }
    let exact: Vec<usize> = (0..answer.columns.len())
        .filter(|at| answer.columns[*at].kind != "approximate")
        .collect();
    let mut lines: Vec<_> = rows
        .0
        .iter()
        .map(|row| (Rows::line(row, &exact), row))
        .collect();
    lines.sort();
    for (at, column) in answer.columns.iter().enumerate() {
        let nulls = rows.0.iter().filter(|row| row[at].is_empty()).count();
        if nulls != column.nulls {
            return of(
                &format!("the number of nulls in {}", column.name),
                &column.nulls,
                &nulls,
            );
        }
        if column.kind == "approximate" {
            let values = lines.iter().map(|(_, row)| row[at].parse().unwrap_or(0.0));
            if let Some(wrong) = approximate(column, values) {
                return of(&format!("the sum of {}", column.name), &column.sum, &wrong);
            }
        } else {
            let mut values: Vec<_> = rows.0.iter().map(|row| row[at].clone()).collect();
            values.sort();
            let hash = fnv(values);
            if hash != column.hash {
                return of(
                    &format!("the digest of {}", column.name),
                    &column.hash,
                    &hash,
                );
            }
        }
    }
    let hash = fnv(lines.into_iter().map(|(line, _)| line));
    let order = fnv(rows.0.iter().map(|row| Rows::line(row, order_by(query))));
    if hash != answer.hash {
        return of("the digest of the rows", &answer.hash, &hash);
    }
    if order != answer.order {
        of("the digest of the order", &answer.order, &order)
    } else {
        None
    }
}

/// The sum of the values, in the order of their ranks, if it is wrong.
fn approximate(column: &Column, values: impl Iterator<Item = f64>) -> Option<f64> {
    let (mut n, mut sum, mut weighted) = (0.0, 0.0, 0.0);
    for value in values {
        n += 1.0;
        sum += value;
        weighted += n * value;
    }
    let number = |text: &str| text.parse::<f64>().expect("a number");
    let (wanted, ranked, tolerance) = (
        number(&column.sum),
        number(&column.weighted),
        number(&column.tolerance),
    );
    let agrees = |got: f64, wanted: f64, times: f64| {
        (got - wanted).abs() <= (times * tolerance).max(1e-9 * wanted.abs())
    };
    (!(agrees(sum, wanted, n) && agrees(weighted, ranked, n * (n + 1.0) / 2.0))).then_some(sum)
}

#[test]
fn the_example_of_the_readme() {
    let rows = ["0|500", "10|69", "9|69"].map(str::to_owned);
    assert_eq!(fnv(rows), "8fb3d15fe8a28c68");
    assert_eq!(
        ["380456.00", "-0.00", ".50", "-012.30"].map(plain),
        ["380456", "0", "0.5", "-12.3"]
    );
}

#[test]
fn a_wrong_value_is_found() {
    // Query 6 at scale 0.01 has one row; any other value must be refused.
    let wrong = Rows(vec![vec!["1".to_owned()]]);
    assert!(difference("0.01", 6, &wrong).is_some_and(|what| what.contains("revenue")));
}
