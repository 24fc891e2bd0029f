//! `declare`, `fetch`, `move` and `close`, read from their text.

use crate::wire::backend::Report;

/// A statement about cursors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CursorCommand {
    Declare(Declare),
    Fetch(Fetch),
    /// All of them if there is no name.
    Close(Option<String>),
}

/// `declare name ... cursor ... for query`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Declare {
    pub name: String,
    /// Whether simple queries get its rows in binary.
    pub binary: bool,
    /// Whether it outlives its transaction.
    pub hold: bool,
    /// Whether it is to go backwards; none if nothing is said.
    pub scroll: Option<bool>,
    pub query: String,
    /// How many characters come before the query.
    pub before: usize,
}

/// `fetch` or `move`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fetch {
    pub name: String,
    pub direction: Direction,
    /// It is `move`, which sends no rows.
    pub moves: bool,
}

/// Which rows are fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// So many from the next on.
    Forward(u64),
    /// All from the next on.
    All,
    /// The row of this number, counted from 1, or from the last if it is negative.
    Absolute(i64),
    /// The row that lies so far ahead.
    Relative(i64),
    /// So many rows before this one, or all, the nearest first.
    Backward(Option<u64>),
}

/// The statement about cursors that `text` is; none if it is another.
///
/// # Errors
/// If it begins as one and cannot be read.
pub(crate) fn read(text: &str) -> Result<Option<CursorCommand>, Report> {
    let mut reader = Reader {
        text,
        began: 0,
        at: 0,
    };
    let Some(Token::Word(verb)) = reader.next() else {
        return Ok(None);
    };
    Ok(Some(match verb.as_str() {
        "declare" => CursorCommand::Declare(declare(&mut reader)?),
        "fetch" => CursorCommand::Fetch(fetch(&mut reader, false)?),
        "move" => CursorCommand::Fetch(fetch(&mut reader, true)?),
        "close" => {
            let name = match reader.next() {
                Some(Token::Word(word)) if word == "all" => None,
                Some(Token::Word(name) | Token::Name(name)) => Some(name),
                _ => return Err(reader.wrong()),
            };
            reader.end()?;
            CursorCommand::Close(name)
        }
        _ => return Ok(None),
    }))
}

fn declare(reader: &mut Reader<'_>) -> Result<Declare, Report> {
    let name = match reader.next() {
        Some(Token::Word(name) | Token::Name(name)) => name,
        _ => return Err(reader.wrong()),
    };
    let (mut binary, mut scroll) = (false, None);
    loop {
        match reader.word()?.as_str() {
            "binary" => binary = true,
            "insensitive" | "asensitive" => {}
            word @ ("scroll" | "no") => {
                let wanted = word == "scroll";
                if !wanted {
                    reader.expect("scroll")?;
                }
                if scroll.is_some_and(|before| before != wanted) {
                    let message = "cannot specify both SCROLL and NO SCROLL";
                    return Err(Report::error("42P11", message));
                }
                scroll = Some(wanted);
            }
            "cursor" => break,
            _ => return Err(reader.wrong()),
        }
    }
    let hold = match reader.word()?.as_str() {
        word @ ("with" | "without") => {
            reader.expect("hold")?;
            reader.expect("for")?;
            word == "with"
        }
        "for" => false,
        _ => return Err(reader.wrong()),
    };
    let rest = &reader.text[reader.at..];
    let query = rest.trim();
    let query = query.strip_suffix(';').unwrap_or(query).trim_end();
    if query.is_empty() {
        reader.next();
        return Err(reader.wrong());
    }
    let start = reader.text.len() - rest.trim_start().len();
    Ok(Declare {
        name,
        binary,
        hold,
        scroll,
        query: query.to_string(),
        before: reader.text[..start].chars().count(),
    })
}

