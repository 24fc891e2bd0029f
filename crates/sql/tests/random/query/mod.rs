//! Random queries, in pieces that can be taken away one by one while a failure is made smaller.

mod expression;

use std::fmt::Write;

use crate::data::{Column, Table, Type};
use crate::random::Random;

/// A whole query.
#[derive(Clone, Debug)]
pub struct Query {
    pub first: Select,
    /// Each with `union`, `union all`, ...
    pub more: Vec<(&'static str, Select)>,
    /// Position of the column counted from 1, and how.
    pub order: Vec<(usize, &'static str)>,
    pub limit: Option<(usize, usize)>,
}

#[derive(Clone, Debug, Default)]
pub struct Select {
    pub distinct: bool,
    pub items: Vec<String>,
    pub from: Vec<Part>,
    pub filter: Vec<String>,
    pub group: Vec<String>,
    pub having: Vec<String>,
}

/// A table, how it is joined to those before it, and on what.
#[derive(Clone, Debug)]
pub struct Part {
    pub join: &'static str,
    pub source: Source,
    pub alias: String,
    pub on: Vec<String>,
}

#[derive(Clone, Debug)]
pub enum Source {
    /// A table; only the rows whose `rid` lies in the range, if there is one.
    Table(String, Option<(usize, usize)>),
    Select(Box<Select>),
}

impl Query {
    pub fn sql(&self) -> String {
        let mut text = self.first.sql();
        for (operator, select) in &self.more {
            write!(text, " {operator} {}", select.sql()).unwrap();
        }
        let order: Vec<String> = self
            .order
            .iter()
            .map(|(at, how)| format!("{at} {how}"))
            .collect();
        if !order.is_empty() {
            write!(text, " order by {}", order.join(", ")).unwrap();
        }
        if let Some((limit, offset)) = self.limit {
            write!(text, " limit {limit} offset {offset}").unwrap();
        }
        text
    }
}

impl Select {
    pub fn sql(&self) -> String {
        let distinct = if self.distinct { "distinct " } else { "" };
        let items: Vec<String> = self
            .items
            .iter()
            .enumerate()
            .map(|(i, e)| format!("{e} as c{i}"))
            .collect();
        let mut text = format!("select {distinct}{}", items.join(", "));
        for (number, part) in self.from.iter().enumerate() {
            let source = match &part.source {
                Source::Table(name, None) => name.clone(),
                Source::Table(name, Some((low, high))) => {
                    format!("(select * from {name} where rid >= {low} and rid < {high})")
                }
                Source::Select(select) => format!("({})", select.sql()),
            };
            match number {
                0 => write!(text, " from {source} as {}", part.alias).unwrap(),
                _ => write!(text, " {} {source} as {}", part.join, part.alias).unwrap(),
            }
            if number > 0 && !part.join.contains("cross") {
                let on = if part.on.is_empty() {
                    "true".into()
                } else {
                    part.on.join(" and ")
                };
                write!(text, " on {on}").unwrap();
            }
        }
        for (word, parts, between) in [
            ("where", &self.filter, " and "),
            ("group by", &self.group, ", "),
            ("having", &self.having, " and "),
        ] {
            if !parts.is_empty() {
                write!(text, " {word} {}", parts.join(between)).unwrap();
            }
        }
        text
    }
}

/// A column that expressions may name.
#[derive(Clone, Debug)]
struct Field {
    name: String,
    column: Column,
}

/// Makes queries over some tables.
pub struct Maker<'t> {
    pub random: Random,
    pub tables: &'t [Table],
    /// Only what DuckDB means by the same words.
    pub common: bool,
    aliases: usize,
}

/// Pairs of rows that a join may look at.
const MOST_PAIRS: usize = 1_500_000;

impl<'t> Maker<'t> {
    pub fn new(seed: u64, tables: &'t [Table], common: bool) -> Maker<'t> {
        Maker {
            random: Random::new(seed),
            tables,
            common,
            aliases: 0,
        }
    }

    pub fn query(&mut self) -> Query {
        let (first, types) = self.select(true);
        let mut more = Vec::new();
        if self.random.chance(12) {
            let operators = [
                "union",
                "union all",
                "intersect",
                "except",
                "intersect all",
                "except all",
            ];
            for _ in 0..=self.random.below(2) {
                let operator = *self.random.one(&operators);
                // Once a set, always a set: they bind differently otherwise.
                if let Some(select) = self.select_of(&types) {
                    more.push((operator, select));
                }
            }
            more.truncate(1);
        }
        let mut order = Vec::new();
        let mut limit = None;
        if self.random.chance(50) {
            let mut places: Vec<usize> = (1..=first.items.len()).collect();
            for i in (1..places.len()).rev() {
                places.swap(i, self.random.below(i + 1));
            }
            let all = self.random.chance(60);
            if !all {
                places.truncate(1 + self.random.below(places.len()));
            }
            let ways = [
                "asc nulls first",
                "asc nulls last",
                "desc nulls first",
                "desc nulls last",
            ];
            let plain = ["", "desc"];
            order = places
                .into_iter()
                .map(|at| {
                    let plainly = !self.common && self.random.chance(30);
                    let way = if plainly {
                        *self.random.one(&plain)
                    } else {
                        *self.random.one(&ways)
                    };
                    (at, way)
                })
                .collect();
            if all && self.random.chance(60) {
                limit = Some((
                    *self.random.one(&[0, 1, 3, 10, 100]),
                    *self.random.one(&[0, 0, 0, 1, 7]),
                ));
            }
        }
        Query {
            first,
            more,
            order,
            limit,
        }
    }

    fn alias(&mut self) -> String {
        self.aliases += 1;
        format!("t{}", self.aliases)
    }

    fn table(&mut self, most: usize) -> &'t Table {
        let fit: Vec<&Table> = self.tables.iter().filter(|t| t.rows <= most).collect();
        fit[self.random.below(fit.len())]
    }

