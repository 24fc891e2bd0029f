//! Operators and their arguments.

use array::expr::BinaryOp;
use array::{Aggregate, Bound, Decimal, Function, SortKey};

use super::Parser;
use crate::error::{Checked, Span, wrong};
use crate::lex::Token;
use crate::syntax::{Call, OPERATORS, Operator, Query, Side};

impl Parser {
    /// The name of an array, or an operator.
    pub(super) fn query(&mut self) -> Checked<Query> {
        let what = "an array: a name or an operator";
        if !self.follows("(") {
            return Ok(Query::Array(self.stored(what)?));
        }
        let name = self.name(what)?;
        self.deeper(|parser| {
            parser.need("(")?;
            let call = parser.call(&name.text.to_ascii_lowercase(), name.span)?;
            parser.need(")")?;
            Ok(Query::Call(Box::new(call)))
        })
    }

    fn call(&mut self, operator: &str, span: Span) -> Checked<Call> {
        if operator == "build" {
            let schema = Box::new(self.schema()?);
            self.need(",")?;
            let operator = Operator::Build(schema, self.expression()?);
            return Ok(Call {
                operator,
                inputs: Vec::new(),
                span,
            });
        }
        let binary = match operator {
            "add" => Some(BinaryOp::Add),
            "subtract" => Some(BinaryOp::Subtract),
            "multiply" => Some(BinaryOp::Multiply),
            "divide" => Some(BinaryOp::Divide),
            "compare" => Some(BinaryOp::Eq),
            _ => None,
        };
        if let Some(op) = binary {
            return self.between_two(op, operator == "compare", span);
        }
        if !OPERATORS.contains(&operator) {
            let known = OPERATORS.join(", ");
            return wrong(
                span,
                format!("there is no operator `{operator}`; there are {known}"),
            );
        }
        let mut inputs = vec![self.query()?];
        if matches!(operator, "concat" | "join" | "cross_join" | "matmul") {
            self.need(",")?;
            inputs.push(self.query()?);
        }
        let operator = self.arguments(operator)?;
        Ok(Call {
            operator,
            inputs,
            span,
        })
    }

    /// `add(A, B)`, `add(A, 2)`, `add(2, A)`, `compare(A, <, B)`.
    fn between_two(&mut self, op: BinaryOp, sign: bool, span: Span) -> Checked<Call> {
        let (mut inputs, mut value) = (Vec::new(), None);
        let mut op = op;
        for side in [Side::Left, Side::Right] {
            if side == Side::Right {
                self.need(",")?;
                if sign {
                    op = self.comparison()?;
                    self.need(",")?;
                }
            }
            match self.peek() {
                Token::Name { .. } => inputs.push(self.query()?),
                _ => value = Some((self.expression()?, side)),
            }
        }
        if inputs.is_empty() {
            return wrong(span, "one of the two must be an array");
        }
        Ok(Call {
            operator: Operator::Binary(op, value),
            inputs,
            span,
        })
    }

    fn comparison(&mut self) -> Checked<BinaryOp> {
        match self.comparison_sign() {
            Some(op) => Ok(op),
            None => self.expected("a comparison: =, <>, <, <=, > or >="),
        }
    }

