//! Turns typed lines into statements and `\` commands.

use atoll::TransactionStatus;
use atoll::script::{Splitter, Statement};

/// A statement or command that a line completes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// A statement, which may have begun on earlier lines.
    Statement(Statement),
    /// A `\` command: the line from the backslash on.
    Command(String),
}

/// Collects lines until statements are complete.
#[derive(Debug, Default)]
pub struct Input {
    splitter: Splitter,
    /// Whether lines are counted through all of the input, as in a file, rather than from the beginning of each
    /// statement.
    script: bool,
}

impl Input {
    /// An input whose lines come from a file.
    pub fn script() -> Input {
        Input {
            script: true,
            ..Input::default()
        }
    }

    /// Takes lines and returns what they complete. A line that begins with a backslash is a command, unless a string or
    /// a comment is open; where no statement has begun, also one that begins with a point and a letter. Only who types
    /// words such as `exit` means a command.
    pub fn push(&mut self, text: &str) -> Vec<Item> {
        let mut items = Vec::new();
        for line in text.split_inclusive('\n') {
            let line = line.strip_suffix('\n').unwrap_or(line);
            let word = line.trim().trim_end_matches(';').trim_end();
            let command = match (self.splitter.open(), self.splitter.pending()) {
                (None, _) if word.starts_with('\\') => Some(line.trim().to_owned()),
                (None, false) if !self.script || word.starts_with('.') => plain(word),
                _ => None,
            };
            // The line of a command is counted, too.
            let statements = self.splitter.push(&match command {
                Some(_) => "\n".to_owned(),
                None => format!("{line}\n"),
            });
            items.extend(statements.into_iter().map(Item::Statement));
            items.extend(command.map(Item::Command));
            if !self.script && !self.splitter.pending() {
                self.splitter = Splitter::default();
            }
        }
        items
    }

    /// The statements and commands of a whole text.
    pub fn all(text: &str) -> Vec<Item> {
        let mut input = Input::script();
        let mut items = input.push(text);
        items.extend(input.rest().map(Item::Statement));
        items
    }

    /// The unfinished statement, if there is one.
    pub fn rest(self) -> Option<Statement> {
        self.splitter.finish()
    }

    /// Whether there is an unfinished statement.
    pub fn pending(&self) -> bool {
        self.splitter.pending()
    }

    /// The text of the unfinished statement.
    pub fn text(&self) -> &str {
        if self.pending() {
            self.splitter.text()
        } else {
            ""
        }
    }

    /// Drops the unfinished statement.
    pub fn clear(&mut self) {
        self.splitter = Splitter::default();
    }

    /// The prompt of the next line, which shows what is still open: a statement, or a transaction (`*`), which may have
    /// failed (`!`).
    pub fn prompt(&self, transaction: TransactionStatus) -> &'static str {
        match (self.splitter.open(), self.splitter.pending()) {
            (None, false) => match transaction {
                TransactionStatus::Open => "atoll*> ",
                TransactionStatus::Failed => "atoll!> ",
                _ => "atoll> ",
            },
            (None, true) => "    -> ",
            (Some('\''), _) => "    '> ",
            (Some('"'), _) => "    \"> ",
            (Some('`'), _) => "    `> ",
            (Some('*'), _) => "    *> ",
            (Some(_), _) => "    $> ",
        }
    }
}

