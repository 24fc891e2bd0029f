//! Operands and operators: what matrix each gives, if its operands go together.

use std::collections::BTreeSet;

use arrow::datatypes::DataType;
use engine::Function as Folding;

use crate::catalog::did_you_mean;
use crate::check::checker::Checker;
use crate::check::element::{self, Class, Over, class};
use crate::error::{Checked, Span, wrong};
use crate::matrix::{Key, Matrix};
use crate::space::{Domain, FoldId, InstanceId, Space, TermId};
use crate::syntax::{Each, Element, Name, Operand, Operator, Sign, What};
use crate::term::{Found, Groups, Instance, Op, Source, Substitution, Term};

impl Checker<'_> {
    pub fn operand(&mut self, operand: &Operand) -> Checked<Matrix> {
        match &operand.what {
            What::Name(name) => match self.names.get(&name.text) {
                Some(matrix) => Ok(matrix.clone()),
                None => self.unknown(name),
            },
            What::Attribute(table, column) => self.attribute(table, column),
            What::Each(each, e) => self.each(*each, e, operand.span),
            What::Call(operator, args) => self.call(*operator, args, operand.span),
            What::Outer(a, b, default) => self.outer(a, b, default),
        }
    }

    fn unknown(&self, name: &Name) -> Checked<Matrix> {
        let text = &name.text;
        if self.catalog.names().contains(&text.as_str()) {
            let what = format!("`{text}` is a table; name one of its attributes: {text}.attribute");
            return wrong(name.span, what);
        }
        let near = did_you_mean(text, self.names.keys().map(String::as_str));
        wrong(name.span, format!("no matrix `{text}` before this{near}"))
    }

    /// The place of an attribute.
    fn column(&mut self, table: &Name, column: &Name) -> Checked<(usize, usize)> {
        let Some(number) = self.catalog.number(&table.text) else {
            let near = did_you_mean(&table.text, self.catalog.names());
            return wrong(table.span, format!("no table `{}`{near}", table.text));
        };
        let columns = &self.catalog.definition(number).columns;
        match columns.iter().position(|c| c.name == column.text) {
            Some(position) => Ok((number, position)),
            None => {
                let near = did_you_mean(&column.text, columns.iter().map(|c| c.name.as_str()));
                let what = format!("`{}` has no attribute `{}`{near}", table.text, column.text);
                wrong(column.span, what)
            }
        }
    }

    /// The matrix of an attribute. A decimal or float is a measure, everything else a dimension.
    fn attribute(&mut self, table: &Name, column: &Name) -> Checked<Matrix> {
        let (table, position) = self.column(table, column)?;
        let definition = self.catalog.definition(table);
        let data = definition.columns[position].data_type.clone();
        let key = definition.primary_key.contains(&position)
            || definition
                .foreign_keys
                .iter()
                .any(|key| key.columns.contains(&position));
        let measure = match class(&data) {
            Class::Float => true,
            Class::Number(_) => !data.is_integer() && !key,
            Class::Other => {
                let span = column.span;
                return wrong(
                    span,
                    format!("values of type {data} cannot be computed with"),
                );
            }
            _ => false,
        };
        let root = self.terms.instance(Instance::Root(table));
        let term = self.terms.add(Term::Column(root, position), data);
        let mut matrix = Matrix::over(Space::Rows(table));
        if measure {
            matrix.value = Some(term)
        } else {
            let domain = self.catalog.domain(table, position);
            matrix.keys.push(Key { term, domain });
        }
        Ok(matrix)
    }

    fn each(&mut self, each: Each, e: &Element, span: Span) -> Checked<Matrix> {
        let mut over = Over::default();
        let term = self.element(e, &mut over)?;
        let name = each.name();
        if over.space.is_none() && each != Each::Lift {
            let what = format!("`{name}` needs a vector or an attribute in its expression");
            return wrong(e.span, what);
        }
        let data = self.terms.data(term).clone();
        let mut matrix = Checker::matrix_over(over);
        match each {
            Each::Filter => {
                if class(&data) != Class::Truth {
                    return wrong(e.span, "`filter` takes a condition, such as `x > 1`");
                }
                self.terms.conjuncts(term, &mut matrix.conditions);
            }
            Each::Lift => matrix.value = Some(term),
            Each::Bitmap => {
                let domain = match (self.terms.get(term), &matrix.space) {
                    (Term::Column(instance, column), Space::Rows(_)) => {
                        match *self.terms.of(*instance) {
                            Instance::Root(table)
                            | Instance::Lookup {
                                source: Source::Table(table),
                                ..
                            } => self.catalog.domain(table, *column),
                            _ => Domain::Computed(term),
                        }
                    }
                    _ => Domain::Computed(term),
                };
                matrix.keys.push(Key { term, domain });
            }
        }
        // What is looked up must be there: that can be part of a conjunction, and of nothing else.
        let found = |term: &Term| matches!(term, Term::Present(_) | Term::Absent(_));
        let within = |term: TermId| !found(self.terms.get(term)) && self.terms.any(term, &found);
        let value = matrix.value.filter(|value| self.terms.any(*value, &found));
        if value.is_some() || matrix.conditions.iter().any(|term| within(*term)) {
            let what = "a bit vector that `dot` gave can stand in a conjunction only, or behind `not` if it is \
                        a `dot` with `tr` by itself; turn the condition round before the `dot`";
            return wrong(span, what);
        }
        Ok(matrix)
    }

    fn call(&mut self, operator: Operator, args: &[Operand], span: Span) -> Checked<Matrix> {
        let mut matrices = Vec::with_capacity(args.len());
        for arg in args {
            matrices.push((self.operand(arg)?, arg.span));
        }
        let only_dot = operator != Operator::Dot && operator != Operator::Tr;
        for (position, (matrix, at)) in matrices.iter().enumerate() {
            if matrix.transposed && (only_dot || operator == Operator::Dot && position == 0) {
                let what = "a transposed matrix can only be the second operand of `dot`";
                return wrong(*at, what);
            }
            if matrix.space == Space::One {
                let what = format!("`{}` takes matrices; this is a number", operator.name());
                return wrong(*at, what);
            }
        }
        let mut rest = matrices.into_iter();
        let (first, at) = match rest.next() {
            Some(first) => first,
            None => return wrong(span, "nothing to work on"),
        };
        match operator {
            Operator::Tr => Ok(Matrix {
                transposed: !first.transposed,
                ..first
            }),
            Operator::Krao | Operator::Hadamard => {
                let mut all = (first, at);
                for next in rest {
                    let both = match operator {
                        Operator::Krao => self.krao(all.0, next.0, [all.1, next.1])?,
                        _ => self.hadamard(all.0, next.0, [all.1, next.1])?,
                    };
                    all = (both, all.1.to(next.1));
                }
                Ok(all.0)
            }
            Operator::Dot | Operator::Relabel | Operator::Distinct => {
                let Some((second, to)) = rest.next() else {
                    return wrong(span, "one more matrix is needed");
                };
                match operator {
                    Operator::Dot if second.transposed => self.gather(first, second, [at, to]),
                    Operator::Dot => self.dot(first, second, [at, to]),
                    Operator::Distinct => self.distinct(first, &second, [at, to], span),
                    _ => self.relabel(first, &second, [at, to]),
                }
            }
            Operator::Sum => self.fold(Folding::Sum, first, at, span),
            Operator::Count => self.fold(Folding::Count, first, at, span),
            Operator::Avg => self.fold(Folding::Avg, first, at, span),
            Operator::Min => self.fold(Folding::Min, first, at, span),
            Operator::Max => self.fold(Folding::Max, first, at, span),
        }
    }

    /// Refuses matrices of different columns.
    fn same_columns(&self, name: &str, a: &Matrix, b: &Matrix, spans: [Span; 2]) -> Checked<()> {
        if a.space == b.space {
            return Ok(());
        }
        wrong(
            spans[1],
            format!(
                "`{name}` of {} with {} and {} with {}: they must have the same",
                self.quote(spans[0]),
                self.columns(&a.space),
                self.quote(spans[1]),
                self.columns(&b.space)
            ),
        )
    }

    /// The value of a product; at most one factor may have one.
    fn one_value(&self, a: &Matrix, b: &Matrix, spans: [Span; 2]) -> Checked<Option<TermId>> {
        match (a.value, b.value) {
            (Some(_), Some(_)) => wrong(
                spans[1],
                format!(
                    "{} and {} both have values; multiply them with `lift`",
                    self.quote(spans[0]),
                    self.quote(spans[1])
                ),
            ),
            (a, b) => Ok(a.or(b)),
        }
    }

    /// The row-wise Khatri-Rao product: its rows have the labels of both operands.
    fn krao(&mut self, a: Matrix, b: Matrix, spans: [Span; 2]) -> Checked<Matrix> {
        self.same_columns("krao", &a, &b, spans)?;
        let value = self.one_value(&a, &b, spans)?;
        Ok(Matrix {
            conditions: &a.conditions | &b.conditions,
            keys: [a.keys, b.keys].concat(),
            value,
            ..Matrix::over(a.space)
        })
    }

    /// The product of two matrices of one shape, element by element.
    fn hadamard(&mut self, a: Matrix, b: Matrix, spans: [Span; 2]) -> Checked<Matrix> {
        self.same_columns("hadamard", &a, &b, spans)?;
        if a.domains() != b.domains() {
            let what = format!(
                "`hadamard` of {} with {} and {} with {}: they must have the same; `krao` combines rows",
                self.quote(spans[0]),
                self.rows(&a),
                self.quote(spans[1]),
                self.rows(&b)
            );
            return wrong(spans[1], what);
        }
        let value = self.one_value(&a, &b, spans)?;
        let mut conditions = &a.conditions | &b.conditions;
        for (x, y) in a.keys.iter().zip(&b.keys).filter(|(x, y)| x.term != y.term) {
            let op = Op::Sign(Sign::Eq);
            let equal = Term::Apply(op, vec![x.term, y.term]);
            conditions.insert(self.terms.add(equal, DataType::Boolean));
        }
        Ok(Matrix {
            conditions,
            keys: a.keys,
            value,
            ..Matrix::over(a.space)
        })
    }

    /// The composition `a b`: for each column of `b`, the column of `a` that its label names.
    pub fn dot(&mut self, a: Matrix, b: Matrix, spans: [Span; 2]) -> Checked<Matrix> {
        let value = self.one_value(&a, &b, spans)?;
        let domains = b.domains();
        let keys: Vec<TermId> = b.keys.iter().map(|key| key.term).collect();
        let mut conditions = b.conditions.clone();
        let place = match &a.space {
            Space::Rows(table) if !domains.is_empty() => {
                let by = self.catalog.found_by(*table, &domains);
                by.map(|by| {
                    let source = Source::Table(*table);
                    let lookup = Instance::Lookup {
                        source,
                        by,
                        keys,
                        outer: false,
                    };
                    let instance = self.terms.instance(lookup);
                    let present = Term::Present(instance);
                    conditions.insert(self.terms.add(present, DataType::Boolean));
                    Substitution::Record(instance)
                })
            }
            Space::Labels(own) if *own == domains => Some(Substitution::Labels(keys)),
            _ => None,
        };
        let Some(place) = place else {
            return self.do_not_compose(&a, &b, spans);
        };
        for condition in &a.conditions {
            conditions.insert(self.terms.substitute(*condition, &place));
        }
        let mut rows = Vec::with_capacity(a.keys.len());
        for key in a.keys {
            rows.push(Key {
                term: self.terms.substitute(key.term, &place),
                domain: key.domain,
            });
        }
        let value = match a.value {
            Some(value) => Some(self.terms.substitute(value, &place)),
            None => value,
        };
        Ok(Matrix {
            conditions,
            keys: rows,
            value,
            ..Matrix::over(b.space)
        })
    }

    fn do_not_compose<T>(&self, a: &Matrix, b: &Matrix, spans: [Span; 2]) -> Checked<T> {
        let why = match (&a.space, &b.keys[..]) {
            (_, []) => {
                "; the second operand needs labels: an attribute, or what `bitmap` makes".into()
            }
            (Space::Rows(table), _) => {
                let definition = self.catalog.definition(*table);
                let key: Vec<String> = definition
                    .primary_key
                    .iter()
                    .map(|c| self.catalog.attribute(*table, *c))
                    .collect();
                if key.is_empty() {
                    format!("; `{}` has no primary key, see `relabel`", definition.name)
                } else {
                    format!(
                        "; rows of {} are found by labels of {}, see `relabel`",
                        definition.name,
                        key.join(", ")
                    )
                }
            }
            _ => String::new(),
        };
        wrong(
            spans[0].to(spans[1]),
            format!(
                "the inner dimensions of `dot` differ: {} has {}, {} has {}{why}",
                self.quote(spans[0]),
                self.columns(&a.space),
                self.quote(spans[1]),
                self.rows(b)
            ),
        )
    }

    /// `a` composed with a transposed matrix: for each row of `a`, the labels that its ones have in `b`.
    fn gather(&mut self, a: Matrix, b: Matrix, spans: [Span; 2]) -> Checked<Matrix> {
        if a.space != b.space {
            let what = format!(
                "the inner dimensions of `dot` differ: {} has {}, {} has {}",
                self.quote(spans[0]),
                self.columns(&a.space),
                self.quote(spans[1]),
                self.columns(&b.space).replacen(" columns ", " rows ", 1)
            );
            return wrong(spans[0].to(spans[1]), what);
        }
        if b.keys.is_empty() || b.value.is_some() {
            let what = format!("{} must be a bitmap matrix", self.quote(spans[1]));
            return wrong(spans[1], what);
        }
        if !a.keys.is_empty() || a.value.is_some() {
            let what = format!(
                "{} must be a bit vector; add values up with `sum(krao(values, labels))`",
                self.quote(spans[0])
            );
            return wrong(spans[0], what);
        }
        let conditions = &a.conditions | &b.conditions;
        let (fold, domains) = self.groups(a.space, conditions, &b.keys);
        let (_, present) = self.group_of(fold, &domains);
        let mut matrix = Matrix::over(Space::Labels(domains));
        matrix.conditions.insert(present);
        Ok(matrix)
    }

    fn groups(
        &mut self,
        space: Space,
        conditions: BTreeSet<TermId>,
        keys: &[Key],
    ) -> (FoldId, Vec<Domain>) {
        let domains: Vec<Domain> = keys.iter().map(|key| key.domain.clone()).collect();
        let groups = Groups {
            space,
            conditions,
            keys: keys.iter().map(|key| key.term).collect(),
        };
        (self.terms.add_fold(groups, domains.clone()), domains)
    }

    /// The group of `fold` that each combination of labels has, and the condition that it exists.
    fn group_of(&mut self, fold: FoldId, domains: &[Domain]) -> (InstanceId, TermId) {
        let keys: Vec<TermId> = self.terms.fold(fold).groups.keys.clone();
        let labels = (0..domains.len())
            .map(|position| {
                let data = self.terms.data(keys[position]).clone();
                self.terms.add(Term::Label(position), data)
            })
            .collect();
        let instance = self.terms.instance(Instance::Lookup {
            source: Source::Fold(fold),
            by: vec![],
            keys: labels,
            outer: false,
        });
        let present = self.terms.add(Term::Present(instance), DataType::Boolean);
        (instance, present)
    }

    fn relabel(&mut self, a: Matrix, b: &Matrix, spans: [Span; 2]) -> Checked<Matrix> {
        let ([of], None) = (&a.keys[..], a.value) else {
            let what = format!(
                "{} must be an attribute that is a dimension",
                self.quote(spans[0])
            );
            return wrong(spans[0], what);
        };
        let [to] = &b.keys[..] else {
            let what = format!(
                "{} must be an attribute that is a dimension",
                self.quote(spans[1])
            );
            return wrong(spans[1], what);
        };
        let (x, y) = (self.terms.data(of.term), self.terms.data(to.term));
        let fits = match (class(x), class(y)) {
            (Class::Number(_), Class::Number(_)) => true,
            (Class::Time, Class::Time) => x == y,
            (x, y) => x == y,
        };
        if !fits {
            let what = format!("labels of type {x} cannot be read as labels of type {y}");
            return wrong(spans[0].to(spans[1]), what);
        }
        let key = Key {
            term: of.term,
            domain: to.domain.clone(),
        };
        Ok(Matrix {
            keys: vec![key],
            ..a
        })
    }

    /// How many labels of `b` stand in the columns of each row of `a`: the ones in a row of `a` times `b` transposed.
    fn distinct(&mut self, a: Matrix, b: &Matrix, at: [Span; 2], span: Span) -> Checked<Matrix> {
        self.same_columns("distinct", &a, b, at)?;
        let ([key], None) = (&b.keys[..], b.value) else {
            let what = format!(
                "{} must be an attribute that is a dimension: `distinct` counts its labels",
                self.quote(at[1])
            );
            return wrong(at[1], what);
        };
        if a.value.is_some() {
            let what = format!(
                "{} must have labels or be a bit vector: the second matrix says what is counted",
                self.quote(at[0])
            );
            return wrong(at[0], what);
        }
        let counted = Matrix {
            conditions: &a.conditions | &b.conditions,
            value: Some(key.term),
            ..a
        };
        self.fold(Folding::CountDistinct, counted, at[1], span)
    }

    /// Aggregates along the columns: gives a number, or one for each row that is not empty.
    fn fold(&mut self, function: Folding, a: Matrix, at: Span, span: Span) -> Checked<Matrix> {
        let name = self.quote(span);
        let name = name.trim_matches('`').to_string();
        let (of, data) = match (function, a.value) {
            (Folding::Count, None) => (None, DataType::Int64),
            (Folding::Count | Folding::CountDistinct, Some(value)) => {
                (Some(value), DataType::Int64)
            }
            (_, None) => {
                let what = format!(
                    "{} is a {} without values to fold; `lift` makes values, `count` counts ones",
                    self.quote(at),
                    a.kind()
                );
                return wrong(at, what);
            }
            (_, Some(value)) => {
                let data = self.terms.data(value).clone();
                let data = match (function, class(&data)) {
                    (
                        Folding::Min | Folding::Max,
                        Class::Number(_) | Class::Float | Class::Time | Class::Text,
                    ) => data,
                    (Folding::Sum, Class::Number(scale)) => element::number(scale),
                    (Folding::Avg, Class::Number(_)) if data.is_integer() => DataType::Float64,
                    (Folding::Avg, Class::Number(scale)) => element::number((scale + 4).min(38)),
                    (_, Class::Float) => data,
                    _ => {
                        let what = format!("{} holds no numbers", self.quote(at));
                        return wrong(at, what);
                    }
                };
                (Some(value), data)
            }
        };
        let (fold, domains) = self.groups(a.space, a.conditions, &a.keys);
        let n = self.terms.find(fold, Found { function, of, name });
        if domains.is_empty() {
            let value = self.terms.add(Term::Scalar(fold, n), data);
            return Ok(Matrix {
                value: Some(value),
                ..Matrix::over(Space::One)
            });
        }
        let (instance, present) = self.group_of(fold, &domains);
        let value = self.terms.add(Term::Aggregate(instance, n), data);
        let mut matrix = Matrix::over(Space::Labels(domains));
        matrix.conditions.insert(present);
        matrix.value = Some(value);
        Ok(matrix)
    }
}
