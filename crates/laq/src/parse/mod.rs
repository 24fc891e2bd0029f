//! The parser: from text to a program. Expressions over elements are read by [`element`].

mod element;

use std::str::FromStr;

use crate::error::{Checked, Error, Span, wrong};
use crate::lex::{Token, tokens};
use crate::syntax::*;

/// The deepest nesting of a program. Deeper ones are refused, so that no stack can overflow.
const DEEPEST: usize = 150;

impl FromStr for Program {
    type Err = Error;

    /// Reads a program; tables play no part yet.
    ///
    /// # Errors
    /// [`Error::Syntax`].
    fn from_str(text: &str) -> Result<Program, Error> {
        let program = tokens(text).and_then(|tokens| {
            let mut parser = Parser {
                tokens,
                at: 0,
                depth: 0,
            };
            parser.program()
        });
        program.map_err(|wrong| Error::Syntax(wrong.in_text(text)))
    }
}

struct Parser {
    /// The last one is the end.
    tokens: Vec<(Token, Span)>,
    at: usize,
    /// Calls in one another.
    depth: usize,
}

impl Parser {
    fn peek(&self) -> &Token {
        &self.tokens[self.at].0
    }

    fn span(&self) -> Span {
        self.tokens[self.at].1
    }

    /// That of the token before.
    fn last(&self) -> Span {
        self.tokens[self.at.saturating_sub(1)].1
    }

    fn next(&mut self) -> Token {
        let token = self.peek().clone();
        self.at = (self.at + 1).min(self.tokens.len() - 1);
        token
    }

    fn is_word(&self, word: &str) -> bool {
        matches!(self.peek(), Token::Name { text, quoted: false } if text == word)
    }

    fn word(&mut self, word: &str) -> bool {
        let found = self.is_word(word);
        if found {
            self.next();
        }
        found
    }

    fn sign(&mut self, sign: &str) -> bool {
        let found = matches!(self.peek(), Token::Sign(s) if *s == sign);
        if found {
            self.next();
        }
        found
    }

