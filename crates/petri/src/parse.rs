//! The parser of expressions: recursive descent, of limited depth.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::term::{Operator, Term};
use crate::value::Value;

/// How deep parentheses, minus signs and the like may be nested.
const DEEPEST: usize = 64;

/// The longest text of an expression.
const LONGEST: usize = 4096;

/// A word of the text, with its place in characters from 1.
struct Word {
    at: usize,
    is: Is,
}

#[derive(Debug, Clone, PartialEq)]
enum Is {
    Number(f64),
    Text(Arc<str>),
    Name(Arc<str>),
    Sign(&'static str),
}

const SIGNS: [&str; 15] = [
    "<=", ">=", "==", "!=", "<", ">", "=", "+", "-", "*", "/", "(", ")", ",", ";",
];

pub(crate) fn parse(text: &str) -> Result<Term> {
    let wrong = |at, why: String| Error::Expression {
        text: text.to_owned(),
        at,
        why,
    };
    if text.len() > LONGEST {
        return Err(wrong(1, format!("it is longer than {LONGEST} bytes")));
    }
    let words = words(text).map_err(|(at, why)| wrong(at, why))?;
    let mut parser = Parser {
        words: &words,
        next: 0,
        depth: 0,
        end: text.chars().count() + 1,
    };
    parser.whole().map_err(|(at, why)| wrong(at, why))
}

type Parsed<T> = std::result::Result<T, (usize, String)>;

fn words(text: &str) -> Parsed<Vec<Word>> {
    let characters: Vec<char> = text.chars().collect();
    let mut words = Vec::new();
    let mut at = 0;
    while at < characters.len() {
        let first = characters[at];
        let run = |test: fn(char) -> bool| {
            let more = characters[at..].iter().take_while(|c| test(**c)).count();
            at + more
        };
        let (is, end) = if first.is_whitespace() {
            at += 1;
            continue;
        } else if first.is_ascii_digit() || first == '.' {
            let end = run(|c| c.is_ascii_alphanumeric() || c == '.');
            let word: String = characters[at..end].iter().collect();
            let number = word.parse().ok().filter(|number: &f64| number.is_finite());
            let number = number.ok_or_else(|| (at + 1, format!("{word} is not a number")))?;
            (Is::Number(number), end)
        } else if first.is_alphabetic() || first == '_' {
            let end = run(|c| c.is_alphanumeric() || c == '_');
            let word: String = characters[at..end].iter().collect();
            (Is::Name(word.into()), end)
        } else if first == '\'' {
            let inner = characters[at + 1..].iter().position(|c| *c == '\'');
            let inner = inner.ok_or_else(|| (at + 1, "the quote is not closed".to_owned()))?;
            let word: String = characters[at + 1..at + 1 + inner].iter().collect();
            (Is::Text(word.into()), at + inner + 2)
        } else {
            let rest: String = characters[at..].iter().take(2).collect();
            let sign = SIGNS.iter().find(|sign| rest.starts_with(**sign));
            let sign = sign.ok_or_else(|| (at + 1, format!("{first:?} means nothing here")))?;
            (Is::Sign(sign), at + sign.len())
        };
        words.push(Word { at: at + 1, is });
        at = end;
    }
    Ok(words)
}

struct Parser<'a> {
    words: &'a [Word],
    next: usize,
    depth: usize,
    /// The place after the last character.
    end: usize,
}

