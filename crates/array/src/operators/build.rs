//! An array that is computed from its coordinates.

use futures::future::{BoxFuture, FutureExt};

use crate::data::block::Block;
use crate::data::region::Region;
use crate::error::{Error, Result};
use crate::expr::bind::Typed;
use crate::expr::evaluate::Over;
use crate::expr::syntax::Expr;
use crate::model::schema::Schema;
use crate::operators::source::Source;

/// An array whose one attribute has the value of an expression over the dimensions.
pub(crate) struct Build {
    schema: Schema,
    expr: Typed,
}

impl Build {
    /// The array of a schema with one attribute, to whose type the expression is cast.
    ///
    /// # Errors
    /// [`Error::Unknown`], [`Error::Type`], [`Error::Operator`].
    pub fn new(schema: &Schema, expr: &Expr) -> Result<Build> {
        let wrong = |what: &str| {
            Err(Error::Operator {
                operator: "build",
                what: what.to_owned(),
            })
        };
        let [attribute] = schema.attributes() else {
            return wrong("the schema must have one attribute");
        };
        let expr = expr.clone().cast(attribute.data_type());
        let expr = Typed::new(&expr, schema, "build")?;
        let mut looked_at = [false];
        expr.attributes(&mut looked_at);
        if looked_at[0] {
            return wrong("the expression may only name dimensions");
        }
        if expr.nullable && !attribute.is_nullable() {
            return wrong("the attribute must be nullable, since the expression may be null");
        }
        Ok(Build {
            schema: Schema::derived(schema.dimensions().to_vec(), schema.attributes().to_vec())?
                .with_all_of(schema),
            expr,
        })
    }
}

impl Source for Build {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn block<'a>(&'a self, region: &'a Region, wanted: &'a [bool]) -> BoxFuture<'a, Result<Block>> {
        async move {
            let empty = Block::new(region.clone(), vec![None])?;
            if !wanted.contains(&true) {
                return Ok(empty);
            }
            let over = Over {
                schema: &self.schema,
                block: &empty,
            };
            let column = over.evaluate(&self.expr)?;
            Ok(empty.with_columns(vec![Some(column)]))
        }
        .boxed()
    }
}
