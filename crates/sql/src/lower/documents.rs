//! Lowering of parts of JSON documents, of which the engine finds several in one walk.

use std::any::Any;
use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, Field};
use datafusion_common::DataFusionError;
use datafusion_common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion_common::{Column, ExprSchema};
use datafusion_expr::Expr as Sql;
use datafusion_expr::expr::ScalarFunction;
use engine::{Call, CalledPart, Calls, Expr, Result};
use table::json_kind;

use crate::functions::json::found::{Part, Parts, compared, is_sure, part};
use crate::lower::call::failed;
use crate::lower::expr::Scope;
use crate::lower::lowering::Lowering;
use crate::optimize::checked::type_of;

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// The part of each document.
#[derive(Debug)]
struct PartOf {
    part: Part,
    parts: Parts,
    /// Whether it is found without errors.
    is_sure: bool,
}

impl Call for PartOf {
    fn call(&self, args: &[ArrayRef], _: usize) -> std::result::Result<ArrayRef, Failure> {
        let documents = args.first().ok_or("no documents")?;
        let found = self.parts.of(documents, false)?;
        Ok(found.into_iter().next().ok_or("no part")?)
    }

    fn name(&self) -> String {
        self.part.to_string().trim_start().to_string()
    }

    fn part(&self) -> Option<CalledPart<'_>> {
        let (keys, as_text) = self.part.kept().filter(|_| self.is_sure)?;
        Some(CalledPart { keys, as_text })
    }

    fn of_parts(&self, parts: &ArrayRef) -> std::result::Result<ArrayRef, Failure> {
        Ok(self.part.of_kept(parts)?)
    }

    fn together(&self, calls: &[Arc<dyn Call>]) -> Option<Arc<dyn Calls>> {
        let part = |call: &Arc<dyn Call>| {
            let call: &dyn Any = &**call;
            let own = call.downcast_ref::<PartOf>().filter(|own| own.is_sure);
            own.map(|own| own.part.clone())
        };
        let all = calls.iter().map(part).collect::<Option<Vec<Part>>>()?;
        Some(Arc::new(PartsOf(Parts::new(all.iter()))))
    }
}

/// Several parts of each document.
#[derive(Debug)]
struct PartsOf(Parts);

impl Calls for PartsOf {
    fn call(&self, documents: &ArrayRef) -> std::result::Result<Vec<ArrayRef>, Failure> {
        Ok(self.0.of(documents, true)?)
    }
}

/// Parts of documents that an expression reads as columns, each with its column.
type PartColumns = Vec<(Column, Expr)>;

impl Lowering<'_> {
    /// The part of a document that `function` takes out of it, of type `data`; `None` for other functions, and keys that are no
    /// constants.
    ///
    /// # Errors
    /// Those of lowering the document.
    pub(super) fn part(
        &mut self,
        function: &ScalarFunction,
        data: &DataType,
        scope: Scope<'_>,
    ) -> Result<Option<Expr>> {
        match part(function) {
            Some((document, part)) => self.part_of(document, part, data, scope),
            None => Ok(None),
        }
    }

    /// The comparison `e` of such a part with constants; `None` for others.
    ///
    /// # Errors
    /// Those of lowering the document.
    pub(super) fn part_compared(&mut self, e: &Sql, scope: Scope<'_>) -> Result<Option<Expr>> {
        let Some((document, part, negated)) = compared(e) else {
            return Ok(None);
        };
        let found = self.part_of(document, part, &DataType::Boolean, scope)?;
        Ok(found.map(|found| if negated { engine::not(found) } else { found }))
    }

    fn part_of(
        &mut self,
        document: &Sql,
        part: Part,
        data: &DataType,
        scope: Scope<'_>,
    ) -> Result<Option<Expr>> {
        let of = type_of(document, scope.schema).map_err(failed)?;
        if json_kind(&of).is_none() {
            return Ok(None);
        }
        let document = self.expr(document, scope)?;
        let call = PartOf {
            parts: Parts::new(std::iter::once(&part)),
            part,
            is_sure: is_sure(&of),
        };
        engine::call(vec![document], Arc::new(call), data).map(Some)
    }

    /// Puts columns in the place of parts of documents in `e`, and adds the values of those that are not there yet to `more`.
    ///
    /// # Errors
    /// Those of lowering the parts.
    pub(super) fn part_values(
        &mut self,
        e: &mut Sql,
        scope: Scope<'_>,
        more: &mut Vec<(Arc<Field>, Expr)>,
    ) -> Result<()> {
        let Some((changed, parts)) = self.with_parts_as_columns(e, scope)? else {
            return Ok(());
        };
        *e = changed;
        for (part, value) in parts {
            if more.iter().all(|(field, _)| *field.name() != part.name) {
                let field = Field::new(&part.name, value.ty.data.clone(), true);
                more.push((Arc::new(field), value));
            }
        }
        Ok(())
    }

    /// `e` with columns in the place of parts of documents that are columns themselves, if there are any. The parts are found before
    /// `e` is evaluated, so these are of `jsonb`, where that cannot fail.
    ///
    /// # Errors
    /// Those of lowering the parts.
    fn with_parts_as_columns(
        &mut self,
        e: &Sql,
        scope: Scope<'_>,
    ) -> Result<Option<(Sql, PartColumns)>> {
        let is_one = |e: &Sql| Ok(document(e, scope).is_some());
        if !e.exists(is_one).map_err(failed)? {
            return Ok(None);
        }
        let mut columns = PartColumns::new();
        let changed = e.clone().transform_down(|e| {
            let found = self.part_column(&e, scope, &mut columns);
            match found.map_err(|e| DataFusionError::External(Box::new(e)))? {
                Some(column) => {
                    let column = Sql::Column(column);
                    Ok(Transformed::new(column, true, TreeNodeRecursion::Jump))
                }
                None => Ok(Transformed::no(e)),
            }
        });
        let changed = changed.map_err(failed)?;
        Ok(Some((changed.data, columns)))
    }

    /// The column of `e`, if that is a part of a document; it is added to `columns`.
    fn part_column(
        &mut self,
        e: &Sql,
        scope: Scope<'_>,
        columns: &mut PartColumns,
    ) -> Result<Option<Column>> {
        let Some((own, part)) = document(e, scope) else {
            return Ok(None);
        };
        let column = Column::new_unqualified(format!("{}{part}", own.flat_name()));
        if columns.iter().all(|(known, _)| *known != column) {
            let data = type_of(e, scope.schema).map_err(failed)?;
            let document = Sql::Column(own.clone());
            let Some(found) = self.part_of(&document, part, &data, scope)? else {
                return Ok(None);
            };
            columns.push((column.clone(), found));
        }
        Ok(Some(column))
    }
}

/// The column of `jsonb` that `e` takes a part of, and which part that is.
fn document<'e>(e: &'e Sql, scope: Scope<'_>) -> Option<(&'e Column, Part)> {
    let Sql::ScalarFunction(function) = e else {
        return None;
    };
    let (Sql::Column(column), part) = part(function)? else {
        return None;
    };
    let field = scope.schema.field_from_column(column).ok()?;
    is_sure(field.data_type()).then_some((column, part))
}