fn fetch(reader: &mut Reader<'_>, moves: bool) -> Result<Fetch, Report> {
    let mut tokens = Vec::new();
    while let Some(token) = reader.next() {
        if token != Token::Sign(';') {
            tokens.push(token);
        }
    }
    let name = match tokens.pop() {
        Some(Token::Word(name) | Token::Name(name)) => name,
        _ => return Err(reader.wrong()),
    };
    let mut words = Vec::new();
    let mut sign = "";
    for token in &tokens {
        match token {
            Token::Word(word) => words.push(format!("{}{word}", std::mem::take(&mut sign))),
            Token::Sign('-') if sign.is_empty() => sign = "-",
            Token::Sign('+') if sign.is_empty() => sign = "+",
            _ => return Err(reader.wrong()),
        }
    }
    if !sign.is_empty() {
        return Err(reader.wrong());
    }
    if matches!(words.last().map(String::as_str), Some("from" | "in")) {
        words.pop();
    }
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let number = |word: &str| word.parse::<i64>().map_err(|_| reader.wrong());
    let forward = |count: i64| match u64::try_from(count) {
        Ok(count) => Direction::Forward(count),
        Err(_) => Direction::Backward(Some(count.unsigned_abs())),
    };
    let direction = match words[..] {
        [] | ["next" | "forward"] => Direction::Forward(1),
        ["prior" | "backward"] => Direction::Backward(Some(1)),
        ["backward", "all"] => Direction::Backward(None),
        ["first"] => Direction::Absolute(1),
        ["last"] => Direction::Absolute(-1),
        ["absolute", at] => Direction::Absolute(number(at)?),
        ["relative", by] => Direction::Relative(number(by)?),
        ["all"] | ["forward", "all"] => Direction::All,
        ["backward", count] => forward(number(count)?.checked_neg().ok_or_else(|| reader.wrong())?),
        ["forward", count] | [count] => forward(number(count)?),
        _ => return Err(reader.wrong()),
    };
    Ok(Fetch {
        name,
        direction,
        moves,
    })
}

/// A part of a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    /// In lower case.
    Word(String),
    /// It stood in quotes.
    Name(String),
    Sign(char),
}

/// Reads a statement from its start.
struct Reader<'t> {
    text: &'t str,
    /// Where the last part began.
    began: usize,
    /// Where the next begins.
    at: usize,
}

impl Reader<'_> {
    fn next(&mut self) -> Option<Token> {
        self.skip();
        self.began = self.at;
        let rest = &self.text[self.at..];
        let first = rest.chars().next()?;
        let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$');
        if first == '"' {
            return Some(self.name());
        }
        if is_part(first) && first != '$' {
            let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
            self.at += end;
            return Some(Token::Word(rest[..end].to_lowercase()));
        }
        self.at += first.len_utf8();
        Some(Token::Sign(first))
    }

    /// The name in quotes that begins here. One without an end goes to the end.
    fn name(&mut self) -> Token {
        let mut name = String::new();
        let mut rest = &self.text[self.at + 1..];
        loop {
            let Some(end) = rest.find('"') else {
                name.push_str(rest);
                self.at = self.text.len();
                return Token::Name(name);
            };
            name.push_str(&rest[..end]);
            rest = &rest[end + 1..];
            match rest.strip_prefix('"') {
                Some(after) => {
                    name.push('"');
                    rest = after;
                }
                None => {
                    self.at = self.text.len() - rest.len();
                    return Token::Name(name);
                }
            }
        }
    }

    /// Passes space and comments.
    fn skip(&mut self) {
        loop {
            let rest = self.text[self.at..].trim_start();
            self.at = self.text.len() - rest.len();
            if rest.starts_with("--") {
                self.at += rest.find('\n').unwrap_or(rest.len());
            } else if rest.starts_with("/*") {
                self.at += comment(rest);
            } else {
                return;
            }
        }
    }

    fn word(&mut self) -> Result<String, Report> {
        match self.next() {
            Some(Token::Word(word)) => Ok(word),
            _ => Err(self.wrong()),
        }
    }

    fn expect(&mut self, wanted: &str) -> Result<(), Report> {
        if self.word()? == wanted {
            Ok(())
        } else {
            Err(self.wrong())
        }
    }

    fn end(&mut self) -> Result<(), Report> {
        loop {
            match self.next() {
                None => return Ok(()),
                Some(Token::Sign(';')) => {}
                Some(_) => return Err(self.wrong()),
            }
        }
    }

    /// That the part that was read last does not belong there.
    fn wrong(&self) -> Report {
        let part = &self.text[self.began..self.at];
        let message = if part.is_empty() {
            "syntax error at end of input".to_string()
        } else {
            format!("syntax error at or near \"{part}\"")
        };
        let position = self.text[..self.began].chars().count() + 1;
        Report {
            position: Some(position),
            ..Report::error("42601", message)
        }
    }
}