impl Parser<'_> {
    fn whole(&mut self) -> Parsed<Term> {
        let term = self.either()?;
        match self.words.get(self.next) {
            None => Ok(term),
            Some(word) => Err((word.at, "an operator is missing before this".to_owned())),
        }
    }

    fn at(&self) -> usize {
        self.words.get(self.next).map_or(self.end, |word| word.at)
    }

    fn sign(&mut self, signs: &[&'static str]) -> Option<&'static str> {
        let Is::Sign(sign) = self.words.get(self.next)?.is else {
            return None;
        };
        signs.contains(&sign).then(|| {
            self.next += 1;
            sign
        })
    }

    fn word(&mut self, word: &str) -> bool {
        let there = matches!(self.words.get(self.next), Some(Word { is: Is::Name(name), .. }) if **name == *word);
        self.next += usize::from(there);
        there
    }

    /// Counts the nesting, as each level is a call.
    fn deeper<T>(&mut self, inner: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err((self.at(), format!("it is nested deeper than {DEEPEST}")));
        }
        let result = inner(self);
        self.depth -= 1;
        result
    }

    fn either(&mut self) -> Parsed<Term> {
        self.deeper(|parser| {
            let mut term = parser.both()?;
            while parser.word("or") {
                term = two(Operator::Or, term, parser.both()?, parser.at())?;
            }
            Ok(term)
        })
    }

    fn both(&mut self) -> Parsed<Term> {
        let mut term = self.negated()?;
        while self.word("and") {
            term = two(Operator::And, term, self.negated()?, self.at())?;
        }
        Ok(term)
    }

    fn negated(&mut self) -> Parsed<Term> {
        if self.word("not") {
            let of = self.deeper(Self::negated)?;
            return Ok(Term::Not(Box::new(of)));
        }
        self.compared()
    }

    fn compared(&mut self) -> Parsed<Term> {
        let term = self.sum()?;
        let Some(sign) = self.sign(&["<=", ">=", "==", "!=", "<", ">", "="]) else {
            return Ok(term);
        };
        let operator = match sign {
            "<=" => Operator::AtMost,
            ">=" => Operator::AtLeast,
            "!=" => Operator::Differs,
            "<" => Operator::Less,
            ">" => Operator::More,
            _ => Operator::Same,
        };
        two(operator, term, self.sum()?, self.at())
    }

    fn sum(&mut self) -> Parsed<Term> {
        let mut term = self.product()?;
        while let Some(sign) = self.sign(&["+", "-"]) {
            let operator = if sign == "+" {
                Operator::Plus
            } else {
                Operator::Minus
            };
            term = two(operator, term, self.product()?, self.at())?;
        }
        Ok(term)
    }

    fn product(&mut self) -> Parsed<Term> {
        let mut term = self.signed()?;
        while let Some(sign) = self.sign(&["*", "/"]) {
            let operator = if sign == "*" {
                Operator::Times
            } else {
                Operator::Over
            };
            term = two(operator, term, self.signed()?, self.at())?;
        }
        Ok(term)
    }

    fn signed(&mut self) -> Parsed<Term> {
        if self.sign(&["-"]).is_some() {
            let of = self.deeper(Self::signed)?;
            return Ok(Term::Minus(Box::new(of)));
        }
        self.atom()
    }

    fn atom(&mut self) -> Parsed<Term> {
        let at = self.at();
        if self.sign(&["("]).is_some() {
            if self.sign(&[")"]).is_some() {
                return Ok(Term::Value(Value::Unit));
            }
            let inner = self.either()?;
            self.close()?;
            return Ok(inner);
        }
        let Some(word) = self.words.get(self.next) else {
            return Err((at, "a value is missing".to_owned()));
        };
        let term = match &word.is {
            Is::Number(number) => match Value::number(*number) {
                Some(value) => Term::Value(value),
                None => return Err((at, "it is too large".to_owned())),
            },
            Is::Text(text) => Term::Value(Value::Text(text.clone())),
            Is::Name(name) => match &**name {
                "true" => Term::Value(Value::Flag(true)),
                "false" => Term::Value(Value::Flag(false)),
                "and" | "or" | "not" => return Err((at, "a value is missing".to_owned())),
                "min" => return self.of_two(Operator::Least),
                "max" => return self.of_two(Operator::Most),
                _ => Term::Name(name.clone()),
            },
            Is::Sign(_) => return Err((at, "a value is missing".to_owned())),
        };
        self.next += 1;
        Ok(term)
    }

    /// `min` or `max` and its two arguments.
    fn of_two(&mut self, operator: Operator) -> Parsed<Term> {
        self.next += 1;
        let wanted = |at| (at, "two values in parentheses are wanted".to_owned());
        self.sign(&["("]).ok_or_else(|| wanted(self.at()))?;
        let first = self.either()?;
        self.sign(&[","]).ok_or_else(|| wanted(self.at()))?;
        let second = self.either()?;
        self.close()?;
        two(operator, first, second, self.at())
    }

    fn close(&mut self) -> Parsed<()> {
        match self.sign(&[")"]) {
            Some(_) => Ok(()),
            None => Err((self.at(), "a closing parenthesis is missing".to_owned())),
        }
    }
}

