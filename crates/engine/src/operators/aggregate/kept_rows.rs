//! Rows that aggregates keep: their columns, and which row comes before which.

use std::cmp::Ordering;
use std::sync::Arc;

use crate::error::{Error, Result, missing};
use crate::logical::relation::{Fold, RowOrder};
use crate::operators::aggregate::accumulator::grow;
use crate::operators::aggregate::kept_columns::{BatchColumn, Cell, Cells, KeptColumn};
use crate::operators::aggregate::limits::Ranking;
use crate::vector::batch::Batch;
use crate::vector::value::{Kind, Type, Values, Var, Vector};

/// What is kept of a row, and the order of rows.
#[derive(Debug)]
pub(crate) struct RowShape {
    /// The columns, each once: those of the order come first.
    vars: Vec<Var>,
    /// The type of each column.
    types: Vec<Type>,
    /// How many of the columns belong to the order.
    ordering: usize,
    keys: Vec<ColumnOrder>,
    only: Option<Var>,
}

/// A key of an order.
#[derive(Clone, Copy, Debug)]
struct ColumnOrder {
    /// The index of its column.
    column: usize,
    descending: bool,
    nulls_first: bool,
}

impl RowShape {
    /// What the functions of `folds` with this order keep.
    pub fn of(order: &RowOrder, folds: &[Fold], types: &dyn Fn(Var) -> Type) -> RowShape {
        let mut vars: Vec<Var> = Vec::new();
        let mut place = |var: Var| {
            let known = vars.iter().position(|own| *own == var);
            known.unwrap_or_else(|| {
                vars.push(var);
                vars.len() - 1
            })
        };
        let keys = order.keys().iter().map(|key| ColumnOrder {
            column: place(key.var),
            descending: key.descending,
            nulls_first: key.nulls_first,
        });
        let keys: Vec<ColumnOrder> = keys.collect();
        let ordering = keys.iter().map(|key| key.column + 1).max().unwrap_or(0);
        let own = folds
            .iter()
            .filter(|fold| fold.function.order() == Some(order));
        own.filter_map(|fold| fold.arg)
            .for_each(|arg| _ = place(arg));
        RowShape {
            types: vars.iter().map(|var| types(*var)).collect(),
            vars,
            ordering,
            keys,
            only: order.only(),
        }
    }

    /// The index of the column that holds `var`.
    ///
    /// # Errors
    /// An internal error if none does.
    pub fn column(&self, var: Var) -> Result<usize> {
        let found = self.vars.iter().position(|own| *own == var);
        found.ok_or_else(|| Error::internal("a vector that is not kept"))
    }

    /// The kind of each column.
    pub fn kinds(&self) -> Vec<Kind> {
        self.types.iter().map(|ty| ty.kind).collect()
    }

    /// The columns of a batch.
    pub fn columns_of<'b>(&self, batch: &'b Batch) -> Result<Vec<BatchColumn<'b>>> {
        let vars = self.vars.iter();
        vars.map(|var| BatchColumn::of(batch.get(*var)?)).collect()
    }

    /// What decides which rows of a batch are kept: the columns of the order, and which rows count.
    pub fn of_batch<'b>(&self, batch: &'b Batch) -> Result<BatchRows<'b>> {
        let vars = self.vars.iter().take(self.ordering);
        let columns = vars.map(|var| BatchColumn::of(batch.get(*var)?));
        let only = self.only.map(|var| batch.get(var)).transpose()?;
        Ok(BatchRows {
            columns: columns.collect::<Result<_>>()?,
            only,
        })
    }

    /// Whether rows are equal if their first keys are.
    pub fn is_of_one_key(&self) -> bool {
        self.keys.len() == 1
    }

    /// The column of the first key and its ranking, if its values have ranks.
    fn ranking(&self) -> Option<(usize, Ranking)> {
        let key = self.keys.first()?;
        let is_ranked = matches!(self.types[key.column].kind, Kind::Int | Kind::Float);
        let ranking = Ranking::new(key.descending, key.nulls_first);
        is_ranked.then_some((key.column, ranking))
    }

    /// The first key, if it is a 64-bit whole number: its column, and what each value is combined with by exclusive
    /// or, so that rows of lesser numbers come first.
    fn first_number(&self) -> Option<(usize, i64)> {
        let key = self.keys.first()?;
        let flip = if key.descending { -1 } else { 0 };
        (self.types[key.column].kind == Kind::Int).then_some((key.column, flip))
    }
}

