//! Lowering of relations.

use std::sync::Arc;

use arrow::array::{Array, RecordBatch, RecordBatchOptions};
use arrow::datatypes::{DataType, Schema};
use datafusion::common::{Column, DFSchema, ScalarValue};
use datafusion::logical_expr::{
    Aggregate, Distinct, Expr as Sql, FetchType, Filter, LogicalPlan, Projection, SkipType, Sort,
    SortExpr, TableScan, Union, Values,
};
use engine::{
    Error, Expr, ExternalScan, Fold, Function, Key, Kind, Literal, Rel, Result, Scan, Type, Var,
};
use table::Zone;

use crate::lower::call::failed;
use crate::lower::expr::Scope;
use crate::lower::first_rows::Computed;
use crate::lower::lowering::{Lowered, Lowering, filtered, mapped, once, unsupported};
use crate::lower::source::Source;
use crate::optimize::keys;
use crate::scan::files::external::Files;

impl Lowering<'_> {
    /// Lowers `plan` by itself, also if its rows are shared.
    pub(super) fn own_rel(&mut self, plan: &LogicalPlan) -> Result<Lowered> {
        match plan {
            LogicalPlan::TableScan(scan) => self.scan(scan),
            LogicalPlan::SubqueryAlias(alias) => self.rel(&alias.input),
            LogicalPlan::Subquery(subquery) => self.rel(&subquery.subquery),
            LogicalPlan::Filter(filter) => self.filter(filter),
            LogicalPlan::Projection(projection) => self.projection(projection),
            LogicalPlan::Aggregate(aggregate) => self.aggregate(aggregate),
            LogicalPlan::Distinct(Distinct::All(input)) => {
                let (rel, vars) = self.rel(input)?;
                let rel = Rel::Fold {
                    input: Box::new(rel),
                    keys: once(&vars),
                    folds: vec![],
                };
                Ok((rel, vars))
            }
            LogicalPlan::Sort(sort) => self.sort(sort),
            LogicalPlan::Limit(limit) => {
                let (SkipType::Literal(skip), FetchType::Literal(fetch)) = (
                    limit.get_skip_type().map_err(failed)?,
                    limit.get_fetch_type().map_err(failed)?,
                ) else {
                    return unsupported("a limit that is no constant");
                };
                let (rel, vars) = self.rel(&limit.input)?;
                Ok((limited(rel, skip, fetch), vars))
            }
            LogicalPlan::Join(join) => self.join(join),
            LogicalPlan::Window(window) => self.window(window),
            LogicalPlan::Union(union) => self.union(union),
            LogicalPlan::Values(values) => self.values(values),
            LogicalPlan::EmptyRelation(empty) if !empty.produce_one_row => {
                let batch = RecordBatch::new_empty(empty.schema.inner().clone());
                self.given(batch)
            }
            LogicalPlan::EmptyRelation(empty) if empty.schema.fields().is_empty() => {
                let options = RecordBatchOptions::new()
                    .with_row_count(Some(usize::from(empty.produce_one_row)));
                let batch =
                    RecordBatch::try_new_with_options(Schema::empty().into(), vec![], &options)?;
                Ok((
                    Rel::Values {
                        vars: vec![],
                        batch,
                    },
                    vec![],
                ))
            }
            other => unsupported(other.display().to_string()),
        }
    }

    fn filter(&mut self, filter: &Filter) -> Result<Lowered> {
        if let Some(lowered) = self.first_rows(filter)? {
            return Ok(lowered);
        }
        let (mut rel, vars) = self.rel(&filter.input)?;
        let scope = Scope {
            schema: filter.input.schema(),
            vars: &vars,
        };
        for predicate in self.conjuncts(&filter.predicate, scope)? {
            rel = filtered(rel, predicate);
        }
        Ok((rel, vars))
    }

    fn projection(&mut self, projection: &Projection) -> Result<Lowered> {
        let (rel, vars) = self.rel(&projection.input)?;
        let scope = Scope {
            schema: projection.input.schema(),
            vars: &vars,
        };
        let mut exprs = Vec::new();
        let mut out = Vec::with_capacity(projection.expr.len());
        for (e, field) in projection.expr.iter().zip(projection.schema.fields()) {
            let lowered = self.expr(e, scope)?;
            out.push(self.var(lowered, field.name(), &mut exprs));
        }
        Ok((mapped(rel, exprs), out))
    }

    fn sort(&mut self, sort: &Sort) -> Result<Lowered> {
        let (rel, vars) = self.rel(&sort.input)?;
        let scope = Scope {
            schema: sort.input.schema(),
            vars: &vars,
        };
        let (rel, keys) = self.keys(rel, &sort.expr, scope)?;
        let rel = Rel::Sort {
            input: Box::new(rel),
            keys,
            skip: 0,
            fetch: sort.fetch,
        };
        Ok((rel, vars))
    }

    fn values(&mut self, values: &Values) -> Result<Lowered> {
        let fields = values.schema.fields();
        let mut columns = Vec::with_capacity(fields.len());
        for (position, field) in fields.iter().enumerate() {
            let value = |row: &Vec<Sql>| match &row[position] {
                Sql::Literal(value, _) => value.cast_to(field.data_type()).map_err(failed),
                other => unsupported(format!("the value {other}")),
            };
            let values = values.values.iter().map(value);
            let values = values.collect::<Result<Vec<_>>>()?;
            columns.push(ScalarValue::iter_to_array(values).map_err(failed)?);
        }
        let schema = values.schema.inner().clone();
        self.given(RecordBatch::try_new(schema, columns)?)
    }

    /// The rows of `batch`.
    fn given(&mut self, batch: RecordBatch) -> Result<Lowered> {
        let mut vars = Vec::with_capacity(batch.num_columns());
        for (field, column) in batch.schema().fields().iter().zip(batch.columns()) {
            let nullable = column.logical_null_count() > 0;
            let Some(ty) = Type::of(field.data_type(), nullable) else {
                return unsupported(format!("values of type {}", field.data_type()));
            };
            vars.push(self.query.add(field.name(), ty));
        }
        let rel = Rel::Values {
            vars: vars.clone(),
            batch,
        };
        Ok((rel, vars))
    }

    /// An external scan of files. All filters are evaluated above it: those of the scan only tell what need not be
    /// read.
    fn files(&mut self, files: &Arc<Files>) -> Result<Lowered> {
        let mut columns = Vec::with_capacity(files.schema.fields().len());
        for (position, field) in files.schema.fields().iter().enumerate() {
            let Some(mut ty) = Type::of(field.data_type(), files.nullable[position]) else {
                return unsupported(format!("values of type {}", field.data_type()));
            };
            if let Some(bounds) = files.bounds[position] {
                ty = ty.within(bounds);
            }
            columns.push((self.query.add(field.name(), ty), position));
        }
        let vars = columns.iter().map(|(var, _)| *var).collect();
        for (var, position) in &columns {
            self.external.insert(*var, (Arc::clone(files), *position));
        }
        let reading = ExternalScan {
            rows: files.rows,
            source: Arc::clone(files) as _,
            columns,
        };
        Ok((Rel::Read(reading), vars))
    }

    fn scan(&mut self, scan: &TableScan) -> Result<Lowered> {
        // A fetch of the scan is only a hint: the limit stands above it.
        let key = std::ptr::from_ref(scan) as usize;
        if let Some(files) = self.files.get(&key) {
            return self.files(files);
        }
        let Some(source) = self.sources.get(&key).cloned() else {
            return unsupported("a scan that was not prepared");
        };
        let table = source.provider.table().clone();
        let schema = table.schema();
        let positions: Vec<usize> = match &scan.projection {
            Some(positions) => positions.clone(),
            None => (0..source.provider.columns()).collect(),
        };
        let mut columns = Vec::with_capacity(positions.len());
        let mut read = positions.clone();
        for (test, _) in &source.tests {
            let named = test.column_refs();
            let place = |column: &&Column| schema.index_of(&column.name).ok();
            read.extend(named.iter().filter_map(place));
        }
        for position in once(&read) {
            columns.push((self.stored_column(&source, position)?, position));
        }
        let all: Vec<Var> = columns.iter().map(|(var, _)| *var).collect();
        let vars = all[..positions.len()].to_vec();
        let fields: Vec<usize> = columns.iter().map(|(_, position)| *position).collect();
        let own = schema.project(&fields)?;
        let own = DFSchema::try_from_qualified_schema(scan.table_name.clone(), &own);
        let own = own.map_err(failed)?;
        let (mut filters, mut shown) = (source.filters.clone(), source.shown.clone());
        let mut predicates = vec![];
        for (test, compiled) in &source.tests {
            let scope = Scope {
                schema: &own,
                vars: &all,
            };
            match self.conjuncts(test, scope) {
                Ok(some) => predicates.extend(some),
                Err(Error::Unsupported(_)) => {
                    filters.extend(compiled.iter().cloned());
                    shown.push(test.to_string());
                }
                Err(e) => return Err(e),
            }
        }
        let mut rel = Rel::Scan(Scan {
            table,
            alias: scan.table_name.table().to_string(),
            columns,
            filters,
            shown,
            expected: source.expected,
        });
        for predicate in predicates {
            rel = filtered(rel, predicate);
        }
        Ok((rel, vars))
    }

    /// A vector for the stored column at `position`, with all that the table knows of its values.
    fn stored_column(&mut self, source: &Source, position: usize) -> Result<Var> {
        let table = source.provider.table();
        let schema = table.schema();
        let Some(field) = schema.fields().get(position) else {
            return unsupported("row ids");
        };
        let known = table.statistics(position);
        let nulls = known.nulls > 0 || table.tail_rows() > 0;
        let Some(mut ty) = Type::of(field.data_type(), field.is_nullable() && nulls) else {
            return unsupported(format!("values of type {}", field.data_type()));
        };
        if let Some(Zone::Int { min, max }) = known.zone {
            ty = ty.within((min, max));
        }
        let labels = source.labels.get(&position);
        if let Some(labels) = labels.filter(|_| ty.kind == Kind::Text) {
            ty = ty.coded(labels.clone());
        }
        Ok(self.query.add(field.name(), ty))
    }

    fn keys(&mut self, rel: Rel, sorts: &[SortExpr], scope: Scope<'_>) -> Result<(Rel, Vec<Key>)> {
        let mut exprs = Vec::new();
        let mut keys = Vec::with_capacity(sorts.len());
        for sort in sorts {
            let e = self.expr(&sort.expr, scope)?;
            keys.push(Key {
                var: self.var(e, sort.expr.to_string(), &mut exprs),
                descending: !sort.asc,
                nulls_first: sort.nulls_first,
            });
        }
        Ok((mapped(rel, exprs), keys))
    }

    pub(super) fn aggregate(&mut self, aggregate: &Aggregate) -> Result<Lowered> {
        let (rel, vars) = self.rel(&aggregate.input)?;
        let scope = Scope {
            schema: aggregate.input.schema(),
            vars: &vars,
        };
        let fields = aggregate.schema.fields();
        // A key has one column, however often it is named.
        let keys = keys::once(&aggregate.group_expr);
        if fields.len() != keys.len() + aggregate.aggr_expr.len() {
            return unsupported("groups with other columns than their keys and functions");
        }
        let mut computed = Computed::default();
        let mut out = Vec::with_capacity(fields.len());
        for (e, field) in keys.iter().zip(fields) {
            if matches!(e, Sql::GroupingSet(_)) {
                return unsupported("grouping sets");
            }
            let e = self.expr(e, scope)?;
            out.push(self.var(e, field.name(), &mut computed.exprs));
        }
        let keys = once(&out);
        self.narrow(&keys);
        let mut folds = Vec::with_capacity(aggregate.aggr_expr.len());
        for (e, field) in aggregate
            .aggr_expr
            .iter()
            .zip(fields.iter().skip(out.len()))
        {
            let (function, arg) = match self.first(e, scope, &keys, &mut computed)? {
                Some(found) => found,
                None => self.fold(e, scope, &mut computed.exprs)?,
            };
            let counts = matches!(function, Function::Count | Function::CountDistinct);
            let Some(ty) = Type::of(field.data_type(), !counts) else {
                return unsupported(format!("values of type {}", field.data_type()));
            };
            let ty = match (function, arg) {
                (Function::Min | Function::Max, Some(arg)) => {
                    self.query.ty(arg).clone().nullable(true)
                }
                (Function::Sum | Function::SumDistinct, Some(arg)) => {
                    within_sums(ty, self.query.ty(arg).bounds)
                }
                // A group without keys may have no rows, and any group none that count.
                (Function::First(order), Some(arg)) => {
                    let own = self.query.ty(arg).clone();
                    let empty = keys.is_empty() || order.only().is_some();
                    let nullable = own.nullable || empty;
                    own.nullable(nullable)
                }
                _ if counts => ty.within((0, i64::MAX.into())),
                _ => ty,
            };
            let var = self.query.add(field.name(), ty);
            folds.push(Fold { var, function, arg });
        }
        out.extend(folds.iter().map(|fold| fold.var));
        let rel = Rel::Fold {
            input: Box::new(mapped(rel, computed.exprs)),
            keys,
            folds,
        };
        Ok((rel, out))
    }

    /// Finds out between what values keys lie of which that is not known: groups of keys that are near each other are
    /// found without hashing.
    pub(super) fn narrow(&mut self, keys: &[Var]) {
        for key in keys {
            let (kind, bounds) = (self.query.ty(*key).kind, self.query.ty(*key).bounds);
            let Some((files, column)) = self.external.get(key) else {
                continue;
            };
            if kind == Kind::Int
                && bounds.1 - bounds.0 > i128::from(u16::MAX)
                && let Some(bounds) = files.looked_at(*column)
            {
                self.query.narrow(*key, bounds);
            }
        }
    }

    fn fold(
        &mut self,
        e: &Sql,
        scope: Scope<'_>,
        exprs: &mut Vec<(Var, Expr)>,
    ) -> Result<(Function, Option<Var>)> {
        let call = match e {
            Sql::Alias(alias) => return self.fold(&alias.expr, scope, exprs),
            Sql::AggregateFunction(call) => call,
            other => return unsupported(format!("the aggregate {other}")),
        };
        let Some(function) = aggregate_function(call.func.name()) else {
            return unsupported(format!("the aggregate {}", call.func.name()));
        };
        let params = &call.params;
        if params.null_treatment.is_some() {
            return unsupported("`ignore nulls` in an aggregate");
        }
        // `min` and `max` of the distinct values are those of all values.
        let function = match (params.distinct, function) {
            (true, Function::Count) => Function::CountDistinct,
            (true, Function::Sum) => Function::SumDistinct,
            (true, Function::Avg) => Function::AvgDistinct,
            (_, function) => function,
        };
        let [arg] = &params.args[..] else {
            return unsupported("an aggregate of several values");
        };
        let filter = params
            .filter
            .as_deref()
            .map(|f| self.expr(f, scope))
            .transpose()?;
        let constant = matches!(arg, Sql::Literal(value, _) if !value.is_null());
        let arg = match (function, constant, filter) {
            (Function::Count, true, None) => return Ok((function, None)),
            (Function::Count, true, Some(filter)) => {
                chosen(filter, Expr::literal(Literal::Int(1), &DataType::Int64)?)?
            }
            (_, _, filter) => {
                let arg = self.expr(arg, scope)?;
                match filter {
                    None => arg,
                    Some(filter) => chosen(filter, arg)?,
                }
            }
        };
        let sums = !matches!(
            function,
            Function::Count | Function::CountDistinct | Function::Min | Function::Max
        );
        if sums {
            addable(&arg.ty)?;
        }
        let arg = match (function, arg.ty.nullable) {
            // Without NULLs it counts rows.
            (Function::Count, false) => return Ok((function, None)),
            _ => arg,
        };
        Ok((function, Some(self.var(arg, e.to_string(), exprs))))
    }

    fn union(&mut self, union: &Union) -> Result<Lowered> {
        let mut lowered = Vec::with_capacity(union.inputs.len());
        for input in &union.inputs {
            let (rel, vars) = self.rel(input)?;
            let mut exprs = Vec::new();
            let mut own = Vec::with_capacity(vars.len());
            for var in vars {
                // A vector of its own for each column: one vector may stand for two.
                let e = self.text(self.query.expr(var))?;
                let named = self
                    .query
                    .add(self.query.vars[var].name.clone(), e.ty.clone());
                exprs.push((named, e));
                own.push(named);
            }
            lowered.push((mapped(rel, exprs), own));
        }
        let mut vars = Vec::with_capacity(union.schema.fields().len());
        for (position, field) in union.schema.fields().iter().enumerate() {
            let types = || lowered.iter().map(|(_, own)| self.query.ty(own[position]));
            let Some(ty) = Type::of(field.data_type(), types().any(|ty| ty.nullable)) else {
                return unsupported(format!("values of type {}", field.data_type()));
            };
            let low = types().map(|ty| ty.bounds.0).min().unwrap_or(0);
            let high = types().map(|ty| ty.bounds.1).max().unwrap_or(0);
            let ty = ty.within((low, high));
            let wide = ty.kind == Kind::Wide;
            for (rel, own) in lowered.iter_mut().filter(|_| wide) {
                // Narrow numbers among wide ones.
                let var = own[position];
                let e = engine::widen(self.query.expr(var));
                if e.as_var().is_none() {
                    own[position] = self.query.add(field.name(), e.ty.clone());
                    let narrow = std::mem::replace(
                        rel,
                        Rel::Union {
                            inputs: vec![],
                            vars: vec![],
                        },
                    );
                    *rel = mapped(narrow, vec![(own[position], e)]);
                }
            }
            let types = || lowered.iter().map(|(_, own)| self.query.ty(own[position]));
            if types().any(|own| own.kind != ty.kind || own.scale() != ty.scale()) {
                return unsupported("a union of different kinds");
            }
            vars.push(self.query.add(field.name(), ty));
        }
        Ok((
            Rel::Union {
                inputs: lowered,
                vars: vars.clone(),
            },
            vars,
        ))
    }
}

