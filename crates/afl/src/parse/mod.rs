//! The parser: from text to a statement, by recursive descent. `docs/reference/afl.md` has the grammar.

mod expr;
mod query;
mod schema;

use crate::error::{Checked, Span, wrong};
use crate::lex::{Token, tokens};
use crate::syntax::{Call, Name, Operator, Query, Statement};

/// The deepest nesting of a statement. Deeper ones are refused, so that no stack can overflow.
const DEEPEST: usize = 64;

/// Reads one statement.
pub(crate) fn statement(text: &str) -> Checked<Statement> {
    let mut parser = Parser {
        tokens: tokens(text)?,
        at: 0,
        depth: 0,
        operators: 0,
    };
    let statement = parser.statement()?;
    parser.sign(";");
    match parser.peek() {
        Token::End => Ok(statement),
        _ => parser.expected("the end of the statement"),
    }
}

pub(crate) struct Parser {
    /// The last one is the end.
    tokens: Vec<(Token, Span)>,
    at: usize,
    /// Calls in one another.
    depth: usize,
    /// Operators of the expression that is read: as many as can stand in one another at most.
    operators: usize,
}

impl Parser {
    fn peek(&self) -> &Token {
        &self.tokens[self.at].0
    }

    fn span(&self) -> Span {
        self.tokens[self.at].1
    }

    fn next(&mut self) -> Token {
        let token = self.peek().clone();
        self.at = (self.at + 1).min(self.tokens.len() - 1);
        token
    }

    fn is_word(&self, word: &str) -> bool {
        matches!(self.peek(), Token::Name { text, quoted: false } if text.eq_ignore_ascii_case(word))
    }

    fn word(&mut self, word: &str) -> bool {
        let found = self.is_word(word);
        if found {
            self.next();
        }
        found
    }

    fn is_sign(&self, sign: &str) -> bool {
        matches!(self.peek(), Token::Sign(of) if *of == sign)
    }

    fn sign(&mut self, sign: &str) -> bool {
        let found = self.is_sign(sign);
        if found {
            self.next();
        }
        found
    }

    fn follows(&self, sign: &str) -> bool {
        let next = self.tokens.get(self.at + 1);
        matches!(next, Some((Token::Sign(of), _)) if *of == sign)
    }

    fn found(&self) -> String {
        match self.peek() {
            Token::Name { text, .. } => format!("`{text}`"),
            Token::Number(number) => number.clone(),
            Token::Text(_) => "a text".into(),
            Token::Sign(sign) => format!("`{sign}`"),
            Token::End => "the end".into(),
        }
    }

    fn expected<T>(&self, what: &str) -> Checked<T> {
        wrong(
            self.span(),
            format!("expected {what}, found {}", self.found()),
        )
    }

    fn need(&mut self, sign: &str) -> Checked<()> {
        if self.sign(sign) {
            return Ok(());
        }
        self.expected(&format!("`{sign}`"))
    }

    /// A comma before one more argument; false before the closing bracket.
    fn more(&mut self) -> Checked<bool> {
        if self.sign(",") {
            return Ok(true);
        }
        if self.is_sign(")") {
            return Ok(false);
        }
        self.expected("`,` or `)`")
    }

    fn name(&mut self, what: &str) -> Checked<Name> {
        let span = self.span();
        match self.peek().clone() {
            Token::Name { text, .. } => {
                self.next();
                Ok(Name { text, span })
            }
            _ => self.expected(what),
        }
    }

    /// Runs `parse` one level deeper.
    fn deeper<T>(&mut self, parse: impl FnOnce(&mut Parser) -> Checked<T>) -> Checked<T> {
        if self.depth == DEEPEST {
            return wrong(
                self.span(),
                format!("more than {DEEPEST} levels stand in one another"),
            );
        }
        self.depth += 1;
        let parsed = parse(self);
        self.depth -= 1;
        parsed
    }

    fn statement(&mut self) -> Checked<Statement> {
        let call = self.follows("(");
        if self.is_word("create") && !call {
            self.next();
            return match (self.word("array"), self.word("version")) {
                (true, _) => self.create(),
                (_, true) => self.create_version(),
                _ => self.expected("`array` or `version`"),
            };
        }
        for word in [
            "store", "insert", "append", "delete", "remove", "list", "versions", "show",
        ] {
            if call && self.word(word) {
                self.need("(")?;
                let statement = self.call_statement(word)?;
                self.need(")")?;
                return Ok(statement);
            }
        }
        Ok(Statement::Query(self.query()?))
    }

    fn create(&mut self) -> Checked<Statement> {
        let name = self.name("the name of the array")?;
        let schema = self.schema()?;
        Ok(Statement::Create { name, schema })
    }

    /// `create version monday of temperature`.
    fn create_version(&mut self) -> Checked<Statement> {
        let version = self.version()?;
        if !self.word("of") {
            return self.expected("`of`");
        }
        let array = self.name("the name of an array")?;
        Ok(Statement::CreateVersion { array, version })
    }

    /// The name of a version, which may be a number.
    fn version(&mut self) -> Checked<Name> {
        let span = self.span();
        match self.peek().clone() {
            Token::Number(text) => {
                self.next();
                Ok(Name { text, span })
            }
            _ => self.name("the name of a version"),
        }
    }

    /// The name of an array, or of a version of one: `temperature@monday`.
    fn stored(&mut self, what: &str) -> Checked<Name> {
        let array = self.name(what)?;
        if !self.sign("@") {
            return Ok(array);
        }
        let version = self.version()?;
        Ok(Name {
            text: format!("{}@{}", array.text, version.text),
            span: Span {
                start: array.span.start,
                end: version.span.end,
            },
        })
    }

    /// `A, condition`: the cells to delete are those that a filter keeps.
    fn delete(&mut self) -> Checked<Statement> {
        let name = self.name("the name of an array")?;
        self.need(",")?;
        let condition = self.expression()?;
        let filter = Call {
            operator: Operator::Filter(condition),
            inputs: vec![Query::Array(name.clone())],
            span: name.span,
        };
        let cells = Query::Call(Box::new(filter));
        Ok(Statement::Delete { cells, name })
    }

    /// What stands in the brackets of a statement.
    fn call_statement(&mut self, word: &str) -> Checked<Statement> {
        Ok(match word {
            "list" => Statement::List,
            "versions" => Statement::Versions(self.name("the name of an array")?),
            "remove" => Statement::Remove(self.stored("the name of an array")?),
            "show" => Statement::Show(self.query()?),
            "delete" => self.delete()?,
            _ => {
                let query = self.query()?;
                self.need(",")?;
                let name = self.name("the name of an array")?;
                match word {
                    "store" => Statement::Store { query, name },
                    "insert" => Statement::Insert { query, name },
                    _ => {
                        self.need(",")?;
                        let dimension = self.name("the name of a dimension")?;
                        Statement::Append {
                            query,
                            name,
                            dimension,
                        }
                    }
                }
            }
        })
    }
}