/// The length of the comment that `text` begins with; there may be others in it.
fn comment(text: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while let Some(next) = text[at..].find(['/', '*']) {
        at += next;
        let step = if text[at..].starts_with("/*") {
            depth += 1;
            2
        } else if text[at..].starts_with("*/") {
            depth -= 1;
            2
        } else {
            1
        };
        at += step;
        if depth == 0 {
            return at;
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fetched(direction: Direction, moves: bool) -> CursorCommand {
        CursorCommand::Fetch(Fetch {
            name: "c".into(),
            direction,
            moves,
        })
    }

    #[test]
    fn statements_about_cursors_are_known() {
        let cases = [
            ("fetch c", fetched(Direction::Forward(1), false)),
            (
                "FETCH NEXT FROM \"c\";",
                fetched(Direction::Forward(1), false),
            ),
            (
                "fetch forward 50 in C",
                fetched(Direction::Forward(50), false),
            ),
            ("fetch 3 c", fetched(Direction::Forward(3), false)),
            (
                "fetch -3 from c",
                fetched(Direction::Backward(Some(3)), false),
            ),
            (
                "fetch backward all in c",
                fetched(Direction::Backward(None), false),
            ),
            (
                "fetch backward -3 from c",
                fetched(Direction::Forward(3), false),
            ),
            (
                "fetch all /* of /* them */ */ from c",
                fetched(Direction::All, false),
            ),
            ("fetch last c", fetched(Direction::Absolute(-1), false)),
            (
                "move absolute +7 in c",
                fetched(Direction::Absolute(7), true),
            ),
            ("move relative -7 c", fetched(Direction::Relative(-7), true)),
            (
                "move prior -- back\n c",
                fetched(Direction::Backward(Some(1)), true),
            ),
            ("close c", CursorCommand::Close(Some("c".into()))),
            ("close all;", CursorCommand::Close(None)),
            ("close \"all\"", CursorCommand::Close(Some("all".into()))),
        ];
        for (text, wanted) in cases {
            assert_eq!(read(text).unwrap(), Some(wanted), "{text}");
        }
        let text = "declare \"It\"\"s\" binary insensitive no scroll cursor with hold for\n select 'é' as for ;";
        let wanted = Declare {
            name: "It\"s".into(),
            binary: true,
            hold: true,
            scroll: Some(false),
            query: "select 'é' as for".into(),
            before: text.find("select").unwrap(),
        };
        assert_eq!(read(text).unwrap(), Some(CursorCommand::Declare(wanted)));
        assert_eq!(read("select 1").unwrap(), None);
        assert_eq!(read("").unwrap(), None);
    }

    #[test]
    fn what_cannot_be_read_is_told_with_its_place() {
        for (text, code, message) in [
            ("declare c", "42601", "syntax error at end of input"),
            (
                "declare c cursor for",
                "42601",
                "syntax error at end of input",
            ),
            (
                "declare c curso for select 1",
                "42601",
                "syntax error at or near \"curso\"",
            ),
            (
                "declare 'c' cursor for select 1",
                "42601",
                "syntax error at or near \"'\"",
            ),
            (
                "fetch nothing from c",
                "42601",
                "syntax error at end of input",
            ),
            ("fetch - c", "42601", "syntax error at end of input"),
            ("close c d", "42601", "syntax error at or near \"d\""),
            ("fetch", "42601", "syntax error at end of input"),
            (
                "declare c scroll no scroll cursor for select 1",
                "42P11",
                "cannot specify both SCROLL and NO SCROLL",
            ),
        ] {
            let report = read(text).unwrap_err();
            assert_eq!((report.code, &*report.message), (code, message), "{text}");
        }
        assert_eq!(read("close é d").unwrap_err().position, Some(9));
    }

    #[test]
    fn any_text_is_read_without_harm() {
        let mut random = fastrand::Rng::with_seed(11);
        let words = [
            "declare",
            "fetch",
            "move",
            "close",
            "c",
            "\"",
            "--",
            "/*",
            "*/",
            "é",
            "-",
            "5",
            "all",
            "from",
            "cursor",
            "for",
            ";",
            "$",
            "\n",
            "absolute",
            "99999999999999999999",
        ];
        for _ in 0..50_000 {
            let text: String = (0..random.usize(0..9))
                .map(|_| words[random.usize(0..words.len())])
                .collect::<Vec<_>>()
                .join(if random.bool() { " " } else { "" });
            let _ = read(&text);
        }
    }
}
