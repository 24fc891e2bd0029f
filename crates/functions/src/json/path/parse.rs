//! A path as a tree: the language of `jsonpath` in SQL's standard, as PostgreSQL has it.

use messages::{Error, Result};

use crate::json::path::tokens::{Token, syntax, tokens};
use crate::json::path::tree::{Base, Chain, Comparison, METHODS, Path, Predicate, Step};

const COMPARISONS: [(&str, Comparison); 8] = [
    ("==", Comparison::Equal),
    ("=", Comparison::Equal),
    ("!=", Comparison::NotEqual),
    ("<>", Comparison::NotEqual),
    ("<=", Comparison::LessOrEqual),
    (">=", Comparison::GreaterOrEqual),
    ("<", Comparison::Less),
    (">", Comparison::Greater),
];

/// How deep a path may nest.
const DEEPEST: usize = 100;

/// The path that a text says.
///
/// # Errors
/// For a text that is no path; and for what only PostgreSQL has.
pub(super) fn parse(text: &str) -> Result<Path> {
    let tokens = tokens(text)?;
    if tokens.is_empty() {
        let message = format!("invalid input syntax for type jsonpath: \"{text}\"");
        return Err(Error::coded("22P02", message));
    }
    let mut parser = Parser {
        tokens,
        at: 0,
        depth: 0,
        filters: 0,
        subscripts: 0,
    };
    let strict = match parser.peek_word() {
        Some("strict") => {
            parser.at += 1;
            true
        }
        Some("lax") => {
            parser.at += 1;
            false
        }
        _ => false,
    };
    let parsed = parser.either()?;
    if parser.at < parser.tokens.len() {
        return Err(parser.wrong());
    }
    Ok(Path {
        strict,
        chain: parsed.chain(),
    })
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
    depth: usize,
    /// How many filters and subscripts are open: `@` and `last` stand only in them.
    filters: usize,
    subscripts: usize,
}

/// A value or a predicate, which only what stands around tells.
enum Either {
    Value(Chain),
    Truth(Predicate),
}

impl Either {
    fn chain(self) -> Chain {
        match self {
            Either::Value(chain) => chain,
            Either::Truth(predicate) => Chain {
                base: Base::Predicate(Box::new(predicate)),
                steps: vec![],
            },
        }
    }
}

