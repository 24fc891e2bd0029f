//! Splits scripts into statements at semicolons, as their text arrives.
//!
//! The parser splits a complete text at its tokens, which comes to the same; this is for whoever reads a script line by
//! line, or looks at statements before they run.
//!
//! ```
//! use syntax::script::{Splitter, only_reads};
//!
//! let mut splitter = Splitter::default();
//! assert!(splitter.push("select ';' as a\n").is_empty());
//! let statements = splitter.push("from t; delete");
//! assert_eq!(statements[0].text, "select ';' as a\nfrom t");
//! assert!(only_reads(&statements[0].text));
//! assert!(splitter.pending());
//! ```

use messages::{Error, Result};

use crate::depth;

/// A statement and its place in the script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// The text, without the semicolon.
    pub text: String,
    /// Line of the first character, counted from 1.
    pub line: usize,
    /// Characters before it on that line; negative if the text begins with words that the script does not have.
    pub column: i64,
}

impl Statement {
    /// The statement with `how` before it, which is `explain` or `explain analyze`. Statements that cannot be explained
    /// stay as they are.
    pub fn shown(&self, how: &str) -> Statement {
        let plain = [
            "explain",
            "set",
            "reset",
            "show",
            "describe",
            "desc",
            "summarize",
        ];
        if words(&self.text)
            .next()
            .is_some_and(|first| plain.contains(&&*first))
        {
            return self.clone();
        }
        Statement {
            text: format!("{how} {}", self.text),
            line: self.line,
            column: self.column - how.len() as i64 - 1,
        }
    }

    /// An error of this statement with its position in the whole script.
    pub fn place(&self, error: Error) -> Error {
        error.within(self.line as u64 - 1, self.column)
    }
}

/// What the scan is inside of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Inside {
    #[default]
    Nothing,
    /// A string or a quoted name, and the character that ends it. A doubled one ends it and starts another, which
    /// comes to the same.
    Quotes(char),
    /// `e'...'`, in which a backslash escapes the next character.
    Escaped,
    LineComment,
    /// How deep comments are nested.
    BlockComment(u32),
    /// A string that this `$tag$` ends.
    Dollar(String),
}

/// Where a scan of a text is, and the statement that it is in.
#[derive(Clone, Debug)]
struct Scan {
    /// Bytes of the text before the statement.
    begun: usize,
    /// Bytes of the text that have been scanned.
    scanned: usize,
    inside: Inside,
    line: usize,
    column: i64,
    /// Line and column at which the statement begins.
    start: (usize, i64),
    /// Whether the statement holds more than white space and comments.
    substance: bool,
}

impl Default for Scan {
    fn default() -> Scan {
        Scan {
            begun: 0,
            scanned: 0,
            inside: Inside::Nothing,
            line: 1,
            column: 0,
            start: (1, 0),
            substance: false,
        }
    }
}

impl Scan {
    /// The next statement of `text` whose semicolon has come.
    fn complete<'t>(&mut self, text: &'t str) -> Option<Portion<'t>> {
        while let Some(c) = text[self.scanned..].chars().next() {
            let (changed, length) = step(&self.inside, &text[self.scanned..], c);
            let is_comment =
                |inside: &Inside| matches!(inside, Inside::LineComment | Inside::BlockComment(_));
            let comment = is_comment(&self.inside) || changed.as_ref().is_some_and(is_comment);
            let ends = c == ';' && self.inside == Inside::Nothing;
            self.substance |= !comment && !ends && !c.is_whitespace();
            self.advance(&text[self.scanned..self.scanned + length]);
            if let Some(inside) = changed {
                self.inside = inside;
            }
            if ends && let Some(portion) = self.take(&text[..self.scanned - 1]) {
                return Some(portion);
            }
        }
        None
    }

    fn advance(&mut self, token: &str) {
        for c in token.chars() {
            match c {
                '\n' => (self.line, self.column) = (self.line + 1, 0),
                _ => self.column += 1,
            }
        }
        self.scanned += token.len();
    }

    /// The statement that ends with `text`; none if it has no substance. The next one begins.
    fn take<'t>(&mut self, text: &'t str) -> Option<Portion<'t>> {
        let (line, column) = std::mem::replace(&mut self.start, (self.line, self.column));
        let offset = std::mem::replace(&mut self.begun, self.scanned);
        std::mem::take(&mut self.substance).then(|| Portion {
            text: &text[offset..],
            offset,
            line,
            column,
        })
    }
}

