//! `unnest`, and whatever is written as the elements of an array for each row: series beside tables, parts of texts and of JSON.
//!
//! The arrays are computed for a few rows at a time, so that those of long series are not there all at once; what they take is counted
//! against the memory limit.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, RecordBatchOptions, UInt64Array};
use arrow::compute::take;
use arrow::datatypes::{DataType, SchemaRef};
use datafusion_common::NullHandling;
use datafusion_execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use datafusion_expr::{Expr as Sql, LogicalPlan, Unnest};
use datafusion_physical_expr::PhysicalExpr;
use engine::{Made, MadeRows, Rel, Result, RowFunction, RowPieces, Type};

use crate::lower::expr::{Compiled, Scope};
use crate::lower::lowering::{Lowered, Lowering, unsupported};

/// Elements of the arrays of some rows that are computed together, about.
const ELEMENTS: usize = 1 << 15;

/// Rows whose arrays are computed together at first.
const FIRST: usize = 64;

/// The elements of arrays, of several arrays of a row beside each other.
#[derive(Clone, Debug)]
struct Elements {
    lists: Vec<Arc<dyn PhysicalExpr>>,
    schema: SchemaRef,
    nulls: NullHandling,
    is_volatile: bool,
    memory: Arc<dyn MemoryPool>,
}

impl RowFunction for Elements {
    fn call(&self, args: &[ArrayRef], rows: usize, most: usize) -> Made<RowPieces> {
        let held = MemoryConsumer::new("unnest").register(&self.memory);
        Ok(Box::new(Pieces {
            function: self.clone(),
            args: args.to_vec(),
            left: 0..rows,
            at_once: FIRST,
            most: most.max(1),
            now: None,
            held,
        }))
    }

    fn is_volatile(&self) -> bool {
        self.is_volatile
    }

    fn name(&self) -> String {
        let lists: Vec<String> = self.lists.iter().map(ToString::to_string).collect();
        format!("unnest({})", lists.join(", "))
    }
}

/// The elements of the arrays of some rows, piece by piece.
struct Pieces {
    function: Elements,
    args: Vec<ArrayRef>,
    /// The rows whose arrays have not been computed.
    left: Range<usize>,
    /// Of how many rows they are computed next.
    at_once: usize,
    most: usize,
    now: Option<Arrays>,
    held: MemoryReservation,
}

/// The arrays of some rows, and where in them the next piece begins.
struct Arrays {
    /// The number of the first of the rows.
    first: usize,
    lists: Vec<Lists>,
    /// How many rows each row makes.
    lengths: Vec<usize>,
    row: usize,
    /// How many of its rows have been made.
    done: usize,
}

/// The elements of many arrays one after the other, and which of them are those of each array: none of one that is NULL.
struct Lists {
    elements: ArrayRef,
    ranges: Vec<Range<usize>>,
    nulls: Vec<bool>,
}

impl Lists {
    fn of(lists: &ArrayRef) -> Made<Lists> {
        let (elements, ranges): (ArrayRef, Vec<Range<usize>>) = match lists.data_type() {
            DataType::List(_) => {
                let lists = lists.as_list::<i32>();
                let ends = lists.value_offsets().windows(2);
                let ranges = ends.map(|ends| ends[0] as usize..ends[1] as usize);
                (Arc::clone(lists.values()), ranges.collect())
            }
            DataType::LargeList(_) => {
                let lists = lists.as_list::<i64>();
                let ends = lists.value_offsets().windows(2);
                let ranges = ends.map(|ends| ends[0] as usize..ends[1] as usize);
                (Arc::clone(lists.values()), ranges.collect())
            }
            DataType::FixedSizeList(_, width) => {
                let width = usize::try_from(*width)?;
                let values = lists.as_fixed_size_list();
                let ranges = (0..lists.len()).map(|row| row * width..(row + 1) * width);
                (Arc::clone(values.values()), ranges.collect())
            }
            other => return Err(format!("the elements of values of type {other}").into()),
        };
        let nulls = (0..lists.len())
            .map(|row| lists.is_null(row))
            .collect::<Vec<_>>();
        let own = ranges.into_iter().zip(&nulls);
        let ranges = own.map(|(range, is_null)| if *is_null { 0..0 } else { range });
        Ok(Lists {
            elements,
            ranges: ranges.collect(),
            nulls,
        })
    }

