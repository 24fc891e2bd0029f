//! Cuts a text into statements.

/// The statements of a text: what stands between semicolons that are in no brackets and no quotes. Empty ones are left out.
pub fn split(text: &str) -> Vec<&str> {
    let mut all = Vec::new();
    let (mut from, mut depth, mut quote) = (0, 0i32, None);
    for (at, byte) in text.bytes().enumerate() {
        match (quote, byte) {
            (Some(open), _) if open == byte => quote = None,
            (Some(_), _) => {}
            (None, b'\'' | b'"') => quote = Some(byte),
            (None, b'(' | b'[') => depth += 1,
            (None, b')' | b']') => depth -= 1,
            (None, b';') if depth <= 0 => {
                all.push(&text[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    all.push(&text[from..]);
    all.retain(|statement| !statement.trim().is_empty());
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn semicolons_in_brackets_and_quotes_end_nothing() {
        let text = "create array A <v:double> [x=0:9; y=0:9]; list() ;; filter(A, 'a;b' = \";\")";
        let found: Vec<_> = split(text).into_iter().map(str::trim).collect();
        let expected = [
            "create array A <v:double> [x=0:9; y=0:9]",
            "list()",
            "filter(A, 'a;b' = \";\")",
        ];
        assert_eq!(found, expected);
        assert_eq!(split(" \n;"), Vec::<&str>::new());
        assert_eq!(split("a);b("), ["a)", "b("]);
    }
}
