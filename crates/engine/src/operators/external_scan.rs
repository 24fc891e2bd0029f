//! External scans: rows that code outside the engine decodes while they are processed.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, UInt32Array};
use arrow::compute::take;
use arrow::datatypes::{DataType, Decimal128Type};
use futures::future::{self, BoxFuture, FutureExt};
use futures::stream::{self, StreamExt, TryStreamExt};
use parking_lot::Mutex;
use table::Rows;
use workers::Workers;

use crate::cancel::Stop;
use crate::error::{Error, Result};
use crate::logical::external::{ExternalPart, ExternalParts, ExternalScan};
use crate::logical::opening::Opening;
use crate::vector::value::{Kind, Type, Values, Var, Vector};

/// An [`ExternalScan`] that was opened.
pub(crate) struct OpenExternal {
    pub name: String,
    pub count: usize,
    pub columns: Vec<(Var, usize)>,
    pub parts: Arc<dyn ExternalParts>,
}

impl OpenExternal {
    /// Opens `reading`, of which each of several instances reads its share.
    pub fn new(reading: &ExternalScan, opening: &Opening<'_>) -> Result<OpenExternal> {
        let size = reading.source.size(opening);
        let parts = size.map_or_else(|| reading.source.parts(), |(parts, _)| parts);
        Ok(OpenExternal {
            name: reading.source.name().to_string(),
            count: parts.div_ceil(opening.share.1),
            columns: reading.columns.clone(),
            parts: reading.source.open(opening)?,
        })
    }

    /// Reads all parts into memory, with all workers; from now on they are served from there. Returns a report line
    /// with the time it took.
    pub async fn load(&mut self, workers: &Workers) -> Result<String> {
        let begun = Instant::now();
        let tasks = (0..workers.threads().min(self.count)).map(|_| {
            let parts = self.parts.clone();
            let task = workers.spawn(Stop::present().over(async move {
                let mut own: Vec<(u64, Vec<RecordBatch>)> = Vec::new();
                while let Some(part) = parts.next().await? {
                    own.push((part.number, part.rows.try_collect().await?));
                }
                Ok(own)
            }));
            task.abort_on_drop()
        });
        let mut all = VecDeque::new();
        for task in tasks.collect::<Vec<_>>() {
            let own: Result<Vec<_>> = task.await.map_err(|e| Error::Call(Box::new(e)))?;
            all.extend(own?);
        }
        self.count = all.len();
        let line = format!(
            "read {}: {} parts in memory after {:.3} ms",
            self.name,
            self.count,
            begun.elapsed().as_secs_f64() * 1e3
        );
        self.parts = Arc::new(Loaded(Mutex::new(all)));
        Ok(line)
    }

    /// Prepares a received batch for reading its columns.
    pub fn arrived(&self, batch: &RecordBatch) -> Result<Arrived> {
        let column = |(var, column): &(Var, usize)| {
            let array = batch.columns().get(*column);
            let array = array.ok_or_else(|| Error::internal("a column that did not come"))?;
            Ok((*var, array.clone()))
        };
        Ok(Arrived {
            columns: self.columns.iter().map(column).collect::<Result<_>>()?,
            rows: batch.num_rows(),
            name: self.name.clone(),
        })
    }
}

/// Parts held in memory.
struct Loaded(Mutex<VecDeque<(u64, Vec<RecordBatch>)>>);

impl ExternalParts for Loaded {
    fn next(&self) -> BoxFuture<'_, Result<Option<ExternalPart>>> {
        let part = self
            .0
            .lock()
            .pop_front()
            .map(|(number, batches)| ExternalPart {
                number,
                rows: stream::iter(batches.into_iter().map(Ok)).boxed(),
            });
        future::ready(Ok(part)).boxed()
    }
}

/// A received batch.
pub(crate) struct Arrived {
    pub rows: usize,
    columns: Vec<(Var, ArrayRef)>,
    name: String,
}

impl Arrived {
    /// The values of column `var` in `rows`; `None` if the source does not have that vector.
    pub fn read(&self, var: Var, ty: &Type, rows: &Rows<'_>) -> Result<Option<Vector>> {
        let Some((_, array)) = self.columns.iter().find(|(other, _)| *other == var) else {
            return Ok(None);
        };
        let array = match rows {
            Rows::Run(run) => array.slice(run.start, run.len()),
            Rows::Some(rows) => take(array, &UInt32Array::from(rows.to_vec()), None)?,
        };
        let mut vector = vector(&array, ty)?;
        if kept(&mut vector, ty) {
            Ok(Some(vector))
        } else {
            Err(Error::Source {
                name: self.name.clone(),
                message: "has values that its own statistics rule out; it is damaged".into(),
            })
        }
    }
}