    /// How many rows the array of `row` makes by itself.
    fn length(&self, row: usize, nulls: NullHandling) -> usize {
        let own = self.ranges[row].len();
        let stays = match nulls {
            NullHandling::Drop => false,
            NullHandling::Preserve => self.nulls[row],
            NullHandling::PreserveAndExpandEmpty => true,
        };
        own.max(usize::from(stays))
    }
}

impl Pieces {
    /// Computes the arrays of the next rows; `None` if there are no more.
    fn arrays(&mut self) -> Made<Option<Arrays>> {
        // Those before are no longer there.
        self.held.free();
        if self.left.is_empty() {
            return Ok(None);
        }
        let rows = self.at_once.min(self.left.len());
        let first = self.left.start;
        self.left.start += rows;
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let args = self.args.iter().map(|arg| arg.slice(first, rows));
        let schema = Arc::clone(&self.function.schema);
        let batch = RecordBatch::try_new_with_options(schema, args.collect(), &options)?;
        let (mut lists, mut bytes) = (Vec::new(), 0);
        for list in &self.function.lists {
            let list = list.evaluate(&batch)?.into_array(rows)?;
            bytes += list.to_data().get_slice_memory_size()?;
            self.held.try_resize(bytes)?;
            lists.push(Lists::of(&list)?);
        }
        let length = |row: usize| {
            let own = lists.iter().map(|own| own.length(row, self.function.nulls));
            own.max().unwrap_or(0)
        };
        let lengths: Vec<usize> = (0..rows).map(length).collect();
        let all: usize = lengths.iter().sum();
        self.at_once = if all > ELEMENTS {
            (rows / 2).max(1)
        } else if all <= ELEMENTS / 4 {
            2 * rows
        } else {
            rows
        };
        Ok(Some(Arrays {
            first,
            lists,
            lengths,
            row: 0,
            done: 0,
        }))
    }

    fn piece(&mut self) -> Made<Option<MadeRows>> {
        loop {
            let now = match &mut self.now {
                Some(now) => now,
                None => match self.arrays()? {
                    Some(arrays) => self.now.insert(arrays),
                    None => return Ok(None),
                },
            };
            let made = now.piece(self.most)?;
            if now.row == now.lengths.len() {
                self.now = None;
            }
            if !made.of.is_empty() {
                return Ok(Some(made));
            }
        }
    }
}

impl Iterator for Pieces {
    type Item = Made<MadeRows>;

    fn next(&mut self) -> Option<Made<MadeRows>> {
        self.piece().transpose()
    }
}

impl Arrays {
    /// The next rows, at most `most`.
    fn piece(&mut self, most: usize) -> Made<MadeRows> {
        let mut of = Vec::new();
        let mut picks: Vec<Vec<Option<u64>>> = vec![Vec::new(); self.lists.len()];
        while self.row < self.lengths.len() && of.len() < most {
            let count = (self.lengths[self.row] - self.done).min(most - of.len());
            of.extend(std::iter::repeat_n((self.first + self.row) as u32, count));
            for (picks, lists) in picks.iter_mut().zip(&self.lists) {
                let own = &lists.ranges[self.row];
                let place = |number: usize| {
                    let place = own.start + number;
                    (place < own.end).then_some(place as u64)
                };
                picks.extend((self.done..self.done + count).map(place));
            }
            self.done += count;
            if self.done == self.lengths[self.row] {
                (self.row, self.done) = (self.row + 1, 0);
            }
        }
        let columns = self.lists.iter().zip(picks).map(|(lists, picks)| {
            // Those of one array after the other lie together.
            if let (Some(Some(start)), Some(Some(last))) = (picks.first(), picks.last())
                && (last - start) as usize + 1 == picks.len()
                && picks.iter().all(Option::is_some)
            {
                return Ok(lists.elements.slice(*start as usize, picks.len()));
            }
            take(&lists.elements, &UInt64Array::from(picks), None)
        });
        let columns = columns.collect::<std::result::Result<Vec<_>, _>>()?;
        Ok(MadeRows { of, columns })
    }
}

