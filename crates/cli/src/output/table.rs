//! Results as aligned columns; of rows too wide for the screen the columns that fit, or a block of lines per row.

use std::collections::VecDeque;
use std::io::Write;
use std::ops::Range;

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Field, SchemaRef};
use arrow::util::display::ArrayFormatter;
use clap::ValueEnum;
use comfy_table::{
    Cell, CellAlignment, ColumnConstraint, ContentArrangement, Row, Table, Width, presets,
};
use unicode_width::UnicodeWidthStr;

use crate::output::folding::{folded, printable, shortened};
use crate::output::results::{Results, TEXT, shown};
use crate::units;

/// The width up to which values are shown completely when rows are left out.
const WIDEST: usize = 60;

/// The most lines of a folded value in a table; `\x` shows the rest.
const TALLEST: usize = 6;

/// The least width to which columns of strings are folded.
const NARROWEST: usize = 16;

/// The number of cells, and of bytes of text, that are laid out together: enough for most results as a whole. In longer
/// results, columns become wider where later rows need it.
const PIECE_CELLS: usize = 1 << 16;
const PIECE_BYTES: usize = 8 << 20;

/// The layout of results for people.
#[derive(Clone, Copy, Debug, Default)]
pub struct Style {
    /// The most rows that are shown; the others are only counted.
    pub most: Option<usize>,
    /// The width of the screen in characters, to which rows are folded.
    pub width: Option<usize>,
    /// Whether a row is a block of lines.
    pub expanded: Expanded,
}

/// Whether a row is a block of lines, one for each column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Expanded {
    /// A single row that cannot be folded to the width of the screen; of several such rows the columns in the middle are
    /// left out.
    #[default]
    Auto,
    /// Always.
    On,
    /// Never.
    Off,
}

/// Writes a result as it comes; if it has more than `style.most` rows, only the first and the last ones.
pub fn write(out: &mut dyn Write, results: &mut dyn Results, style: &Style) -> anyhow::Result<()> {
    let mut piece = Piece::new(results.schema(), *style);
    let (rows, elided) = match style.most {
        None => (all(out, results, &mut piece)?, None),
        Some(most) => {
            let (rows, elided) = ends(out, results, &mut piece, most)?;
            (rows, elided.then_some(most))
        }
    };
    piece.end(out)?;
    let count = |rows: usize| units::count(rows as u64);
    match (elided, rows) {
        (Some(most), _) => writeln!(
            out,
            "{} of {} rows shown; \\limit N shows more, \\limit 0 all",
            count(most),
            count(rows)
        )?,
        (None, 1) => writeln!(out, "1 row")?,
        (None, _) => writeln!(out, "{} rows", count(rows))?,
    }
    if let Some((shown, all)) = piece.columns_shown() {
        writeln!(
            out,
            "{shown} of {all} columns fit the terminal; \\x shows all, as does --format csv"
        )?;
    }
    Ok(())
}

/// Writes all rows; returns their number.
fn all(out: &mut dyn Write, results: &mut dyn Results, piece: &mut Piece) -> anyhow::Result<usize> {
    let mut rows = 0;
    while let Some(batch) = results.next()? {
        piece.add(out, &batch, None)?;
        rows += batch.num_rows();
    }
    Ok(rows)
}

/// Writes all rows, or the first and the last if there are more than `most`; returns their number, and whether some are
/// left out.
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
    piece.gap(rows - most / 2);
    for batch in some(&kept, last - most / 2..last) {
        piece.add(out, &batch, Some(WIDEST))?;
    }
    Ok((rows, true))
}

/// Takes the rows `rows` from all batches, counted through.
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

/// A column of a result.
struct Column {
    name: String,
    kind: String,
    /// Whether values are aligned to the right, as numbers are.
    right: bool,
    /// Whether values may be folded, as strings may: a number or a date on two lines could not be read.
    folds: bool,
}

impl Column {
    fn of(field: &Field) -> Column {
        let data_type = field.data_type();
        Column {
            name: printable(field.name().clone()),
            kind: atoll::column_type_name(field),
            right: data_type.is_numeric(),
            folds: !data_type.is_numeric()
                && !data_type.is_temporal()
                && *data_type != DataType::Boolean,
        }
    }

    fn head(&self) -> usize {
        self.name.width().max(self.kind.width())
    }

    fn alignment(&self) -> CellAlignment {
        if self.right {
            CellAlignment::Right
        } else {
            CellAlignment::Left
        }
    }
}

