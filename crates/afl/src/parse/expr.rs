//! Expressions over one cell.

use array::expr::{BinaryOp, Expr, UnaryOp, name, value};
use array::{DataType, Scalar};

use super::Parser;
use crate::error::{Checked, wrong};
use crate::lex::Token;

/// The most operators of an expression.
const MOST: usize = 200;

impl Parser {
    /// An expression.
    pub(super) fn expression(&mut self) -> Checked<Expr> {
        self.operators = 0;
        self.or()
    }

    /// Counts one more operator.
    fn count_operator(&mut self) -> Checked<()> {
        self.operators += 1;
        if self.operators > MOST {
            return wrong(
                self.span(),
                format!("the expression has more than {MOST} operators"),
            );
        }
        Ok(())
    }

    fn or(&mut self) -> Checked<Expr> {
        let mut left = self.and()?;
        while self.word("or") {
            self.count_operator()?;
            left = left.or(self.and()?);
        }
        Ok(left)
    }

    fn and(&mut self) -> Checked<Expr> {
        let mut left = self.not()?;
        while self.word("and") {
            self.count_operator()?;
            left = left.and(self.not()?);
        }
        Ok(left)
    }

    fn not(&mut self) -> Checked<Expr> {
        if self.is_word("not") && !self.follows("=") {
            self.next();
            self.count_operator()?;
            return self.deeper(|parser| Ok(!parser.not()?));
        }
        self.comparison_of()
    }

    fn comparison_of(&mut self) -> Checked<Expr> {
        let left = self.sum()?;
        let Some(op) = self.comparison_sign() else {
            return Ok(left);
        };
        self.count_operator()?;
        Ok(left.with(op, self.sum()?))
    }

    /// A sign that compares, if it is next.
    pub(super) fn comparison_sign(&mut self) -> Option<BinaryOp> {
        let op = match self.peek() {
            Token::Sign("=" | "==") => BinaryOp::Eq,
            Token::Sign("<>" | "!=") => BinaryOp::Ne,
            Token::Sign("<") => BinaryOp::Lt,
            Token::Sign("<=") => BinaryOp::Le,
            Token::Sign(">") => BinaryOp::Gt,
            Token::Sign(">=") => BinaryOp::Ge,
            _ => return None,
        };
        self.next();
        Some(op)
    }

    fn sum(&mut self) -> Checked<Expr> {
        let mut left = self.product()?;
        loop {
            let op = match self.peek() {
                Token::Sign("+") => BinaryOp::Add,
                Token::Sign("-") => BinaryOp::Subtract,
                _ => return Ok(left),
            };
            self.next();
            self.count_operator()?;
            left = left.with(op, self.product()?);
        }
    }

    fn product(&mut self) -> Checked<Expr> {
        let mut left = self.signed()?;
        loop {
            let op = match self.peek() {
                Token::Sign("*") => BinaryOp::Multiply,
                Token::Sign("/") => BinaryOp::Divide,
                Token::Sign("%") => BinaryOp::Modulo,
                _ => return Ok(left),
            };
            self.next();
            self.count_operator()?;
            left = left.with(op, self.signed()?);
        }
    }

    /// A number, name, function or bracket, perhaps with a sign or a power.
    pub(super) fn signed(&mut self) -> Checked<Expr> {
        if self.sign("-") {
            if let Token::Number(digits) = self.peek().clone()
                && !self.follows("^")
            {
                return self.literal(&format!("-{digits}"));
            }
            self.count_operator()?;
            return self.deeper(|parser| Ok(-parser.signed()?));
        }
        let base = self.atom()?;
        if self.sign("^") {
            self.count_operator()?;
            let power = self.deeper(Parser::signed)?;
            return Ok(base.with(BinaryOp::Power, power));
        }
        Ok(base)
    }

    /// A number, at which the parser is.
    fn literal(&mut self, digits: &str) -> Checked<Expr> {
        let span = self.span();
        self.next();
        if digits.contains(['.', 'e', 'E']) {
            return match digits.parse::<f64>() {
                Ok(float) if float.is_finite() => Ok(value(float)),
                _ => wrong(span, format!("{digits} is too large")),
            };
        }
        match digits.parse::<i128>() {
            Ok(whole) if whole.unsigned_abs() <= u128::from(u64::MAX) => {
                Ok(Expr::Value(Scalar::Int(whole)))
            }
            _ => wrong(span, format!("{digits} is too large")),
        }
    }

    fn atom(&mut self) -> Checked<Expr> {
        if self.sign("(") {
            let inner = self.deeper(Parser::or)?;
            self.need(")")?;
            return Ok(inner);
        }
        if let Token::Number(digits) = self.peek().clone() {
            return self.literal(&digits);
        }
        for (word, scalar) in [
            ("null", Scalar::Null),
            ("true", true.into()),
            ("false", false.into()),
        ] {
            if self.word(word) {
                return Ok(Expr::Value(scalar));
            }
        }
        if matches!(self.peek(), Token::Text(_)) {
            return wrong(
                self.span(),
                "there are no texts in arrays; give a number, or a name in \"...\"",
            );
        }
        let called = self.follows("(");
        let span = self.span();
        let of = self.name("a value: a number, an attribute, a dimension, or a function")?;
        if !called {
            return Ok(name(of.text));
        }
        self.need("(")?;
        let function = of.text.to_ascii_lowercase();
        self.count_operator()?;
        let first = self.deeper(Parser::or)?;
        let call = if function == "iif" {
            self.need(",")?;
            let yes = self.deeper(Parser::or)?;
            self.need(",")?;
            let no = self.deeper(Parser::or)?;
            Expr::If(Box::new(first), Box::new(yes), Box::new(no))
        } else if let Some(to) = DataType::of_name(&function) {
            first.cast(to)
        } else if let Some((_, op)) = UnaryOp::FUNCTIONS
            .iter()
            .find(|(known, _)| *known == function)
        {
            first.unary(*op)
        } else {
            let functions: Vec<_> = UnaryOp::FUNCTIONS.iter().map(|of| of.0).collect();
            let known = functions.join(", ");
            let what = format!(
                "there is no function `{function}`; there are {known}, iif, and casts such as int64(...)"
            );
            return wrong(span, what);
        };
        self.need(")")?;
        Ok(call)
    }
}