    fn follows_sign(&self, sign: &str) -> bool {
        let next = self.tokens.get(self.at + 1);
        matches!(next, Some((Token::Sign(s), _)) if *s == sign)
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

    fn need_sign(&mut self, sign: &str) -> Checked<()> {
        if self.sign(sign) {
            Ok(())
        } else {
            self.expected(&format!("`{sign}`"))
        }
    }

    fn need_word(&mut self, word: &str) -> Checked<()> {
        if self.word(word) {
            Ok(())
        } else {
            self.expected(&format!("`{word}`"))
        }
    }

    /// One more than the depth of the deepest child; an error if that is too deep.
    fn depth(&self, children: impl IntoIterator<Item = usize>) -> Checked<usize> {
        let depth = children.into_iter().max().unwrap_or(0) + 1;
        if depth > DEEPEST {
            wrong(
                self.last(),
                format!("more than {DEEPEST} levels in one another; give parts of it a name"),
            )
        } else {
            Ok(depth)
        }
    }

    /// Runs `parse` one level deeper.
    fn deeper<T>(&mut self, parse: impl FnOnce(&mut Parser) -> Checked<T>) -> Checked<T> {
        self.depth += 1;
        self.depth([self.depth])?;
        let parsed = parse(self);
        self.depth -= 1;
        parsed
    }

    fn name(&mut self, what: &str) -> Checked<Name> {
        let span = self.span();
        match self.peek() {
            Token::Name {
                text,
                quoted: false,
            } if KEYWORDS.contains(&text.as_str()) => wrong(
                span,
                format!("`{text}` is a keyword; expected {what} (a name may stand in backquotes)"),
            ),
            Token::Name { text, .. } => {
                let text = text.clone();
                self.next();
                Ok(Name { text, span })
            }
            _ => self.expected(what),
        }
    }

    fn program(&mut self) -> Checked<Program> {
        let mut assignments = Vec::new();
        while !self.is_word("return") {
            if *self.peek() == Token::End {
                return self.expected("`name = ...` or `return(...)`");
            }
            let name = self.name("the name of a matrix, or `return`")?;
            self.need_sign("=")?;
            let value = self.operand()?;
            self.sign(";");
            assignments.push(Assignment { name, value });
        }
        let result = self.result()?;
        self.sign(";");
        match self.peek() {
            Token::End => Ok(Program {
                assignments,
                result,
            }),
            _ => self.expected("the end after `return`"),
        }
    }

    fn result(&mut self) -> Checked<Return> {
        let start = self.span();
        self.need_word("return")?;
        self.need_sign("(")?;
        let mut items = Vec::new();
        loop {
            let value = self.operand()?;
            let alias = if self.word("as") {
                Some(self.name("a name for the column")?)
            } else {
                None
            };
            items.push(Item { value, alias });
            if !self.sign(",") {
                break;
            }
        }
        self.need_sign(")")?;
        let span = start.to(self.last());
        let mut order = Vec::new();
        if self.word("order") {
            self.need_word("by")?;
            loop {
                let by = self.reference()?;
                let descending = self.word("desc");
                if !descending {
                    self.word("asc");
                }
                order.push(OrderKey { by, descending });
                if !self.sign(",") {
                    break;
                }
            }
        }
        let mut limit = None;
        if self.word("limit") {
            let span = self.span();
            let Token::Number(number) = self.next() else {
                return wrong(span, "expected how many rows, a whole number");
            };
            limit = match number.parse() {
                Ok(limit) => Some(limit),
                Err(_) => return wrong(span, "expected how many rows, a whole number"),
            };
        }
        Ok(Return {
            items,
            order,
            limit,
            span,
        })
    }

    /// A name or an attribute.
    fn reference(&mut self) -> Checked<Operand> {
        let name = self.name("a matrix: a name, `table.attribute`, or an operator")?;
        let span = name.span;
        if !self.sign(".") {
            return Ok(Operand {
                what: What::Name(name),
                span,
                depth: 1,
            });
        }
        let at = self.span();
        let column = match self.next() {
            Token::Name { text, .. } => Name { text, span: at },
            _ => return wrong(at, format!("expected an attribute of `{name}`")),
        };
        Ok(Operand {
            span: span.to(at),
            what: What::Attribute(name, column),
            depth: 1,
        })
    }

    fn operator(&self) -> Option<Operator> {
        let named = |o: &Operator| self.is_word(o.name());
        Operator::ALL.into_iter().find(named)
    }

    fn each(&self) -> Option<Each> {
        match self.peek() {
            Token::Name {
                text,
                quoted: false,
            } => match text.as_str() {
                "filter" => Some(Each::Filter),
                "lift" | "map" => Some(Each::Lift),
                "bitmap" => Some(Each::Bitmap),
                _ => None,
            },
            _ => None,
        }
    }

    fn operand(&mut self) -> Checked<Operand> {
        self.deeper(Parser::shallow_operand)
    }

    fn shallow_operand(&mut self) -> Checked<Operand> {
        let start = self.span();
        if let Some(each) = self.each() {
            self.next();
            self.need_sign("(")?;
            let e = self.element(0)?;
            self.need_sign(")")?;
            return Ok(Operand {
                depth: self.depth([e.depth])?,
                what: What::Each(each, e),
                span: start.to(self.last()),
            });
        }
        let Some(operator) = self.operator() else {
            return self.reference();
        };
        self.next();
        self.need_sign("(")?;
        let mut args = Vec::new();
        if !self.sign(")") {
            loop {
                args.push(self.operand()?);
                if !self.sign(",") {
                    break;
                }
                if operator == Operator::Dot && args.len() == 2 {
                    return self.outer(args, start);
                }
            }
            self.need_sign(")")?;
        }
        let span = start.to(self.last());
        let (least, most) = operator.takes();
        if args.len() < least || args.len() > most {
            let name = operator.name();
            let count = match (least, most) {
                (1, 1) => "one matrix".to_string(),
                (2, 2) => "two matrices".to_string(),
                _ => format!("{least} matrices or more"),
            };
            return wrong(span, format!("`{name}` takes {count}, not {}", args.len()));
        }
        Ok(Operand {
            depth: self.depth(args.iter().map(|arg| arg.depth))?,
            what: What::Call(operator, args),
            span,
        })
    }

    /// The rest of a `dot` that has a default, after its two matrices.
    fn outer(&mut self, args: Vec<Operand>, start: Span) -> Checked<Operand> {
        let default = self.element(0)?;
        if self.sign(",") {
            let what = "`dot` takes two matrices and a default, not more";
            return wrong(start.to(self.last()), what);
        }
        self.need_sign(")")?;
        let depth = self.depth(args.iter().map(|arg| arg.depth).chain([default.depth]))?;
        let span = start.to(self.last());
        let mut args = args.into_iter();
        let (Some(a), Some(b)) = (args.next(), args.next()) else {
            return wrong(span, "`dot` takes two matrices");
        };
        Ok(Operand {
            what: What::Outer(Box::new(a), Box::new(b), default),
            span,
            depth,
        })
    }
}
