//! The line of a text in which something is wrong, and a mark under the place.

use unicode_width::UnicodeWidthChar;

use crate::terminal::pager;
use atoll::script::Statement;

/// Columns of a line where the terminal's width is not known.
const WIDTH: usize = 100;

/// The place of a statement's error in its text, if the error has one.
pub fn of(error: &anyhow::Error, statement: &Statement) -> Option<String> {
    let Some(atoll::Error::Sql(error)) = error.downcast_ref::<atoll::Error>() else {
        return None;
    };
    let (line, column) = match error.position() {
        // Positions are those in the whole text, of which the statement is a part.
        Some(position) => {
            let line = usize::try_from(position.line).ok()?;
            let line = line.checked_sub(statement.line)?;
            let before = if line == 0 { statement.column } else { 0 };
            (line, i64::try_from(position.column).ok()? - before)
        }
        None => {
            let place = atoll::quoted_constant(error, &statement.text)?;
            let line = usize::try_from(place.line).ok()?.checked_sub(1)?;
            (line, i64::try_from(place.column).ok()?)
        }
    };
    let number = (statement.line + line) as u64;
    let text = statement.text.lines().nth(line)?;
    let column = usize::try_from(column).ok()?.max(1);
    // What stands before the statement on its first line is not part of it.
    let (text, column) = match line {
        0 => {
            let own = text.trim_start();
            let before = text.chars().count() - own.chars().count();
            (own, column.saturating_sub(before).max(1))
        }
        _ => (text, column),
    };
    let width = pager::screen().map_or(WIDTH, |(width, _)| width);
    Some(excerpt(text, number, column, width))
}

/// `text`, which is line `number`, with a mark under its character `column`, counted from 1; of a line that is wider
/// than `width` the part around the mark.
fn excerpt(text: &str, number: u64, column: usize, width: usize) -> String {
    let lead = format!("{number} | ");
    let room = width.saturating_sub(lead.len()).max(20);
    // One column each, so that the mark can be placed by counting.
    let clean = |c: char| if c.is_control() { ' ' } else { c };
    let chars: Vec<char> = text.trim_end().chars().map(clean).collect();
    let wide = |chars: &[char]| -> usize { chars.iter().map(|c| c.width().unwrap_or(0)).sum() };
    let mark = (column - 1).min(chars.len());
    let (mut from, mut to) = (0, chars.len());
    let (mut before, mut after) = ("", "");
    if wide(&chars) > room {
        // The mark stands at two thirds of what is shown, or where it stands in the line if that is before.
        while wide(&chars[from..mark]) > room * 2 / 3 {
            (from, before) = (from + 1, "…");
        }
        while wide(&chars[from..to]) + 2 > room {
            (to, after) = (to - 1, "…");
        }
    }
    let shown: String = chars[from..to].iter().collect();
    let pad = lead.len() + before.chars().count() + wide(&chars[from..mark]);
    let gutter = format!("{} | ", " ".repeat(number.to_string().len()));
    format!(
        "{lead}{before}{shown}{after}\n{gutter}{}^",
        " ".repeat(pad - lead.len())
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mark_stands_under_its_character() {
        assert_eq!(
            excerpt("select x from t", 1, 8, 80),
            "1 | select x from t\n  |        ^"
        );
        assert_eq!(excerpt("\tx", 12, 2, 80), "12 |  x\n   |  ^");
        // Wide characters take two columns.
        assert_eq!(
            excerpt("select '\u{6771}', x", 1, 13, 80),
            "1 | select '\u{6771}', x\n  |              ^"
        );
        // What is missing is missing at the end.
        assert_eq!(excerpt("select", 1, 99, 80), "1 | select\n  |       ^");
    }

    #[test]
    fn long_lines_are_cut_around_the_mark() {
        let line = format!("{}HERE{}", "a".repeat(200), "b".repeat(200));
        let cut = excerpt(&line, 1, 201, 60);
        let lines: Vec<_> = cut.lines().collect();
        assert!(lines.iter().all(|line| line.chars().count() <= 60), "{cut}");
        let mark = lines[1].chars().position(|c| c == '^').unwrap();
        let at: String = lines[0].chars().skip(mark).take(4).collect();
        assert_eq!(at, "HERE");
    }
}
