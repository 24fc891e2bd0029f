//! Operators on each cell by itself: filter, apply, project.

use futures::future::{BoxFuture, FutureExt};

use crate::data::assembly::Assembly;
use crate::data::block::Block;
use crate::data::grid::Grid;
use crate::data::region::Region;
use crate::error::{Error, Result};
use crate::expr::bind::Typed;
use crate::expr::evaluate::Over;
use crate::expr::syntax::Expr;
use crate::expr::zones::may_hold;
use crate::model::schema::{Attribute, Schema};
use crate::operators::source::{Input, Part, Source};
use crate::storage::record::Statistics;

/// The input, of which only cells exist where a condition is true.
pub(crate) struct Filter {
    input: Input,
    condition: Typed,
    /// The attributes that the condition looks at.
    looked_at: Vec<bool>,
}

impl Filter {
    /// The cells where `condition` is true, not false or null.
    ///
    /// # Errors
    /// [`Error::Unknown`], [`Error::Type`].
    pub fn new(input: Input, condition: &Expr) -> Result<Filter> {
        let condition = Typed::condition(condition, input.schema(), "filter")?;
        let mut looked_at = vec![false; input.schema().attributes().len()];
        condition.attributes(&mut looked_at);
        Ok(Filter {
            input,
            condition,
            looked_at,
        })
    }

    /// Whether a cell of a region may be left, by what is known of it.
    fn may_hold(&self, region: &Region) -> Result<bool> {
        let mut known = Vec::with_capacity(self.looked_at.len());
        for (number, &looked_at) in self.looked_at.iter().enumerate() {
            known.push(if looked_at {
                self.input.statistics(region, number)?
            } else {
                None
            });
        }
        Ok(may_hold(&self.condition, &|number| known[number]))
    }

    /// A part in which cells may be left. Attributes that the condition does not look at are asked for only if some are.
    async fn part(&self, region: &Region, wanted: &[bool]) -> Result<Option<Block>> {
        let block = self.input.block(region, &self.looked_at).await?;
        let schema = self.input.schema();
        let keep = Over {
            schema,
            block: &block,
        }
        .test(&self.condition)?;
        let block = block.restricted(keep);
        if block.existing() == 0 {
            return Ok(None);
        }
        let missing: Vec<bool> = wanted
            .iter()
            .zip(&self.looked_at)
            .map(|(&a, &b)| a && !b)
            .collect();
        let mut columns = block.columns().to_vec();
        if missing.contains(&true) {
            let rest = self.input.block(region, &missing).await?;
            for (column, more) in columns.iter_mut().zip(rest.columns()) {
                *column = more.clone().or_else(|| column.take());
            }
        }
        for (column, &wanted) in columns.iter_mut().zip(wanted) {
            column.take_if(|_| !wanted);
        }
        Ok(Some(block.with_columns(columns)))
    }
}

impl Source for Filter {
    fn schema(&self) -> &Schema {
        self.input.schema()
    }

    fn grid(&self) -> Grid {
        self.input.grid()
    }

    fn block<'a>(&'a self, region: &'a Region, wanted: &'a [bool]) -> BoxFuture<'a, Result<Block>> {
        async move {
            let grid = self.input.grid();
            let (mut live, mut skipped) = (Vec::new(), 0);
            for chunk in grid.overlapping(region) {
                let part = grid.region(&chunk).intersection(region);
                if self.may_hold(&part)? {
                    live.push(part);
                } else {
                    skipped += 1;
                }
            }
            if skipped == 0
                && let Some(block) = self.part(region, wanted).await?
            {
                return Ok(block);
            }
            let mut assembly = Assembly::new(self.schema(), region, wanted)?;
            if skipped > 0 {
                for part in live {
                    if let Some(block) = self.part(&part, wanted).await? {
                        assembly.put(&block);
                    }
                }
            }
            assembly.finish()
        }
        .boxed()
    }

    fn statistics(&self, region: &Region, attribute: usize) -> Result<Option<Statistics>> {
        // Of fewer cells, which lie within the same bounds.
        self.input.statistics(region, attribute)
    }

    fn home(&self, region: &Region) -> usize {
        self.input.home(region)
    }
}

/// The input with more attributes, each computed from the others.
pub(crate) struct Apply {
    input: Input,
    schema: Schema,
    added: Vec<Typed>,
}

impl Apply {
    /// The input and for each name the value of its expression.
    ///
    /// # Errors
    /// [`Error::Unknown`], [`Error::Type`], [`Error::Schema`] if a name is there already.
    pub fn new(input: Input, added: &[(String, Expr)]) -> Result<Apply> {
        let mut attributes = input.schema().attributes().to_vec();
        let mut typed = Vec::with_capacity(added.len());
        for (name, expr) in added {
            let expr = Typed::new(expr, input.schema(), "apply")?;
            let attribute = Attribute::new(name, expr.of);
            attributes.push(if expr.nullable {
                attribute.nullable()
            } else {
                attribute
            });
            typed.push(expr);
        }
        Ok(Apply {
            schema: Schema::derived(input.schema().dimensions().to_vec(), attributes)?
                .with_all_of(input.schema()),
            input,
            added: typed,
        })
    }
}

