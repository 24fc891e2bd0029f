//! Texts of queries that differ in constants alone: such a text, with parameters in the places of its constants, is a *shape*,
//! which can be planned once for all of them.
//!
//! Only constants that are compared with a column in `where` or `on` become parameters: `column = 5`, `column in ('a', 'b')`,
//! `column between 1 and 2`, `column like '%x%'`, `substring(...) in ('a')`, the days of `date '2020-02-29'` that are compared with
//! anything, and what such a day is moved by; in `having` also numbers that aggregates are compared with; and the same in conditions of
//! `case when`, wherever it stands. All others stay in the shape, so that texts which differ in them have different shapes. What a shape is planned to must show that its parameters matter to
//! no type, name or order ([generic plans](crate::run::generic_plans)); where one is left out here that might be a parameter, only
//! time is lost.

use arrow::datatypes::{DataType, IntervalUnit};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer};

use crate::dialect::DIALECT;
use crate::plain::{plain_decimal, plain_interval};

/// The longest text that is looked at, and most constants that become parameters.
const LONGEST: usize = 16 << 10;
const MOST: usize = 64;

/// A text with parameters in the places of its constants, and these.
#[derive(Clone, Debug, PartialEq)]
pub struct Shape {
    /// With `$1`, `$2`, ...; spaces and comments are a space.
    pub text: String,
    /// The types of the parameters, as PostgreSQL takes constants: whole numbers have one, texts what they are compared with.
    pub declared: Vec<Option<DataType>>,
    /// The literals that were left out, in their order.
    pub values: Vec<String>,
}

/// The part of a query that a token stands in.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Clause {
    /// Where constants are conditions.
    Condition,
    /// Conditions of groups, which compare aggregates with numbers.
    Having,
    Other,
    /// Of the filter of an aggregate, where clauses do not count.
    Closed,
}

/// Reads the tokens of a text.
struct Reader<'t> {
    text: &'t str,
    /// All but spaces and comments.
    tokens: Vec<&'t TokenWithSpan>,
    /// Where each line of the text begins.
    lines: Vec<usize>,
    /// The clause of each open parenthesis, and of the query itself.
    clauses: Vec<Clause>,
    /// Whether each open `case` is between `when` and `then`.
    cases: Vec<bool>,
    /// The `and` that belongs to the `between` that was read last.
    betweens: Vec<usize>,
    /// Whether each open parenthesis is that of a list behind `column in`.
    lists: Vec<bool>,
    shape: Shape,
    /// Up to where the text is in the shape.
    done: usize,
}

impl Shape {
    /// The shape of a text, if it is one query with constants that can be parameters.
    pub fn of_text(text: &str) -> Option<Shape> {
        // A query begins with a word or a comment.
        let first = text.trim_start().bytes().next();
        let begins = matches!(first, Some(b's' | b'S' | b'w' | b'W' | b'-' | b'/'));
        if !begins || text.len() > LONGEST || !text.is_ascii() {
            return None;
        }
        let tokens = Tokenizer::new(&DIALECT, text)
            .tokenize_with_location()
            .ok()?;
        let is_space = |token: &&TokenWithSpan| matches!(token.token, Token::Whitespace(_));
        let newlines = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let mut reader = Reader {
            text,
            tokens: tokens.iter().filter(|token| !is_space(token)).collect(),
            lines: std::iter::once(0)
                .chain(newlines.map(|(at, _)| at + 1))
                .collect(),
            clauses: vec![Clause::Other],
            cases: Vec::new(),
            betweens: Vec::new(),
            lists: Vec::new(),
            shape: Shape {
                text: String::with_capacity(text.len()),
                declared: Vec::new(),
                values: Vec::new(),
            },
            done: 0,
        };
        reader.read()?;
        let shape = reader.shape;
        (!shape.values.is_empty()).then_some(shape)
    }
}

