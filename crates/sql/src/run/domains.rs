//! The conditions of domains, and of the fields of composite types: values of columns and casts are tested by them.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, UInt32Array};
use arrow::compute::{filter, is_not_null, take};
use arrow::datatypes::{DataType, Field, Schema};
use catalog::search_path::SearchPath;
use datafusion_common::{Result as DataFusionResult, ScalarValue, plan_err};
use datafusion_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use futures::FutureExt;
use futures::future::BoxFuture;
use sqlparser::ast::Ident;
use syntax::domains::VALUE;
use syntax::expression::expression;
use syntax::names::{base, quoted};
use table::{Domain, Tables};

use crate::bind::composites::{Tested, tested};
use crate::bind::domain_casts::{Cast, DomainCasts, function_name};
use crate::error::{Error, Result};
use crate::functions::arguments::strings;
use crate::functions::convert::convert;
use crate::functions::lists::types::{dimensions, is_list, list_of, lists, range};
use crate::functions::structs::values as field_values;
use crate::run::context::StatementContext;
use crate::run::row_values::RowValues;

/// What the rows are called that conditions are compiled over.
const ROWS: &str = "domain";

/// The conditions of a domain and of those that it was made from, ready to test values.
#[derive(Clone, Debug)]
pub(crate) struct Conditions {
    /// The name of the domain in the catalog.
    name: String,
    /// The domain, as messages call it.
    title: String,
    schema: Arc<Schema>,
    not_null: bool,
    /// The names of the checks.
    names: Vec<String>,
    checks: Option<RowValues>,
    /// Of a composite type, and of a domain over one: what is tested of its fields, by place.
    fields: Vec<(usize, OfField)>,
}

/// What is tested of the values of a field.
#[derive(Clone, Debug)]
enum OfField {
    Length(&'static str, u64),
    Named(Conditions),
}

impl Conditions {
    /// The conditions of the domain called `name` in the catalog.
    ///
    /// # Errors
    /// If there is none; as [`Conditions::over`].
    pub(crate) async fn new(context: &mut StatementContext, name: &str) -> Result<Conditions> {
        let tables = Arc::clone(&context.tables);
        let lineage = tables.lineage(name);
        let lineage: Vec<&Domain> = lineage.into_iter().map(Arc::as_ref).collect();
        Conditions::over(context, &lineage).await
    }

    /// Those of the last of these domains, each of which was made from the one before.
    ///
    /// # Errors
    /// If a check is no condition on a value.
    pub(crate) async fn over(
        context: &mut StatementContext,
        lineage: &[&Domain],
    ) -> Result<Conditions> {
        let Some(own) = lineage.last() else {
            return Err(Error::Defect {
                message: "a column is of a domain that is not there".into(),
            });
        };
        let mut fields = Vec::new();
        for own in lineage {
            fields.extend(of_fields(context, own).await?);
        }
        let field = Field::new(VALUE, own.data_type.clone(), true);
        let schema = Arc::new(Schema::new(vec![field]));
        let (mut names, mut items) = (Vec::new(), Vec::new());
        for domain in lineage {
            let mut checks: Vec<_> = domain.checks.iter().collect();
            // The order in which PostgreSQL tests them.
            checks.sort_by(|a, b| a.name.cmp(&b.name));
            for check in checks {
                names.push(check.name.clone());
                items.push(expression(&check.text)?);
            }
        }
        let mut conditions = Conditions {
            name: own.name.clone(),
            title: titled(&context.tables, &context.path, &own.name),
            schema: Arc::clone(&schema),
            not_null: lineage.iter().any(|domain| domain.not_null),
            names,
            checks: None,
            fields,
        };
        if items.is_empty() {
            return Ok(conditions);
        }
        let rows = Ident::with_quote('"', ROWS);
        let checks = RowValues::conditions(context, (&rows, &schema), None, items, "CHECK").await;
        let checks = checks.map_err(|e| match e {
            Error::Unsupported { message } => {
                Error::unsupported(format!("check constraint of a domain: {message}"))
            }
            other => other,
        })?;
        conditions.checks = Some(checks);
        Ok(conditions)
    }