/// The `\` command for what people type in other shells: words such as `exit`, and the commands of SQLite and DuckDB, which
/// begin with a point. No statement begins so.
fn plain(line: &str) -> Option<String> {
    let (word, rest) = line
        .split_once(char::is_whitespace)
        .map_or((line, ""), |(word, rest)| (word, rest.trim()));
    let command = match word.to_ascii_lowercase().as_str() {
        "exit" | "quit" if rest.is_empty() => "\\q",
        "help" | "?" => return Some("\\?".to_owned()),
        ".exit" | ".quit" => "\\q",
        ".help" => return Some("\\?".to_owned()),
        ".tables" | ".table" => "\\dt",
        ".schema" | ".columns" => "\\d",
        ".indexes" | ".indices" => "\\di",
        ".views" => "\\dv",
        ".databases" => return Some("\\l".to_owned()),
        ".open" => "\\c",
        ".read" => "\\i",
        ".output" | ".once" => "\\o",
        ".timer" => "\\timing",
        ".maxrows" => "\\limit",
        ".shell" | ".system" => "\\!",
        ".print" => "\\echo",
        dotted
            if dotted.starts_with('.')
                && dotted[1..].starts_with(|c: char| c.is_ascii_alphabetic()) =>
        {
            return Some(line.to_owned());
        }
        _ => return None,
    };
    Some(format!("{command} {rest}").trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(input: &mut Input, text: &str) -> Vec<String> {
        let items = input.push(text).into_iter();
        items
            .map(|item| match item {
                Item::Statement(statement) => statement.text.trim().to_owned(),
                Item::Command(command) => format!("[{command}]"),
            })
            .collect()
    }

    #[test]
    fn a_paste_is_all_of_its_statements() {
        let mut input = Input::default();
        let text = "select 1; select 'a;\n\\b';\n\\timing off\n-- no; statement\n/* nor\n\\this */ select $$;\n$$; select\n2;\n";
        let found = read(&mut input, text);
        let wanted = [
            "select 1",
            "select 'a;\n\\b'",
            "[\\timing off]",
            "/* nor\n\\this */ select $$;\n$$",
            "select\n2",
        ];
        assert_eq!(found, wanted);
        assert!(!input.pending());
    }

    #[test]
    fn prompts_tell_what_is_open() {
        let mut input = Input::default();
        let mut prompt = |line: &str| {
            input.push(line);
            input.prompt(TransactionStatus::Idle)
        };
        assert_eq!(prompt(""), "atoll> ");
        assert_eq!(prompt("select"), "    -> ");
        assert_eq!(prompt("'a"), "    '> ");
        assert_eq!(prompt("' as \"b"), "    \"> ");
        assert_eq!(prompt("\" /*"), "    *> ");
        assert_eq!(prompt("*/ , $x$"), "    $> ");
        assert_eq!(prompt("$x$"), "    -> ");
        assert_eq!(prompt(";"), "atoll> ");
        assert_eq!(prompt("-- a comment"), "atoll> ");
        let input = Input::default();
        assert_eq!(input.prompt(TransactionStatus::Open), "atoll*> ");
        assert_eq!(input.prompt(TransactionStatus::Failed), "atoll!> ");
    }

    #[test]
    fn commands_leave_a_statement_as_it_is() {
        let mut input = Input::default();
        assert_eq!(
            read(&mut input, "select 1\n\\x on\n+ 1;"),
            ["[\\x on]", "select 1\n\n+ 1"]
        );
        assert_eq!(read(&mut input, "exit;"), ["[\\q]"]);
        assert_eq!(
            read(&mut input, ".tables\n.schema coral\nhelp\n.quit\n.mode csv"),
            ["[\\dt]", "[\\d coral]", "[\\?]", "[\\q]", "[.mode csv]"]
        );
        assert_eq!(
            read(&mut input, "help select\nexit 1;"),
            ["[\\?]", "exit 1"]
        );
        assert_eq!(read(&mut input, ".5;"), [".5"]);
        assert_eq!(read(&mut input, "select\nexit"), Vec::<String>::new());
        assert_eq!(input.text(), "select\nexit\n");
        input.clear();
        assert!(!input.pending() && input.text().is_empty());
    }

    #[test]
    fn a_script_has_commands_and_no_words() {
        let mut input = Input::script();
        assert_eq!(
            read(
                &mut input,
                "\\dt\r\n.tables\nselect 'a\r\n.tables\n\\q';\n.5;\nhelp\n;"
            ),
            [
                "[\\dt]",
                "[\\dt]",
                "select 'a\r\n.tables\n\\q'",
                ".5",
                "help"
            ]
        );
    }

    #[test]
    fn places_are_those_of_the_statement_or_of_the_file() {
        let places = |mut input: Input| -> Vec<_> {
            let items = input
                .push("select 1;\n\\x\nselect 2; select\n3;")
                .into_iter();
            items
                .filter_map(|item| match item {
                    Item::Statement(statement) => Some((statement.line, statement.column)),
                    Item::Command(_) => None,
                })
                .collect()
        };
        assert_eq!(places(Input::default()), [(1, 0), (1, 0), (1, 9)]);
        assert_eq!(places(Input::script()).len(), 3);
        assert_eq!(places(Input::script())[2], (3, 9));
    }
}