impl<'t> Reader<'t> {
    fn token(&self, at: usize) -> &'t Token {
        self.tokens
            .get(at)
            .map_or(&Token::EOF, |token| &token.token)
    }

    fn keyword(&self, at: usize) -> Keyword {
        match self.token(at) {
            Token::Word(word) => word.keyword,
            _ => Keyword::NoKeyword,
        }
    }

    /// Reads all tokens; `None` if the text is not one query without parameters.
    fn read(&mut self) -> Option<()> {
        if !matches!(self.keyword(0), Keyword::SELECT | Keyword::WITH) {
            return None;
        }
        let mut end = self.tokens.len();
        if end > 0 && *self.token(end - 1) == Token::SemiColon {
            end -= 1;
        }
        let mut at = 0;
        while at < end {
            self.enter(at)?;
            let taken = self.constant(at).unwrap_or(0);
            if taken == 0 {
                self.copy(at)?;
            }
            at += taken.max(1);
        }
        (self.clauses.len() == 1).then_some(())
    }

    /// Takes note of what a token opens or closes.
    fn enter(&mut self, at: usize) -> Option<()> {
        match self.token(at) {
            Token::Placeholder(_) | Token::SemiColon => return None,
            Token::LParen => {
                let own = self.clause();
                let is_filter = at > 0 && self.keyword(at - 1) == Keyword::FILTER;
                self.clauses
                    .push(if is_filter { Clause::Closed } else { own });
                self.lists.push(self.is_list(at));
            }
            Token::RParen => {
                self.clauses.pop();
                self.lists.pop();
                self.clauses.last()?;
            }
            Token::Word(word) => match word.keyword {
                Keyword::CASE => self.cases.push(false),
                Keyword::WHEN => self.is_when(true),
                Keyword::THEN | Keyword::ELSE => self.is_when(false),
                Keyword::END => _ = self.cases.pop(),
                Keyword::WHERE | Keyword::ON => self.turn(Clause::Condition),
                Keyword::HAVING => self.turn(Clause::Having),
                Keyword::SELECT
                | Keyword::FROM
                | Keyword::GROUP
                | Keyword::ORDER
                | Keyword::WINDOW
                | Keyword::LIMIT
                | Keyword::OFFSET
                | Keyword::FETCH
                | Keyword::UNION
                | Keyword::INTERSECT
                | Keyword::EXCEPT
                | Keyword::JOIN => self.turn(Clause::Other),
                Keyword::BETWEEN => {
                    let and = (at + 1..self.tokens.len()).take(4);
                    let and = and
                        .into_iter()
                        .find(|next| self.keyword(*next) == Keyword::AND);
                    self.betweens.extend(and);
                }
                _ => {}
            },
            _ => {}
        }
        Some(())
    }

    fn clause(&self) -> Clause {
        self.clauses.last().copied().unwrap_or(Clause::Other)
    }

    fn is_when(&mut self, is: bool) {
        if let Some(own) = self.cases.last_mut() {
            *own = is;
        }
    }

    fn turn(&mut self, to: Clause) {
        if let Some(own) = self.clauses.last_mut()
            && *own != Clause::Closed
        {
            *own = to;
        }
    }

    /// Whether a token is the end of the name of a column.
    fn is_column(&self, at: Option<usize>) -> bool {
        let word = |at: usize| match self.token(at) {
            Token::Word(word) => word.quote_style.is_some() || word.keyword == Keyword::NoKeyword,
            _ => false,
        };
        at.is_some_and(word)
    }

    /// Whether the parenthesis at this place opens a list behind `column in` or `column not in`, or behind a part of a text.
    fn is_list(&self, at: usize) -> bool {
        let before = |back: usize| at.checked_sub(back);
        let keyword = |back: usize| before(back).map(|at| self.keyword(at));
        let is_known = |at: Option<usize>| self.is_column(at) || self.is_part_of_text(at);
        keyword(1) == Some(Keyword::IN)
            && (is_known(before(2)) || keyword(2) == Some(Keyword::NOT) && is_known(before(3)))
    }

    /// Whether a call of `substring` ends here that has no parentheses within it.
    fn is_part_of_text(&self, at: Option<usize>) -> bool {
        let Some(end) = at.filter(|at| *self.token(*at) == Token::RParen) else {
            return false;
        };
        let bracket = |at: &usize| matches!(self.token(*at), Token::LParen | Token::RParen);
        let open = (0..end).rev().take(12).find(bracket);
        let name = open.filter(|at| *self.token(*at) == Token::LParen);
        let name = name.and_then(|at| at.checked_sub(1));
        name.is_some_and(|at| matches!(self.keyword(at), Keyword::SUBSTRING | Keyword::SUBSTR))
    }

    fn is_comparison(token: &Token) -> bool {
        matches!(
            token,
            Token::Eq | Token::Neq | Token::Lt | Token::LtEq | Token::Gt | Token::GtEq
        )
    }

    /// Whether a token begins a constant that a column, or with `anything` whatever stands there, is compared with.
    fn is_compared(&self, at: usize, anything: bool) -> bool {
        let before = |back: usize| at.checked_sub(back);
        let column = |back: usize| anything || self.is_column(before(back));
        let Some(last) = before(1) else {
            return false;
        };
        let negated = |back: usize| {
            let not = before(back).map(|at| self.keyword(at)) == Some(Keyword::NOT);
            column(if not { back + 1 } else { back })
        };
        match self.token(last) {
            token if Reader::is_comparison(token) => column(2),
            Token::LParen | Token::Comma => self.lists.last() == Some(&true),
            Token::Word(word) => match word.keyword {
                Keyword::BETWEEN => negated(2),
                Keyword::AND => self.betweens.contains(&last),
                Keyword::LIKE => !anything && negated(2),
                _ => false,
            },
            _ => false,
        }
    }

    /// Whether a constant ends in front of this token, and nothing is computed with it.
    fn ends(&self, at: usize) -> bool {
        match self.token(at) {
            Token::EOF | Token::RParen | Token::SemiColon => true,
            Token::Comma => self.lists.last() == Some(&true),
            Token::Word(word) => matches!(
                word.keyword,
                Keyword::AND
                    | Keyword::OR
                    | Keyword::THEN
                    | Keyword::WHERE
                    | Keyword::JOIN
                    | Keyword::LEFT
                    | Keyword::RIGHT
                    | Keyword::FULL
                    | Keyword::INNER
                    | Keyword::CROSS
                    | Keyword::GROUP
                    | Keyword::ORDER
                    | Keyword::LIMIT
                    | Keyword::HAVING
                    | Keyword::UNION
                    | Keyword::INTERSECT
                    | Keyword::EXCEPT
            ),
            _ => false,
        }
    }

    /// Makes a parameter of the constant that begins at this place, if it can be one. Returns how many tokens it has.
    fn constant(&mut self, at: usize) -> Option<usize> {
        let clause = self.clause();
        let is_condition = match (self.cases.last(), clause) {
            (_, Clause::Closed) => false,
            (Some(is_when), _) => *is_when,
            (None, _) => clause != Clause::Other,
        };
        if !is_condition || self.shape.values.len() >= MOST {
            return None;
        }
        match self.token(at) {
            Token::Number(digits, false) if self.is_compared(at, clause == Clause::Having) => {
                let adds = matches!(self.token(at + 1), Token::Plus | Token::Minus)
                    && matches!(self.token(at + 2), Token::Number(_, false))
                    && self.ends(at + 3);
                if !self.ends(at + 1) && !adds {
                    return None;
                }
                self.put(at, at, (Some(number_type(digits)?), digits.clone()))
            }
            Token::Minus if self.is_compared(at, false) && self.ends(at + 2) => {
                let Token::Number(digits, false) = self.token(at + 1) else {
                    return None;
                };
                let value = format!("-{digits}");
                self.put(at, at + 1, (Some(number_type(digits)?), value))
            }
            Token::SingleQuotedString(text) if self.is_compared(at, false) && self.ends(at + 1) => {
                self.put(at, at, (None, text.clone()))
            }
            Token::Word(word) if word.keyword == Keyword::DATE && self.is_compared(at, true) => {
                let Token::SingleQuotedString(text) = self.token(at + 1) else {
                    return None;
                };
                self.put(at, at + 1, (Some(DataType::Date32), text.clone()))
            }
            Token::Word(word) if word.keyword == Keyword::INTERVAL => self.interval(at),
            _ => None,
        }
    }

    /// Makes a parameter of the interval that begins at this place, if a day that is a constant is moved by it. Returns how many
    /// tokens it has.
    fn interval(&mut self, at: usize) -> Option<usize> {
        let day = at.checked_sub(3)?;
        let is_moved = matches!(self.token(at - 1), Token::Plus | Token::Minus)
            && matches!(self.token(at - 2), Token::SingleQuotedString(_))
            && self.keyword(day) == Keyword::DATE
            && self.is_compared(day, true);
        let Token::SingleQuotedString(text) = self.token(at + 1) else {
            return None;
        };
        let unit = match self.keyword(at + 2) {
            Keyword::YEAR => Some("year"),
            Keyword::MONTH => Some("month"),
            Keyword::DAY => Some("day"),
            _ => None,
        };
        let last = if unit.is_some() { at + 2 } else { at + 1 };
        let value = match unit {
            Some(unit) => format!("{text} {unit}"),
            None => text.clone(),
        };
        if !is_moved || !self.ends(last + 1) || plain_interval(&value).is_none() {
            return None;
        }
        let interval = DataType::Interval(IntervalUnit::MonthDayNano);
        self.put(at, last, (Some(interval), value))
    }

    /// Puts a parameter in the place of the tokens from `first` to `last`.
    fn put(
        &mut self,
        first: usize,
        last: usize,
        (declared, value): (Option<DataType>, String),
    ) -> Option<usize> {
        let (start, end) = (
            self.place(self.tokens[first].span.start)?,
            self.place(self.tokens[last].span.end)?,
        );
        self.space(start);
        let number = self.shape.values.len() + 1;
        self.shape.text.push_str(&match declared {
            Some(DataType::Date32) => format!("cast(${number} as date)"),
            Some(DataType::Interval(_)) => format!("cast(${number} as interval)"),
            _ => format!("${number}"),
        });
        self.shape.declared.push(declared);
        self.shape.values.push(value);
        self.done = end;
        Some(last - first + 1)
    }

    /// Copies a token as it is.
    fn copy(&mut self, at: usize) -> Option<()> {
        let span = self.tokens[at].span;
        let (start, end) = (self.place(span.start)?, self.place(span.end)?);
        self.space(start);
        self.shape.text.push_str(self.text.get(start..end)?);
        self.done = end;
        Some(())
    }

    /// A space, if there is something between what is in the shape and `start`.
    fn space(&mut self, start: usize) {
        if start > self.done && self.done > 0 {
            self.shape.text.push(' ');
        }
    }

    /// The place of a location in the text, whose characters are bytes.
    fn place(&self, location: Location) -> Option<usize> {
        let line = self
            .lines
            .get(usize::try_from(location.line).ok()?.checked_sub(1)?)?;
        Some(line + usize::try_from(location.column).ok()?.checked_sub(1)?)
    }
}