    /// That values of the type behind the domain, or the items of arrays of these, are values of it.
    ///
    /// # Errors
    /// [`Error::Constraint`] names the domain and the condition; those of the conditions.
    pub(crate) fn test(&self, values: &ArrayRef) -> Result<()> {
        if dimensions(values.data_type()) > dimensions(self.schema.field(0).data_type()) {
            return self.test(&items(values)?);
        }
        if self.not_null && values.logical_null_count() > 0 {
            return Err(Error::Constraint {
                code: "23502",
                message: format!("domain {} does not allow null values", self.title),
            });
        }
        if !self.fields.is_empty() {
            let there = filter(values, &is_not_null(values)?)?;
            for (at, own) in &self.fields {
                own.test(&field_values(&there, *at)?)?;
            }
        }
        let Some(checks) = &self.checks else {
            return Ok(());
        };
        let rows = RecordBatch::try_new(Arc::clone(&self.schema), vec![Arc::clone(values)])?;
        for (name, found) in self.names.iter().zip(checks.evaluate(&rows)?) {
            let Some(found) = found.as_boolean_opt() else {
                continue;
            };
            let failed = |row: usize| found.is_valid(row) && !found.value(row);
            if (0..found.len()).any(failed) {
                return Err(Error::Constraint {
                    code: "23514",
                    message: format!(
                        "value for domain {} violates check constraint \"{name}\"",
                        self.title
                    ),
                });
            }
        }
        Ok(())
    }
}

impl Conditions {
    /// The same, whose messages call domains as they are called where names are looked up in `path`.
    fn titled(mut self, tables: &Tables, path: &SearchPath) -> Conditions {
        self.title = titled(tables, path, &self.name);
        let fields = self.fields.into_iter();
        self.fields = fields
            .map(|(at, own)| match own {
                OfField::Named(own) => (at, OfField::Named(own.titled(tables, path))),
                own @ OfField::Length(..) => (at, own),
            })
            .collect();
        self
    }
}

impl OfField {
    fn test(&self, values: &ArrayRef) -> Result<()> {
        match self {
            OfField::Named(own) => own.test(values),
            OfField::Length(..) if is_list(values.data_type()) => self.test(&items(values)?),
            OfField::Length(title, length) => {
                let longest = strings(values)?;
                let mut texts = longest.iter().flatten();
                if texts.any(|text| text.chars().count() as u64 > *length) {
                    return Err(Error::coded(
                        "22001",
                        format!("value too long for type {title}({length})"),
                    ));
                }
                Ok(())
            }
        }
    }
}

/// The items of arrays, of those that are NULL none.
fn items(values: &ArrayRef) -> Result<ArrayRef> {
    let own = lists(values);
    let places = (0..own.len()).flat_map(|row| range(own, row));
    let places: UInt32Array = places.map(|at| at as u32).collect();
    Ok(take(own.values(), &places, None)?)
}

/// What is tested of the fields of a composite type, by place.
fn of_fields<'c>(
    context: &'c mut StatementContext,
    own: &'c Domain,
) -> BoxFuture<'c, Result<Vec<(usize, OfField)>>> {
    async move {
        let mut found = Vec::new();
        for (at, own) in tested(own, &context.tables)? {
            let own = match own {
                Tested::Length(title, length) => OfField::Length(title, length),
                Tested::Named(name) => OfField::Named(Conditions::new(context, &name).await?),
            };
            found.push((at, own));
        }
        Ok(found)
    }
    .boxed()
}

/// What a domain is called where names are looked up in `path`.
fn titled(tables: &Tables, path: &SearchPath, name: &str) -> String {
    if path.resolve_type(tables, base(name)) == name {
        quoted(base(name))
    } else {
        quoted(name)
    }
}

/// The function that a cast to a domain calls: its value, once it is tested.
#[derive(Debug)]
struct OfDomain {
    name: String,
    /// The domain and those that it was made from.
    lineage: Vec<Arc<Domain>>,
    data_type: DataType,
    conditions: Conditions,
    signature: Signature,
}

impl PartialEq for OfDomain {
    fn eq(&self, other: &OfDomain) -> bool {
        self.lineage == other.lineage && self.data_type == other.data_type
    }
}

impl Eq for OfDomain {}

impl Hash for OfDomain {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl ScalarUDFImpl for OfDomain {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> DataFusionResult<DataType> {
        Ok(self.data_type.clone())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DataFusionResult<ColumnarValue> {
        let [arg] = &args.args[..] else {
            return plan_err!("a cast takes one value");
        };
        let constant = matches!(arg, ColumnarValue::Scalar(_));
        let values = arg.to_array(if constant { 1 } else { args.number_rows })?;
        let values = convert(&values, &self.data_type)?;
        self.conditions.test(&values)?;
        if constant {
            let value = ScalarValue::try_from_array(&values, 0)?;
            return Ok(ColumnarValue::Scalar(value));
        }
        Ok(ColumnarValue::Array(values))
    }
}

impl StatementContext {
    /// The functions for casts to these domains and composite types, and to arrays of the latter.
    ///
    /// # Errors
    /// As [`Conditions::new`].
    pub(super) fn domains(&self, names: Cast) -> BoxFuture<'_, Result<DomainCasts>> {
        async move {
            let mut casts = DomainCasts::new();
            if names.is_empty() {
                return Ok(casts);
            }
            let mut context = self.kept();
            for (name, dimensions) in names {
                let lineage = self.tables.lineage(&name);
                let lineage: Vec<Arc<Domain>> = lineage.into_iter().map(Arc::clone).collect();
                let conditions = Conditions::new(&mut context, &name).await?;
                let conditions = conditions.titled(&self.tables, &self.path);
                let Some(own) = lineage.last() else {
                    continue;
                };
                let function = function_name(&name, dimensions);
                let cast = OfDomain {
                    name: function.clone(),
                    data_type: (0..dimensions).fold(own.data_type.clone(), |ty, _| list_of(ty)),
                    lineage,
                    conditions,
                    // A domain may be changed.
                    signature: Signature::any(1, Volatility::Stable),
                };
                casts.insert(function, Arc::new(ScalarUDF::from(cast)));
            }
            Ok(casts)
        }
        .boxed()
    }
}