    fn fields(table: &Table, alias: &str) -> Vec<Field> {
        let columns = table.columns.iter();
        columns
            .map(|column| Field {
                name: format!("{alias}.{}", column.name),
                column: column.clone(),
            })
            .collect()
    }

    /// Tables that are joined, and their columns.
    fn from(&mut self, derived: bool) -> (Vec<Part>, Vec<Field>) {
        let mut parts = Vec::new();
        let mut fields: Vec<Field> = Vec::new();
        let mut rows = 1usize;
        let tables = *self.random.one(&[1, 1, 1, 2, 2, 2, 3, 4]);
        for number in 0..tables {
            let alias = self.alias();
            let most = (MOST_PAIRS / rows.max(1)).max(1);
            let (source, own, count) = if derived && self.random.chance(12) {
                self.derived(&alias, most)
            } else {
                let table = self.table(most);
                let source = Source::Table(table.name.clone(), None);
                (source, Self::fields(table, &alias), table.rows)
            };
            let mut part = Part {
                join: self.random.one::<&str>(&[
                    "join",
                    "join",
                    "join",
                    "left join",
                    "left join",
                    "right join",
                    "full join",
                ]),
                source,
                alias,
                on: vec![],
            };
            let unique = number > 0 && self.equalities(&mut part, &fields, &own);
            if number > 0 && part.on.is_empty() && self.random.chance(50) {
                part.join = "cross join";
            }
            // A key that hardly repeats joins about as many rows as there are.
            rows = if unique {
                rows.max(count)
            } else {
                rows.max(1) * count.max(1)
            };
            if number > 0 && !part.join.contains("cross") && self.random.chance(20) {
                let both: Vec<Field> = fields.iter().chain(&own).cloned().collect();
                let extra = self.predicate(&both, 1);
                part.on.push(extra);
            }
            fields.extend(own);
            parts.push(part);
        }
        (parts, fields)
    }

    /// Adds what both sides are equal in; true if one of the sides hardly repeats it.
    fn equalities(&mut self, part: &mut Part, left: &[Field], right: &[Field]) -> bool {
        let mut unique = false;
        for _ in 0..*self.random.one(&[1, 1, 1, 1, 2, 0]) {
            let a = self.random.one(left).clone();
            let same: Vec<&Field> = right.iter().filter(|b| joinable(&a, b)).collect();
            if same.is_empty() || self.common && a.column.ty == Type::Float {
                continue;
            }
            let b = same[self.random.below(same.len())];
            unique |= a.column.values.max(b.column.values) > 300;
            let equal = if self.random.chance(85) {
                format!("{} = {}", a.name, b.name)
            } else {
                match a.column.ty {
                    Type::Int | Type::Big => format!("{} + 1 = {}", a.name, b.name),
                    Type::Text => format!("upper({}) = {}", a.name, b.name),
                    _ => format!("{} = {}", b.name, a.name),
                }
            };
            part.on.push(equal);
        }
        unique
    }

    /// A select as a table, its columns, and how many rows it may have.
    fn derived(&mut self, alias: &str, most: usize) -> (Source, Vec<Field>, usize) {
        let table = self.table(most);
        let inner = self.alias();
        let fields = Self::fields(table, &inner);
        let from = vec![Part {
            join: "",
            source: Source::Table(table.name.clone(), None),
            alias: inner,
            on: vec![],
        }];
        let mut select = Select {
            from,
            ..Select::default()
        };
        if self.random.chance(60) {
            select.filter.push(self.predicate(&fields, 1));
        }
        let mut columns = Vec::new();
        if self.random.chance(60) {
            let key = self.random.one(&fields).clone();
            let times = if self.random.chance(15) { 2 } else { 1 };
            for _ in 0..times {
                select.group.push(key.name.clone());
                select.items.push(key.name.clone());
                columns.push(key.column.clone());
            }
            for _ in 0..1 + self.random.below(2) {
                let (item, ty) = self.aggregate(&fields);
                select.items.push(item);
                columns.push(Column {
                    name: String::new(),
                    ty,
                    values: 100,
                    extreme: true,
                });
            }
        } else {
            select.distinct = self.random.chance(40);
            for _ in 0..1 + self.random.below(3) {
                let field = self.random.one(&fields).clone();
                select.items.push(field.name.clone());
                columns.push(field.column.clone());
            }
        }
        let own = columns
            .into_iter()
            .enumerate()
            .map(|(i, column)| Field {
                name: format!("{alias}.c{i}"),
                column,
            })
            .collect();
        (Source::Select(Box::new(select)), own, table.rows)
    }

