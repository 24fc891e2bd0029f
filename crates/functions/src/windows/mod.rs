//! Functions over frames of windows that DataFusion has not: `groups`, `exclude`, and `range` with distances.
//!
//! Such a call becomes a window function of its own, [`Framed`]: it gets the values, the sort keys and the distances of the
//! frame as arguments, finds the rows of each frame (`bounds`), and computes the function (`compute`) over them.

pub(crate) mod bounds;
mod compute;
pub mod frame;
pub mod layout;
pub(super) mod shifts;

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef, IntervalUnit};
use datafusion_common::{Result, internal_err, plan_err};
use datafusion_expr::function::{PartitionEvaluatorArgs, WindowUDFFieldArgs};
use datafusion_expr::type_coercion::functions::fields_with_udf;
use datafusion_expr::{PartitionEvaluator, Signature, Volatility, WindowUDFImpl};
use messages::Error;
use messages::types::type_name;

use crate::arguments::is_text;
use crate::own::Own;
use crate::windows::compute::Evaluator;
use crate::windows::frame::{Frame, Units};
use crate::windows::layout::{Inner, Layout};

/// The name of the call that carries a frame through the parser, as the last sort key of its window.
pub const MARK: &str = "window frame";

/// The function of that name: it has no value, and is gone before a statement is planned.
pub(super) fn all() -> Vec<Own> {
    vec![Own::new(
        MARK,
        |types| Ok(types.to_vec()),
        |_| Ok(DataType::Null),
        |_, _| internal_err!("a frame of a window stands elsewhere"),
    )]
}

/// A window function over frames that are found here.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Framed {
    name: String,
    inner: Inner,
    frame: Frame,
    layout: Layout,
    signature: Signature,
}

impl Framed {
    /// The function `inner`, which statements call `called`, over these frames.
    pub fn new(called: &str, inner: Inner, frame: Frame, layout: Layout) -> Framed {
        Framed {
            name: format!("{called} {}", frame.text()),
            inner,
            frame,
            layout,
            signature: Signature::user_defined(Volatility::Immutable),
        }
    }

    /// What it computes, over which frames, and how its arguments are laid out.
    pub fn parts(&self) -> (&Inner, &Frame, &Layout) {
        (&self.inner, &self.frame, &self.layout)
    }

    /// The types of the function's own arguments.
    fn own_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        match (&self.inner, types) {
            (Inner::First | Inner::Last, [value]) => Ok(vec![value.clone()]),
            (Inner::Nth, [value, number]) if number.is_integer() || number.is_null() => {
                Ok(vec![value.clone(), DataType::Int64])
            }
            (Inner::Aggregate(aggregate), types) => {
                let odd = matches!(types.first(), Some(DataType::Interval(_)));
                if odd && !matches!(aggregate.name(), "count" | "array_agg") {
                    return plan_err!(
                        "not supported: {} of intervals over a window",
                        aggregate.name()
                    );
                }
                let fields: Vec<FieldRef> = types.iter().map(field).collect();
                let found = fields_with_udf(&fields, aggregate.as_ref())?;
                Ok(found.iter().map(|own| own.data_type().clone()).collect())
            }
            _ => plan_err!("{} does not take arguments of these types", self.name),
        }
    }

    /// The type of a distance from keys of this type.
    fn offset_type(&self, key: Option<&DataType>, offset: &DataType) -> Result<DataType> {
        if self.frame.units != Units::Range {
            return match offset {
                offset if offset.is_integer() || is_text(offset) => Ok(DataType::Int64),
                other => Err(Error::coded(
                    "42804",
                    format!(
                        "argument of {} must be type bigint, not type {}",
                        self.frame.units.word().to_uppercase(),
                        type_name(other)
                    ),
                )
                .into()),
            };
        }
        let interval = DataType::Interval(IntervalUnit::MonthDayNano);
        let fits = |offset: &DataType, is: bool| is || is_text(offset);
        let found = match key {
            Some(key) if key.is_integer() && fits(offset, offset.is_integer()) => DataType::Int64,
            Some(DataType::Float32 | DataType::Float64) if fits(offset, offset.is_numeric()) => {
                DataType::Float64
            }
            Some(DataType::Decimal128(_, scale)) if is_text(offset) => {
                DataType::Decimal128(38, *scale)
            }
            Some(DataType::Decimal128(_, _))
                if offset.is_integer() || matches!(offset, DataType::Decimal128(_, _)) =>
            {
                offset.clone()
            }
            Some(
                DataType::Date32
                | DataType::Timestamp(_, _)
                | DataType::Time32(_)
                | DataType::Time64(_)
                | DataType::Interval(_),
            ) if fits(offset, matches!(offset, DataType::Interval(_))) => interval,
            Some(key) => {
                return Err(Error::coded(
                    "0A000",
                    format!(
                        "RANGE with offset PRECEDING/FOLLOWING is not supported for column type {} and offset type {}",
                        type_name(key),
                        type_name(offset)
                    ),
                )
                .into());
            }
            None => return internal_err!("a frame of distances has a sort key"),
        };
        Ok(found)
    }
}

fn field(ty: &DataType) -> FieldRef {
    Arc::new(Field::new("value", ty.clone(), true))
}

impl WindowUDFImpl for Framed {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let (key, offset) = (self.layout.first_key(), self.layout.first_offset());
        if types.len() < offset {
            return internal_err!("a frame lacks arguments");
        }
        let mut wanted = self.own_types(&types[..self.layout.own])?;
        if self.layout.filtered {
            wanted.push(DataType::Boolean);
        }
        wanted.extend_from_slice(&types[key..offset]);
        for ty in &types[offset..] {
            wanted.push(self.offset_type(types[key..offset].first(), ty)?);
        }
        Ok(wanted)
    }

    fn field(&self, args: WindowUDFFieldArgs) -> Result<FieldRef> {
        let own = &args.input_fields()[..self.layout.own];
        let ty = match (&self.inner, own) {
            (Inner::Aggregate(aggregate), own) => aggregate.return_field(own)?.data_type().clone(),
            (_, [value, ..]) => value.data_type().clone(),
            _ => return internal_err!("a function over a frame has an argument"),
        };
        Ok(Arc::new(Field::new(args.name(), ty, true)))
    }

    fn partition_evaluator(
        &self,
        args: PartitionEvaluatorArgs,
    ) -> Result<Box<dyn PartitionEvaluator>> {
        Ok(Box::new(Evaluator::new(
            self.inner.clone(),
            self.frame.clone(),
            self.layout.clone(),
            args.input_exprs(),
            args.input_fields(),
        )?))
    }
}