/// A statement where it stands in its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Portion<'t> {
    /// The text, without the semicolon.
    pub text: &'t str,
    /// Bytes of the whole text before it.
    pub offset: usize,
    /// Line of the first character, counted from 1.
    pub line: usize,
    /// Characters before it on that line.
    pub column: i64,
}

impl Portion<'_> {
    fn to_statement(self) -> Statement {
        Statement {
            text: self.text.to_owned(),
            line: self.line,
            column: self.column,
        }
    }
}

/// The statements of a text, one after the other, without copies of any of them.
///
/// ```
/// let texts: Vec<&str> = syntax::script::statements("select 1; select ';'").map(|one| one.text).collect();
/// assert_eq!(texts, ["select 1", " select ';'"]);
/// ```
#[derive(Clone, Debug)]
pub struct Statements<'t> {
    text: &'t str,
    scan: Scan,
}

impl<'t> Iterator for Statements<'t> {
    type Item = Portion<'t>;

    fn next(&mut self) -> Option<Portion<'t>> {
        let next = self.scan.complete(self.text);
        next.or_else(|| self.scan.take(self.text))
    }
}

/// The statements of a text, found as they are asked for.
pub fn statements(text: &str) -> Statements<'_> {
    Statements {
        text,
        scan: Scan::default(),
    }
}

/// That a text is not too long to be looked at.
///
/// # Errors
/// If it is.
pub fn check_length(text: &str) -> Result<()> {
    depth::check_length(text)
}

/// Collects text and returns each statement once its semicolon has come.
#[derive(Clone, Debug, Default)]
pub struct Splitter {
    /// The statement so far.
    text: String,
    scan: Scan,
}

impl Splitter {
    /// Takes more text and returns the statements that it completes. `more` should end with a line: a token such as
    /// `--` that its end cuts in two is not recognised.
    pub fn push(&mut self, more: &str) -> Vec<Statement> {
        self.text.push_str(more);
        let mut complete = Vec::new();
        while let Some(portion) = self.scan.complete(&self.text) {
            complete.push(portion.to_statement());
        }
        // Once for all of them: what follows each is not moved for each.
        let gone = std::mem::take(&mut self.scan.begun);
        self.text.drain(..gone);
        self.scan.scanned -= gone;
        complete
    }

    /// The statement after the last semicolon, if there is one.
    pub fn finish(mut self) -> Option<Statement> {
        self.scan.take(&self.text).map(Portion::to_statement)
    }

    /// Whether a statement has begun but not ended.
    pub fn pending(&self) -> bool {
        self.scan.substance || self.scan.inside != Inside::Nothing
    }

    /// What is still open inside the statement: the quote that ends it, `$` for a dollar-quoted string, `*` for a
    /// comment.
    pub fn open(&self) -> Option<char> {
        match &self.scan.inside {
            Inside::Nothing | Inside::LineComment => None,
            Inside::Quotes(end) => Some(*end),
            Inside::Escaped => Some('\''),
            Inside::BlockComment(_) => Some('*'),
            Inside::Dollar(_) => Some('$'),
        }
    }

