//! The first few rows of each group in an order.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::operators::aggregate::accumulator::{
    AccumulatedValues, Accumulator, other_state, pairs, same,
};
use crate::operators::aggregate::kept_columns::Cells;
use crate::operators::aggregate::kept_rows::{KeptRows, RowShape};
use crate::operators::aggregate::limits::{Candidates, Limits};
use crate::vector::batch::Batch;
use crate::vector::value::{Kind, Values, Var, Vector};

/// The first rows of each group, at most `most`, or with those that are equal to the last of these.
#[derive(Debug)]
pub(crate) struct FirstRows {
    most: usize,
    ties: bool,
    rows: KeptRows,
    /// Places that rows have left.
    free: Vec<u32>,
    /// For each group the places of its rows, in the order. Invariant: those beyond the first `most` are equal to the
    /// last of these.
    groups: Vec<Vec<u32>>,
    /// For each group with at least `most` rows, the [rank](KeptRows::rank) of the last of these: rows beyond it need not be
    /// compared any further.
    limits: Limits,
    candidates: Candidates,
}

impl FirstRows {
    /// Without groups.
    pub fn new(shape: Arc<RowShape>, most: usize, ties: bool) -> FirstRows {
        FirstRows {
            most,
            ties,
            rows: KeptRows::new(shape),
            free: vec![],
            groups: vec![],
            limits: Limits::default(),
            candidates: Candidates::default(),
        }
    }

    /// Takes the rows of `batch` that are among the first of their groups, without what they have beyond the order.
    fn choose(&mut self, groups: Option<&[u32]>, batch: &Batch) -> Result<()> {
        let shape = Arc::clone(&self.rows.shape);
        let rows = shape.of_batch(batch)?;
        let mut candidates = std::mem::take(&mut self.candidates);
        let first = self.rows.first_key(&rows.columns);
        candidates.find(first, groups, &self.limits, batch.rows);
        for (row, rank) in candidates.iter() {
            let group = groups.map_or(0, |groups| groups[row] as usize);
            // Rows before it may have changed the limit.
            if self.limits.allows(group, rank) && rows.counts(row) {
                self.offer(&rows.columns, row, group)?;
            }
        }
        self.candidates = candidates;
        Ok(())
    }

    /// Takes the row into its group, if it is one of the first.
    fn offer(&mut self, columns: &[impl Cells], row: usize, group: usize) -> Result<()> {
        let (rows, list) = (&mut self.rows, &mut self.groups[group]);
        if let Some(last) = list.get(self.most - 1) {
            let order = rows.compare(columns, row, *last as usize);
            if order.is_gt() || order.is_eq() && !self.ties {
                return Ok(());
            }
            if !self.ties {
                self.free.extend(list.pop());
            }
        }
        let place = self.free.pop().unwrap_or_else(|| rows.push());
        let before =
            list.partition_point(|kept| rows.compare(columns, row, *kept as usize).is_ge());
        rows.take(columns, row, place as usize)?;
        list.insert(before, place);
        let Some(last) = list.get(self.most - 1).map(|last| *last as usize) else {
            return Ok(());
        };
        if let Some(beyond) = list.get(self.most)
            && rows.compare(rows.columns(), *beyond as usize, last).is_ne()
        {
            self.free.extend(list.drain(self.most..));
        }
        let equals = self.ties || !rows.shape.is_of_one_key();
        self.limits.set(group, rows.rank(last), equals);
        Ok(())
    }
}

impl Accumulator for FirstRows {
    fn fresh(&self) -> Result<Box<dyn Accumulator>> {
        let shape = Arc::clone(&self.rows.shape);
        Ok(Box::new(FirstRows::new(shape, self.most, self.ties)))
    }

    fn resize(&mut self, groups: usize) {
        self.groups.resize_with(groups, Vec::new);
        self.limits.resize(groups);
    }

    fn add(&mut self, _: Option<&[u32]>, _: usize, _: Option<&Vector>) -> Result<()> {
        Err(Error::internal("values where rows were expected"))
    }

    fn add_rows(&mut self, groups: Option<&[u32]>, batch: &Batch) -> Result<()> {
        self.choose(groups, batch)?;
        self.settle_rows(batch)
    }

    fn choose_rows(&mut self, groups: Option<&[u32]>, batch: &Batch) -> Result<Option<Vec<u32>>> {
        self.choose(groups, batch)?;
        Ok(self.rows.pick_pending(batch.rows))
    }

    fn settle_rows(&mut self, batch: &Batch) -> Result<()> {
        let columns = self.rows.shape.columns_of(batch)?;
        self.rows.settle(&columns)
    }

