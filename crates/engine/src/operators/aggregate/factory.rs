//! Which accumulator computes what.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::logical::parts::has_room;
use crate::logical::relation::{Fold, RowNumbers, RowOrder};
use crate::operators::aggregate::accumulator::Accumulator;
use crate::operators::aggregate::dense_rows::DenseRows;
use crate::operators::aggregate::deviations::Deviations;
use crate::operators::aggregate::distinct::DistinctValues;
use crate::operators::aggregate::extremes::{Extreme, ExtremeCode, ExtremeString};
use crate::operators::aggregate::first_row::FirstRow;
use crate::operators::aggregate::first_rows::FirstRows;
use crate::operators::aggregate::kept_rows::RowShape;
use crate::operators::aggregate::long_sums::LongSum;
use crate::operators::aggregate::pairs::Pairs;
use crate::operators::aggregate::sums::{Count, Sum};
use crate::physical::shared_aggregates::{Accumulated, Accumulation};
use crate::vector::value::{Kind, Type, Var};

/// Values below this are summed in 64 bits: no sum of as many of them as a table can have rows overflows.
const SMALL: i128 = 1 << 26;

/// An empty accumulator of the first rows of `order`, with what `folds` want of them.
pub(crate) fn row_accumulator(
    order: &RowOrder,
    folds: &[Fold],
    types: &dyn Fn(Var) -> Type,
) -> Box<dyn Accumulator> {
    let shape = Arc::new(RowShape::of(order, folds, types));
    match order.numbers() {
        RowNumbers::DenseRanks => Box::new(DenseRows::new(shape, order.most())),
        RowNumbers::Ranks => Box::new(FirstRows::new(shape, order.most(), true)),
        RowNumbers::Rows if order.is_of_many() => {
            Box::new(FirstRows::new(shape, order.most(), false))
        }
        RowNumbers::Rows => Box::new(FirstRow::new(shape)),
    }
}

/// An empty accumulator for `one`, whose argument has the type `arg`. `single` says that there is only one group.
///
/// # Errors
/// [`Error::Unsupported`] for arguments of a kind that cannot be accumulated this way.
pub(crate) fn accumulator(
    one: Accumulated,
    arg: Option<&Type>,
    single: bool,
) -> Result<Box<dyn Accumulator>> {
    let refused = || Error::unsupported(format!("{:?} of such values", one.what));
    let Some(ty) = arg else {
        return match one.what {
            Accumulation::Count => Ok(Box::new(Count::default())),
            _ => Err(refused()),
        };
    };
    let small = -SMALL < ty.bounds.0 && ty.bounds.1 < SMALL;
    let least = one.what == Accumulation::Min;
    Ok(match (one.what, ty.kind) {
        (Accumulation::Count, _) => Box::new(Count::default()),
        (Accumulation::Sum, Kind::Int) if small => Box::new(Sum::<i64>::default()),
        (Accumulation::Sum, Kind::Wide) if !has_room(ty.bounds) => Box::new(LongSum::default()),
        (Accumulation::Sum, Kind::Int | Kind::Wide) => Box::new(Sum::<i128>::default()),
        (Accumulation::Sum, Kind::Float) => Box::new(Sum::<f64>::default()),
        (Accumulation::Min | Accumulation::Max, Kind::Int | Kind::Bool) => {
            Box::new(Extreme::<i64>::new(least))
        }
        (Accumulation::Min | Accumulation::Max, Kind::Wide) => {
            Box::new(Extreme::<i128>::new(least))
        }
        (Accumulation::Min | Accumulation::Max, Kind::Float) => {
            Box::new(Extreme::<f64>::new(least))
        }
        (Accumulation::Min | Accumulation::Max, Kind::Text) => Box::new(ExtremeString::new(least)),
        (Accumulation::Min | Accumulation::Max, Kind::Code) => {
            let labels = ty.labels.clone();
            let labels = labels.ok_or_else(|| Error::internal("codes without labels"))?;
            Box::new(ExtremeCode::new(least, labels))
        }
        (Accumulation::CountTotal, Kind::Int) => Box::new(Count::total()),
        (Accumulation::Deviations, Kind::Float) => Box::new(Deviations::default()),
        (Accumulation::Pairs { x }, Kind::Float) => {
            let y = one.arg.ok_or_else(refused)?;
            Box::new(Pairs::new(x, y))
        }
        (Accumulation::Distinct { sum }, _) => {
            let inner = Accumulated {
                what: Accumulation::Sum,
                ..one
            };
            let sum = sum.then(|| accumulator(inner, arg, single)).transpose()?;
            Box::new(DistinctValues::new(ty, single, sum)?)
        }
        (
            Accumulation::Sum
            | Accumulation::CountTotal
            | Accumulation::Deviations
            | Accumulation::Pairs { .. }
            | Accumulation::Call(_)
            | Accumulation::First(_),
            _,
        ) => return Err(refused()),
    })
}
