//! What Tab completes: keywords, tables, columns, `\` commands and their arguments, files.

use std::collections::BTreeSet;

use atoll::TableSummary;
use rustyline::completion::{Completer, FilenameCompleter, Pair};
use rustyline::validate::Validator;
use rustyline::{Context, Helper, Highlighter, Hinter};

use crate::shell::command::{COMMANDS, FURTHER};
use atoll::script::Splitter;

/// Words that can be completed anywhere.
const KEYWORDS: &str = "all alter analyze and as asc avg between bigint boolean by case cast char copy count create cross \
     date decimal delete desc describe distinct double drop else end except exists explain extract false foreign from full \
     group having in inner insert int intersect interval into is join key left like limit max min not null offset on or \
     order outer primary references right select set show sum table text then timestamp to true union update using values \
     varchar verbose when where with";

/// Words that are followed by a table.
const BEFORE_TABLES: &[&str] = &[
    "from", "join", "into", "update", "table", "describe", "desc", "copy",
];

/// The words that can be completed.
#[derive(Helper, Highlighter, Hinter)]
pub struct Words {
    tables: Vec<(String, Vec<String>)>,
    /// The earlier lines of the statement that is being typed.
    before: String,
    files: FilenameCompleter,
}

impl Validator for Words {}

impl Words {
    /// Completion with the `tables` of a store, for a statement that continues after `before`.
    pub fn of(tables: Vec<TableSummary>, before: &str) -> Words {
        let named = |table: TableSummary| {
            let columns = table.columns.into_iter().map(|column| column.name);
            (table.name, columns.collect())
        };
        Words {
            tables: tables.into_iter().map(named).collect(),
            before: before.to_owned(),
            files: FilenameCompleter::new(),
        }
    }

    /// The completions of the word at the end of `line`, and where this word begins; `rest` is the text after the
    /// cursor. `None` if the word is the name of a file.
    fn words(&self, line: &str, rest: &str) -> Option<(usize, Vec<String>)> {
        let line_command = self.before.is_empty() && line.trim_start().starts_with('\\');
        if line_command {
            return self.of_command(line);
        }
        let text = format!("{}{line}", self.before);
        let mut splitter = Splitter::default();
        splitter.push(&text);
        match splitter.open() {
            Some('\'') => return None,
            Some('"' | '`') | None => {}
            Some(_) => return Some((line.len(), Vec::new())),
        }
        let mut start = word_start(line);
        let typed = &line[start..];
        let mut ahead = &text[..text.len() - typed.len()];
        if splitter.open().is_some() && ahead.ends_with(['"', '`']) {
            // The quote is added again if the name needs it.
            (start, ahead) = (start - 1, &ahead[..ahead.len() - 1]);
        }
        if let Some(qualifier) = ahead.strip_suffix('.') {
            let statement = format!("{}{rest}", splitter.text());
            return Some((
                start,
                self.columns_of(&statement, last_word(qualifier), typed),
            ));
        }
        let previous = last_word(ahead.trim_end()).to_lowercase();
        let tables = self.tables.iter().map(|(name, _)| name.as_str());
        if BEFORE_TABLES.contains(&previous.as_str()) {
            return Some((start, starting(typed, tables)));
        }
        if typed.is_empty() {
            return Some((start, Vec::new()));
        }
        let columns = self.tables.iter().flat_map(|(_, columns)| columns);
        let names = tables.chain(columns.map(String::as_str));
        let mut found = starting(typed, names);
        let upper = !typed.contains(char::is_lowercase);
        found.extend(
            starting(typed, KEYWORDS.split_whitespace())
                .into_iter()
                .map(|word| if upper { word.to_uppercase() } else { word }),
        );
        found.sort();
        found.dedup();
        Some((start, found))
    }

    /// Completes a `\` command or its argument.
    fn of_command(&self, line: &str) -> Option<(usize, Vec<String>)> {
        let first = line.len() - line.trim_start().len();
        let Some((name, rest)) = line[first..].split_once(char::is_whitespace) else {
            let commands = COMMANDS.iter().map(|(name, ..)| *name);
            let commands = commands.chain(FURTHER.iter().copied());
            let mut found = starting(&line[first..], commands);
            found.dedup();
            return Some((first, found));
        };
        let start = word_start(line);
        let typed = &line[start..];
        let tables = || self.tables.iter().map(|(name, _)| name.as_str());
        let found = match name {
            "\\d" | "\\d+" | "\\dt" => starting(typed, tables()),
            "\\copy" if rest.trim_start() == typed => starting(typed, tables()),
            "\\copy" if !rest.trim_start().contains(" from ") && !rest.contains(" to ") => {
                starting(typed, ["from", "to"])
            }
            "\\i" | "\\o" | "\\e" | "\\l" | "\\c" | "\\!" | "\\copy" => return None,
            "\\x" => starting(typed, ["on", "off", "auto"]),
            "\\timing" | "\\pager" => starting(typed, ["on", "off"]),
            _ => Vec::new(),
        };
        Some((start, found))
    }

