//! The plainest texts of [queries for the row of one key](KeyQuery), read without a parser.
//!
//! `select` columns, perhaps with `as`, or `*`; `from` a table, perhaps with its schema and an alias; `where` columns `=`
//! values with `and` between them. What is read here the parser reads alike, which a test sees to; anything that might be read
//! otherwise, such as a word with a meaning of its own, is left to it.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::Token;
use table::within;

use crate::key_query::{KeyQuery, KeyValue};
use crate::names::base;

/// The longest text that is looked at, in bytes.
const LONGEST: usize = 4096;

/// Words of the parser that are names like all others where these texts have names. In alphabetical order.
const PLAIN: [&str; 16] = [
    "action", "category", "comment", "data", "id", "key", "level", "location", "message", "name",
    "number", "owner", "source", "status", "value", "version",
];

/// What `text` asks for, if it is such a query and nothing else.
pub fn of_text(text: &str) -> Option<KeyQuery> {
    let mut reader = Reader(text);
    if text.len() > LONGEST || !reader.word("select") {
        return None;
    }
    let items = reader.items()?;
    let (table, qualifier) = reader.table()?;
    let mut values = Vec::new();
    loop {
        let column = reader.column()?;
        let value = reader.value()?;
        values.push((column, value));
        if !reader.word("and") {
            break;
        }
    }
    reader.end()?;
    let own = |column: &Column| column.table.is_none() || column.table == qualifier;
    let mut columns = items.iter().flatten().map(|(column, _)| column);
    if !columns.all(own) || !values.iter().all(|(column, _)| own(column)) {
        return None;
    }
    // The name of the table alone is its row.
    let row = qualifier.as_deref().unwrap_or_else(|| base(&table));
    let mut columns = items.iter().flatten().map(|(column, _)| column);
    if columns.any(|column| column.table.is_none() && column.name == row) {
        return None;
    }
    let items = items.map(|items| {
        let items = items.into_iter().map(|(column, name)| {
            let name = name.unwrap_or_else(|| column.name.clone());
            (column.name, name)
        });
        items.collect()
    });
    let values = values
        .into_iter()
        .map(|(column, value)| (column.name, value));
    Some(KeyQuery {
        table,
        items,
        values: values.collect(),
    })
}

/// A column as a text names it.
struct Column {
    table: Option<String>,
    name: String,
}

/// Columns, and what each is called if that is said.
type Items = Vec<(Column, Option<String>)>;

/// What is left to read.
struct Reader<'t>(&'t str);

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

impl<'t> Reader<'t> {
    fn skip(&mut self) {
        self.0 = self.0.trim_start_matches([' ', '\t', '\n', '\r']);
    }