impl Lowering<'_> {
    pub(super) fn unnest(&mut self, unnest: &Unnest) -> Result<Lowered> {
        let places: Vec<usize> = unnest
            .list_type_columns
            .iter()
            .map(|(place, _)| *place)
            .collect();
        let is_plain = |(number, place): (usize, &usize)| {
            unnest.list_type_columns[number].1.depth == 1 && !places[..number].contains(place)
        };
        if !unnest.struct_type_columns.is_empty() || !places.iter().enumerate().all(is_plain) {
            return unsupported("`unnest` of rows, or of arrays of arrays");
        }
        // Arrays that are computed just for this are not kept as values between.
        let (rel, below, arrays) = match &*unnest.input {
            LogicalPlan::Projection(projection) if self.common.reading(&unnest.input).is_none() => {
                let (rel, vars) = self.rel(&projection.input)?;
                let scope = Scope {
                    schema: projection.input.schema(),
                    vars: &vars,
                };
                let (rel, all) = self.projected_without(rel, projection, &places, scope)?;
                let lists = places.iter().map(|place| &projection.expr[*place]);
                let lists: Vec<&Sql> = lists.collect();
                let arrays = self.elements(&lists, unnest, scope)?;
                (rel, all, arrays)
            }
            input => {
                let (rel, vars) = self.rel(input)?;
                let scope = Scope {
                    schema: input.schema(),
                    vars: &vars,
                };
                let columns = input.schema().columns();
                let lists: Vec<Sql> = places
                    .iter()
                    .map(|place| Sql::Column(columns[*place].clone()))
                    .collect();
                let arrays = self.elements(&lists.iter().collect::<Vec<_>>(), unnest, scope)?;
                (rel, vars.into_iter().map(Some).collect(), arrays)
            }
        };
        let (args, function) = arrays;
        let (mut vars, mut out) = (Vec::new(), Vec::new());
        for (position, place) in unnest.dependency_indices.iter().enumerate() {
            if !places.contains(place) {
                let Some(var) = below.get(*place).copied().flatten() else {
                    return unsupported("`unnest` of a column that is not there");
                };
                out.push(var);
                continue;
            }
            let field = unnest.schema.field(position);
            let Some(ty) = Type::of(field.data_type(), true) else {
                return unsupported(format!("values of type {}", field.data_type()));
            };
            let var = self.query.add(field.name(), ty);
            let number = places.iter().position(|own| own == place);
            vars.push((number, var));
            out.push(var);
        }
        // In the order of the arrays.
        vars.sort_by_key(|(number, _)| *number);
        let rel = Rel::Expand {
            input: Box::new(rel),
            function: Arc::new(function),
            args,
            vars: vars.into_iter().map(|(_, var)| var).collect(),
        };
        Ok((rel, out))
    }

    /// The function that gives the elements of `lists`, and its arguments.
    fn elements(
        &mut self,
        lists: &[&Sql],
        unnest: &Unnest,
        scope: Scope<'_>,
    ) -> Result<(Vec<engine::Expr>, Elements)> {
        let Compiled {
            args,
            exprs,
            schema,
        } = self.compiled(lists, scope)?;
        let function = Elements {
            lists: exprs,
            schema,
            nulls: unnest.options.null_handling,
            is_volatile: lists.iter().any(|e| e.is_volatile()),
            memory: Arc::clone(self.task.memory_pool()),
        };
        Ok((args, function))
    }
}
