//! Answers of the database to questions about itself.

use arrow::util::display::{ArrayFormatter, FormatOptions};
use atoll::Session;

/// The rows of a query, all values as texts.
///
/// # Errors
/// Those of the query.
pub(crate) fn texts(
    session: &Session,
    text: &str,
) -> std::result::Result<Vec<Vec<Option<String>>>, atoll::Error> {
    let mut rows = Vec::new();
    for batch in session.query(text)? {
        let batch = batch?;
        let options = FormatOptions::new();
        let columns = batch
            .columns()
            .iter()
            .map(|column| ArrayFormatter::try_new(column.as_ref(), &options))
            .collect::<std::result::Result<Vec<_>, _>>()?;
        for row in 0..batch.num_rows() {
            let value = |(at, column): (usize, &ArrayFormatter<'_>)| {
                let there = batch.column(at).is_valid(row);
                there.then(|| column.value(row).to_string())
            };
            rows.push(columns.iter().enumerate().map(value).collect());
        }
    }
    Ok(rows)
}