/// The layout of the rows of one result, which its first piece decides.
enum Layout {
    /// Aligned columns of these widths; those that fold never become wider. A single `…` stands for those in `hidden`.
    Columns {
        widths: Vec<usize>,
        folded: bool,
        hidden: Range<usize>,
    },
    /// A block of lines for each row.
    Blocks,
}

/// As much of a text as [`TALLEST`] lines of the widest column show, and what tells that more follows: to fold the rest takes a time
/// that grows with the square of its length.
fn beginning(mut text: String) -> String {
    const MOST: usize = (TALLEST + 1) * (u16::MAX as usize);
    if text.len() > MOST
        && let Some((end, _)) = text.char_indices().nth(MOST)
    {
        text.truncate(end);
    }
    text
}

/// A row to be laid out; `None` in place of rows that are left out.
type Texts = Option<Vec<String>>;

/// Rows that are to be laid out together.
struct Piece {
    columns: Vec<Column>,
    rows: Vec<Texts>,
    bytes: usize,
    style: Style,
    layout: Option<Layout>,
    /// The number of the next row to be written.
    number: usize,
    /// The number of the first row after those that are left out.
    after: usize,
}

impl Piece {
    fn new(schema: &SchemaRef, style: Style) -> Piece {
        Piece {
            columns: schema
                .fields()
                .iter()
                .map(|field| Column::of(field))
                .collect(),
            rows: Vec::new(),
            bytes: 0,
            style,
            layout: None,
            number: 1,
            after: 0,
        }
    }

    /// Adds the rows of `batch`, and writes them once there are enough for a piece.
    fn add(
        &mut self,
        out: &mut dyn Write,
        batch: &RecordBatch,
        widest: Option<usize>,
    ) -> anyhow::Result<()> {
        let batch = &shown(batch)?;
        let options = TEXT.clone().with_null("NULL");
        let columns = batch
            .columns()
            .iter()
            .map(|array| ArrayFormatter::try_new(array, &options));
        let columns = columns.collect::<Result<Vec<_>, _>>()?;
        for row in 0..batch.num_rows() {
            let mut texts = Vec::with_capacity(columns.len());
            for column in &columns {
                let text = shortened(printable(column.value(row).try_to_string()?), widest);
                self.bytes += text.len();
                texts.push(text);
            }
            self.rows.push(Some(texts));
            let cells = self.rows.len() * self.columns.len();
            if cells >= PIECE_CELLS || self.bytes >= PIECE_BYTES {
                self.write(out, false)?;
            }
        }
        Ok(())
    }

    /// Notes that rows are left out here, up to number `before`.
    fn gap(&mut self, before: usize) {
        self.after = before + 1;
        self.rows.push(None);
    }

    /// Writes the rows that are left, and the end of the table.
    fn end(&mut self, out: &mut dyn Write) -> anyhow::Result<()> {
        self.write(out, true)
    }

    /// Writes the rows of this piece: the first piece of a table below a header, the `last` one above its end.
    fn write(&mut self, out: &mut dyn Write, last: bool) -> anyhow::Result<()> {
        let natural = self.natural();
        let rows = std::mem::take(&mut self.rows);
        self.bytes = 0;
        let (layout, first) = match self.layout.take() {
            Some(layout) => (layout, false),
            None => {
                let single = rows.iter().flatten().count() == 1;
                (self.decide(&natural, single), true)
            }
        };
        let layout = match layout {
            Layout::Blocks => {
                self.blocks(out, rows)?;
                Layout::Blocks
            }
            Layout::Columns {
                mut widths,
                folded,
                hidden,
            } => {
                for ((width, natural), column) in widths.iter_mut().zip(natural).zip(&self.columns)
                {
                    if !(folded && column.folds) {
                        *width = natural.max(*width);
                    }
                }
                self.table(out, rows, (&widths, &hidden), (first, last))?;
                Layout::Columns {
                    widths,
                    folded,
                    hidden,
                }
            }
        };
        self.layout = Some(layout);
        Ok(())
    }

    /// The natural widths of the columns: those of their widest values.
    fn natural(&self) -> Vec<usize> {
        let mut widths: Vec<usize> = self.columns.iter().map(Column::head).collect();
        for row in self.rows.iter().flatten() {
            for (width, text) in widths.iter_mut().zip(row) {
                *width = text.width().max(*width);
            }
        }
        widths
    }

