//! Expressions over elements.

use crate::error::{Checked, Span, wrong};
use crate::lex::Token;
use crate::parse::Parser;
use crate::syntax::*;

impl Parser {
    fn binary_sign(&self) -> Option<Sign> {
        Some(match self.peek() {
            Token::Name {
                text,
                quoted: false,
            } => match text.as_str() {
                "or" => Sign::Or,
                "and" => Sign::And,
                _ => return None,
            },
            Token::Sign(sign) => match *sign {
                "=" | "==" => Sign::Eq,
                "<>" | "!=" => Sign::Ne,
                "<" => Sign::Lt,
                "<=" => Sign::Le,
                ">" => Sign::Gt,
                ">=" => Sign::Ge,
                "|" => Sign::BitOr,
                "^" => Sign::BitXor,
                "&" => Sign::BitAnd,
                "<<" => Sign::Left,
                ">>" => Sign::Right,
                "+" => Sign::Add,
                "-" => Sign::Sub,
                "*" => Sign::Mul,
                "/" => Sign::Div,
                _ => return None,
            },
            _ => return None,
        })
    }

    /// An expression of signs that bind at least as tight as `level`.
    pub(super) fn element(&mut self, level: u8) -> Checked<Element> {
        // How tight `left` binds.
        let mut tight = if self.is_word("not") { NOT } else { u8::MAX };
        let mut left = self.deeper(Parser::unary)?;
        loop {
            if level <= COMPARISON && tight > COMPARISON {
                let (tested, was) = self.test(left)?;
                left = tested;
                if was {
                    tight = COMPARISON;
                }
            }
            let Some(sign) = self.binary_sign() else {
                return Ok(left);
            };
            let own = sign.level();
            if own < level {
                return Ok(left);
            }
            if own == COMPARISON && tight <= COMPARISON {
                let what = "comparisons do not chain; write `a < b and b < c`";
                return wrong(self.span(), what);
            }
            self.next();
            let right = self.deeper(|parser| parser.element(own + 1))?;
            tight = own;
            left = Element {
                span: left.span.to(right.span),
                depth: self.depth([left.depth, right.depth])?,
                what: Of::Binary(sign, Box::new(left), Box::new(right)),
            };
        }
    }

    /// `left` with `[not] in (...)`, `[not] between` or `is [not] null`, and whether any of these follows.
    fn test(&mut self, left: Element) -> Checked<(Element, bool)> {
        let start = left.span;
        if self.word("is") {
            let not = self.word("not");
            self.need_word("null")?;
            let depth = self.depth([left.depth])?;
            let what = Of::Null(Box::new(left), not);
            return Ok((self.closed(start, depth, what), true));
        }
        let not = self.is_word("not");
        if not {
            let next = self.tokens.get(self.at + 1).map(|(token, _)| token);
            let is = |word: &str| matches!(next, Some(Token::Name { text, quoted: false }) if text == word);
            if !is("in") && !is("between") {
                return Ok((left, false));
            }
            self.next();
        }
        if self.word("in") {
            self.need_sign("(")?;
            let mut among = Vec::new();
            loop {
                among.push(self.element(0)?);
                if !self.sign(",") {
                    break;
                }
            }
            self.need_sign(")")?;
            let depth = self.depth(among.iter().map(|e| e.depth).chain([left.depth]))?;
            let what = Of::In(Box::new(left), not, among);
            return Ok((self.closed(start, depth, what), true));
        }
        if self.word("between") {
            let low = self.deeper(|parser| parser.element(COMPARISON + 1))?;
            self.need_word("and")?;
            let high = self.deeper(|parser| parser.element(COMPARISON + 1))?;
            let depth = self.depth([left.depth, low.depth, high.depth])?;
            let what = Of::Between(Box::new(left), not, Box::new(low), Box::new(high));
            return Ok((self.closed(start, depth, what), true));
        }
        Ok((left, false))
    }

    /// What began at `start` and ends before the next token.
    fn closed(&self, start: Span, depth: usize, what: Of) -> Element {
        Element {
            what,
            span: start.to(self.last()),
            depth,
        }
    }