/// [`Vector::from_arrow`], with a fast path for decimals that fit in 64 bits.
fn vector(array: &ArrayRef, ty: &Type) -> Result<Vector> {
    if ty.kind == Kind::Int && matches!(array.data_type(), DataType::Decimal128(..)) {
        let wide = array.as_primitive::<Decimal128Type>().values();
        let fits = wide
            .iter()
            .fold(true, |fits, v| fits & (i128::from(*v as i64) == *v));
        if fits {
            let valid = array.nulls().filter(|nulls| nulls.null_count() > 0);
            return Ok(Vector {
                values: Values::Int(wide.iter().map(|v| *v as i64).collect()),
                valid: valid.map(|valid| valid.iter().collect()),
            });
        }
    }
    Vector::from_arrow(array, ty)
}

/// Whether `vector` keeps the promises of its type. Placeholders of NULLs are set to a value within the bounds: to zero where it is
/// one, as kernels that look at no NULLs overflow with the least value of a type.
fn kept(vector: &mut Vector, ty: &Type) -> bool {
    if vector.valid.is_some() && !ty.nullable {
        return false;
    }
    fn within<T: Copy + Default + Ord + TryFrom<i128>>(
        values: &mut [T],
        valid: Option<&[bool]>,
        (low, high): (i128, i128),
    ) -> bool {
        let (Ok(low), Ok(high)) = (T::try_from(low), T::try_from(high)) else {
            // The bounds are wider than the representation, so every value is within them.
            return true;
        };
        if let Some(valid) = valid {
            let placeholder = T::default().max(low).min(high);
            let pairs = values.iter_mut().zip(valid);
            pairs
                .filter(|(_, valid)| !**valid)
                .for_each(|(v, _)| *v = placeholder);
        }
        values
            .iter()
            .fold(true, |kept, v| kept & (*v >= low) & (*v <= high))
    }
    let valid = vector.valid.as_deref();
    match &mut vector.values {
        Values::Int(values) => within(values, valid, ty.bounds),
        Values::Wide(values) => within(values, valid, ty.bounds),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{Decimal128Array, Int32Array, Int64Array, Time64MicrosecondArray};
    use arrow::datatypes::TimeUnit;

    fn ty(data: DataType) -> Type {
        Type::of(&data, true).unwrap()
    }

    #[test]
    fn broken_promises_are_found() {
        let array: ArrayRef = Arc::new(Int64Array::from(vec![Some(3), None, Some(9)]));
        let ty = ty(DataType::Int64);
        let good = |ty: Type| kept(&mut vector(&array, &ty).unwrap(), &ty);
        assert!(good(ty.clone().within((3, 9))));
        assert!(!good(ty.clone().within((4, 9))));
        assert!(!good(ty.clone().within((3, 8))));
        assert!(!good(ty.nullable(false)), "a NULL where there is none");
    }

    #[test]
    fn what_is_null_lies_within_the_bounds() {
        let array: ArrayRef = Arc::new(Int32Array::from(vec![None, Some(8)]));
        let narrow = ty(DataType::Int32).within((7, 8));
        let mut vector = vector(&array, &narrow).unwrap();
        assert!(kept(&mut vector, &narrow));
        assert!(matches!(vector.values, Values::Int(v) if v == [7, 8]));
        // Elsewhere it is zero, which arrow may multiply.
        let clock = DataType::Time64(TimeUnit::Microsecond);
        let array: ArrayRef = Arc::new(Time64MicrosecondArray::from(vec![None, Some(8)]));
        let vector = Arrived {
            rows: 2,
            columns: vec![(0, array)],
            name: "clock".into(),
        };
        let found = vector
            .read(0, &ty(clock.clone()), &Rows::Run(0..2))
            .unwrap();
        assert!(matches!(found.unwrap().values, Values::Int(v) if v == [0, 8]));
    }

    #[test]
    fn decimals_of_any_width_come_out_exact() {
        let wide = 10i128.pow(30);
        for (precision, values) in [(15, [1, -2]), (38, [1, -2]), (38, [wide, -wide])] {
            let array =
                Decimal128Array::from(values.to_vec()).with_precision_and_scale(precision, 2);
            let array: ArrayRef = Arc::new(array.unwrap());
            let mut ty = ty(array.data_type().clone());
            if values[0] == 1 {
                ty = ty.within((-2, 1));
            }
            let found = vector(&array, &ty).unwrap();
            match found.values {
                Values::Int(v) => {
                    let v: Vec<i128> = v.into_iter().map(i128::from).collect();
                    assert_eq!(v, values);
                }
                Values::Wide(v) => assert_eq!(v, values),
                other => panic!("{other:?}"),
            }
        }
    }
}