    fn select(&mut self, derived: bool) -> (Select, Vec<Type>) {
        let (from, fields) = self.from(derived);
        let mut select = Select {
            from,
            ..Select::default()
        };
        for _ in 0..*self.random.one(&[0, 0, 1, 1, 2, 3]) {
            let filter = if self.random.chance(15) {
                self.member(&fields)
            } else {
                self.predicate(&fields, 2)
            };
            select.filter.push(filter);
        }
        let types = if self.random.chance(50) {
            self.grouped(&mut select, &fields)
        } else {
            self.plain(&mut select, &fields)
        };
        (select, types)
    }

    /// Keys, aggregates and `having`; the types of the items.
    fn grouped(&mut self, select: &mut Select, fields: &[Field]) -> Vec<Type> {
        let mut types = Vec::new();
        for _ in 0..*self.random.one(&[0, 1, 1, 2, 3]) {
            let ty = self.random.one(fields).column.ty;
            let key = if self.random.chance(75) {
                self.column(fields, ty).unwrap()
            } else {
                self.expression(fields, ty, 1)
            };
            // A constant is another matter: DuckDB takes it for the number of a column.
            if key.contains('.') {
                select.group.push(key.clone());
                select.items.push(key);
                types.push(ty);
            }
        }
        self.repeat_keys(select, &mut types);
        for _ in 0..*self.random.one(&[0, 1, 1, 2, 3, 4]) {
            let (item, ty) = self.aggregate(fields);
            select.items.push(item);
            types.push(ty);
        }
        if select.items.is_empty() {
            select.items.push("count(*)".into());
            types.push(Type::Big);
        }
        self.repeat_items(select, &mut types);
        if self.random.chance(20) {
            let having = match self.random.below(3) {
                0 => "count(*) > 1".into(),
                1 => format!("{} is not null", self.aggregate(fields).0),
                _ => format!("{} >= 2", self.counted(fields)),
            };
            select.having.push(having);
        }
        types
    }

    /// Items without groups; their types.
    fn plain(&mut self, select: &mut Select, fields: &[Field]) -> Vec<Type> {
        let mut types = Vec::new();
        select.distinct = self.random.chance(20);
        for _ in 0..1 + self.random.below(4) {
            let ty = self.random.one(fields).column.ty;
            let item = if self.random.chance(50) {
                self.column(fields, ty).unwrap()
            } else {
                self.expression(fields, ty, 2)
            };
            select.items.push(item);
            types.push(ty);
        }
        self.repeat_items(select, &mut types);
        if self.random.chance(4) {
            let member = self.subquery(fields);
            select.items.push(format!("({member})"));
            types.push(Type::Bool);
        }
        if !self.common && !select.distinct && self.random.chance(6) {
            let (item, ty) = self.windowed(fields);
            select.items.push(item);
            types.push(ty);
        }
        types
    }

    /// Names keys of groups once more: as they read, or by the number of their column.
    fn repeat_keys(&mut self, select: &mut Select, types: &mut Vec<Type>) {
        let keys = select.group.len();
        while keys > 0 && self.random.chance(20) {
            let key = self.random.below(keys);
            let named = if self.random.chance(50) {
                select.group[key].clone()
            } else {
                (key + 1).to_string()
            };
            let place = self.random.below(select.group.len() + 1);
            select.group.insert(place, named);
            if self.random.chance(60) {
                select.items.push(select.items[key].clone());
                types.push(types[key]);
            }
        }
    }

    /// Puts what is selected there once more.
    fn repeat_items(&mut self, select: &mut Select, types: &mut Vec<Type>) {
        while self.random.chance(12) {
            let item = self.random.below(select.items.len());
            select.items.push(select.items[item].clone());
            types.push(types[item]);
        }
    }

    /// A select with columns of these types.
    fn select_of(&mut self, types: &[Type]) -> Option<Select> {
        let alias = self.alias();
        let table = self.table(100_000);
        let fields = Self::fields(table, &alias);
        let mut select = Select {
            from: vec![Part {
                join: "",
                source: Source::Table(table.name.clone(), None),
                alias,
                on: vec![],
            }],
            ..Select::default()
        };
        for ty in types {
            select.items.push(self.column(&fields, *ty)?);
        }
        if self.random.chance(60) {
            select.filter.push(self.predicate(&fields, 1));
        }
        Some(select)
    }
}

/// Whether values of both may be compared without a cast.
fn joinable(a: &Field, b: &Field) -> bool {
    let (a, b) = (a.column.ty, b.column.ty);
    let number = |ty: Type| matches!(ty, Type::Int | Type::Big | Type::Decimal | Type::Wide);
    a == b || number(a) && number(b)
}