impl Source for Apply {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn grid(&self) -> Grid {
        self.input.grid()
    }

    fn block<'a>(&'a self, region: &'a Region, wanted: &'a [bool]) -> BoxFuture<'a, Result<Block>> {
        async move {
            let (old, new) = wanted.split_at(wanted.len() - self.added.len());
            let mut needed = old.to_vec();
            let asked = self.added.iter().zip(new).filter(|(_, wanted)| **wanted);
            asked.for_each(|(expr, _)| expr.attributes(&mut needed));
            let block = self.input.block(region, &needed).await?;
            let over = Over {
                schema: self.input.schema(),
                block: &block,
            };
            let kept = block.columns().iter().zip(old);
            let mut columns: Vec<_> = kept
                .map(|(of, &wanted)| of.clone().filter(|_| wanted))
                .collect();
            for (expr, &wanted) in self.added.iter().zip(new) {
                columns.push(if wanted {
                    Some(over.evaluate(expr)?)
                } else {
                    None
                });
            }
            Ok(block.clone().with_columns(columns))
        }
        .boxed()
    }

    fn statistics(&self, region: &Region, attribute: usize) -> Result<Option<Statistics>> {
        if attribute < self.input.schema().attributes().len() {
            return self.input.statistics(region, attribute);
        }
        Ok(None)
    }

    fn home(&self, region: &Region) -> usize {
        self.input.home(region)
    }
}

/// Some attributes of the input, in another order and perhaps by other names.
pub(crate) struct Project {
    input: Input,
    schema: Schema,
    numbers: Vec<usize>,
}

impl Project {
    /// The attributes with these names.
    ///
    /// # Errors
    /// [`Error::Unknown`], [`Error::Operator`].
    pub fn new(input: Input, names: &[String]) -> Result<Project> {
        let schema = input.schema();
        let numbers = names.iter().map(|name| schema.attribute(name, "project"));
        let numbers = numbers.collect::<Result<Vec<_>>>()?;
        if numbers.is_empty() {
            let what = "name at least one attribute".to_owned();
            return Err(Error::Operator {
                operator: "project",
                what,
            });
        }
        let named = numbers
            .iter()
            .map(|&at| (at, schema.attributes()[at].name().to_owned()));
        let named = named.collect();
        Ok(Project::of(input, named)?.said())
    }

    /// All attributes, some of them by other names.
    ///
    /// # Errors
    /// [`Error::Unknown`], [`Error::Schema`].
    pub fn renamed(input: Input, names: &[(String, String)]) -> Result<Project> {
        let schema = input.schema();
        let all = schema.attributes().iter().enumerate();
        let mut named: Vec<_> = all.map(|(at, of)| (at, of.name().to_owned())).collect();
        for (old, new) in names {
            named[schema.attribute(old, "rename")?].1.clone_from(new);
        }
        Ok(Project::of(input, named)?.said())
    }

    /// The same with what is said of the input as a whole.
    fn said(self) -> Project {
        Project {
            schema: self.schema.said_as(self.input.schema()),
            ..self
        }
    }

    /// The attributes with these numbers, by these names.
    ///
    /// # Errors
    /// [`Error::Schema`].
    pub fn of(input: Input, named: Vec<(usize, String)>) -> Result<Project> {
        let attributes = input.schema().attributes();
        let of = named
            .iter()
            .map(|(at, name)| attributes[*at].clone().named(name))
            .collect();
        let kept = named.iter();
        let kept = kept.map(|(at, name)| (attributes[*at].name(), name.as_str()));
        let schema = Schema::derived(input.schema().dimensions().to_vec(), of)?
            .with_dimensions_of(input.schema())
            .with_parts_of(input.schema(), kept);
        Ok(Project {
            schema,
            input,
            numbers: named.into_iter().map(|(at, _)| at).collect(),
        })
    }
}

impl Source for Project {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn grid(&self) -> Grid {
        self.input.grid()
    }

    fn block<'a>(&'a self, region: &'a Region, wanted: &'a [bool]) -> BoxFuture<'a, Result<Block>> {
        async move {
            let mut needed = vec![false; self.input.schema().attributes().len()];
            let asked = self
                .numbers
                .iter()
                .zip(wanted)
                .filter(|(_, wanted)| **wanted);
            asked.for_each(|(&at, _)| needed[at] = true);
            let block = self.input.block(region, &needed).await?;
            let columns = self.numbers.iter().zip(wanted);
            let columns =
                columns.map(|(&at, &wanted)| block.column(at).cloned().filter(|_| wanted));
            let columns = columns.collect();
            Ok(block.with_columns(columns))
        }
        .boxed()
    }

    fn statistics(&self, region: &Region, attribute: usize) -> Result<Option<Statistics>> {
        self.input.statistics(region, self.numbers[attribute])
    }

    fn home(&self, region: &Region) -> usize {
        self.input.home(region)
    }

    fn stored(&self, region: &Region) -> Option<Part> {
        let mut part = self.input.stored(region)?;
        part.attributes = self.numbers.iter().map(|&at| part.attributes[at]).collect();
        Some(part)
    }
}
