//! Escaping of text for HTML.

use std::fmt::{self, Display, Write};

/// Displays a text with all characters escaped that HTML interprets, in content and in quoted
/// attributes. Control characters, which HTML forbids, become U+FFFD; line feeds and tabs stay.
pub(super) struct Escaped<'a>(pub(super) &'a str);

impl Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for char in self.0.chars() {
            match char {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                '\n' | '\t' => f.write_char(char)?,
                char if forbidden(char) => f.write_char('\u{fffd}')?,
                char => f.write_char(char)?,
            }
        }
        Ok(())
    }
}

/// Whether a character is a control character, or one that reverses the direction of the text around it.
pub(super) fn forbidden(char: char) -> bool {
    char.is_control() || matches!(char, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A file's name as a relative link: every byte that is not plainly part of a name is encoded.
pub(super) fn link(name: &str) -> String {
    let mut out = String::from("./");
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_html_understands_is_left() {
        let hostile = "<script>alert('1')</script>\" onload=\"x&amp;\u{0}\u{202e}\u{1b}[0m";
        let text = Escaped(hostile).to_string();
        for char in ['<', '>', '"', '\'', '\u{0}', '\u{202e}', '\u{1b}'] {
            assert!(!text.contains(char), "{char:?} in {text}");
        }
        assert!(
            text.contains("&lt;script&gt;") && text.contains("&amp;amp;"),
            "{text}"
        );
    }

    #[test]
    fn links_stay_relative() {
        assert_eq!(link("a b.json"), "./a%20b.json");
        assert_eq!(link("javascript:alert(1)"), "./javascript%3Aalert%281%29");
    }
}
