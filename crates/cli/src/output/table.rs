//! Results as aligned columns.

use std::collections::VecDeque;
use std::io::Write;

use arrow::array::{Array, RecordBatch};
use arrow::datatypes::{DataType, SchemaRef};
use arrow::util::display::ArrayFormatter;
use comfy_table::{
    Cell, CellAlignment, ColumnConstraint, ContentArrangement, Table, Width, presets,
};

use super::{Results, TEXT};
use crate::units;

/// The widest value that is shown whole where rows are elided, too.
const WIDEST: usize = 60;

/// Cells, and bytes of text, of rows that are laid out together: all of most results. Of longer ones, columns become
/// wider where later rows need it.
const PIECE_CELLS: usize = 1 << 16;
const PIECE_BYTES: usize = 8 << 20;

/// Writes a result as it comes; of more than `most` rows only the first and the last.
pub fn write(
    out: &mut dyn Write,
    results: &mut dyn Results,
    most: Option<usize>,
) -> anyhow::Result<()> {
    let mut piece = Piece::new(results.schema());
    let (rows, elided) = match most {
        None => (all(out, results, &mut piece)?, false),
        Some(most) => ends(out, results, &mut piece, most)?,
    };
    piece.end(out)?;
    let shown = match most {
        Some(most) if elided => format!(" ({} shown)", units::count(most as u64)),
        _ => String::new(),
    };
    match rows {
        1 => writeln!(out, "1 row")?,
        _ => writeln!(out, "{} rows{shown}", units::count(rows as u64))?,
    }
    Ok(())
}

/// Writes all rows; gives their number.
fn all(out: &mut dyn Write, results: &mut dyn Results, piece: &mut Piece) -> anyhow::Result<usize> {
    let mut rows = 0;
    while let Some(batch) = results.next()? {
        piece.add(out, &batch, None)?;
        rows += batch.num_rows();
    }
    Ok(rows)
}

/// Writes all rows, or of more than `most` the first and the last; gives their number, and whether some are left out.
fn ends(
    out: &mut dyn Write,
    results: &mut dyn Results,
    piece: &mut Piece,
    most: usize,
) -> anyhow::Result<(usize, bool)> {
    let (mut head, mut tail) = (Vec::new(), VecDeque::<RecordBatch>::new());
    let (mut first, mut behind, mut rows) = (0, 0, 0);
    while let Some(batch) = results.next()? {
        let all = batch.num_rows();
        let own = all.min(most - first);
        if own > 0 {
            head.push(batch.slice(0, own));
        }
        if own < all {
            tail.push_back(batch.slice(own, all - own));
        }
        (first, behind, rows) = (first + own, behind + all - own, rows + all);
        while let Some(front) = tail.front()
            && behind - front.num_rows() >= most / 2
        {
            behind -= front.num_rows();
            tail.pop_front();
        }
    }
    let kept: Vec<RecordBatch> = head.into_iter().chain(tail).collect();
    if rows <= most {
        kept.iter()
            .try_for_each(|batch| piece.add(out, batch, None))?;
        return Ok((rows, false));
    }
    let last: usize = kept.iter().map(RecordBatch::num_rows).sum();
    let start = most.div_ceil(2);
    for batch in some(&kept, 0..start) {
        piece.add(out, &batch, Some(WIDEST))?;
    }
    piece.dots();
    for batch in some(&kept, last - most / 2..last) {
        piece.add(out, &batch, Some(WIDEST))?;
    }
    Ok((rows, true))
}

/// The rows `rows` of those of all batches.
fn some(
    batches: &[RecordBatch],
    rows: std::ops::Range<usize>,
) -> impl Iterator<Item = RecordBatch> + '_ {
    let mut first = 0;
    batches.iter().filter_map(move |batch| {
        let (from, to) = (
            rows.start.max(first) - first,
            rows.end.min(first + batch.num_rows()).max(first) - first,
        );
        first += batch.num_rows();
        (from < to).then(|| batch.slice(from, to - from))
    })
}