    /// The text of the statement that has begun so far.
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// What the scan is inside of after the token that starts `rest` with `c`, or none if that does not change, and the length
/// of the token in bytes.
fn step(inside: &Inside, rest: &str, c: char) -> (Option<Inside>, usize) {
    match inside {
        Inside::Nothing if rest.starts_with("--") => (Some(Inside::LineComment), 2),
        Inside::Nothing if rest.starts_with("/*") => (Some(Inside::BlockComment(1)), 2),
        Inside::Nothing if c == '\'' || c == '"' || c == '`' => (Some(Inside::Quotes(c)), 1),
        Inside::Nothing if is_word(c) => {
            let word = rest
                .find(|c: char| !is_word(c) && c != '$')
                .unwrap_or(rest.len());
            if rest[word..].starts_with('\'') && rest[..word].eq_ignore_ascii_case("e") {
                (Some(Inside::Escaped), word + 1)
            } else {
                (None, word)
            }
        }
        Inside::Escaped if c == '\\' => {
            let taken = rest[1..].chars().next().map_or(0, char::len_utf8);
            (None, 1 + taken)
        }
        Inside::Escaped if c == '\'' && rest[1..].starts_with('\'') => (None, 2),
        Inside::Escaped if c == '\'' => (Some(Inside::Nothing), 1),
        Inside::Nothing if c == '$' => match dollar_tag(rest) {
            Some(tag) => (Some(Inside::Dollar(tag.to_owned())), tag.len()),
            None => (None, 1),
        },
        Inside::Quotes(end) if c == *end => (Some(Inside::Nothing), 1),
        Inside::LineComment if c == '\n' => (Some(Inside::Nothing), 1),
        Inside::BlockComment(depth) if rest.starts_with("/*") => {
            (Some(Inside::BlockComment(depth + 1)), 2)
        }
        Inside::BlockComment(1) if rest.starts_with("*/") => (Some(Inside::Nothing), 2),
        Inside::BlockComment(depth) if rest.starts_with("*/") => {
            (Some(Inside::BlockComment(depth - 1)), 2)
        }
        Inside::Dollar(tag) if rest.starts_with(tag.as_str()) => (Some(Inside::Nothing), tag.len()),
        _ => (None, c.len_utf8()),
    }
}

/// Whether `c` may be part of a name, keyword or number.
fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The `$tag$` at the start of `rest`, if there is one.
fn dollar_tag(rest: &str) -> Option<&str> {
    let name = rest[1..].split('$').next()?;
    let word = name.chars().all(|c| c.is_alphanumeric() || c == '_')
        && !name.starts_with(|c: char| c.is_ascii_digit());
    (word && rest.len() > name.len() + 1).then(|| &rest[..name.len() + 2])
}

/// All statements of a text.
pub fn split(text: &str) -> Vec<Statement> {
    statements(text).map(Portion::to_statement).collect()
}

/// Whether a statement only reads, so that it can run on a store that is open for reading. In doubt, no.
pub fn only_reads(statement: &str) -> bool {
    let mut words = words(statement);
    let mut first = words.next();
    while first
        .as_deref()
        .is_some_and(|word| ["explain", "analyze", "verbose"].contains(&word))
    {
        first = words.next();
    }
    match first.as_deref() {
        Some(
            "select" | "with" | "values" | "show" | "describe" | "desc" | "summarize" | "table"
            | "from",
        ) => {
            let changes = ["insert", "delete", "update", "into", "nextval", "setval"];
            !words.any(|word| changes.contains(&word.as_str()))
        }
        _ => false,
    }
}

/// Whether a statement creates a table: the one kind of statement with which a new store may begin.
pub fn creates_table(statement: &str) -> bool {
    let mut words = words(statement);
    let mut next = || words.next().unwrap_or_default();
    let mut word = (next() == "create").then(&mut next).unwrap_or_default();
    if word == "or" {
        // `or replace`
        next();
        word = next();
    }
    word == "table"
}

/// The first word of a statement, in lower case.
pub fn first_word(statement: &str) -> Option<String> {
    words(statement).next()
}

/// The words of a statement outside strings, names in quotes and comments, in lower case.
fn words(statement: &str) -> impl Iterator<Item = String> + '_ {
    let (mut inside, mut at) = (Inside::Nothing, 0);
    std::iter::from_fn(move || {
        while let Some(c) = statement[at..].chars().next() {
            let (changed, length) = step(&inside, &statement[at..], c);
            let word = inside == Inside::Nothing && changed.is_none() && is_word(c);
            let text = &statement[at..at + length];
            at += length;
            if let Some(next) = changed {
                inside = next;
            }
            if word {
                return Some(text.to_lowercase());
            }
        }
        None
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<String> {
        split(text)
            .into_iter()
            .map(|statement| statement.text.trim().to_owned())
            .collect()
    }

    #[test]
    fn only_semicolons_outside_of_everything_split() {
        let quoted = "select 'a;''b;' as \"x;y\" -- c;\n, /* d; /* e; */ f; */ $t$ g; $h$ $t$";
        assert_eq!(texts(&format!("{quoted}; select 2")), [quoted, "select 2"]);
        assert_eq!(
            texts("select $1; select 2;; -- nothing\n ;/* ; */"),
            ["select $1", "select 2"]
        );
        assert_eq!(
            texts("select '\u{e4};\u{1f41a}';\n"),
            ["select '\u{e4};\u{1f41a}'"]
        );
    }

    #[test]
    fn escapes_and_dollars_are_those_of_the_grammar() {
        for whole in [
            r"select e'it\'s; ' as a",
            r"select E'\\' as a",
            "select e'a'';b'",
            "select a$b$c from t where d$ = 1",
            "select $$a;b$$, $x$ ; $$ ; $x$",
        ] {
            assert_eq!(texts(&format!("{whole}; select 2")), [whole, "select 2"]);
        }
        // Only a word of its own begins escapes.
        assert_eq!(texts(r"select some'a\'; select 2").len(), 2);
    }

    #[test]
    fn statements_that_make_tables_are_known() {
        for makes in [
            "create table t (a int)",
            "-- a comment\nCREATE OR REPLACE TABLE t as select 1",
            "create table if not exists t (a int)",
        ] {
            assert!(creates_table(makes), "{makes}");
        }
        for other in [
            "",
            "select 1",
            "create",
            "create view table as",
            "drop table t",
            "'create' table",
        ] {
            assert!(!creates_table(other), "{other}");
        }
    }

    #[test]
    fn what_is_open_is_told() {
        let open = |text: &str| {
            let mut splitter = Splitter::default();
            splitter.push(text);
            splitter.open()
        };
        let texts = [
            "select\n", "'a\n", "\"a\n", "/* a\n", "$x$ a\n", "e'\\'\n", "-- a",
        ];
        let found = texts.map(open);
        let wanted = [
            None,
            Some('\''),
            Some('"'),
            Some('*'),
            Some('$'),
            Some('\''),
            None,
        ];
        assert_eq!(found, wanted);
    }

    #[test]
    fn text_may_arrive_in_any_pieces_that_end_with_lines() {
        let text = "select 1;\nselect\n 'a\n;b'; select\n3;";
        let mut splitter = Splitter::default();
        let found: Vec<_> = text
            .split_inclusive('\n')
            .flat_map(|line| splitter.push(line))
            .collect();
        assert_eq!(found, split(text));
        assert!(!splitter.pending());
        splitter.push("select 'x\n");
        assert!(splitter.pending());
    }

    /// What is kept of a text is as long as the text, however many statements it has.
    #[test]
    fn many_statements_take_memory_by_their_length() {
        let text = "select 1;".repeat(5_000);
        let mut splitter = Splitter::default();
        for found in [split(&text), splitter.push(&text)] {
            assert_eq!(found.len(), 5_000);
            let kept: usize = found.iter().map(|one| one.text.capacity()).sum();
            assert!(kept <= text.len(), "{kept} bytes");
        }
    }

    /// The mark of a string is not copied for each of its characters.
    #[test]
    fn long_marks_take_time_by_their_length() {
        let began = std::time::Instant::now();
        let mark = format!("${}$", "a".repeat(300_000));
        let text = format!("select {mark}{}{mark}", "b".repeat(300_000));
        assert_eq!(split(&text).len(), 1);
        assert!(began.elapsed().as_secs() < 5, "{:?}", began.elapsed());
    }

    #[test]
    fn portions_know_where_they_stand() {
        let text = "select '\u{e4}';; /* ; */ select 2 ; -- nothing";
        let found: Vec<_> = statements(text).collect();
        assert_eq!(found.len(), 2);
        for one in found {
            assert_eq!(&text[one.offset..one.offset + one.text.len()], one.text);
        }
    }

    #[test]
    fn statements_know_their_place() {
        let found = split("select 1; select\nfoo;\n  bar");
        let places: Vec<_> = found.iter().map(|s| (s.line, s.column)).collect();
        assert_eq!(places, [(1, 0), (1, 9), (2, 4)]);
    }

    #[test]
    fn statements_that_only_read_are_known() {
        for reads in [
            "select 1",
            "/* c */ WITH a AS (select 1) select * from a",
            "explain analyze select 'insert'",
        ] {
            assert!(only_reads(reads), "{reads}");
        }
        for writes in [
            "insert into t values (1)",
            "explain analyze insert into t select 1",
            "select nextval('s')",
            "",
            "create table t (a int)",
        ] {
            assert!(!only_reads(writes), "{writes}");
        }
    }
}