/// Chains such as `1 + 1 + ...` are as deep as they are long, so their length is limited too.
fn two(operator: Operator, a: Term, b: Term, at: usize) -> Parsed<Term> {
    let mut depth = 0;
    let mut left = &a;
    while let Term::Two(_, first, _) = left {
        left = first;
        depth += 1;
        if depth > DEEPEST {
            return Err((
                at,
                format!("more than {DEEPEST} operators follow each other"),
            ));
        }
    }
    Ok(Term::Two(operator, Box::new(a), Box::new(b)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Expression;
    use crate::term::Names;
    use proptest::prelude::*;

    struct Some3(Value);

    impl Names for Some3 {
        fn value(&self, name: &str) -> Option<&Value> {
            (name == "n").then_some(&self.0)
        }
    }

    fn gives(text: &str) -> String {
        let names = Some3(Value::from(3));
        match Expression::parse(text).and_then(|e| e.evaluate(&names)) {
            Ok(value) => value.to_string(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn values() {
        for (text, value) in [
            ("1 + 2 * n - -4 / 2", "9"),
            ("10 - 2 - 3", "5"),
            ("(10 - 2) / 4 / 2", "1"),
            ("min(n, 2) + max(n, 2)", "5"),
            ("n >= 3 and n <= 3 and n = 3 and n == 3", "true"),
            ("not n < 3 and not n > 3", "true"),
            ("n != 3 or false", "false"),
            ("'a b' = 'a b' and 'a' != 3", "true"),
            ("()", "()"),
            ("false and 1 / 0 = 1", "false"),
            ("true or nobody", "true"),
            ("0.5e1", "5"),
        ] {
            assert_eq!(gives(text), value, "{text}");
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, part) in [
            ("", "character 1: a value is missing"),
            ("n <", "character 4: a value is missing"),
            ("n 3", "character 3: an operator is missing"),
            ("(n", "character 3: a closing parenthesis"),
            ("n # 3", "character 3: '#' means nothing"),
            ("3x", "character 1: 3x is not a number"),
            ("'a", "quote"),
            ("min(1)", "two values"),
            ("min 1", "two values"),
            ("1 / 0", "divides by zero"),
            ("n < 'a'", "'a' is a name"),
            ("not n", "a yes or no is wanted"),
            ("who + 1", "nothing is named who"),
            ("1e308 * 10", "too large"),
            ("and", "a value is missing"),
            ("n < 1 < 2", "an operator is missing"),
        ] {
            let told = gives(text);
            assert!(told.contains(part), "{text}: {told}");
        }
    }

    #[test]
    fn depth_is_limited() {
        let deep = format!("{}1{}", "(".repeat(10_000), ")".repeat(10_000));
        assert!(gives(&deep).contains("longer"));
        for text in [
            format!("{}1{}", "(".repeat(1000), ")".repeat(1000)),
            format!("{}1", "-".repeat(1000)),
            format!("{}true", "not ".repeat(1000)),
            format!("1{}", "+1".repeat(1000)),
            format!("true{}", " or true".repeat(400)),
        ] {
            let told = gives(&text);
            assert!(told.contains("64"), "{told}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_answered(text in "[-0-9a-z_<>=!+*/(),.' \u{e9}]{0,60}") {
            let _ = gives(&text);
        }
    }
}
