//! The texts that a table keeps, when it or one of its columns gets another name.

use syntax::names::quoted;
use table::Generated;

use crate::error::Result;
use crate::statements::write::Writing;

/// Changes the texts of checks and of generated columns.
///
/// # Errors
/// Those of `change`, and of the store.
pub(crate) fn kept_texts(
    writing: &mut Writing,
    table: &str,
    change: impl Fn(&str) -> Result<String>,
) -> Result<()> {
    let mut failed = Ok(());
    let mut changed = |text: &mut String| match change(text) {
        Ok(other) => *text = other,
        Err(e) => failed = Err(e),
    };
    table::redefine(&mut writing.tx, table, |definition| {
        for check in &mut definition.checks {
            changed(&mut check.text);
        }
        for index in &mut definition.indexes {
            for (text, _) in &mut index.items {
                changed(&mut *text);
                // A column alone is kept as it is shown.
                if let Some(name) = text.strip_prefix('"').and_then(|own| own.strip_suffix('"'))
                    && !name.contains('"')
                {
                    *text = quoted(name);
                }
            }
            index.predicate.iter_mut().for_each(&mut changed);
        }
        for column in &mut definition.columns {
            if let Some(Generated::Stored { text }) = &mut column.generated {
                changed(&mut *text);
            }
        }
        Ok(())
    })?;
    failed
}