    fn unary(&mut self) -> Checked<Element> {
        let start = self.span();
        let not = self.word("not");
        let negative = !not && self.sign("-");
        let flip = !not && !negative && self.sign("~");
        if !not && !negative && !flip {
            return self.primary();
        }
        let inner = if not {
            self.deeper(|parser| parser.element(NOT))?
        } else {
            self.deeper(Parser::unary)?
        };
        let depth = self.depth([inner.depth])?;
        let span = start.to(inner.span);
        let inner = Box::new(inner);
        let what = match (not, negative) {
            (true, _) => Of::Not(inner),
            (_, true) => Of::Negative(inner),
            _ => Of::Flip(inner),
        };
        Ok(Element { what, span, depth })
    }

    fn primary(&mut self) -> Checked<Element> {
        let start = self.span();
        let leaf = |what| Element {
            what,
            span: start,
            depth: 1,
        };
        match self.peek().clone() {
            Token::Number(number) => {
                self.next();
                Ok(leaf(Of::Number(number)))
            }
            Token::Text(text) => {
                self.next();
                Ok(leaf(Of::Text(text)))
            }
            Token::Sign("(") => {
                self.next();
                let mut e = self.element(0)?;
                self.need_sign(")")?;
                e.span = start.to(self.last());
                Ok(e)
            }
            Token::Name {
                text,
                quoted: false,
            } => match text.as_str() {
                "true" | "false" => {
                    self.next();
                    Ok(leaf(Of::Truth(text == "true")))
                }
                "case" => self.case(),
                "match" => self.matching(),
                "year" if !self.follows_sign("(") => self.matrix(),
                _ => match Function::ALL.into_iter().find(|f| f.name() == text) {
                    Some(function) => self.apply(function),
                    None => self.matrix(),
                },
            },
            Token::Name { .. } => self.matrix(),
            _ => self.expected("an expression"),
        }
    }

    /// The elements of a matrix.
    fn matrix(&mut self) -> Checked<Element> {
        let operand = self.operand()?;
        Ok(Element {
            span: operand.span,
            depth: self.depth([operand.depth])?,
            what: Of::Operand(Box::new(operand)),
        })
    }

    fn apply(&mut self, function: Function) -> Checked<Element> {
        let start = self.span();
        self.next();
        self.need_sign("(")?;
        let mut args = Vec::new();
        for position in 0..function.takes() {
            if position > 0 {
                self.need_sign(",")?;
            }
            args.push(self.element(0)?);
        }
        self.need_sign(")")?;
        Ok(Element {
            depth: self.depth(args.iter().map(|arg| arg.depth))?,
            what: Of::Apply(function, args),
            span: start.to(self.last()),
        })
    }

    fn matching(&mut self) -> Checked<Element> {
        let start = self.span();
        self.next();
        self.need_sign("(")?;
        let e = self.element(0)?;
        self.need_sign(",")?;
        let at = self.span();
        let Token::Text(pattern) = self.next() else {
            return wrong(at, "expected a regular expression, as a text");
        };
        self.need_sign(")")?;
        Ok(Element {
            depth: self.depth([e.depth])?,
            what: Of::Match(Box::new(e), pattern, at),
            span: start.to(self.last()),
        })
    }

    fn case(&mut self) -> Checked<Element> {
        let start = self.span();
        self.next();
        let mut branches = Vec::new();
        while self.word("when") {
            let when = self.element(0)?;
            self.need_word("then")?;
            branches.push((when, self.element(0)?));
        }
        if branches.is_empty() {
            return self.expected("`when`");
        }
        let last = if self.word("else") {
            Some(Box::new(self.element(0)?))
        } else {
            None
        };
        self.need_word("end")?;
        let inner = branches
            .iter()
            .flat_map(|(when, then)| [when.depth, then.depth])
            .chain(last.iter().map(|e| e.depth));
        Ok(Element {
            depth: self.depth(inner)?,
            what: Of::Case(branches, last),
            span: start.to(self.last()),
        })
    }
}