impl Parser {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at)
    }

    fn peek_word(&self) -> Option<&str> {
        match self.peek() {
            Some(Token::Word(word)) => Some(word),
            _ => None,
        }
    }

    fn word(&mut self, wanted: &str) -> bool {
        let found = self.peek_word() == Some(wanted);
        self.at += usize::from(found);
        found
    }

    fn sign(&mut self, wanted: &str) -> bool {
        let found = matches!(self.peek(), Some(Token::Sign(sign)) if *sign == wanted);
        self.at += usize::from(found);
        found
    }

    fn need(&mut self, wanted: &str) -> Result<()> {
        if self.sign(wanted) {
            Ok(())
        } else {
            Err(self.wrong())
        }
    }

    /// The error for what stands here.
    fn wrong(&self) -> Error {
        match self.peek() {
            None => syntax(""),
            Some(Token::Word(text) | Token::Text(text) | Token::Number(text)) => syntax(text),
            Some(Token::Variable(name)) => syntax(&format!("${name}")),
            Some(Token::Sign(sign)) => syntax(sign),
        }
    }

    fn value(&self, parsed: Either) -> Result<Chain> {
        match parsed {
            Either::Value(chain) => Ok(chain),
            Either::Truth(_) => Err(self.wrong()),
        }
    }

    fn truth(&self, parsed: Either) -> Result<Predicate> {
        match parsed {
            Either::Truth(predicate) => Ok(predicate),
            Either::Value(_) => Err(self.wrong()),
        }
    }

    fn either(&mut self) -> Result<Either> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(Error::coded(
                "54001",
                format!("a jsonpath nests more than {DEEPEST} levels deep"),
            ));
        }
        let mut parsed = self.both()?;
        while self.sign("||") {
            let left = self.truth(parsed)?;
            let right = self.both()?;
            let right = self.truth(right)?;
            parsed = Either::Truth(Predicate::Or(Box::new(left), Box::new(right)));
        }
        self.depth -= 1;
        Ok(parsed)
    }

    fn both(&mut self) -> Result<Either> {
        let mut parsed = self.tested()?;
        while self.sign("&&") {
            let left = self.truth(parsed)?;
            let right = self.tested()?;
            let right = self.truth(right)?;
            parsed = Either::Truth(Predicate::And(Box::new(left), Box::new(right)));
        }
        Ok(parsed)
    }

    /// `! (...)`, a comparison and its kind, or a value.
    fn tested(&mut self) -> Result<Either> {
        if self.sign("!") {
            return self.negated();
        }
        let left = self.sum()?;
        for (sign, comparison) in COMPARISONS {
            if self.sign(sign) {
                let left = self.value(left)?;
                let right = self.sum()?;
                let right = self.value(right)?;
                return Ok(Either::Truth(Predicate::Compare(comparison, left, right)));
            }
        }
        if self.word("starts") {
            if !self.word("with") {
                return Err(self.wrong());
            }
            let left = self.value(left)?;
            let base = match self.peek() {
                Some(Token::Text(text)) => Base::Text(text.clone()),
                Some(Token::Variable(name)) => Base::Variable(name.clone()),
                _ => return Err(self.wrong()),
            };
            self.at += 1;
            let initial = Chain {
                base,
                steps: vec![],
            };
            return Ok(Either::Truth(Predicate::StartsWith(left, initial)));
        }
        if self.word("like_regex") {
            let left = self.value(left)?;
            return self.like(left);
        }
        Ok(left)
    }

    /// What stands behind `!`.
    fn negated(&mut self) -> Result<Either> {
        let exists = self.peek_word() == Some("exists");
        if !exists && !matches!(self.peek(), Some(Token::Sign("("))) {
            return Err(self.wrong());
        }
        let parsed = if exists {
            self.sum()?
        } else {
            self.sign("(");
            let inner = self.either()?;
            self.need(")")?;
            inner
        };
        let inner = self.truth(parsed)?;
        Ok(Either::Truth(Predicate::Not(Box::new(inner))))
    }

    /// A pattern and its flags, behind `like_regex`.
    fn like(&mut self, left: Chain) -> Result<Either> {
        let pattern = self.string()?;
        let flags = if self.word("flag") {
            self.string()?
        } else {
            String::new()
        };
        let odd = flags.chars().find(|flag| !"ismxq".contains(*flag));
        if let Some(odd) = odd {
            return Err(Error::coded(
                "42601",
                format!(
                    "invalid input syntax for type jsonpath: unrecognized flag character \"{odd}\" in LIKE_REGEX predicate"
                ),
            ));
        }
        if flags.contains('x') && !flags.contains('q') {
            return Err(Error::coded(
                "0A000",
                "XQuery \"x\" flag (expanded regular expressions) is not implemented",
            ));
        }
        Ok(Either::Truth(Predicate::Like(left, pattern, flags)))
    }

    fn string(&mut self) -> Result<String> {
        match self.peek().cloned() {
            Some(Token::Text(text)) => {
                self.at += 1;
                Ok(text)
            }
            _ => Err(self.wrong()),
        }
    }

    fn binary(
        &mut self,
        signs: &[&'static str],
        operand: fn(&mut Parser) -> Result<Either>,
    ) -> Result<Either> {
        let mut parsed = operand(self)?;
        while let Some(sign) = signs.iter().find(|sign| self.sign(sign)) {
            let left = self.value(parsed)?;
            let right = operand(self)?;
            let right = self.value(right)?;
            let sign = sign.chars().next().unwrap_or('+');
            parsed = Either::Value(Chain {
                base: Base::Binary(sign, Box::new(left), Box::new(right)),
                steps: vec![],
            });
        }
        Ok(parsed)
    }

    fn sum(&mut self) -> Result<Either> {
        self.binary(&["+", "-"], Parser::product)
    }

    fn product(&mut self) -> Result<Either> {
        self.binary(&["*", "/", "%"], Parser::signed)
    }

    fn signed(&mut self) -> Result<Either> {
        for (sign, letter) in [("+", '+'), ("-", '-')] {
            if self.sign(sign) {
                self.depth += 1;
                if self.depth > DEEPEST {
                    return Err(self.wrong());
                }
                let operand = self.signed()?;
                let operand = self.value(operand)?;
                self.depth -= 1;
                // A constant has its sign itself.
                let base = match operand {
                    Chain {
                        base: Base::Number(number),
                        steps,
                    } if steps.is_empty() && letter == '-' && !number.starts_with('-') => {
                        Base::Number(format!("-{number}"))
                    }
                    operand => Base::Signed(letter, Box::new(operand)),
                };
                return Ok(Either::Value(Chain {
                    base,
                    steps: vec![],
                }));
            }
        }
        self.stepped()
    }

    /// A value with its steps, or what stands in parentheses.
    fn stepped(&mut self) -> Result<Either> {
        if self.word("exists") {
            self.need("(")?;
            let inner = self.either()?;
            let inner = self.value(inner)?;
            self.need(")")?;
            let exists = Predicate::Exists(inner);
            return Ok(Either::Truth(exists));
        }
        let mut chain = if self.sign("(") {
            let inner = self.either()?;
            self.need(")")?;
            if let (Either::Truth(_), Some("is")) = (&inner, self.peek_word()) {
                self.at += 1;
                if !self.word("unknown") {
                    return Err(self.wrong());
                }
                let inner = self.truth(inner)?;
                return Ok(Either::Truth(Predicate::IsUnknown(Box::new(inner))));
            }
            if !matches!(self.peek(), Some(Token::Sign("." | "[" | "?" | "**"))) {
                return Ok(inner);
            }
            match inner {
                Either::Value(chain) if chain.steps.is_empty() => chain,
                Either::Value(chain) => chain,
                truth => truth.chain(),
            }
        } else {
            Chain {
                base: self.base()?,
                steps: vec![],
            }
        };
        while let Some(step) = self.step()? {
            chain.steps.push(step);
        }
        Ok(Either::Value(chain))
    }

    fn base(&mut self) -> Result<Base> {
        let base = match self.peek().cloned() {
            Some(Token::Sign("$")) => Base::Root,
            Some(Token::Sign("@")) => {
                if self.filters == 0 {
                    return Err(Error::coded(
                        "42601",
                        "@ is not allowed in root expressions",
                    ));
                }
                Base::Current
            }
            Some(Token::Text(text)) => Base::Text(text),
            Some(Token::Number(number)) => Base::Number(number),
            Some(Token::Variable(name)) => Base::Variable(name),
            Some(Token::Word(word)) => match &word[..] {
                "null" => Base::Null,
                "true" => Base::Boolean(true),
                "false" => Base::Boolean(false),
                "last" => {
                    if self.subscripts == 0 {
                        return Err(Error::coded(
                            "42601",
                            "LAST is allowed only in array subscripts",
                        ));
                    }
                    Base::Last
                }
                _ => return Err(self.wrong()),
            },
            _ => return Err(self.wrong()),
        };
        self.at += 1;
        Ok(base)
    }

    fn step(&mut self) -> Result<Option<Step>> {
        if self.sign("?") {
            self.need("(")?;
            self.filters += 1;
            let inner = self.either()?;
            let inner = self.truth(inner)?;
            self.filters -= 1;
            self.need(")")?;
            return Ok(Some(Step::Filter(inner)));
        }
        if self.sign("[") {
            if self.sign("*") {
                self.need("]")?;
                return Ok(Some(Step::AnyItem));
            }
            return self.items().map(Some);
        }
        if !self.sign(".") {
            return Ok(None);
        }
        if self.sign("**") {
            return self.any().map(Some);
        }
        if self.sign("*") {
            return Ok(Some(Step::AnyKey));
        }
        let name = match self.peek().cloned() {
            Some(Token::Text(text)) => {
                self.at += 1;
                return Ok(Some(Step::Key(text)));
            }
            Some(Token::Word(word)) => word,
            _ => return Err(self.wrong()),
        };
        self.at += 1;
        if !self.sign("(") {
            return Ok(Some(Step::Key(name)));
        }
        if name == "datetime" {
            return Err(Error::unsupported(
                "not supported: the method .datetime() of a jsonpath",
            ));
        }
        let Some((_, method)) = METHODS.iter().find(|(own, _)| *own == name) else {
            self.at -= 1;
            return Err(self.wrong());
        };
        self.need(")")?;
        Ok(Some(Step::Method(*method)))
    }

    fn items(&mut self) -> Result<Step> {
        self.subscripts += 1;
        let mut all = Vec::new();
        loop {
            let first = self.sum()?;
            let first = self.value(first)?;
            let last = if self.word("to") {
                let last = self.sum()?;
                Some(self.value(last)?)
            } else {
                None
            };
            all.push((first, last));
            if !self.sign(",") {
                break;
            }
        }
        self.subscripts -= 1;
        self.need("]")?;
        Ok(Step::Items(all))
    }

    fn any(&mut self) -> Result<Step> {
        if !self.sign("{") {
            return Ok(Step::Any(Some(0), None));
        }
        let first = self.level()?;
        let last = if self.word("to") {
            self.level()?
        } else {
            first
        };
        self.need("}")?;
        Ok(Step::Any(first, last))
    }

    fn level(&mut self) -> Result<Option<u32>> {
        if self.word("last") {
            return Ok(None);
        }
        match self.peek() {
            Some(Token::Number(number)) => match number.parse() {
                Ok(level) => {
                    self.at += 1;
                    Ok(Some(level))
                }
                Err(_) => Err(self.wrong()),
            },
            _ => Err(self.wrong()),
        }
    }
}