/// The rows of a batch that are offered to an aggregate.
#[derive(Debug)]
pub(crate) struct BatchRows<'b> {
    pub columns: Vec<BatchColumn<'b>>,
    only: Option<&'b Vector>,
}

impl BatchRows<'_> {
    /// Whether all rows count.
    pub fn all_count(&self) -> bool {
        self.only.is_none()
    }

    /// Whether the row counts.
    pub fn counts(&self, row: usize) -> bool {
        self.only.is_none_or(|only| {
            let valid = only.valid.as_ref().is_none_or(|valid| valid[row]);
            valid && matches!(&only.values, Values::Bool(values) if values[row])
        })
    }
}

/// Kept rows, each at a place.
#[derive(Debug)]
pub(crate) struct KeptRows {
    pub shape: Arc<RowShape>,
    columns: Vec<KeptColumn>,
    /// One more than the number of rows whose values beyond the order are still to be copied from the rows that are
    /// being added: of a place, one more than that row's number. 0 if there is none.
    pending: Vec<u32>,
    /// The places with such a row.
    touched: Vec<u32>,
}

impl KeptRows {
    /// No rows.
    pub fn new(shape: Arc<RowShape>) -> KeptRows {
        let columns = shape.types.iter().map(|ty| KeptColumn::new(ty.kind));
        KeptRows {
            columns: columns.collect(),
            shape,
            pending: vec![],
            touched: vec![],
        }
    }

    /// The rows with these columns.
    ///
    /// # Errors
    /// An internal error if there are more or fewer than the shape has.
    pub fn of_vectors(shape: Arc<RowShape>, rows: usize, vectors: Vec<Vector>) -> Result<KeptRows> {
        if vectors.len() != shape.vars.len() {
            return Err(missing());
        }
        let columns = vectors.into_iter().map(KeptColumn::of_vector);
        Ok(KeptRows {
            columns: columns.collect::<Result<_>>()?,
            shape,
            pending: vec![0; rows],
            touched: vec![],
        })
    }

    /// The columns.
    pub fn columns(&self) -> &[KeptColumn] {
        &self.columns
    }

    /// The number of places.
    pub fn len(&self) -> usize {
        self.pending.len()
    }

    /// Grows to `places` places.
    pub fn resize(&mut self, places: usize) {
        grow(&mut self.pending, places, |n| vec![0; n], 0);
        self.columns
            .iter_mut()
            .for_each(|column| column.resize(places));
    }

    /// Adds a place.
    pub fn push(&mut self) -> u32 {
        let place = self.len();
        self.resize(place + 1);
        place as u32
    }

    /// How a row compares with the one at `place`: less if it comes before that.
    pub fn compare(&self, columns: &[impl Cells], row: usize, place: usize) -> Ordering {
        for key in &self.shape.keys {
            let theirs = columns[key.column].cell(row);
            let own = self.columns[key.column].cell(place);
            let order = compared(theirs, own, &self.shape.types[key.column], key);
            if order.is_ne() {
                return order;
            }
        }
        Ordering::Equal
    }

    /// Puts a row at `place`. What it has beyond the order is copied by [`settle`](Self::settle): a place may be taken
    /// by many rows of a batch.
    pub fn take(&mut self, columns: &[impl Cells], row: usize, place: usize) -> Result<()> {
        let ordering = self.shape.ordering;
        let own = self.columns.iter_mut().zip(columns).take(ordering);
        for (own, theirs) in own {
            own.set(place, theirs.cell(row))?;
        }
        note(&mut self.pending, &mut self.touched, row, place);
        Ok(())
    }

    /// Copies what is still to be copied of the rows that were taken from `columns`.
    pub fn settle(&mut self, columns: &[impl Cells]) -> Result<()> {
        let ordering = self.shape.ordering;
        let own = self.columns.iter_mut().zip(columns).skip(ordering);
        for (own, theirs) in own {
            for place in &self.touched {
                let place = *place as usize;
                own.set(place, theirs.cell(self.pending[place] as usize - 1))?;
            }
        }
        for place in self.touched.drain(..) {
            self.pending[place as usize] = 0;
        }
        Ok(())
    }

    /// The rows, ascending, of which something is still to be copied. From now on these are all rows that there are:
    /// [`settle`](Self::settle) is to be called with their columns. `None`, and nothing changes, if these are more than
    /// half of `rows`.
    pub fn pick_pending(&mut self, rows: usize) -> Option<Vec<u32>> {
        if 2 * self.touched.len() > rows {
            return None;
        }
        let pending = &mut self.pending;
        self.touched
            .sort_unstable_by_key(|place| pending[*place as usize]);
        let picks = self.touched.iter().zip(1..).map(|(place, nth)| {
            let row = std::mem::replace(&mut pending[*place as usize], nth);
            row - 1
        });
        Some(picks.collect())
    }

