//! What stands in a select list and behind `where`.

use std::fmt::Write;

use super::{Field, Maker, joinable};
use crate::data::Type;

impl Maker<'_> {
    pub(super) fn column(&mut self, fields: &[Field], ty: Type) -> Option<String> {
        let fit: Vec<&Field> = fields.iter().filter(|f| f.column.ty == ty).collect();
        if fit.is_empty() {
            None
        } else {
            Some(fit[self.random.below(fit.len())].name.clone())
        }
    }

    /// A column of the type or a literal.
    pub(super) fn leaf(&mut self, fields: &[Field], ty: Type) -> String {
        if self.random.chance(75)
            && let Some(column) = self.column(fields, ty)
        {
            return column;
        }
        self.literal(ty)
    }

    pub(super) fn literal(&mut self, ty: Type) -> String {
        let n = self.random.within(-4, 12);
        match ty {
            _ if self.random.chance(3) && !self.common => {
                let name = match ty {
                    Type::Int => "integer",
                    Type::Big => "bigint",
                    Type::Decimal => "decimal(12,2)",
                    Type::Wide => "decimal(30,10)",
                    Type::Float => "double",
                    Type::Date => "date",
                    Type::Text => "varchar",
                    Type::Bool => "boolean",
                };
                format!("cast(null as {name})")
            }
            Type::Int => format!("cast({n} as integer)"),
            Type::Big => format!("{n}"),
            Type::Decimal => format!("{}.{}", n, self.random.one(&["25", "5", "00", "75"])),
            Type::Wide => format!("cast({n} as decimal(30,10))"),
            Type::Float => format!("cast('{}' as double)", n as f64 * 0.25),
            Type::Date => format!(
                "date '19{}-0{}-1{}'",
                92 + n.rem_euclid(8),
                1 + n.rem_euclid(9),
                n.rem_euclid(10)
            ),
            Type::Text => format!(
                "'{}'",
                self.random.one(&["ab", "", "b", "Äpfel", "ba", "zz"])
            ),
            Type::Bool => (*self.random.one(&["true", "false"])).into(),
        }
    }

    /// A value of the type, or of one that compares with it.
    pub(super) fn expression(&mut self, fields: &[Field], ty: Type, depth: usize) -> String {
        if depth == 0 {
            return self.leaf(fields, ty);
        }
        if self.random.chance(18) {
            return self.choice(fields, ty, depth);
        }
        let a = self.expression(fields, ty, depth - 1);
        let number = self.random.one(&["2", "3", "7"]).to_string();
        let plain = self.random.chance(30);
        match ty {
            _ if plain => a,
            Type::Int | Type::Big => match self.random.below(8) {
                0 | 1 => {
                    let b = self.leaf(fields, ty);
                    format!("({a} {} {b})", self.random.one(&["+", "-", "*"]))
                }
                2 => format!("({a} + {number})"),
                3 => format!("({number} - {a})"),
                4 if !self.common => format!("({a} / {number})"),
                5 => format!("({a} % {number})"),
                6 => {
                    let date = self.leaf(fields, Type::Date);
                    match ty {
                        Type::Int if !self.common => {
                            format!("cast(extract(year from {date}) as integer)")
                        }
                        _ => format!("(- {a})"),
                    }
                }
                _ => format!("coalesce({a}, {})", self.literal(ty)),
            },
            Type::Decimal | Type::Wide => match self.random.below(5) {
                0 => format!("({a} + {})", self.leaf(fields, Type::Decimal)),
                1 => format!("({a} - {})", self.leaf(fields, Type::Int)),
                2 if depth < 2 => format!("({a} * {})", self.leaf(fields, Type::Decimal)),
                3 if !self.common && depth < 2 => format!("({a} / {number})"),
                _ => format!("(1.5 - {a})"),
            },
            Type::Float if self.common => a,
            Type::Float => match self.random.below(4) {
                0 => format!("({a} + {})", self.leaf(fields, Type::Float)),
                1 => format!("({a} * {})", self.leaf(fields, Type::Float)),
                2 => format!("({a} / 2)"),
                _ => format!("cast({} as double)", self.leaf(fields, Type::Int)),
            },
            Type::Date if self.common => a,
            Type::Date => format!("({a} + interval '{number}' day)"),
            Type::Text => match self.random.below(4) {
                0 => format!("upper({a})"),
                1 => format!("substr({a}, 1, {number})"),
                2 => format!("({a} || 'x')"),
                _ => format!("coalesce({a}, 'none')"),
            },
            Type::Bool => format!("({})", self.predicate(fields, depth - 1)),
        }
    }

    pub(super) fn choice(&mut self, fields: &[Field], ty: Type, depth: usize) -> String {
        let mut text = String::from("case");
        for _ in 0..1 + self.random.below(2) {
            let when = self.predicate(fields, depth - 1);
            let then = self.leaf(fields, ty);
            write!(text, " when {when} then {then}").unwrap();
        }
        if self.random.chance(70) {
            let last = self.leaf(fields, ty);
            write!(text, " else {last}").unwrap();
        }
        text + " end"
    }

    pub(super) fn predicate(&mut self, fields: &[Field], depth: usize) -> String {
        if depth > 0 && self.random.chance(30) {
            let (a, b) = (
                self.predicate(fields, depth - 1),
                self.predicate(fields, depth - 1),
            );
            return match self.random.below(5) {
                0 | 1 => format!("({a} and {b})"),
                2 | 3 => format!("({a} or {b})"),
                _ => format!("not ({a})"),
            };
        }
        let mut ty = self.random.one(fields).column.ty;
        if self.common && ty == Type::Float {
            ty = Type::Int;
        }
        let a = self.expression(fields, ty, depth.min(1));
        match self.random.below(10) {
            0 => format!("{a} is null"),
            1 => format!("{a} is not null"),
            2 => {
                let (low, high) = (self.leaf(fields, ty), self.literal(ty));
                let not = self.random.one(&["", "not "]);
                format!("{a} {not}between {low} and {high}")
            }
            3 if ty != Type::Bool => {
                let many = self.random.chance(30);
                let list: Vec<String> = (0..if many { 8 } else { 2 })
                    .map(|_| self.literal(ty))
                    .collect();
                let not = self.random.one(&["", "not "]);
                format!("{a} {not}in ({})", list.join(", "))
            }
            4 if ty == Type::Text => {
                let pattern = self
                    .random
                    .one(&["a%", "%b", "%b%", "_b%", "ab", "%", "a\\%%"]);
                let not = self.random.one(&["", "not "]);
                if self.common && pattern.contains('\\') {
                    format!("{a} {not}like 'a%'")
                } else {
                    format!("{a} {not}like '{pattern}'")
                }
            }
            5 => {
                let b = self.leaf(fields, ty);
                let not = self.random.one(&["", "not "]);
                format!("{a} is {not}distinct from {b}")
            }
            _ if ty == Type::Bool => a,
            _ => {
                let b = self.leaf(fields, ty);
                format!(
                    "{a} {} {b}",
                    self.random.one(&["=", "<>", "<", "<=", ">", ">="])
                )
            }
        }
    }

    /// A predicate with a subquery, by itself or as a value of three among others.
    pub(super) fn member(&mut self, fields: &[Field]) -> String {
        let member = self.subquery(fields);
        match self.random.below(10) {
            0 => format!("({member}) is null"),
            1 => format!("({member}) is not true"),
            2 => format!("not ({member})"),
            3 => format!("(({member}) or {})", self.predicate(fields, 1)),
            4 => format!(
                "case when {member} then true else {} end",
                self.predicate(fields, 1)
            ),
            _ => member,
        }
    }

    /// A predicate with a subquery over another table.
    pub(super) fn subquery(&mut self, outer: &[Field]) -> String {
        let alias = self.alias();
        let table = self.table(500);
        let fields = Self::fields(table, &alias);
        let mut conditions = Vec::new();
        if self.random.chance(40) {
            conditions.push(self.predicate(&fields, 1));
        }
        let not = *self.random.one(&["", "not "]);
        let pair = |me: &mut Self| {
            let a = me.random.one(outer).clone();
            let same: Vec<&Field> = fields.iter().filter(|b| joinable(&a, b)).collect();
            let alike = !me.common || a.column.ty != Type::Float;
            let fits = alike && !same.is_empty();
            fits.then(|| {
                (
                    a.name.clone(),
                    same[me.random.below(same.len())].name.clone(),
                )
            })
        };
        let kind = self.random.below(4);
        let Some((a, b)) = pair(self) else {
            return "true".into();
        };
        let mut correlated = None;
        if kind == 3 && self.random.chance(30) {
            correlated = pair(self).map(|(a, b)| format!("{a} = {b}"));
        }
        conditions.extend(correlated);
        if kind == 0 {
            conditions.push(format!("{a} = {b}"));
        }
        let mut rows = format!("{} as {alias}", table.name);
        if !conditions.is_empty() {
            rows += &format!(" where {}", conditions.join(" and "));
        }
        match kind {
            0 => format!("{not}exists (select 1 from {rows})"),
            1 => format!("{a} {not}in (select {b} from {rows})"),
            2 => {
                let function = self.random.one(&["min", "max"]);
                let sign = self.random.one(&["=", "<", ">=", "<>"]);
                format!("{a} {sign} (select {function}({b}) from {rows})")
            }
            _ => {
                let sign = self.random.one(&["=", "<>", "<", "<=", ">", ">="]);
                let quantifier = self.random.one(&["any", "all"]);
                format!("{a} {sign} {quantifier} (select {b} from {rows})")
            }
        }
    }

    pub(super) fn counted(&mut self, fields: &[Field]) -> String {
        let what = self.random.one(fields).name.clone();
        match self.random.below(3) {
            0 => "count(*)".into(),
            1 => format!("count({what})"),
            _ => format!("count(distinct {what})"),
        }
    }

    /// An aggregate and the type of its result.
    pub(super) fn aggregate(&mut self, fields: &[Field]) -> (String, Type) {
        let field = self.random.one(fields).clone();
        let ty = field.column.ty;
        let numeric = matches!(
            ty,
            Type::Int | Type::Big | Type::Decimal | Type::Wide | Type::Float
        );
        // What sums to too much is an error here and another number there.
        let sums = numeric && (!field.column.extreme || self.random.chance(10));
        let arg = if self.random.chance(70) || sums {
            field.name.clone()
        } else {
            self.expression(fields, ty, 1)
        };
        let distinct = if self.random.chance(15) {
            "distinct "
        } else {
            ""
        };
        let (call, result) = match self.random.below(6) {
            0 => (self.counted(fields), Type::Big),
            1 if sums => {
                let result = match ty {
                    Type::Int | Type::Big => Type::Big,
                    Type::Decimal => Type::Wide,
                    other => other,
                };
                (format!("sum({distinct}{arg})"), result)
            }
            2 if sums && (!self.common || matches!(ty, Type::Int | Type::Big)) => {
                let result = if matches!(ty, Type::Int | Type::Big) {
                    Type::Float
                } else {
                    ty
                };
                (format!("avg({distinct}{arg})"), result)
            }
            3 | 4 => (format!("min({arg})"), ty),
            _ => (format!("max({arg})"), ty),
        };
        if self.random.chance(12) {
            let filter = self.predicate(fields, 1);
            (format!("{call} filter (where {filter})"), result)
        } else {
            (call, result)
        }
    }

    /// A function over a window that gives the same for all peers of a row, and the type of its result.
    pub(super) fn windowed(&mut self, fields: &[Field]) -> (String, Type) {
        let field = self.random.one(fields).clone();
        let (name, ty) = (&field.name, field.column.ty);
        let sums = matches!(ty, Type::Int | Type::Big) && !field.column.extreme;
        let (call, result): (String, Type) = match self.random.below(8) {
            0 => ("rank()".into(), Type::Big),
            1 => ("dense_rank()".into(), Type::Big),
            2 => ("percent_rank()".into(), Type::Float),
            3 => ("cume_dist()".into(), Type::Float),
            4 if sums => (format!("sum({name})"), Type::Big),
            4 | 5 => (format!("min({name})"), ty),
            6 => (format!("max({name})"), ty),
            _ => (format!("count({name})"), Type::Big),
        };
        let folds = ["sum", "min", "max", "count"];
        let folds = folds.iter().any(|name| call.starts_with(name));
        let call = if folds && self.random.chance(20) {
            let other = &self.random.one(fields).name;
            format!("{call} filter (where {other} is not null)")
        } else {
            call
        };
        let mut over = Vec::new();
        if self.random.chance(70) {
            over.push(format!("partition by {}", self.random.one(fields).name));
        }
        if self.random.chance(70) {
            let how = self
                .random
                .one(&["", " desc", " nulls first", " desc nulls last"]);
            over.push(format!("order by {}{how}", self.random.one(fields).name));
            let frames = [
                "",
                "",
                "range between current row and unbounded following",
                "range between current row and current row",
                "rows between unbounded preceding and unbounded following",
            ];
            // The frames of peers have the same values, whatever their order is.
            let of_folds = [
                "groups between 1 preceding and 1 following",
                "groups between 2 preceding and 1 preceding",
                "groups between unbounded preceding and current row exclude ties",
                "groups between current row and 2 following exclude current row",
                "range between unbounded preceding and current row exclude group",
                "range between current row and unbounded following exclude ties",
                "rows between unbounded preceding and unbounded following exclude current row",
            ];
            let frame = if folds && self.random.chance(40) {
                *self.random.one(&of_folds)
            } else {
                *self.random.one(&frames)
            };
            over.push(frame.to_string());
        }
        (format!("{call} over ({})", over.join(" ")), result)
    }
}
