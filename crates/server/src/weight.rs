//! What a statement takes in memory while it is read and planned: many times its text, if that has many parts.

/// Texts up to so many bytes are not weighed: many statements of them are looked at in no time.
const LIGHT: usize = 64 << 10;

/// Bytes that a part takes, about: as a token, as a node of the tree, and as an expression of the plan.
const PART: usize = 256;

/// The bytes that the statement `text` takes beside itself, about; none of a short one.
pub(crate) fn of(text: &str) -> usize {
    if text.len() <= LIGHT {
        return 0;
    }
    parts(text).saturating_mul(PART)
}

/// How many words, numbers and signs a text has outside strings: a string is one part, however long it is.
fn parts(text: &str) -> usize {
    let (mut count, mut quoted, mut in_word) = (0usize, false, false);
    for byte in text.bytes() {
        if byte == b'\'' {
            quoted = !quoted;
            count += usize::from(quoted);
            in_word = false;
        } else if !quoted {
            let word = byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80;
            count += usize::from(!word && !byte.is_ascii_whitespace() || word && !in_word);
            in_word = word;
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_weigh_little_and_lists_much() {
        assert_eq!(of("select 1"), 0);
        assert_eq!(parts("select 'it''s; 1,2' + ab_c, 1.5"), 9);
        let text = format!("select '{}'", "1,".repeat(100_000));
        assert_eq!(of(&text), 2 * PART);
        let list = format!("select {}1", "1,".repeat(100_000));
        assert_eq!(of(&list), 200_002 * PART);
    }
}
