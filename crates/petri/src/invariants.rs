//! Place invariants (weighted sums of tokens that firing never changes) and transition invariants (firings that lead
//! back to the same number of tokens everywhere).

use crate::{Error, Net, Result};

/// The most rows that the search for invariants may hold at once.
pub const MAX_ROWS: usize = 10_000;

impl Net {
    /// The least weights of places for which the weighted number of tokens never changes, one
    /// weight per place: the minimal semi-positive solutions of `y A = 0`. Values of tokens do
    /// not count here.
    ///
    /// # Errors
    ///
    /// [`Error::TooMany`] where the net has too many of them.
    pub fn place_invariants(&self) -> Result<Vec<Vec<i64>>> {
        let change = self.incidence().change();
        invariants(&change, self.transitions().len())
    }

    /// The least numbers of firings, one per transition, after which there are as many tokens
    /// in each place as before.
    ///
    /// # Errors
    ///
    /// [`Error::TooMany`] where the net has too many of them.
    pub fn transition_invariants(&self) -> Result<Vec<Vec<i64>>> {
        let change = self.incidence().change();
        let column = |t: usize| change.iter().map(|row| row[t]).collect();
        let rows: Vec<Vec<i64>> = (0..self.transitions().len()).map(column).collect();
        invariants(&rows, self.places().len())
    }
}

/// A row on its way: what is left of it, and which rows it was made of.
#[derive(Clone, PartialEq)]
struct Row {
    left: Vec<i64>,
    of: Vec<i64>,
}

/// Farkas' algorithm: column by column, rows are combined until nothing is left of it.
fn invariants(rows: &[Vec<i64>], columns: usize) -> Result<Vec<Vec<i64>>> {
    let unit = |at: usize| (0..rows.len()).map(|i| i64::from(i == at)).collect();
    let mut table: Vec<Row> = rows
        .iter()
        .enumerate()
        .map(|(at, row)| Row {
            left: row.clone(),
            of: unit(at),
        })
        .collect();
    for column in 0..columns {
        let (mut done, open): (Vec<Row>, Vec<Row>) =
            table.into_iter().partition(|row| row.left[column] == 0);
        let (up, down): (Vec<&Row>, Vec<&Row>) = open.iter().partition(|row| row.left[column] > 0);
        for a in &up {
            for b in &down {
                let row = sum(a, -b.left[column], b, a.left[column])?;
                if !done.contains(&row) {
                    done.push(row);
                }
                if done.len() > MAX_ROWS {
                    return Err(too_many());
                }
            }
        }
        table = least(done);
    }
    let mut found: Vec<Vec<i64>> = table.into_iter().map(|row| row.of).collect();
    found.sort_by(|a, b| b.cmp(a));
    Ok(found)
}

fn too_many() -> Error {
    Error::TooMany {
        what: "rows in the search for invariants",
        limit: MAX_ROWS,
    }
}

/// `x a + y b`, in lowest terms.
fn sum(a: &Row, x: i64, b: &Row, y: i64) -> Result<Row> {
    let add = |a: &[i64], b: &[i64]| -> Option<Vec<i64>> {
        let pairs = a.iter().zip(b);
        pairs
            .map(|(a, b)| a.checked_mul(x)?.checked_add(b.checked_mul(y)?))
            .collect()
    };
    let (Some(mut left), Some(mut of)) = (add(&a.left, &b.left), add(&a.of, &b.of)) else {
        return Err(too_many());
    };
    let divisor = left.iter().chain(&of).fold(0, |a, b| common(a, b.abs()));
    if divisor > 1 {
        left.iter_mut().chain(&mut of).for_each(|n| *n /= divisor);
    }
    Ok(Row { left, of })
}

fn common(a: i64, b: i64) -> i64 {
    if b == 0 { a } else { common(b, a % b) }
}

/// Without the rows that contain all that another is made of.
fn least(rows: Vec<Row>) -> Vec<Row> {
    let within = |a: &Row, b: &Row| a.of.iter().zip(&b.of).all(|(a, b)| *a == 0 || *b != 0);
    let keeps = |(at, row): (usize, &Row)| {
        let mut others = rows.iter().enumerate();
        !others.any(|(i, other)| i != at && within(other, row) && (!within(row, other) || i < at))
    };
    let kept: Vec<bool> = rows.iter().enumerate().map(keeps).collect();
    let mut kept = kept.into_iter();
    rows.into_iter()
        .filter(|_| kept.next().unwrap_or(false))
        .collect()
}
