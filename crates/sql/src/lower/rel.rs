//! Lowering of relations.

use std::sync::Arc;

use arrow::array::{Array, RecordBatch, RecordBatchOptions};
use arrow::datatypes::Schema;
use datafusion_common::{Column, DFSchema, ScalarValue};
use datafusion_expr::TableSource;
use datafusion_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion_expr::utils::split_conjunction;
use datafusion_expr::{
    ColumnarValue, Distinct, Expr as Sql, FetchType, Filter, LogicalPlan, Projection, SkipType,
    Sort, SortExpr, TableScan, Union, Values,
};
use datafusion_physical_expr::create_physical_expr;
use engine::{Error, ExternalScan, ExternalSource, Key, Kind, Rel, Result, Scan, Type, Var};
use table::{ROW_COLUMN, Zone};

use crate::lower::call::failed;
use crate::lower::each_time::late;
use crate::lower::expr::Scope;
use crate::lower::lowering::{Lowered, Lowering, filtered, mapped, once, unsupported};
use crate::lower::series::SeriesScan;
use crate::lower::source::Source;
use crate::optimize::expressions::has_subquery;
use crate::optimize::working_table::WorkTable;
use crate::scan::files::external::Files;

/// Rows of a source of which it is not known how many there are.
const ROWS: f64 = 1_000.0;

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
            LogicalPlan::RecursiveQuery(query) => {
                let key = std::ptr::from_ref(query) as usize;
                match self.recursions.get(&key) {
                    Some(own) => {
                        let columns = plan.schema().as_arrow();
                        self.given_by((Arc::clone(own) as _, ROWS), columns)
                    }
                    None => unsupported("a recursive query that was not prepared"),
                }
            }
            LogicalPlan::Unnest(unnest) => self.unnest(unnest),
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
        // What is computed elsewhere is read there.
        let is_own = self.common.reading(&filter.input).is_none();
        if is_own && let Some(lowered) = self.as_of(filter)? {
            return Ok(lowered);
        }
        if is_own
            && !filter.predicate.is_volatile()
            && let Some(lowered) = self.first_rows(filter)?
        {
            return Ok(lowered);
        }
        let input = self.rel(&filter.input)?;
        self.filtered(filter, input)
    }

    /// The rows of a filter of these.
    pub(super) fn filtered(
        &mut self,
        filter: &Filter,
        (mut rel, vars): Lowered,
    ) -> Result<Lowered> {
        let scope = Scope {
            schema: filter.input.schema(),
            vars: &vars,
        };
        let parts = split_conjunction(&filter.predicate);
        let (each_time, plain): (Vec<&Sql>, Vec<&Sql>) =
            parts.into_iter().partition(|part| part.is_volatile());
        for predicate in plain {
            rel = filtered(rel, self.expr(predicate, scope)?);
        }
        for predicate in each_time {
            rel = self.chosen_each_time(rel, predicate, scope)?;
        }
        Ok((rel, vars))
    }

    fn projection(&mut self, projection: &Projection) -> Result<Lowered> {
        let input = self.rel(&projection.input)?;
        self.projected(projection, input)
    }

    /// What a projection makes of these rows.
    pub(super) fn projected(
        &mut self,
        projection: &Projection,
        (rel, vars): Lowered,
    ) -> Result<Lowered> {
        let scope = Scope {
            schema: projection.input.schema(),
            vars: &vars,
        };
        let (rel, out) = self.projected_without(rel, projection, &[], scope)?;
        Ok((rel, out.into_iter().flatten().collect()))
    }

    /// `rel` with what `projection` computes of it, but for the expressions at the places `without`, and the vector of each of the
    /// others.
    pub(super) fn projected_without(
        &mut self,
        rel: Rel,
        projection: &Projection,
        without: &[usize],
        scope: Scope<'_>,
    ) -> Result<(Rel, Vec<Option<Var>>)> {
        let wanted = (0..projection.expr.len()).filter(|place| !without.contains(place));
        let wanted: Vec<usize> = wanted.collect();
        let own: Vec<&Sql> = wanted
            .iter()
            .map(|place| &projection.expr[*place])
            .collect();
        let (rel, each_time) = self.each_time(rel, &own, scope)?;
        let mut exprs = Vec::new();
        let mut out = vec![None; projection.expr.len()];
        for ((place, e), known) in wanted.into_iter().zip(own).zip(each_time) {
            out[place] = Some(match known {
                Some(var) => var,
                None => {
                    let lowered = self.expr(e, scope)?;
                    self.var(lowered, projection.schema.field(place).name(), &mut exprs)
                }
            });
        }
        Ok((mapped(rel, exprs), out))
    }

    fn sort(&mut self, sort: &Sort) -> Result<Lowered> {
        if let LogicalPlan::Projection(projection) = sort.input.as_ref()
            && let late @ [_, ..] = &late(sort, projection)[..]
        {
            return self.sorted_before(sort, projection, late);
        }
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
            let value = |row: &Vec<Sql>| {
                let value = self.constant(&row[position])?;
                value.cast_to(field.data_type()).map_err(failed)
            };
            let values = values.values.iter().map(value);
            let values = values.collect::<Result<Vec<_>>>()?;
            columns.push(ScalarValue::iter_to_array(values).map_err(failed)?);
        }
        let schema = values.schema.inner().clone();
        self.given(RecordBatch::try_new(schema, columns)?)
    }

    /// The value of an expression that reads nothing.
    fn constant(&self, e: &Sql) -> Result<ScalarValue> {
        let e = match e {
            Sql::Alias(alias) => &alias.expr,
            e => e,
        };
        if let Sql::Literal(value, _) = e {
            return Ok(value.clone());
        }
        if has_subquery(e) || e.any_column_refs() {
            return unsupported(format!("the value {e}"));
        }
        let (schema, props) = (DFSchema::empty(), self.planner.execution_props());
        let context = PhysicalPlanningContext::default();
        let computed = create_physical_expr(e, &schema, props, &context).map_err(failed)?;
        let options = RecordBatchOptions::new().with_row_count(Some(1));
        let row = RecordBatch::try_new_with_options(Schema::empty().into(), vec![], &options)?;
        let value = computed.evaluate(&row).and_then(|value| match value {
            ColumnarValue::Scalar(value) => Ok(value),
            ColumnarValue::Array(values) => ScalarValue::try_from_array(&values, 0),
        });
        value.map_err(|e| Error::Call(Box::new(e)))
    }

    /// The rows of `batch`.
    pub(super) fn given(&mut self, batch: RecordBatch) -> Result<Lowered> {
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

    /// The numbers of a series. A filter of its scan is only a hint.
    fn series(&mut self, series: SeriesScan, scan: &TableScan) -> Result<Lowered> {
        let schema = Arc::clone(&series.schema);
        let positions = match &scan.projection {
            Some(positions) => positions.clone(),
            None => (0..schema.fields().len()).collect(),
        };
        let mut columns = Vec::with_capacity(positions.len());
        for position in positions {
            let field = schema.field(position);
            let Some(ty) = Type::of(field.data_type(), field.is_nullable()) else {
                return unsupported(format!("values of type {}", field.data_type()));
            };
            columns.push((self.query.add(field.name(), ty), position));
        }
        let vars = columns.iter().map(|(var, _)| *var).collect();
        let reading = ExternalScan {
            rows: series.count() as f64,
            source: Arc::new(series),
            columns,
        };
        Ok((Rel::Read(reading), vars))
    }

    /// The rows of a source, which have the columns of `schema`; about how many there are.
    fn given_by(
        &mut self,
        (source, rows): (Arc<dyn ExternalSource>, f64),
        schema: &Schema,
    ) -> Result<Lowered> {
        let mut columns = Vec::with_capacity(schema.fields().len());
        for (position, field) in schema.fields().iter().enumerate() {
            let Some(ty) = Type::of(field.data_type(), true) else {
                return unsupported(format!("values of type {}", field.data_type()));
            };
            columns.push((self.query.add(field.name(), ty), position));
        }
        let vars = columns.iter().map(|(var, _)| *var).collect();
        let reading = ExternalScan {
            source,
            columns,
            rows,
        };
        Ok((Rel::Read(reading), vars))
    }

    /// The rows of the working table of a recursive query.
    fn working(&mut self, table: &WorkTable, scan: &TableScan) -> Result<Lowered> {
        /// More than other relations have: their join tables, which serve for all rounds, are looked up.
        const MOST: f64 = 1e7;
        let source = Arc::new(table.working.clone());
        let whole = table.schema();
        let (reading, all) = self.given_by((source, MOST), &whole)?;
        let vars = match &scan.projection {
            Some(positions) => positions.iter().map(|at| all[*at]).collect(),
            None => all,
        };
        Ok((reading, vars))
    }

    fn scan(&mut self, scan: &TableScan) -> Result<Lowered> {
        // A fetch of the scan is only a hint: the limit stands above it.
        let key = std::ptr::from_ref(scan) as usize;
        if let Some(files) = self.files.get(&key) {
            return self.files(files);
        }
        if let Some(series) = SeriesScan::of(&scan.source) {
            return self.series(series, scan);
        }
        if let Some(table) = scan.source.downcast_ref::<WorkTable>() {
            return self.working(table, scan);
        }
        if let Some(outside) = self.outside.get(&key) {
            let source = (Arc::clone(outside) as _, outside.rows);
            return self.given_by(source, scan.projected_schema.as_arrow());
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
        let mut read = positions.clone();
        for (test, _) in &source.tests {
            let named = test.column_refs();
            let place = |column: &&Column| schema.index_of(&column.name).ok();
            read.extend(named.iter().filter_map(place));
        }
        let read = once(&read);
        let (all, row_ids) = self.scanned(&source, &read)?;
        let columns = all.iter().copied().zip(read.iter().copied());
        let columns = columns.filter(|(var, _)| row_ids != Some(*var)).collect();
        let vars = all[..positions.len()].to_vec();
        let own = source.provider.schema().project(&read)?;
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
            parts: vec![],
            row_ids,
            filters,
            shown,
            expected: source.expected,
        });
        for predicate in predicates {
            rel = filtered(rel, predicate);
        }
        Ok((rel, vars))
    }

    /// The vectors of the columns at `positions`, and which of them is that of the row ids.
    fn scanned(&mut self, source: &Source, positions: &[usize]) -> Result<(Vec<Var>, Option<Var>)> {
        let (mut vars, mut row_ids) = (Vec::with_capacity(positions.len()), None);
        for position in positions {
            vars.push(if source.provider.is_row_ids(*position) {
                let ty = Type::of_row_ids(source.provider.table());
                *row_ids.insert(self.query.add(ROW_COLUMN, ty))
            } else {
                self.stored_column(source, *position)?
            });
        }
        Ok((vars, row_ids))
    }

    /// A vector for the stored column at `position`, with all that the table knows of its values.
    fn stored_column(&mut self, source: &Source, position: usize) -> Result<Var> {
        let table = source.provider.table();
        let schema = table.schema();
        let Some(field) = schema.fields().get(position) else {
            return unsupported("a column that the table does not have");
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
        if let Some(labels) = labels.filter(|_| ty.kind == Kind::Text && !ty.is_opaque()) {
            ty = ty.coded(labels.clone());
        }
        Ok(self.query.add(field.name(), ty))
    }

    pub(super) fn keys(
        &mut self,
        rel: Rel,
        sorts: &[SortExpr],
        scope: Scope<'_>,
    ) -> Result<(Rel, Vec<Key>)> {
        let own: Vec<&Sql> = sorts.iter().map(|sort| &sort.expr).collect();
        let (rel, each_time) = self.each_time(rel, &own, scope)?;
        let mut exprs = Vec::new();
        let mut keys = Vec::with_capacity(sorts.len());
        for (sort, known) in sorts.iter().zip(each_time) {
            let var = match known {
                Some(var) => var,
                None => {
                    let e = self.expr(&sort.expr, scope)?;
                    self.var(e, sort.expr.to_string(), &mut exprs)
                }
            };
            keys.push(Key {
                var,
                descending: !sort.asc,
                nulls_first: sort.nulls_first,
            });
        }
        Ok((mapped(rel, exprs), keys))
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
            let differs = |own: &Type| {
                let is_opaque = own.is_opaque() || ty.is_opaque();
                own.kind != ty.kind
                    || own.scale() != ty.scale()
                    || is_opaque && !own.data.equals_datatype(&ty.data)
            };
            if types().any(differs) {
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