    /// The layout for these natural widths; `single` says that there is one row.
    fn decide(&self, natural: &[usize], single: bool) -> Layout {
        let plain = Layout::Columns {
            widths: natural.to_vec(),
            folded: false,
            hidden: 0..0,
        };
        let width = match (self.style.expanded, self.style.width) {
            (Expanded::On, _) => return Layout::Blocks,
            (_, None) => return plain,
            (_, Some(width)) => width,
        };
        if let Some(widths) = self.fitting(natural, width) {
            return Layout::Columns {
                widths,
                folded: true,
                hidden: 0..0,
            };
        }
        match self.style.expanded {
            Expanded::Off => plain,
            _ if single => Layout::Blocks,
            _ => self.ends(natural, width).unwrap_or(Layout::Blocks),
        }
    }

    /// The least widths of the columns: strings fold, numbers do not.
    fn least(&self, natural: &[usize]) -> Vec<usize> {
        let columns = natural.iter().zip(&self.columns);
        columns
            .map(|(natural, column)| {
                if column.folds {
                    (*natural).min(column.head().max(NARROWEST))
                } else {
                    *natural
                }
            })
            .collect()
    }

    /// The widths of the columns with which a table fits `width`: the natural ones, with strings folded if these are
    /// too wide. `None` if it does not fit even then.
    fn fitting(&self, natural: &[usize], width: usize) -> Option<Vec<usize>> {
        let least = self.least(natural);
        // A space on both sides of each column, and a border or a space behind it and before the first.
        let room = width.checked_sub(1 + 3 * natural.len())?;
        let spare = room.checked_sub(least.iter().sum())?;
        Some(shared(natural, least, spare))
    }

    /// The first and the last columns, as many as fit `width` with a `…` between them. `None` if there is room for less
    /// than two.
    fn ends(&self, natural: &[usize], width: usize) -> Option<Layout> {
        let least = self.least(natural);
        // The frame before the first column, and the column of `…`.
        let mut room = width.checked_sub(1 + 4)?;
        let mut hidden = 0..natural.len();
        while hidden.len() > 1 {
            // The first columns are those that tell rows apart.
            let first = hidden.start <= natural.len() - hidden.end;
            let next = if first { hidden.start } else { hidden.end - 1 };
            let Some(left) = room.checked_sub(least[next] + 3) else {
                break;
            };
            room = left;
            if first {
                hidden.start += 1;
            } else {
                hidden.end -= 1;
            }
        }
        if natural.len() - hidden.len() < 2 {
            return None;
        }
        let mut widths = least;
        // Those that are not shown want no room.
        widths[hidden.clone()].copy_from_slice(&natural[hidden.clone()]);
        Some(Layout::Columns {
            widths: shared(natural, widths, room),
            folded: true,
            hidden,
        })
    }

    /// How many columns are shown, of how many, if not all are.
    fn columns_shown(&self) -> Option<(usize, usize)> {
        match &self.layout {
            Some(Layout::Columns { hidden, .. }) if !hidden.is_empty() => {
                let all = self.columns.len();
                Some((all - hidden.len(), all))
            }
            _ => None,
        }
    }

    /// Writes rows of a table, with the parts of its frame that belong to them.
    fn table(
        &self,
        out: &mut dyn Write,
        rows: Vec<Texts>,
        (widths, hidden): (&[usize], &Range<usize>),
        (first, last): (bool, bool),
    ) -> anyhow::Result<()> {
        let mut table = Table::new();
        table
            .load_preset(presets::UTF8_BORDERS_ONLY)
            .set_content_arrangement(ContentArrangement::Disabled);
        let heads = self.columns.iter().map(|column| {
            Cell::new(format!("{}\n{}", column.name, column.kind))
                .set_alignment(CellAlignment::Center)
        });
        table.set_header(between(heads, hidden, || Cell::new("…")));
        for row in rows {
            let cells: Vec<Cell> = match row {
                None => {
                    vec![Cell::new("·").set_alignment(CellAlignment::Center); self.columns.len()]
                }
                Some(texts) => texts
                    .into_iter()
                    .zip(&self.columns)
                    .map(|(text, column)| {
                        Cell::new(beginning(text)).set_alignment(column.alignment())
                    })
                    .collect(),
            };
            let mut row = Row::from(between(cells, hidden, || Cell::new("…")));
            row.max_height(TALLEST);
            table.add_row(row);
        }
        let widths = between(widths.iter().copied(), hidden, || 1);
        for (column, width) in table.column_iter_mut().zip(widths) {
            let width = u16::try_from(width + 2).unwrap_or(u16::MAX);
            column.set_constraint(ColumnConstraint::Absolute(Width::Fixed(width)));
        }
        let text = table.to_string();
        let header = if first {
            0
        } else {
            text.lines()
                .position(|line| line.starts_with('╞'))
                .map_or(0, |at| at + 1)
        };
        let lines = text.lines().count() - usize::from(!last);
        for line in text.lines().take(lines).skip(header) {
            writeln!(out, "{line}")?;
        }
        Ok(())
    }