    fn merge(&mut self, other: &dyn Accumulator, from: &[u32], to: &[u32]) -> Result<()> {
        let other: &FirstRows = same(other)?;
        let columns = other.rows.columns();
        for (from, to) in pairs(from, to) {
            for row in &other.groups[from] {
                let row = *row as usize;
                if !self.limits.allows(to, other.rows.rank(row)) {
                    // Nor is any of the rows behind it, which are in the order.
                    break;
                }
                self.offer(columns, row, to)?;
            }
        }
        self.rows.settle(columns)
    }

    fn kinds(&self) -> Vec<Kind> {
        let mut kinds = self.rows.shape.kinds();
        kinds.push(Kind::Bool);
        kinds
    }

    /// The rows at the places `some`, rather than those of groups. One more column says how many they are, even if
    /// nothing else is kept.
    fn state(&self, some: &[u32]) -> Result<Vec<Vector>> {
        let mut state = self.rows.vectors(some);
        state.push(Vector::new(Values::Bool(vec![true; some.len()])));
        Ok(state)
    }

    fn of_state(&self, mut state: Vec<Vector>) -> Result<Box<dyn Accumulator>> {
        let rows = state.pop().ok_or_else(other_state)?.len();
        let shape = Arc::clone(&self.rows.shape);
        Ok(Box::new(FirstRows {
            most: self.most,
            ties: self.ties,
            free: vec![],
            rows: KeptRows::of_vectors(shape, rows, state)?,
            groups: (0..rows as u32).map(|row| vec![row]).collect(),
            limits: Limits::open(rows),
            candidates: Candidates::default(),
        }))
    }

    fn memory(&self) -> usize {
        // A list has room for up to twice its places, and for four if it has any.
        let lists = size_of::<Vec<u32>>() * self.groups.capacity() + 16 * self.rows.len();
        let lists = lists + 4 * self.free.capacity();
        self.rows.memory() + lists + self.limits.memory() + self.candidates.memory()
    }

    fn memory_of_values(&self) -> usize {
        self.rows.memory() + 16 * self.rows.len()
    }

