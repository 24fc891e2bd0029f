//! Texts as a screen shows them: in one line, shortened, or folded to a width.

use unicode_width::UnicodeWidthChar;

/// Replaces characters that would move the cursor: a line end would break the row in two.
pub fn printable(text: String) -> String {
    if !text.contains(char::is_control) {
        return text;
    }
    let mut printed = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if c.is_control() {
            printed.extend(c.escape_default())
        } else {
            printed.push(c)
        }
    }
    printed
}

/// The beginning of a text that is longer than `widest` characters.
pub fn shortened(text: String, widest: Option<usize>) -> String {
    match widest {
        Some(widest) if text.chars().count() > widest => {
            text.chars().take(widest - 1).chain(['…']).collect()
        }
        _ => text,
    }
}

/// Cuts the text into pieces not wider than `room`, at spaces where there are any.
pub fn folded(text: &str, room: Option<usize>) -> Vec<&str> {
    let Some(room) = room else {
        return vec![text];
    };
    let (mut lines, mut rest) = (Vec::new(), text);
    while let Some(end) = line_end(rest, room) {
        lines.push(&rest[..end]);
        rest = &rest[end..];
    }
    if !rest.is_empty() || lines.is_empty() {
        lines.push(rest);
    }
    lines
}

/// Where to break a text that is wider than `room`.
fn line_end(text: &str, room: usize) -> Option<usize> {
    let (mut wide, mut space) = (0, None);
    for (at, c) in text.char_indices() {
        wide += c.width().unwrap_or(0);
        // One character at least, whatever its width.
        if wide > room && at > 0 {
            return Some(space.unwrap_or(at));
        }
        if c == ' ' {
            space = Some(at + 1);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_folded_at_spaces() {
        assert_eq!(folded("one two three", Some(8)), ["one two ", "three"]);
        assert_eq!(folded("abcdefgh", Some(3)), ["abc", "def", "gh"]);
        assert_eq!(
            folded("\u{6771}\u{4eac}\u{90fd}", Some(4)),
            ["\u{6771}\u{4eac}", "\u{90fd}"]
        );
        assert_eq!(folded("\u{6771}", Some(1)), ["\u{6771}"]);
        assert_eq!(folded("", Some(3)), [""]);
        assert_eq!(folded("as it is", None), ["as it is"]);
    }

    #[test]
    fn control_characters_do_not_move_the_cursor() {
        assert_eq!(printable("a\n\u{1b}[2Jb".into()), "a\\n\\u{1b}[2Jb");
        assert_eq!(printable("\u{e4} \u{1f41a}".into()), "\u{e4} \u{1f41a}");
    }
}
