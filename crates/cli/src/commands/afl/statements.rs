//! Cuts a text into statements.

use afl::Fault;

/// A statement and its place in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Statement<'a> {
    /// Without the semicolon.
    pub text: &'a str,
    whole: &'a str,
    /// Where it begins in the whole text.
    start: usize,
}

impl<'a> Statement<'a> {
    /// The statement without what stands before `rest`, which is its end.
    #[cfg(feature = "sql")]
    pub fn ending(&self, rest: &'a str) -> Statement<'a> {
        Statement {
            text: rest,
            start: self.start + self.text.len() - rest.len(),
            ..*self
        }
    }

    /// The place in the whole text behind the statement and its semicolon.
    #[cfg(feature = "sql")]
    pub fn end(&self) -> usize {
        (self.start + self.text.len() + 1).min(self.whole.len())
    }

    /// A fault of the statement as one of the whole text.
    pub fn place(&self, fault: &Fault) -> Fault {
        let (mut fault, before) = (fault.clone(), &self.whole[..self.start]);
        if fault.line == 1 {
            let line = before.rfind('\n').map_or(0, |at| at + 1);
            fault.column += before[line..].chars().count();
            fault.text = format!("{}{}", &before[line..], fault.text);
        }
        fault.line += before.matches('\n').count();
        fault
    }
}

/// What a text is inside of, at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inside {
    /// Nothing: the last statement is complete.
    Nothing,
    /// A statement.
    Statement,
    /// Brackets, quotes or a comment, by the character that opened it.
    Open(char),
}

/// The statements of a text: what stands between semicolons that are in no brackets, quotes and comments. Those of nothing
/// but white space and comments are left out.
pub fn split(text: &str) -> Vec<Statement<'_>> {
    cut(text).0
}

/// The same, without what follows the last semicolon, and what that leaves open.
pub fn split_complete(text: &str) -> (Vec<Statement<'_>>, Inside) {
    let (mut all, inside) = cut(text);
    if inside != Inside::Nothing {
        all.pop();
    }
    (all, inside)
}

fn cut(text: &str) -> (Vec<Statement<'_>>, Inside) {
    let mut all = Vec::new();
    let (mut from, mut depth, mut substance) = (0, 0i32, false);
    let (mut at, mut open) = (0, None);
    while let Some(c) = text[at..].chars().next() {
        let rest = &text[at..];
        if rest.starts_with("--") {
            at += rest.find('\n').unwrap_or(rest.len());
            continue;
        }
        if let Some(inner) = rest.strip_prefix("/*") {
            match inner.find("*/") {
                Some(end) => at += end + 4,
                None => (at, open) = (text.len(), Some('*')),
            }
            continue;
        }
        substance |= c != ';' && !c.is_whitespace();
        match c {
            '\'' | '"' => match rest[1..].find(c) {
                Some(end) => at += end + 1,
                None => (at, open) = (text.len() - 1, Some(c)),
            },
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            ';' if depth <= 0 => {
                if std::mem::take(&mut substance) {
                    all.push(of(text, from, at));
                }
                (from, depth) = (at + 1, 0);
            }
            _ => {}
        }
        at += text[at..].chars().next().map_or(1, char::len_utf8);
    }
    let inside = match (open, depth > 0, substance) {
        (Some(of), ..) => Inside::Open(of),
        (None, true, _) => Inside::Open('('),
        (None, false, true) => Inside::Statement,
        (None, false, false) => Inside::Nothing,
    };
    if substance || inside != Inside::Nothing {
        all.push(of(text, from, text.len()));
    }
    (all, inside)
}

fn of(whole: &str, start: usize, end: usize) -> Statement<'_> {
    Statement {
        text: &whole[start..end],
        whole,
        start,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<&str> {
        split(text).iter().map(|of| of.text.trim()).collect()
    }

    #[test]
    fn semicolons_in_brackets_quotes_and_comments_end_nothing() {
        let text = "create array A <v:double> [x=0:9; y=0:9]; list() ;; filter(A, 'a;b' = \";\")";
        let expected = [
            "create array A <v:double> [x=0:9; y=0:9]",
            "list()",
            "filter(A, 'a;b' = \";\")",
        ];
        assert_eq!(texts(text), expected);
        assert_eq!(
            texts(" \n; -- it's nothing; at all\n /* ;' */ ;"),
            Vec::<&str>::new()
        );
        assert_eq!(
            texts("a -- it's;\n ; b /* ; \" */"),
            ["a -- it's;", "b /* ; \" */"]
        );
        assert_eq!(texts("a);b("), ["a)", "b("]);
        assert_eq!(texts("\u{e4} \u{1f41a}; b"), ["\u{e4} \u{1f41a}", "b"]);
    }

    #[test]
    fn what_is_open_is_told() {
        for (text, complete, inside) in [
            ("", 0, Inside::Nothing),
            ("a; b;", 2, Inside::Nothing),
            ("a; b", 1, Inside::Statement),
            ("a; b(", 1, Inside::Open('(')),
            ("a [x=0:9;", 0, Inside::Open('(')),
            ("a; 'b;\n", 1, Inside::Open('\'')),
            ("a /* b;", 0, Inside::Open('*')),
            ("a; /* b;", 1, Inside::Open('*')),
            ("a; -- b;", 1, Inside::Nothing),
        ] {
            let (all, found) = split_complete(text);
            assert_eq!((all.len(), found), (complete, inside), "{text:?}");
        }
    }

    #[test]
    fn faults_are_placed_in_the_whole_text() {
        let text = "list();\n  list(); filter(\n a";
        let last = split(text).pop().unwrap();
        let fault = |line, column, text: &str| Fault {
            message: String::new(),
            line,
            column,
            text: text.to_owned(),
            length: 1,
        };
        assert_eq!(
            last.place(&fault(1, 2, " filter(")),
            fault(2, 11, "  list(); filter(")
        );
        assert_eq!(last.place(&fault(2, 2, " a")), fault(3, 2, " a"));
    }
}