/// The engine's function of that name.
pub(super) fn aggregate_function(name: &str) -> Option<Function> {
    Some(match name {
        "count" => Function::Count,
        "sum" => Function::Sum,
        "min" => Function::Min,
        "max" => Function::Max,
        "avg" => Function::Avg,
        _ => return None,
    })
}

/// Refuses values that sums are not there for.
pub(super) fn addable(ty: &Type) -> Result<()> {
    if matches!(ty.kind, Kind::Text | Kind::Code | Kind::Bool) {
        return unsupported("such an aggregate of texts");
    }
    if ty.kind == Kind::Wide && !has_room(ty.bounds) {
        return unsupported("sums that may need more than 128 bits on their way");
    }
    Ok(())
}

/// More rows than any table has.
const ROWS: i128 = 1 << 36;

/// Whether 128 bits hold every partial sum of numbers within `bounds`.
fn has_room(bounds: (i128, i128)) -> bool {
    let most = bounds.0.unsigned_abs().max(bounds.1.unsigned_abs());
    most < (1 << 127) / ROWS.unsigned_abs()
}

/// The type of a sum of numbers within `bounds`, of the same kind as `ty`: sums of such sums have room then.
fn within_sums(ty: Type, bounds: (i128, i128)) -> Type {
    let wide = ty.kind == Kind::Wide;
    // A wide number is one that may be out of 64 bits.
    let (low, high) = if wide {
        (i128::from(i64::MIN) * 2, i128::from(i64::MAX) * 2)
    } else {
        (0, 0)
    };
    match (bounds.0.checked_mul(ROWS), bounds.1.checked_mul(ROWS)) {
        (Some(least), Some(most)) => ty.within((least.min(low), most.max(high))),
        _ => ty,
    }
}

/// The value where `filter` is true, otherwise NULL.
fn chosen(filter: Expr, value: Expr) -> Result<Expr> {
    let data = value.ty.data.clone();
    let null = Expr::literal(Literal::Null, &data)?;
    engine::case(vec![(filter, value)], null, &data)
}

fn limited(rel: Rel, skip: usize, fetch: Option<usize>) -> Rel {
    match rel {
        Rel::Sort {
            input,
            keys,
            skip: 0,
            fetch: most,
        } => {
            let left = most.map(|most| most.saturating_sub(skip));
            let fetch = match (left, fetch) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            };
            Rel::Sort {
                input,
                keys,
                skip,
                fetch,
            }
        }
        other => Rel::Sort {
            input: Box::new(other),
            keys: vec![],
            skip,
            fetch,
        },
    }
}
