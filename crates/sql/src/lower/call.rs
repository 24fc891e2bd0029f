//! DataFusion's functions as calls of Atoll's own engine.

use std::fmt::Write as _;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, RecordBatch, RecordBatchOptions, Scalar, StringArray, StringViewBuilder,
};
use arrow::compute::is_not_null;
use arrow::compute::kernels::zip::zip;
use arrow::datatypes::SchemaRef;
use arrow::row::{RowConverter, SortField};
use datafusion_common::DataFusionError;
use datafusion_physical_expr::PhysicalExpr;
use datafusion_physical_expr_common::physical_expr::is_volatile;
use engine::{Call, Error};

/// A DataFusion expression over the columns of `schema`.
#[derive(Debug)]
pub(crate) struct Function {
    pub expr: Arc<dyn PhysicalExpr>,
    pub schema: SchemaRef,
}

impl Call for Function {
    fn call(
        &self,
        args: &[ArrayRef],
        rows: usize,
    ) -> Result<ArrayRef, Box<dyn std::error::Error + Send + Sync>> {
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let batch =
            RecordBatch::try_new_with_options(self.schema.clone(), args.to_vec(), &options)?;
        Ok(self.expr.evaluate(&batch)?.into_array(rows)?)
    }

    fn name(&self) -> String {
        self.expr.to_string()
    }

    fn is_volatile(&self) -> bool {
        is_volatile(&self.expr)
    }
}

/// The identity, which decodes coded strings.
#[derive(Debug)]
pub(crate) struct Same;

impl Call for Same {
    fn call(
        &self,
        args: &[ArrayRef],
        _: usize,
    ) -> Result<ArrayRef, Box<dyn std::error::Error + Send + Sync>> {
        args.first().cloned().ok_or_else(|| "no text".into())
    }

    fn name(&self) -> String {
        "text".into()
    }
}

/// The string, or an empty one for NULL.
#[derive(Debug)]
pub(crate) struct OrEmpty;

impl Call for OrEmpty {
    fn call(
        &self,
        args: &[ArrayRef],
        _: usize,
    ) -> Result<ArrayRef, Box<dyn std::error::Error + Send + Sync>> {
        let Some(texts) = args.first() else {
            return Err("no text".into());
        };
        let empty =
            arrow::compute::cast(&StringArray::new_scalar("").into_inner(), texts.data_type())?;
        Ok(zip(&is_not_null(texts)?, texts, &Scalar::new(empty))?)
    }

    fn name(&self) -> String {
        "or_empty".into()
    }
}

/// The bytes of a value of any type in Arrow's row format as hexadecimal digits, which are equal if the values are; an empty text for NULL.
#[derive(Debug)]
pub(crate) struct Digits;

impl Call for Digits {
    fn call(
        &self,
        args: &[ArrayRef],
        _: usize,
    ) -> Result<ArrayRef, Box<dyn std::error::Error + Send + Sync>> {
        let Some(values) = args.first() else {
            return Err("no value".into());
        };
        let converter = RowConverter::new(vec![SortField::new(values.data_type().clone())])?;
        let rows = converter.convert_columns(std::slice::from_ref(values))?;
        let nulls = values.logical_nulls();
        let mut texts = StringViewBuilder::with_capacity(rows.num_rows());
        let mut text = String::new();
        for (number, row) in rows.iter().enumerate() {
            text.clear();
            if nulls.as_ref().is_none_or(|nulls| nulls.is_valid(number)) {
                for byte in row.as_ref() {
                    write!(text, "{byte:02x}")?;
                }
            }
            texts.try_append_value(&text)?;
        }
        Ok(Arc::new(texts.finish()))
    }

    fn name(&self) -> String {
        "digits".into()
    }
}

/// The refusal of a plan of which DataFusion cannot tell what has to be known, such as a type.
pub(crate) fn failed(e: DataFusionError) -> Error {
    Error::Unsupported(e.to_string())
}