    /// The letters, digits and underscores that are next; what comes behind ends a word.
    fn letters(&self) -> &'t str {
        let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
        let length = self.0.bytes().take_while(is_part).count();
        let (letters, rest) = self.0.split_at(length);
        let ends = match rest.bytes().next() {
            None => true,
            Some(byte) => is_space(byte) || matches!(byte, b',' | b';' | b'=' | b'.'),
        };
        if ends { letters } else { "" }
    }

    /// Takes this word, if it is next.
    fn word(&mut self, wanted: &str) -> bool {
        self.skip();
        let letters = self.letters();
        // What is qualified is a name.
        let rest = &self.0[letters.len()..];
        let found = letters.eq_ignore_ascii_case(wanted) && !rest.starts_with('.');
        if found {
            self.0 = rest;
        }
        found
    }

    /// Takes this character, if it is next.
    fn take(&mut self, wanted: char) -> bool {
        self.skip();
        match self.0.strip_prefix(wanted) {
            Some(rest) => {
                self.0 = rest;
                true
            }
            None => false,
        }
    }

    /// Takes a name; `plain` also if it is a word of the parser.
    fn name(&mut self, plain: bool) -> Option<String> {
        self.skip();
        if let Some(rest) = self.0.strip_prefix('"') {
            let (name, rest) = rest.split_once('"')?;
            let clean = !name.is_empty() && !name.contains(|c: char| c.is_control() || c == '\\');
            self.0 = rest;
            return (clean && !rest.starts_with('"')).then(|| name.to_owned());
        }
        let letters = self.letters();
        if !letters.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
            return None;
        }
        let name = letters.to_ascii_lowercase();
        let Token::Word(word) = Token::make_word(&name, None) else {
            return None;
        };
        let is_plain = word.keyword == Keyword::NoKeyword
            || plain && PLAIN.binary_search(&name.as_str()).is_ok();
        self.0 = &self.0[letters.len()..];
        is_plain.then_some(name)
    }

    /// Takes a name, or two with a point between them.
    fn names(&mut self) -> Option<(Option<String>, String)> {
        let first = self.name(true)?;
        if !self.0.starts_with('.') {
            return Some((None, first));
        }
        self.0 = &self.0[1..];
        if self.0.bytes().next().is_none_or(is_space) {
            return None;
        }
        let second = self.name(true)?;
        (!self.0.starts_with('.')).then_some((Some(first), second))
    }

    fn column(&mut self) -> Option<Column> {
        let (table, name) = self.names()?;
        Some(Column { table, name })
    }

    /// The columns, and their names where they say any; none for all.
    fn items(&mut self) -> Option<Option<Items>> {
        if self.take('*') {
            return self.word("from").then_some(None);
        }
        let mut items = Vec::new();
        loop {
            let column = self.column()?;
            let name = if self.word("as") {
                Some(self.name(true)?)
            } else {
                None
            };
            items.push((column, name));
            if !self.take(',') {
                break;
            }
        }
        self.word("from").then_some(Some(items))
    }

    /// The table, as it is written, and what its columns may be called by; up to `where`.
    fn table(&mut self) -> Option<(String, Option<String>)> {
        let (schema, name) = self.names()?;
        let alias = if self.word("where") {
            None
        } else {
            let said = self.word("as");
            let alias = self.name(said)?;
            if !self.word("where") {
                return None;
            }
            Some(alias)
        };
        Some(match schema {
            None => (name.clone(), Some(alias.unwrap_or(name))),
            Some(schema) => (within(&schema, &name), alias),
        })
    }

    /// Takes `=` and a value.
    fn value(&mut self) -> Option<KeyValue> {
        if !self.take('=') {
            return None;
        }
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '\'' | '$');
        if !self.0.starts_with([' ', '\t', '\n', '\r']) && !self.0.starts_with(plain) {
            return None;
        }
        self.skip();
        let value = if self.0.starts_with('\'') {
            self.text()?
        } else if self.0.starts_with(|c: char| c.is_ascii_digit() || c == '-') {
            self.number()?
        } else if self.0.starts_with('$') {
            self.parameter()?
        } else if self.word("null") {
            KeyValue::Null
        } else if self.word("true") {
            KeyValue::Boolean(true)
        } else if self.word("false") {
            KeyValue::Boolean(false)
        } else {
            return None;
        };
        let next = self.0.bytes().next();
        next.is_none_or(|byte| is_space(byte) || byte == b';')
            .then_some(value)
    }

    fn text(&mut self) -> Option<KeyValue> {
        let mut text = String::new();
        let mut rest = &self.0[1..];
        loop {
            let (part, behind) = rest.split_once('\'')?;
            if part.contains(['\\', '\0']) {
                return None;
            }
            text.push_str(part);
            match behind.strip_prefix('\'') {
                Some(behind) => {
                    text.push('\'');
                    rest = behind;
                }
                None => {
                    self.0 = behind;
                    return Some(KeyValue::Text(text));
                }
            }
        }
    }

    fn number(&mut self) -> Option<KeyValue> {
        let negative = self.0.starts_with('-');
        let digits = &self.0[usize::from(negative)..];
        let length = digits.bytes().take_while(u8::is_ascii_digit).count();
        let (digits, rest) = digits.split_at(length);
        if !(1..=18).contains(&length) {
            return None;
        }
        let number: i64 = digits.parse().ok()?;
        self.0 = rest;
        Some(KeyValue::Whole(if negative { -number } else { number }))
    }

    fn parameter(&mut self) -> Option<KeyValue> {
        let digits = &self.0[1..];
        let length = digits.bytes().take_while(u8::is_ascii_digit).count();
        let (digits, rest) = digits.split_at(length);
        if !(1..=3).contains(&length) || digits.starts_with('0') {
            return None;
        }
        let number: usize = digits.parse().ok()?;
        self.0 = rest;
        Some(KeyValue::Parameter(number - 1))
    }

    /// The end of the text, perhaps behind a semicolon.
    fn end(&mut self) -> Option<()> {
        self.take(';');
        self.skip();
        self.0.is_empty().then_some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parameters::readied;

    /// What the parser makes of a text.
    fn parsed(text: &str) -> Option<KeyQuery> {
        readied(text).ok()??.key_query()
    }

    #[test]
    fn plain_texts_are_read() {
        for text in [
            "select * from t where id = 5",
            "SELECT a, B as c from S.t where Id=7 and \"b\" = 'it''s' ;",
            "select x.a, x.\"Two Words\" as \"C\" from t as x where x.a = -3",
            "select t.a from t where t.a = null and t.b = true and c = FALSE",
            "select id, value as key from data d where d.id = 'x'\n",
            "select a, a as a, a from t where a = 007",
            "select a from t where a = $2 and b =$1",
        ] {
            let read = of_text(text);
            assert!(read.is_some(), "{text}");
            assert_eq!(read, parsed(text), "{text}");
        }
        let aliased = "select x.a from s.t x where x.a = 1";
        assert_eq!(of_text(aliased), parsed(aliased));
        for word in PLAIN {
            let text = format!(
                "select {word}.{word}, {word}.{word} as {word} from {word} as {word} where {word} = 1 and {word}.{word} = 2"
            );
            assert!(of_text(&text).is_some(), "{text}");
            assert_eq!(of_text(&text), parsed(&text), "{text}");
            let text = format!("select {word} from {word}.{word} where {word} = 1");
            assert_eq!(of_text(&text), parsed(&text), "{text}");
        }
        let sorted = PLAIN.is_sorted();
        assert!(sorted);
    }

    #[test]
    fn other_texts_are_left_to_the_parser() {
        for text in [
            "select current_user from t where id = 5",
            "select t from t where id = 5",
            "select a, x from s.t x where id = 5",
            "select t from s.t where id = 5",
            "select distinct from t where id = 5",
            "select a from t where id = 5 or id = 6",
            "select a from t where id = 5; select 1",
            "select a from t where id = 5.0",
            "select a from t where id = 5 -- or not",
            "select a from t where id = e'5'",
            "select a from t where id = '5' '6'",
            "select a from t where id = 99999999999999999999",
            "select a from t where id =-5",
            "select a from only t where id = 5 limit 1",
            "select other.a from t where id = 5",
            "select t.a from t as x where id = 5",
            "select a from t where id = 5 for update",
            "select a from t tablesample where id = 5",
            "select a from t",
            "select",
            "",
        ] {
            assert_eq!(of_text(text), None, "{text}");
        }
    }

    /// Texts of parts of such queries, and of words that are none: where one is read, the parser reads it alike.
    #[test]
    fn what_is_read_the_parser_reads_alike() {
        const PARTS: [&str; 45] = [
            "select", "SELECT", "*", "a", "b", "A", "id", "name", "value", "\"a\"", "\"A b\"", ",",
            ".", "t", "t.", ".a", "x", "as", "from", "where", "=", "= ", "1", "-1", "- 1", "$1",
            "'x'", "'it''s'", "null", "true", "and", "or", ";", "(", ")", "user", "date", "time",
            "limit", "join", "on", "only", "lateral", "key", "is",
        ];
        let mut random = fastrand::Rng::with_seed(0xA11);
        let mut read = 0;
        for _ in 0..60_000 {
            let mut parts = vec![
                "select", "a", ",", "b", "as", "x", "from", "t", "as", "x", "where", "a", "=", "1",
                "and", "x", ".", "b", "=", "'x'",
            ];
            for _ in 0..random.usize(0..5) {
                let at = random.usize(0..parts.len());
                match random.u8(0..3) {
                    0 => _ = parts.remove(at),
                    1 => parts.insert(at, PARTS[random.usize(0..PARTS.len())]),
                    _ => parts[at] = PARTS[random.usize(0..PARTS.len())],
                }
            }
            let mut text = String::new();
            for part in parts {
                text.push_str(part);
                if part != "." && random.u8(0..8) > 0 {
                    text.push(' ');
                }
            }
            let text = text.replace(" .", ".");
            let Some(query) = of_text(&text) else {
                continue;
            };
            read += 1;
            assert_eq!(Some(query), parsed(&text), "{text}");
        }
        assert!(read > 1_000, "{read}");
    }
}