/// Rows that wait to be laid out, and how wide the columns are so far.
struct Piece {
    header: Vec<Cell>,
    rows: Vec<Vec<Cell>>,
    bytes: usize,
    /// Of each column, once something was written.
    widths: Option<Vec<u16>>,
}

impl Piece {
    fn new(schema: &SchemaRef) -> Piece {
        let header = schema.fields().iter().map(|field| {
            let text = format!("{}\n{}", field.name(), atoll::type_name(field.data_type()));
            Cell::new(text).set_alignment(CellAlignment::Center)
        });
        Piece {
            header: header.collect(),
            rows: vec![],
            bytes: 0,
            widths: None,
        }
    }

    /// Adds the rows of `batch`; what is enough for a piece is written.
    fn add(
        &mut self,
        out: &mut dyn Write,
        batch: &RecordBatch,
        widest: Option<usize>,
    ) -> anyhow::Result<()> {
        let options = TEXT.clone().with_null("NULL");
        let columns = batch
            .columns()
            .iter()
            .map(|array| ArrayFormatter::try_new(array, &options));
        let columns = columns.collect::<Result<Vec<_>, _>>()?;
        for row in 0..batch.num_rows() {
            let mut cells = Vec::with_capacity(columns.len());
            for (column, array) in columns.iter().zip(batch.columns()) {
                let text = shortened(column.value(row).try_to_string()?, widest);
                self.bytes += text.len();
                cells.push(Cell::new(text).set_alignment(alignment(array.data_type())));
            }
            self.rows.push(cells);
            let cells = self.rows.len() * self.header.len();
            if cells >= PIECE_CELLS || self.bytes >= PIECE_BYTES {
                self.write(out, false)?;
            }
        }
        Ok(())
    }

    /// A row for those that are left out.
    fn dots(&mut self) {
        let dots = self.header.iter();
        let dots = dots.map(|_| Cell::new("·").set_alignment(CellAlignment::Center));
        self.rows.push(dots.collect());
    }

    /// Writes what is left, and the end of the table.
    fn end(&mut self, out: &mut dyn Write) -> anyhow::Result<()> {
        self.write(out, true)
    }

    /// Writes the rows that there are: of the whole table the first ones below the header, the last ones above its end.
    fn write(&mut self, out: &mut dyn Write, last: bool) -> anyhow::Result<()> {
        let mut table = Table::new();
        table
            .load_preset(presets::UTF8_BORDERS_ONLY)
            .set_content_arrangement(ContentArrangement::Disabled);
        table.set_header(self.header.clone());
        table.add_rows(self.rows.drain(..));
        self.bytes = 0;
        if let Some(widths) = &self.widths {
            for (column, width) in table.column_iter_mut().zip(widths) {
                let width = Width::Fixed(width + column.padding_width());
                column.set_constraint(ColumnConstraint::LowerBoundary(width));
            }
        }
        let text = table.to_string();
        let header = match self.widths {
            Some(_) => text
                .lines()
                .position(|line| line.starts_with('╞'))
                .map_or(0, |at| at + 1),
            None => 0,
        };
        let lines = text.lines().count() - usize::from(!last);
        for line in text.lines().take(lines).skip(header) {
            writeln!(out, "{line}")?;
        }
        let now = table.column_max_content_widths();
        self.widths = Some(match self.widths.take() {
            None => now,
            Some(before) => now.into_iter().zip(before).map(|(a, b)| a.max(b)).collect(),
        });
        Ok(())
    }
}

fn shortened(text: String, widest: Option<usize>) -> String {
    // A line end would break the row in two.
    let text = if text.contains(['\n', '\r', '\t']) {
        text.escape_debug().to_string()
    } else {
        text
    };
    match widest {
        Some(widest) if text.chars().count() > widest => {
            text.chars().take(widest - 1).chain(['…']).collect()
        }
        _ => text,
    }
}

fn alignment(data_type: &DataType) -> CellAlignment {
    if data_type.is_numeric() {
        CellAlignment::Right
    } else {
        CellAlignment::Left
    }
}