    /// What stands behind the inputs of an operator.
    fn arguments(&mut self, operator: &str) -> Checked<Operator> {
        Ok(match operator {
            "scan" => Operator::Scan,
            "opposite" => Operator::Opposite,
            "join" => Operator::Join,
            "matmul" => Operator::Matmul,
            "subarray" => Operator::Subarray(self.list(Parser::bound)?),
            "between" => Operator::Between(self.list(Parser::bound)?),
            "subset" => Operator::Subset(self.list(|parser| {
                let name = parser.name("the name of a dimension")?.text;
                parser.need(",")?;
                let low = parser.bound()?;
                parser.need(",")?;
                Ok((name, low, parser.bound()?))
            })?),
            "slice" => Operator::Slice(self.list(|parser| {
                let name = parser.name("the name of a dimension")?.text;
                parser.need(",")?;
                Ok((name, parser.decimal("a coordinate")?))
            })?),
            "filter" => {
                self.need(",")?;
                Operator::Filter(self.expression()?)
            }
            "apply" => Operator::Apply(self.list(|parser| {
                let name = parser.name("the name of a new attribute")?.text;
                parser.need(",")?;
                Ok((name, parser.expression()?))
            })?),
            "project" => Operator::Project(self.names("the name of an attribute")?),
            "rename" => Operator::Rename(self.list(|parser| {
                let old = parser.name("the name of an attribute")?.text;
                parser.need(",")?;
                Ok((old, parser.name("a new name")?.text))
            })?),
            "transpose" => Operator::Transpose(self.names("the name of a dimension")?),
            "rechunk" => Operator::Rechunk(self.list(Parser::count)?),
            "concat" => {
                let along = if self.sign(",") {
                    Some(self.name("the name of a dimension")?.text)
                } else {
                    None
                };
                Operator::Concat(along)
            }
            "cross_join" => Operator::CrossJoin(self.list(|parser| {
                let one = parser.qualified()?;
                parser.need(",")?;
                Ok((one, parser.qualified()?))
            })?),
            "sort" => Operator::Sort(self.list(Parser::sort_key)?),
            "aggregate" => {
                let (all, by) = self.aggregates(|parser| {
                    Ok(parser.name("an aggregate or the name of a dimension")?.text)
                })?;
                Operator::Aggregate(all, by)
            }
            "window" => {
                let (all, around) = self.aggregates(Parser::count)?;
                Operator::Window(around, all)
            }
            "variable_window" => self.variable_window()?,
            "quantile" => self.quantile()?,
            "histogram" => self.histogram()?,
            "regrid" => {
                let (all, blocks) = self.aggregates(Parser::count)?;
                Operator::Regrid(blocks, all)
            }
            _ => self.redimension()?,
        })
    }

    /// `variable_window(A, x, 1, 2, sum(v))`.
    fn variable_window(&mut self) -> Checked<Operator> {
        self.need(",")?;
        let along = self.name("the name of a dimension")?.text;
        self.need(",")?;
        let before = self.count()?;
        self.need(",")?;
        let around = (before, self.count()?);
        let all = self.list(Parser::aggregate)?;
        Ok(Operator::VariableWindow(along, around, all))
    }

    /// `quantile(A, v, 0.25, 0.5, 0.75, x)`.
    fn quantile(&mut self) -> Checked<Operator> {
        self.need(",")?;
        let of = self.name("the name of an attribute")?.text;
        let (mut points, mut by) = (Vec::new(), Vec::new());
        while self.more()? {
            if matches!(self.peek(), Token::Name { .. }) {
                by.push(self.name("the name of a dimension")?.text);
            } else {
                points.push(self.decimal("a number from 0 to 1, or the name of a dimension")?);
            }
        }
        Ok(Operator::Quantile(of, points, by))
    }

    /// `histogram(A, v, 10)`, `histogram(A, v, 10, -1.5, 1.5)`.
    fn histogram(&mut self) -> Checked<Operator> {
        self.need(",")?;
        let of = self.name("the name of an attribute")?.text;
        self.need(",")?;
        let bins = self.count()?;
        if !self.more()? {
            return Ok(Operator::Histogram(of, bins, None));
        }
        let low = self.decimal("where the first interval begins")?;
        self.need(",")?;
        let high = self.decimal("where the last interval ends")?;
        let range = Some((low.to_f64(), high.to_f64()));
        Ok(Operator::Histogram(of, bins, range))
    }

    /// `redimension(A, <v> [k=0:4])`, `redimension(A, <v:double> [k=0:4])`, `redimension(A, [k=0:4], sum(v) as s)`.
    fn redimension(&mut self) -> Checked<Operator> {
        self.need(",")?;
        let mut attributes = Vec::new();
        if self.sign("<") {
            loop {
                let name = self.name("the name of an attribute")?.text;
                // As in SciDB, where a whole schema is given.
                let of = self.sign(":").then(|| self.data_type()).transpose()?;
                if of.is_some() {
                    self.word("null");
                }
                attributes.push((name, of));
                if !self.sign(",") {
                    break;
                }
            }
            self.need(">")?;
        }
        let dimensions = self.dimensions()?;
        let all = self.list(Parser::aggregate)?;
        Ok(Operator::Redimension(dimensions, attributes, all))
    }