/// The type of a number without a sign, as planning takes it; none if it has too many digits.
fn number_type(digits: &str) -> Option<DataType> {
    if let Some((number, places)) = plain_decimal(digits) {
        let scale = i8::try_from(places).ok()?;
        let length = u8::try_from(number.to_string().len().max(places)).ok()?;
        return Some(DataType::Decimal128(length, scale));
    }
    let number: i64 = digits.parse().ok()?;
    let is_small = i32::try_from(number).is_ok();
    Some(if is_small {
        DataType::Int32
    } else {
        DataType::Int64
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(text: &str) -> (String, Vec<String>) {
        let shape = Shape::of_text(text).unwrap();
        assert_eq!(shape.declared.len(), shape.values.len());
        (shape.text, shape.values)
    }

    #[test]
    fn constants_that_columns_are_compared_with_are_parameters() {
        for (text, expected, values) in [
            (
                "select a from t where b = 5 and c <> 'it''s'",
                "select a from t where b = $1 and c <> $2",
                vec!["5", "it's"],
            ),
            (
                "\n -- what\nSELECT a, 7 from t  -- why\n where t.b in (1, 2,3)\n\tand c not in ('x') and d between 4 and 6 order by 1;",
                "SELECT a, 7 from t where t.b in ($1, $2,$3) and c not in ($4) and d between $5 and $6 order by 1",
                vec!["1", "2", "3", "x", "4", "6"],
            ),
            (
                "select 1 from t join u on t.a = u.a and u.b = 'k' where d >= date '1994-01-01' and d < date '1994-01-01' + interval '1' year",
                "select 1 from t join u on t.a = u.a and u.b = $1 where d >= cast($2 as date) and d < cast($3 as date) + cast($4 as interval)",
                vec!["k", "1994-01-01", "1994-01-01", "1 year"],
            ),
            (
                "select a from t where b like '%x%' and c not like 'y%' and q <= 1 + 10 and exists (select 1 from u where k = 3)",
                "select a from t where b like $1 and c not like $2 and q <= $3 + 10 and exists (select 1 from u where k = $4)",
                vec!["%x%", "y%", "1", "3"],
            ),
            (
                "select case when a = 1 then 2 end, sum(x) filter (where y = 1) from t where \"b\"=6 group by 1 having count(*) > 3 and sum(x) + 1 < 2.5 limit 4",
                "select case when a = $1 then 2 end, sum(x) filter (where y = 1) from t where \"b\"=$2 group by 1 having count(*) > $3 and sum(x) + 1 < $4 limit 4",
                vec!["1", "6", "3", "2.5"],
            ),
            (
                "select a from t where b = -5 and c > 0.05 and substring(p from 1 for 2) not in ('13', '31') and d <= date '1998-12-01' - interval '90 days'",
                "select a from t where b = $1 and c > $2 and substring(p from 1 for 2) not in ($3, $4) and d <= cast($5 as date) - cast($6 as interval)",
                vec!["-5", "0.05", "13", "31", "1998-12-01", "90 days"],
            ),
            (
                "select sum(case when a = 'x' and case b when 1 then 2 else 3 end > 2 then c else 0 end) from t where case when d like 'y%' then e = 5 end",
                "select sum(case when a = $1 and case b when 1 then 2 else 3 end > 2 then c else 0 end) from t where case when d like $2 then e = 5 end",
                vec!["x", "y%"],
            ),
            (
                "select a from t where b = date '2020-01-01' + interval '1 hour' and c > 5 + d and e < f + interval '1 day'",
                "select a from t where b = cast($1 as date) + interval '1 hour' and c > 5 + d and e < f + interval '1 day'",
                vec!["2020-01-01"],
            ),
            (
                "with w as (select * from t where a > 3000000000) select * from w where case b when 1 then a = 2 end and c = 4",
                "with w as (select * from t where a > $1) select * from w where case b when 1 then a = 2 end and c = $2",
                vec!["3000000000", "4"],
            ),
        ] {
            assert_eq!(
                shape(text),
                (
                    expected.to_owned(),
                    values.iter().map(ToString::to_string).collect()
                )
            );
        }
        let declared = Shape::of_text("select 1 from t where a = 5 and b = 3000000000 and c = 'x'");
        let expected = [Some(DataType::Int32), Some(DataType::Int64), None];
        assert_eq!(declared.unwrap().declared, expected);
        let declared = Shape::of_text("select 1 from t where a = 0.05 and b = -12.340 and c = 1.");
        let expected = [DataType::Decimal128(2, 2), DataType::Decimal128(5, 3)].map(Some);
        assert_eq!(declared.unwrap().declared, expected);
    }

    #[test]
    fn other_constants_stay() {
        for text in [
            "select 5",
            "insert into t values (1)",
            "select a from t where a = $1 and b = 2",
            "select a from t where b = 1; select 2 from t where c = 1",
            "select a from t where b + 1 = c",
            "select a from t where b = 5::bigint",
            "select a from t where b = 'x' || c",
            "select a from t where b = 1.5e3",
            "select a from t where b = - - 5",
            "select a from t where b = E'x'",
            "select a from t where f(b) = 5",
            "select a from t where b ilike 'x'",
            "select a from t where b like 'x' escape '!'",
            "select a from t where repeat(b, 2) in ('a', 'b')",
            "select a from t where substring(f(b), 1, 2) in ('a', 'b')",
            "select a from t where (a, b) in ((1, 2))",
            "select a from t where b = 5 * c",
            "select a from t where a = 99999999999999999999",
            "select a from t where b = 'ä'",
            "select a from t where b = 5)",
        ] {
            assert_eq!(Shape::of_text(text), None, "{text}");
        }
    }
}
