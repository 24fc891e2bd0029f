//! What aggregates have gathered in no order, put in theirs: for groups whose aggregates want several.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, ListArray, StringViewBuilder, UInt32Array};
use arrow::buffer::OffsetBuffer;
use arrow::compute::{SortOptions, cast, take};
use arrow::datatypes::{DataType, Field};
use arrow::row::{RowConverter, Rows, SortField};
use datafusion_common::{Result, internal_err, plan_err};
use datafusion_expr::SortExpr;

use crate::lists::types::{fields, item, list_of, lists, range};
use crate::own::Own;

/// The name of the function that takes the first field of each struct in an array, in the order of the fields behind it, as
/// an array.
pub const ITEMS: &str = "items in order";
/// The name of the function that joins the texts of the structs in an array to one text, in the order of their keys; each has
/// what stands before it unless it is the first.
pub const TEXT: &str = "text in order";
/// The name of the function that sorts the items of an array.
pub const VALUES: &str = "values in order";
/// The name of the function that sorts the texts in an array and joins them, with a text between them.
pub const TEXTS: &str = "texts in order";

/// How keys are sorted, as a text: two letters for each.
pub fn spelled(keys: &[SortExpr]) -> String {
    let letters = |key: &SortExpr| {
        let order = if key.asc { 'a' } else { 'd' };
        [order, if key.nulls_first { 'f' } else { 'l' }]
    };
    keys.iter().flat_map(letters).collect()
}

/// Arrays of what the first field of the structs is.
fn of_first(types: &[DataType]) -> Result<DataType> {
    match types.first().and_then(item).and_then(fields) {
        Some(fields) if !fields.is_empty() => Ok(list_of(fields[0].data_type().clone())),
        _ => plan_err!("expected an array of structs"),
    }
}

pub(super) fn all() -> Vec<Own> {
    let same = |types: &[DataType]| Ok(types.to_vec());
    let text = |_: &[DataType]| Ok(DataType::Utf8View);
    vec![
        Own::new(ITEMS, same, of_first, |args, _| {
            let all = Gathered::of_structs(args, 1)?;
            all.items(&all.columns[0])
        }),
        Own::new(TEXT, same, text, |args, _| {
            let all = Gathered::of_structs(args, 2)?;
            all.text(&all.columns[0], |row| {
                let before = all.columns[1].as_string_view();
                before.is_valid(row).then(|| before.value(row))
            })
        }),
        Own::new(
            VALUES,
            same,
            |types| Ok(types[0].clone()),
            |args, _| {
                let all = Gathered::of_values(args)?;
                all.items(&all.columns[0])
            },
        ),
        Own::new(TEXTS, same, text, |args, _| {
            let all = Gathered::of_values(args)?;
            let between = cast(&args[2], &DataType::Utf8View)?;
            let between = between.as_string_view();
            let between = (!between.is_empty() && between.is_valid(0)).then(|| between.value(0));
            let texts = cast(&all.columns[0], &DataType::Utf8View)?;
            all.text(&texts, |_| between)
        }),
    ]
}

/// Arrays, and the order of their items.
struct Gathered<'a> {
    lists: &'a ListArray,
    /// The fields of the items, or these.
    columns: Vec<ArrayRef>,
    /// What the items are ordered by; `None` if they stay as they are.
    keys: Option<Rows>,
}

/// The order of each key, from the constant that says so.
fn options(spec: &ArrayRef) -> Result<Vec<SortOptions>> {
    let spec = cast(spec, &DataType::Utf8View)?;
    let spec = spec.as_string_view();
    let letters = if spec.is_empty() { "" } else { spec.value(0) };
    let pairs = letters.as_bytes().chunks(2);
    let options = pairs.map(|pair| SortOptions {
        descending: pair.first() == Some(&b'd'),
        nulls_first: pair.get(1) == Some(&b'f'),
    });
    Ok(options.collect())
}

impl<'a> Gathered<'a> {
    /// The fields of structs from `first` on are keys.
    fn of_structs(args: &'a [ArrayRef], first: usize) -> Result<Gathered<'a>> {
        let lists = lists(&args[0]);
        let Some(structs) = lists.values().as_struct_opt() else {
            return internal_err!("expected an array of structs");
        };
        let columns = structs.columns().to_vec();
        let keys = columns.get(first..).unwrap_or_default().to_vec();
        Gathered::sorted(lists, columns, &keys, &args[1])
    }

    fn of_values(args: &'a [ArrayRef]) -> Result<Gathered<'a>> {
        let lists = lists(&args[0]);
        let values = Arc::clone(lists.values());
        Gathered::sorted(lists, vec![Arc::clone(&values)], &[values], &args[1])
    }

    fn sorted(
        lists: &'a ListArray,
        columns: Vec<ArrayRef>,
        keys: &[ArrayRef],
        spec: &ArrayRef,
    ) -> Result<Gathered<'a>> {
        let options = options(spec)?;
        let field = |(key, options): (&ArrayRef, SortOptions)| {
            SortField::new_with_options(key.data_type().clone(), options)
        };
        let fields = keys.iter().zip(options).map(field).collect();
        // Of no columns there are no rows.
        let keys = match keys {
            [] => None,
            keys => Some(RowConverter::new(fields)?.convert_columns(keys)?),
        };
        Ok(Gathered {
            lists,
            columns,
            keys,
        })
    }

    /// The positions of the items of a row in their order; those of equal keys stay as they were.
    fn order(&self, row: usize) -> Vec<u32> {
        let positions = range(self.lists, row).filter_map(|at| u32::try_from(at).ok());
        let mut positions: Vec<u32> = positions.collect();
        if let Some(keys) = &self.keys {
            positions.sort_by(|a, b| keys.row(*a as usize).cmp(&keys.row(*b as usize)));
        }
        positions
    }

    fn items(&self, of: &ArrayRef) -> Result<ArrayRef> {
        let mut taken: Vec<u32> = Vec::with_capacity(of.len());
        let mut lengths = Vec::with_capacity(self.lists.len());
        for row in 0..self.lists.len() {
            let order = self.order(row);
            lengths.push(order.len());
            taken.extend(order);
        }
        let values = take(of, &UInt32Array::from(taken), None)?;
        let field = Arc::new(Field::new_list_field(of.data_type().clone(), true));
        let offsets = OffsetBuffer::from_lengths(lengths);
        let nulls = self.lists.nulls().cloned();
        Ok(Arc::new(ListArray::try_new(field, offsets, values, nulls)?))
    }

    /// Those of the texts that are none of NULL one behind the other, each but the first behind what `before` says; NULL if
    /// there are none.
    fn text<'t>(
        &self,
        of: &ArrayRef,
        before: impl Fn(usize) -> Option<&'t str>,
    ) -> Result<ArrayRef> {
        let texts = of.as_string_view();
        let mut all = StringViewBuilder::with_capacity(self.lists.len());
        let mut whole = String::new();
        for row in 0..self.lists.len() {
            whole.clear();
            let mut any = false;
            for at in self.order(row) {
                let at = at as usize;
                if texts.is_null(at) {
                    continue;
                }
                if any {
                    whole.push_str(before(at).unwrap_or_default());
                }
                whole.push_str(texts.value(at));
                any = true;
            }
            all.append_option(any.then_some(whole.as_str()));
        }
        Ok(Arc::new(all.finish()))
    }
}