    /// Writes a block of lines for each row: a column's name and its whole value, folded.
    fn blocks(&mut self, out: &mut dyn Write, rows: Vec<Texts>) -> anyhow::Result<()> {
        let names = self.columns.iter().map(|column| column.name.width());
        let margin = names.max().unwrap_or(0) + 2;
        let room = self
            .style
            .width
            .map(|width| width.saturating_sub(margin).max(NARROWEST));
        for row in rows {
            let Some(texts) = row else {
                writeln!(out, "·")?;
                self.number = self.after;
                continue;
            };
            let title = format!("─ row {} ", units::count(self.number as u64));
            let rule = self.style.width.unwrap_or(margin + NARROWEST);
            writeln!(
                out,
                "{title}{}",
                "─".repeat(rule.saturating_sub(title.width()))
            )?;
            self.number += 1;
            for (column, text) in self.columns.iter().zip(texts) {
                let mut lead = column.name.clone();
                for line in folded(&text, room) {
                    let pad = " ".repeat(margin - lead.width());
                    writeln!(out, "{}", format!("{lead}{pad}{line}").trim_end())?;
                    lead.clear();
                }
            }
        }
        Ok(())
    }
}

/// The items but for those at `hidden`, in whose place one stands, if there are any.
fn between<T>(
    items: impl IntoIterator<Item = T>,
    hidden: &Range<usize>,
    instead: impl Fn() -> T,
) -> Vec<T> {
    let mut shown = Vec::new();
    for (at, item) in items.into_iter().enumerate() {
        if !hidden.contains(&at) {
            shown.push(item);
        } else if at == hidden.start {
            shown.push(instead());
        }
    }
    shown
}

/// Distributes `spare` to the columns that are narrower than their natural width, the narrowest first.
fn shared(natural: &[usize], mut widths: Vec<usize>, mut spare: usize) -> Vec<usize> {
    while spare > 0 {
        let wanting = (0..widths.len()).filter(|at| widths[*at] < natural[*at]);
        let Some(narrowest) = wanting.min_by_key(|at| widths[*at]) else {
            break;
        };
        widths[narrowest] += 1;
        spare -= 1;
    }
    widths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_stands_for_those_that_are_hidden() {
        assert_eq!(between(0..6, &(2..5), || 9), [0, 1, 9, 5]);
        assert_eq!(between(0..3, &(0..0), || 9), [0, 1, 2]);
    }

    #[test]
    fn the_first_and_last_columns_stay_where_not_all_fit() {
        let fields = (0..10).map(|at| Field::new(format!("c{at}"), DataType::Int32, true));
        let schema = SchemaRef::new(arrow::datatypes::Schema::new(fields.collect::<Vec<_>>()));
        let piece = Piece::new(&schema, Style::default());
        // The frame takes 1, the ellipsis 4, and each column 10 + 3.
        let hidden = |width: usize| match piece.ends(&[10; 10], width) {
            Some(Layout::Columns { hidden, .. }) => Some(hidden),
            _ => None,
        };
        assert_eq!(hidden(5 + 2 * 13), Some(1..9));
        assert_eq!(hidden(5 + 3 * 13), Some(2..9));
        assert_eq!(hidden(5 + 3 * 13 + 12), Some(2..9));
        assert_eq!(hidden(5 + 13), None);
        assert_eq!(hidden(3), None);
    }

    #[test]
    fn spare_room_goes_to_the_narrowest() {
        assert_eq!(shared(&[5, 40, 90], vec![5, 16, 16], 30), [5, 31, 31]);
        assert_eq!(shared(&[5, 20, 90], vec![5, 16, 16], 30), [5, 20, 42]);
        assert_eq!(shared(&[5, 6], vec![5, 6], 30), [5, 6]);
    }
}
