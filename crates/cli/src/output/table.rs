//! Results as aligned columns.

use std::io::Write;

use arrow::array::{Array, RecordBatch};
use arrow::datatypes::DataType;
use arrow::util::display::ArrayFormatter;
use atoll::Answer;
use comfy_table::{Cell, CellAlignment, ContentArrangement, Table, presets};

use super::TEXT;
use crate::units;

/// The widest value that is shown whole where rows are elided, too.
const WIDEST: usize = 60;

/// Writes a result; of more than `most` rows only the first and the last.
pub fn write(out: &mut dyn Write, answer: &Answer, most: Option<usize>) -> anyhow::Result<()> {
    let rows = answer.rows();
    let mut table = Table::new();
    table
        .load_preset(presets::UTF8_BORDERS_ONLY)
        .set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(answer.schema.fields().iter().map(|field| {
        Cell::new(format!(
            "{}\n{}",
            field.name(),
            atoll::type_name(field.data_type())
        ))
        .set_alignment(CellAlignment::Center)
    }));
    let elided = most.filter(|most| rows > *most);
    match elided {
        None => add(&mut table, &answer.batches, 0..rows, None)?,
        Some(most) => {
            add(
                &mut table,
                &answer.batches,
                0..most.div_ceil(2),
                Some(WIDEST),
            )?;
            let dots = answer
                .schema
                .fields()
                .iter()
                .map(|_| Cell::new("·").set_alignment(CellAlignment::Center));
            table.add_row(dots);
            add(
                &mut table,
                &answer.batches,
                rows - most / 2..rows,
                Some(WIDEST),
            )?;
        }
    }
    writeln!(out, "{table}")?;
    let shown = elided.map_or(String::new(), |most| {
        format!(" ({} shown)", units::count(most as u64))
    });
    match rows {
        1 => writeln!(out, "1 row")?,
        _ => writeln!(out, "{} rows{shown}", units::count(rows as u64))?,
    }
    Ok(())
}

/// Adds rows of the whole result to the table.
fn add(
    table: &mut Table,
    batches: &[RecordBatch],
    rows: std::ops::Range<usize>,
    widest: Option<usize>,
) -> anyhow::Result<()> {
    let options = TEXT.clone().with_null("NULL");
    let mut first = 0;
    for batch in batches {
        let (from, to) = (
            rows.start.max(first),
            rows.end.min(first + batch.num_rows()),
        );
        if from < to {
            let columns = batch
                .columns()
                .iter()
                .map(|array| ArrayFormatter::try_new(array, &options));
            let columns = columns.collect::<Result<Vec<_>, _>>()?;
            for row in from - first..to - first {
                let mut cells = Vec::with_capacity(columns.len());
                for (column, array) in columns.iter().zip(batch.columns()) {
                    let text = column.value(row).try_to_string()?;
                    cells.push(
                        Cell::new(shortened(text, widest))
                            .set_alignment(alignment(array.data_type())),
                    );
                }
                table.add_row(cells);
            }
        }
        first += batch.num_rows();
    }
    Ok(())
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