    /// The columns of the table or alias `name` in the statement `text`; those of all tables if it is neither.
    fn columns_of(&self, text: &str, name: &str, typed: &str) -> Vec<String> {
        let plain = |word: &str| word.trim_matches(['"', '`']).to_lowercase();
        let name = plain(name);
        let words: Vec<String> = text
            .split(|c: char| !(c.is_alphanumeric() || c == '_'))
            .filter(|word| !word.is_empty())
            .map(plain)
            .collect();
        let is_table = |word: &str| self.tables.iter().any(|(table, _)| plain(table) == word);
        // `from orders o` and `from orders as o`: the table stands before its alias.
        let meant: BTreeSet<&str> = (0..words.len())
            .filter(|at| words[*at] == name)
            .filter_map(|at| {
                let before = words[..at].iter().rev().find(|word| *word != "as")?;
                is_table(before).then_some(before.as_str())
            })
            .chain(is_table(&name).then_some(name.as_str()))
            .collect();
        let of = |table: &str| meant.is_empty() || meant.contains(plain(table).as_str());
        let columns = self.tables.iter().filter(|(table, _)| of(table));
        let columns = columns.flat_map(|(_, columns)| columns);
        let mut found = starting(typed, columns.map(String::as_str));
        found.sort();
        found.dedup();
        found
    }
}

/// Where the last word of `line` begins; a `\` command begins with its backslash.
fn word_start(line: &str) -> usize {
    let end = line.rfind(|c: char| !c.is_alphanumeric() && c != '_');
    end.map_or(0, |at| {
        at + line[at..].chars().next().map_or(1, char::len_utf8)
    })
}

/// The last word of `text`, with quotes.
fn last_word(text: &str) -> &str {
    let other = |c: char| !(c.is_alphanumeric() || c == '_' || c == '"' || c == '`');
    &text[text.rfind(other).map_or(0, |at| {
        at + text[at..].chars().next().map_or(1, char::len_utf8)
    })..]
}

/// Those of `words` that begin with `typed`, ignoring case; in quotes if they need them.
fn starting<'a>(typed: &str, words: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let typed = typed.to_lowercase();
    let found = words
        .into_iter()
        .filter(|word| word.to_lowercase().starts_with(&typed));
    let found = found.map(|word| {
        if word.starts_with('\\') || is_plain(word) {
            word.to_owned()
        } else {
            format!("\"{}\"", word.replace('"', "\"\""))
        }
    });
    found.collect()
}

/// Whether a name needs no quotes.
fn is_plain(name: &str) -> bool {
    let first = name.starts_with(|c: char| c.is_lowercase() || c == '_');
    first
        && name
            .chars()
            .all(|c| c.is_ascii_digit() || c == '_' || (c.is_alphabetic() && !c.is_uppercase()))
}

impl Completer for Words {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        position: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Pair>)> {
        let Some((start, found)) = self.words(&line[..position], &line[position..]) else {
            return self.files.complete_path(line, position);
        };
        let pairs = found.into_iter().map(|word| Pair {
            display: word.clone(),
            replacement: word,
        });
        Ok((start, pairs.collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(before: &str) -> Words {
        let columns = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Words {
            tables: vec![
                ("lineitem".into(), columns(&["l_orderkey", "l_shipdate"])),
                ("orders".into(), columns(&["o_orderkey", "Order Date"])),
            ],
            before: before.to_owned(),
            files: FilenameCompleter::new(),
        }
    }

    #[track_caller]
    fn completes(before: &str, line: &str, wanted: &[&str]) {
        let found = words(before).words(line, "");
        let (start, found) = found.expect("a word, not a file");
        assert_eq!(found, wanted, "{line}");
        assert!(start <= line.len());
    }

    #[test]
    fn words_are_completed_in_the_case_typed() {
        completes("", "sel", &["select"]);
        completes("", "SE", &["SELECT", "SET"]);
        completes("", "select sum(l_s", &["l_shipdate"]);
        completes("", "select ", &[]);
        completes("", "'\u{e4}' se", &["select", "set"]);
    }

    #[test]
    fn tables_stand_behind_from_and_columns_behind_their_table() {
        completes("", "select * from ", &["lineitem", "orders"]);
        completes("", "select * from lineitem join o", &["orders"]);
        completes(
            "",
            "select \"or",
            &["\"Order Date\"", "or", "order", "orders"],
        );
        completes(
            "select 1 from orders as o\n",
            "where o.",
            &["\"Order Date\"", "o_orderkey"],
        );
        completes(
            "select * from lineitem l, orders o\n",
            "where l.",
            &["l_orderkey", "l_shipdate"],
        );
        completes("", "select orders.o", &["\"Order Date\"", "o_orderkey"]);
        completes("select /* a\n", "l_", &[]);
        let inside = words("").words("select o.", " from orders o");
        assert_eq!(inside.unwrap().1, ["\"Order Date\"", "o_orderkey"]);
    }

    #[test]
    fn commands_and_files_are_completed() {
        completes("", "\\ti", &["\\timing"]);
        completes("", "\\d li", &["lineitem"]);
        completes("", "\\x a", &["auto"]);
        completes("", "\\copy li", &["lineitem"]);
        completes("", "\\copy lineitem f", &["from"]);
        for line in [
            "\\i ",
            "\\o a",
            "\\copy lineitem from a",
            "select * from 'a",
            "copy t from '",
        ] {
            assert_eq!(words("").words(line, ""), None, "{line}");
        }
        assert_eq!(words("select '\n").words("a", ""), None);
    }
}
