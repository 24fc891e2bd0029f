//! The net as matrices.

use std::fmt;

use crate::net::{Flow, unknown};
use crate::{Net, Result};

/// The matrices `Pre`, `Post` and `A^T = Post - Pre` of a net, or of a part of it: a row per
/// place, a column per transition.
///
/// An entry counts tokens. Written out, a token is the symbol of its place's type, which is how
/// the literature on these nets writes them: `-u`, `n_a`, `-2n_a`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Incidence {
    /// The names of the rows.
    pub places: Vec<String>,
    /// The names of the columns.
    pub transitions: Vec<String>,
    /// How the tokens of each place are written.
    pub symbols: Vec<String>,
    /// Tokens that transitions take, by place and transition.
    pub pre: Vec<Vec<i64>>,
    /// Tokens that transitions put, by place and transition.
    pub post: Vec<Vec<i64>>,
}

impl Net {
    /// The matrices of the whole net.
    pub fn incidence(&self) -> Incidence {
        let count = |flows: &[Flow], place: usize| -> i64 {
            let here = flows.iter().filter(|flow| flow.place == place);
            here.map(|flow| flow.inscriptions.len() as i64).sum()
        };
        let places = self.places();
        let matrix = |side: fn(&crate::Transition) -> &[Flow]| -> Vec<Vec<i64>> {
            let row = |place| {
                let of = self.transitions().iter();
                of.map(|t| count(side(t), place)).collect()
            };
            (0..places.len()).map(row).collect()
        };
        let symbol = |place: &crate::Place| self.types()[place.token].symbol.clone();
        Incidence {
            places: places.iter().map(|p| p.name.to_string()).collect(),
            transitions: self
                .transitions()
                .iter()
                .map(|t| t.name.to_string())
                .collect(),
            symbols: places.iter().map(symbol).collect(),
            pre: matrix(|transition| &transition.pre),
            post: matrix(|transition| &transition.post),
        }
    }
}

impl Incidence {
    /// The rows of these places and the columns of these transitions, in this order.
    ///
    /// # Errors
    ///
    /// [`Error::Unknown`](crate::Error::Unknown) for a name that there is not.
    pub fn of(&self, places: &[&str], transitions: &[&str]) -> Result<Incidence> {
        let rows = all(&self.places, places, "place")?;
        let columns = all(&self.transitions, transitions, "transition")?;
        let part = |matrix: &[Vec<i64>]| -> Vec<Vec<i64>> {
            let row = |row: &usize| columns.iter().map(|c| matrix[*row][*c]).collect();
            rows.iter().map(row).collect()
        };
        Ok(Incidence {
            places: places.iter().map(ToString::to_string).collect(),
            transitions: transitions.iter().map(ToString::to_string).collect(),
            symbols: rows.iter().map(|row| self.symbols[*row].clone()).collect(),
            pre: part(&self.pre),
            post: part(&self.post),
        })
    }

    /// `Post - Pre`, by place and transition.
    pub fn change(&self) -> Vec<Vec<i64>> {
        let rows = self.post.iter().zip(&self.pre);
        rows.map(|(post, pre)| post.iter().zip(pre).map(|(a, b)| a - b).collect())
            .collect()
    }

    /// A matrix as a table with the names of its rows and columns, its tokens written out.
    pub fn table(&self, matrix: &[Vec<i64>]) -> String {
        let rows = self.written(matrix);
        let first = self.places.iter().map(|p| p.chars().count()).max();
        let first = first.unwrap_or(0);
        let all = rows.iter().flatten().chain(&self.transitions);
        let wide = all.map(|text| text.chars().count()).max().unwrap_or(0);
        let line = |name: &str, cells: &[String]| {
            let cells = cells.iter().map(|cell| format!("  {cell:>wide$}"));
            format!("{name:first$}{}", cells.collect::<String>())
        };
        let mut lines = vec![line("", &self.transitions)];
        let places = self.places.iter().zip(&rows);
        lines.extend(places.map(|(place, row)| line(place, row)));
        lines.join("\n")
    }

    /// A matrix with its tokens written out.
    pub fn written(&self, matrix: &[Vec<i64>]) -> Vec<Vec<String>> {
        let rows = matrix.iter().zip(&self.symbols);
        rows.map(|(row, symbol)| row.iter().map(|count| entry(*count, symbol)).collect())
            .collect()
    }

    /// `A^T` as the literature prints it: a row per transition, a column per place.
    pub fn transposed(&self) -> Vec<Vec<String>> {
        let change = self.written(&self.change());
        let row = |t: usize| change.iter().map(|place| place[t].clone()).collect();
        (0..self.transitions.len()).map(row).collect()
    }
}

fn all(known: &[String], wanted: &[&str], what: &'static str) -> Result<Vec<usize>> {
    let find = |name: &&str| {
        let at = known.iter().position(|known| known == name);
        at.ok_or_else(|| {
            let known: Vec<_> = known.iter().map(|name| name.as_str().into()).collect();
            unknown(what, name, &known)
        })
    };
    wanted.iter().map(find).collect()
}

fn entry(count: i64, symbol: &str) -> String {
    match (count, symbol) {
        (0, _) => "0".to_owned(),
        (count, "1") => count.to_string(),
        (1, symbol) => symbol.to_owned(),
        (-1, symbol) => format!("-{symbol}"),
        (count, symbol) => format!("{count}{symbol}"),
    }
}

/// `Post - Pre` as a table, a row per place.
/// [`change`](Incidence::change) as a table.
impl fmt::Display for Incidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.table(&self.change()))
    }
}