    /// What follows, each after a comma.
    fn list<T>(&mut self, one: impl Fn(&mut Parser) -> Checked<T>) -> Checked<Vec<T>> {
        let mut all = Vec::new();
        while self.more()? {
            all.push(one(self)?);
        }
        Ok(all)
    }

    fn names(&mut self, what: &str) -> Checked<Vec<String>> {
        self.list(|parser| Ok(parser.name(what)?.text))
    }

    /// A dimension, perhaps with the name of its array and a point before.
    fn qualified(&mut self) -> Checked<String> {
        let name = self.name("the name of a dimension")?.text;
        if self.sign(".") {
            return Ok(self.name("the name of a dimension")?.text);
        }
        Ok(name)
    }

    /// A coordinate, or `null`, `*` for the edge.
    fn bound(&mut self) -> Checked<Bound> {
        if self.sign("*") || self.word("null") {
            return Ok(Bound::Edge);
        }
        Ok(Bound::At(
            self.decimal("a coordinate, or null for the edge")?,
        ))
    }

    /// A number as a coordinate, with all digits that were written.
    pub(super) fn decimal(&mut self, what: &str) -> Checked<Decimal> {
        let span = self.span();
        let sign = if self.sign("-") { "-" } else { "" };
        self.sign("+");
        match self.peek().clone() {
            Token::Number(digits) => {
                self.next();
                let parsed = format!("{sign}{digits}").parse::<Decimal>();
                parsed.or_else(|error| wrong(span, error.to_string()))
            }
            _ => self.expected(what),
        }
    }

    /// A whole number, 0 or more.
    pub(super) fn count(&mut self) -> Checked<u64> {
        let span = self.span();
        match self.peek().clone() {
            Token::Number(digits) => {
                self.next();
                let parsed = digits.parse::<u64>();
                parsed.or_else(|_| wrong(span, format!("{digits} is no whole number of cells")))
            }
            _ => self.expected("a whole number"),
        }
    }

    fn sort_key(&mut self) -> Checked<SortKey> {
        let attribute = self.name("the name of an attribute")?.text;
        let descending = self.word("desc");
        if !descending {
            self.word("asc");
        }
        Ok(SortKey {
            attribute,
            descending,
        })
    }

    /// Aggregates and other arguments, in any order.
    fn aggregates<T>(
        &mut self,
        other: impl Fn(&mut Parser) -> Checked<T>,
    ) -> Checked<(Vec<Aggregate>, Vec<T>)> {
        let (mut all, mut others) = (Vec::new(), Vec::new());
        while self.more()? {
            if matches!(self.peek(), Token::Name { .. }) && self.follows("(") {
                all.push(self.aggregate()?);
            } else {
                others.push(other(self)?);
            }
        }
        Ok((all, others))
    }

    /// `sum(x) as s`, `count(*)`.
    fn aggregate(&mut self) -> Checked<Aggregate> {
        let name = self.name("an aggregate, as in sum(x)")?;
        let function = Function::ALL
            .into_iter()
            .find(|of| of.name().eq_ignore_ascii_case(&name.text));
        let Some(function) = function else {
            let known: Vec<_> = Function::ALL.iter().map(|of| of.name()).collect();
            let what = format!(
                "there is no aggregate `{}`; there are {}",
                name.text,
                known.join(", ")
            );
            return wrong(name.span, what);
        };
        self.need("(")?;
        let star = self.is_sign("*");
        let aggregate = if function == Function::Count && self.sign("*") {
            Aggregate::count()
        } else if star {
            return self.expected("the name of an attribute; only count takes a *");
        } else {
            Aggregate::new(function, &self.name("the name of an attribute")?.text)
        };
        self.need(")")?;
        if self.word("as") {
            return Ok(aggregate.named(&self.name("a name for the result")?.text));
        }
        Ok(aggregate)
    }
}