    /// Takes the first row of each group, if the order is that of one whole number and neither the batch nor a kept
    /// row has a NULL for it; returns whether it did. The place of a row is its group; `seen` says which groups have
    /// one.
    pub fn take_firsts(
        &mut self,
        columns: &[BatchColumn<'_>],
        groups: Option<&[u32]>,
        seen: &mut [bool],
    ) -> bool {
        let shape = &self.shape;
        let (1, Some((0, flip))) = (shape.keys.len(), shape.first_number()) else {
            return false;
        };
        let (Some(first), Some(own)) = (columns.first(), self.columns.first_mut()) else {
            return false;
        };
        let (Some((values, None)), Some(best)) = (first.numbers(), own.numbers_mut()) else {
            return false;
        };
        let (pending, touched) = (&mut self.pending, &mut self.touched);
        for (row, value) in values.iter().enumerate() {
            let group = groups.map_or(0, |groups| groups[row] as usize);
            if !seen[group] || value ^ flip < best[group] ^ flip {
                seen[group] = true;
                best[group] = *value;
                note(pending, touched, row, group);
            }
        }
        true
    }

    /// The first key of a batch with these columns, and its ranking; `None` if values of its kind have no ranks.
    pub fn first_key<'c, 'b>(
        &self,
        columns: &'c [BatchColumn<'b>],
    ) -> Option<(Ranking, &'c BatchColumn<'b>)> {
        let (column, ranking) = self.shape.ranking()?;
        Some((ranking, columns.get(column)?))
    }

    /// The rank of the row at `place` by its first key; `u64::MAX` if values of its kind have none.
    pub fn rank(&self, place: usize) -> u64 {
        let ranked = self.shape.ranking();
        ranked.map_or(u64::MAX, |(column, ranking)| {
            ranking.of(self.columns[column].cell(place))
        })
    }

    /// The values of a column at `places`.
    pub fn vector(&self, column: usize, places: &[u32]) -> Vector {
        self.columns[column].vector(places)
    }

    /// The rows at `places`, as vectors in the order of the columns.
    pub fn vectors(&self, places: &[u32]) -> Vec<Vector> {
        let columns = self.columns.iter();
        columns.map(|column| column.vector(places)).collect()
    }

    /// Bytes allocated.
    pub fn memory(&self) -> usize {
        let columns: usize = self.columns.iter().map(KeptColumn::memory).sum();
        columns + 4 * (self.pending.capacity() + self.touched.capacity())
    }

    /// The bytes of strings among them.
    pub fn string_bytes(&self) -> usize {
        self.columns.iter().map(KeptColumn::string_bytes).sum()
    }
}

/// Notes that `place` was taken by `row`.
#[inline]
fn note(pending: &mut [u32], touched: &mut Vec<u32>, row: usize, place: usize) {
    if pending[place] == 0 {
        touched.push(place as u32);
    }
    pending[place] = row as u32 + 1;
}

fn compared(a: Cell<'_>, b: Cell<'_>, ty: &Type, key: &ColumnOrder) -> Ordering {
    let null = if key.nulls_first {
        Ordering::Less
    } else {
        Ordering::Greater
    };
    let order = match (a, b) {
        (Cell::Null, Cell::Null) => return Ordering::Equal,
        (Cell::Null, _) => return null,
        (_, Cell::Null) => return null.reverse(),
        (Cell::Int(a), Cell::Int(b)) => a.cmp(&b),
        (Cell::Wide(a), Cell::Wide(b)) => a.cmp(&b),
        // Zeros are equal, and so are NaNs, which are the greatest.
        (Cell::Float(a), Cell::Float(b)) => a
            .partial_cmp(&b)
            .unwrap_or_else(|| a.is_nan().cmp(&b.is_nan())),
        (Cell::Bool(a), Cell::Bool(b)) => a.cmp(&b),
        (Cell::Code(a), Cell::Code(b)) => match &ty.labels {
            Some(labels) => {
                let rank = labels.rank();
                rank[a as usize].cmp(&rank[b as usize])
            }
            None => a.cmp(&b),
        },
        (Cell::Text(a), Cell::Text(b)) => a.cmp(b),
        _ => Ordering::Equal,
    };
    if key.descending {
        order.reverse()
    } else {
        order
    }
}