    fn found(&self) -> AccumulatedValues<'_> {
        AccumulatedValues::Counts
    }

    fn row_values(&self, var: Var, places: &[u32]) -> Result<Vector> {
        let column = self.rows.shape.column(var)?;
        Ok(self.rows.vector(column, places))
    }

    fn row_numbers(&self, groups: &[u32], places: &[u32]) -> Result<Vec<i64>> {
        let mut numbers = Vec::with_capacity(places.len());
        // The row before this one in its group, its place in the order, and its number.
        let mut last: Option<(u32, u32, i64, i64)> = None;
        for (group, place) in groups.iter().zip(places) {
            let (nth, number) = match last {
                Some((own, before, nth, number)) if own == *group => {
                    let (before, place) = (before as usize, *place as usize);
                    let is_tie = self.ties
                        && self
                            .rows
                            .compare(self.rows.columns(), before, place)
                            .is_eq();
                    (nth + 1, if is_tie { number } else { nth + 1 })
                }
                _ => (1, 1),
            };
            numbers.push(number);
            last = Some((*group, *place, nth, number));
        }
        Ok(numbers)
    }

    fn entries(&self, groups: &[u32]) -> Option<(Vec<u32>, Vec<u32>)> {
        let rows = groups.iter().flat_map(|group| {
            let places = self.groups[*group as usize].iter();
            places.map(|place| (*group, *place))
        });
        Some(rows.unzip())
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;

    use arrow::datatypes::DataType;
    use proptest::prelude::*;

    use super::*;
    use crate::logical::relation::{Fold, Function, Key, RowNumbers, RowOrder};
    use crate::operators::aggregate::factory::row_accumulator;
    use crate::vector::value::Type;

    const GROUPS: u32 = 5;
    const FLOAT: Var = 0;
    const WHOLE: Var = 1;
    const SECOND: Var = 2;
    const ID: Var = 3;
    const COUNTS: Var = 4;

    #[derive(Clone, Debug)]
    struct Row {
        group: u32,
        float: Option<f64>,
        whole: Option<i64>,
        second: Option<i64>,
        counts: bool,
        id: i64,
    }

    /// Few different values, so that many are equal, with the ends of what there can be.
    fn row() -> impl Strategy<Value = Row> {
        let floats = vec![
            None,
            Some(f64::NAN),
            Some(-f64::NAN),
            Some(0.0),
            Some(-0.0),
            Some(f64::INFINITY),
            Some(f64::NEG_INFINITY),
            Some(-2.5),
            Some(1e9),
        ];
        let wholes = vec![
            None,
            Some(i64::MIN),
            Some(i64::MIN + 1),
            Some(i64::MAX),
            Some(i64::MAX - 1),
            Some(0),
            Some(-7),
            Some(3),
        ];
        let seconds = vec![None, Some(1), Some(2), Some(3)];
        let select = (
            0..GROUPS,
            prop::sample::select(floats),
            prop::sample::select(wholes),
            prop::sample::select(seconds),
            prop::bool::weighted(0.8),
        );
        select.prop_map(|(group, float, whole, second, counts)| Row {
            group,
            float,
            whole,
            second,
            counts,
            id: 0,
        })
    }

    fn vector<T: Default>(values: Vec<Option<T>>, of: fn(Vec<T>) -> Values) -> Vector {
        let valid: Vec<bool> = values.iter().map(Option::is_some).collect();
        let values = values.into_iter().map(Option::unwrap_or_default);
        Vector {
            values: of(values.collect()),
            valid: valid.contains(&false).then_some(valid),
        }
    }

    /// Adds the rows, so many at once.
    fn add(accumulator: &mut dyn Accumulator, rows: &[Row], size: usize) {
        for rows in rows.chunks(size) {
            let mut batch = Batch::new(5);
            batch.restart(rows.len());
            let floats = rows.iter().map(|row| row.float).collect();
            batch.set(FLOAT, vector(floats, Values::Float));
            let wholes = rows.iter().map(|row| row.whole).collect();
            batch.set(WHOLE, vector(wholes, Values::Int));
            let seconds = rows.iter().map(|row| row.second).collect();
            batch.set(SECOND, vector(seconds, Values::Int));
            let ids = rows.iter().map(|row| row.id).collect();
            batch.set(ID, Vector::new(Values::Int(ids)));
            let counts = rows.iter().map(|row| row.counts).collect();
            batch.set(COUNTS, Vector::new(Values::Bool(counts)));
            let groups: Vec<u32> = rows.iter().map(|row| row.group).collect();
            accumulator.add_rows(Some(&groups), &batch).unwrap();
        }
    }

    fn with_nulls<T>(
        a: Option<T>,
        b: Option<T>,
        key: &Key,
        order: impl Fn(&T, &T) -> Ordering,
    ) -> Ordering {
        let null = if key.nulls_first {
            Ordering::Less
        } else {
            Ordering::Greater
        };
        match (a, b) {
            (None, None) => Ordering::Equal,
            (None, _) => null,
            (_, None) => null.reverse(),
            (Some(a), Some(b)) if key.descending => order(&b, &a),
            (Some(a), Some(b)) => order(&a, &b),
        }
    }

    fn compared(a: &Row, b: &Row, keys: &[Key]) -> Ordering {
        let floats = |a: &f64, b: &f64| {
            let order = a.partial_cmp(b);
            order.unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
        };
        let mut orders = keys.iter().map(|key| match key.var {
            FLOAT => with_nulls(a.float, b.float, key, floats),
            WHOLE => with_nulls(a.whole, b.whole, key, i64::cmp),
            _ => with_nulls(a.second, b.second, key, i64::cmp),
        });
        let order = orders.find(|order| order.is_ne());
        order.unwrap_or(Ordering::Equal)
    }

    /// The numbers of the rows that a sort finds first in a group.
    fn sorted(rows: &[Row], group: u32, order: &RowOrder) -> Vec<i64> {
        let counts = |row: &&Row| row.group == group && (row.counts || order.only().is_none());
        let mut own: Vec<&Row> = rows.iter().filter(counts).collect();
        own.sort_by(|a, b| compared(a, b, order.keys()));
        let mut different = 0;
        let mut first = vec![];
        for (at, row) in own.iter().enumerate() {
            let is_new = at == 0 || compared(own[at - 1], row, order.keys()).is_ne();
            different += usize::from(is_new);
            let is_first = match order.numbers() {
                RowNumbers::Rows => at < order.most(),
                RowNumbers::Ranks => at < order.most() || !is_new && first.len() == at,
                RowNumbers::DenseRanks => different <= order.most(),
            };
            if is_first {
                first.push(row.id);
            }
        }
        first
    }

    /// The numbers of the rows that are kept of a group.
    fn kept(accumulator: &dyn Accumulator, group: u32) -> Vec<i64> {
        let places = accumulator.entries(&[group]).map(|(_, places)| places);
        let places = places.unwrap_or_else(|| vec![group]);
        let found = accumulator.row_values(ID, &places).unwrap();
        let Values::Int(ids) = &found.values else {
            panic!("numbers of another kind");
        };
        let is_there = |at: usize| found.valid.as_ref().is_none_or(|valid| valid[at]);
        let there = ids.iter().enumerate().filter(|(at, _)| is_there(*at));
        there.map(|(_, id)| *id).collect()
    }

    fn ty(var: Var) -> Type {
        let data = match var {
            FLOAT => DataType::Float64,
            COUNTS => DataType::Boolean,
            _ => DataType::Int64,
        };
        Type::of(&data, true).unwrap()
    }

    #[test]
    fn rows_of_other_workers_are_left_out_by_their_rank() {
        let key = Key {
            var: WHOLE,
            descending: false,
            nulls_first: false,
        };
        let order = RowOrder::new(&[key], None, 2).unwrap();
        let fold = Fold {
            var: 5,
            function: Function::First(order),
            arg: Some(ID),
        };
        let row = |(id, whole): (i64, Option<i64>)| Row {
            group: 0,
            float: None,
            whole,
            second: None,
            counts: true,
            id,
        };
        let rows =
            |some: &[(i64, Option<i64>)]| -> Vec<Row> { some.iter().copied().map(row).collect() };
        let mut one = row_accumulator(&order, &[fold], &ty);
        one.resize(1);
        let add_other = |one: &mut dyn Accumulator, some: &[(i64, Option<i64>)]| {
            let mut other = one.fresh().unwrap();
            other.resize(1);
            add(&mut *other, &rows(some), 10);
            one.merge(&*other, &[0], &[0]).unwrap();
        };
        // Not yet as many as are kept: nothing is left out.
        add_other(&mut *one, &[(0, Some(7))]);
        add_other(&mut *one, &[(1, None)]);
        assert_eq!(kept(&*one, 0), [0, 1]);
        // A NULL has the rank of the greatest number, which comes before it.
        add_other(&mut *one, &[(2, Some(i64::MAX)), (3, None)]);
        assert_eq!(kept(&*one, 0), [0, 2]);
        // Equal rows come too late; one behind the limit ends the list.
        add_other(&mut *one, &[(4, Some(7)), (5, Some(8))]);
        assert_eq!(kept(&*one, 0), [0, 4]);
        add_other(&mut *one, &[(6, Some(7)), (7, Some(9))]);
        assert_eq!(kept(&*one, 0), [0, 4]);
        add_other(&mut *one, &[(8, Some(6)), (9, Some(7))]);
        assert_eq!(kept(&*one, 0), [8, 0]);
        add_other(&mut *one, &[]);
        assert_eq!(kept(&*one, 0), [8, 0]);
    }

    proptest! {
        /// Those of several groups, with and without a second key, taken by three workers, of which one has spilled its rows.
        #[test]
        fn first_rows_are_those_of_a_sort(
            rows in prop::collection::vec(row(), 0..200),
            var in prop::sample::select(vec![FLOAT, WHOLE]),
            first in any::<(bool, bool)>(),
            second in prop::option::of(any::<(bool, bool)>()),
            most in 1usize..4,
            only in any::<bool>(),
            numbers in 0u8..3,
            size in 1usize..60,
        ) {
            let mut rows = rows;
            rows.iter_mut().zip(0..).for_each(|(row, id)| row.id = id);
            let key = |var, (descending, nulls_first)| Key { var, descending, nulls_first };
            let mut keys = vec![key(var, first)];
            keys.extend(second.map(|second| key(SECOND, second)));
            let order = RowOrder::new(&keys, only.then_some(COUNTS), most).unwrap();
            let order = match numbers {
                0 => order,
                1 => order.with_ties(),
                _ => order.with_dense_ranks(),
            };
            let fold = Fold { var: 5, function: Function::First(order), arg: Some(ID) };
            let mut one = row_accumulator(&order, &[fold], &ty);
            let (mut other, mut third) = (one.fresh().unwrap(), one.fresh().unwrap());
            one.resize(GROUPS as usize);
            other.resize(GROUPS as usize);
            third.resize(GROUPS as usize);
            let (before, behind) = rows.split_at(rows.len() / 2);
            let (between, behind) = behind.split_at(behind.len() / 2);
            add(&mut *one, before, size);
            add(&mut *other, between, size);
            add(&mut *third, behind, size);
            let groups: Vec<u32> = (0..GROUPS).collect();
            one.merge(&*other, &groups, &groups).unwrap();
            match third.entries(&groups).filter(|_| numbers < 2) {
                Some((to, places)) => {
                    let spilled = third.of_state(third.state(&places).unwrap()).unwrap();
                    let from: Vec<u32> = (0..to.len() as u32).collect();
                    one.merge(&*spilled, &from, &to).unwrap();
                }
                None => one.merge(&*third, &groups, &groups).unwrap(),
            }
            for group in groups {
                prop_assert_eq!(kept(&*one, group), sorted(&rows, group, &order), "group {}", group);
            }
        }
    }
}
