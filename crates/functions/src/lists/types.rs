//! The types of arrays and structs.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, ListArray};
use arrow::datatypes::{DataType, Field, Fields, TimeUnit};
use datafusion_common::{Result, plan_err};
use datafusion_expr::binary::type_union_resolution;
use messages::types::type_name;
use table::{is_enum, json_kind, map_parts, map_type, timetz_type, uuid_type};

use crate::arguments::is_text;
use crate::number_types;

/// The type of the items of an array.
pub fn item(ty: &DataType) -> Option<&DataType> {
    match ty {
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::FixedSizeList(item, _)
        | DataType::ListView(item)
        | DataType::LargeListView(item) => Some(item.data_type()),
        _ => None,
    }
}

/// Whether values of this type are arrays.
pub fn is_list(ty: &DataType) -> bool {
    item(ty).is_some()
}

/// The fields of a struct. JSON is none, nor is an enum.
pub fn fields(ty: &DataType) -> Option<&Fields> {
    match ty {
        DataType::Struct(fields) if json_kind(ty).is_none() && !is_enum(ty) => Some(fields),
        _ => None,
    }
}

/// Whether values of this type are structs.
pub fn is_struct(ty: &DataType) -> bool {
    fields(ty).is_some()
}

/// Whether values of this type are maps.
pub fn is_map(ty: &DataType) -> bool {
    map_parts(ty).is_some()
}

/// Whether values of this type are arrays, structs, maps, uuids, enums, times with a zone or JSON, which DataFusion casts
/// otherwise or not at all.
pub fn is_special(ty: &DataType) -> bool {
    is_list(ty)
        || *ty == uuid_type()
        || *ty == timetz_type()
        || matches!(ty, DataType::Struct(_) | DataType::Map(..))
}

/// Whether `is` holds for a type, or for one of those within it.
pub fn has(ty: &DataType, is: fn(&DataType) -> bool) -> bool {
    is(ty)
        || item(ty).is_some_and(|item| has(item, is))
        || fields(ty).is_some_and(|all| all.iter().any(|field| has(field.data_type(), is)))
        || map_parts(ty).is_some_and(|(key, value)| has(key, is) || has(value, is))
}

/// Whether the fields are those of a row without names, which are called `f1`, `f2` and so on.
pub(crate) fn is_unnamed(fields: &Fields) -> bool {
    let mut numbered = fields.iter().enumerate();
    numbered.all(|(at, field)| *field.name() == format!("f{}", at + 1))
}

/// Arrays of these items.
pub fn list_of(item: DataType) -> DataType {
    DataType::List(Arc::new(Field::new_list_field(item, true)))
}

/// The one type in which arrays and structs of a kind are computed with: with texts and bytes as views, `item` as the name
/// of the field of an array, and fields of structs that may be NULL.
pub fn plain(ty: &DataType) -> DataType {
    match ty {
        DataType::Utf8 | DataType::LargeUtf8 => DataType::Utf8View,
        DataType::Binary | DataType::LargeBinary => DataType::BinaryView,
        DataType::Dictionary(_, value) => plain(value),
        DataType::Map(..) => match map_parts(ty) {
            Some((key, value)) => map_type(plain(key), plain(value)),
            None => ty.clone(),
        },
        ty => match (item(ty), fields(ty)) {
            (Some(item), _) => list_of(plain(item)),
            (_, Some(fields)) => {
                let of =
                    |field: &Arc<Field>| Field::new(field.name(), plain(field.data_type()), true);
                DataType::Struct(fields.iter().map(of).collect())
            }
            _ => ty.clone(),
        },
    }
}

/// The number of dimensions of arrays of this type; 0 for what is no array.
pub fn dimensions(ty: &DataType) -> usize {
    item(ty).map_or(0, |item| 1 + dimensions(item))
}

/// The type of the values in an array, however many dimensions it has.
pub(crate) fn base(ty: &DataType) -> &DataType {
    item(ty).map_or(ty, base)
}

/// The type that values of these types have together, as items of an array.
///
/// # Errors
/// If there is none.
pub fn together(types: &[DataType]) -> Result<DataType> {
    let known = types.iter().filter(|ty| base(ty) != &DataType::Null);
    let known: Vec<DataType> = known.map(plain).collect();
    let Some(first) = known.first() else {
        // Only NULLs: an array of texts, as in PostgreSQL.
        let depth = types.iter().map(dimensions).max().unwrap_or(0);
        return Ok((0..depth).fold(DataType::Utf8View, |ty, _| list_of(ty)));
    };
    let refused = |other: &DataType| {
        plan_err!(
            "ARRAY types {} and {} cannot be matched",
            type_name(first),
            type_name(other)
        )
    };
    if known.iter().all(|ty| ty == first) {
        return Ok(first.clone());
    }
    let depth = dimensions(first);
    if let Some(maps) = maps_together(&known)? {
        return Ok(maps);
    }
    if is_struct(base(first)) {
        let mut others = known.iter();
        if others.any(|other| dimensions(other) != depth) {
            return refused(&known[1]);
        }
        let bases: Vec<&DataType> = known.iter().map(base).collect();
        return Ok((0..depth).fold(structs_together(&bases)?, |ty, _| list_of(ty)));
    }
    let text = is_text(base(first));
    for other in &known {
        let numbers = base(first).is_numeric() == base(other).is_numeric();
        if dimensions(other) != depth || is_text(base(other)) != text || !numbers {
            return refused(other);
        }
    }
    let bases: Vec<DataType> = known.iter().map(|ty| base(ty).clone()).collect();
    match number_types::united(&bases).or_else(|| type_union_resolution(&bases)) {
        Some(base) => Ok((0..depth).fold(plain(&base), |ty, _| list_of(ty))),
        None => refused(&known[1]),
    }
}

/// The special type that values of these types are read as together: that of the first which is special; of rows one with names for its
/// fields, if there is one; and of arrays with items of several types the one that all of them become. `None` if none is special.
///
/// # Errors
/// If arrays do not go together.
pub fn special_together<'t>(
    types: impl IntoIterator<Item = &'t DataType>,
) -> Result<Option<DataType>> {
    let types = types.into_iter().filter(|ty| is_special(ty));
    let types: Vec<DataType> = types.cloned().collect();
    let Some(first) = types.first() else {
        return Ok(None);
    };
    if types.iter().all(is_list) && types.iter().any(|ty| ty != first) {
        return together(&types).map(Some);
    }
    let has_names = |ty: &&DataType| fields(ty).is_some_and(|fields| !is_unnamed(fields));
    let named = types.iter().find(has_names).filter(|_| is_struct(first));
    Ok(Some(named.unwrap_or(first).clone()))
}

/// The same for maps: keys and values on their own. `None` if the first is no map.
fn maps_together(types: &[DataType]) -> Result<Option<DataType>> {
    if !types.first().is_some_and(is_map) {
        return Ok(None);
    }
    let (mut keys, mut values) = (Vec::new(), Vec::new());
    for ty in types {
        let Some((key, value)) = map_parts(ty) else {
            return plan_err!(
                "types {} and {} cannot be matched",
                type_name(&types[0]),
                type_name(ty)
            );
        };
        keys.push(key.clone());
        values.push(value.clone());
    }
    Ok(Some(map_type(together(&keys)?, together(&values)?)))
}

/// The same for structs: field by field. The names are those of the first that has some.
fn structs_together(types: &[&DataType]) -> Result<DataType> {
    let all: Option<Vec<&Fields>> = types.iter().map(|ty| fields(ty)).collect();
    let width = |fields: &&Fields| fields.len() == all.as_ref().map_or(0, |all| all[0].len());
    let Some(all) = all.as_ref().filter(|all| all.iter().all(width)) else {
        let other = types
            .iter()
            .find(|ty| **ty != types[0])
            .unwrap_or(&types[0]);
        return plan_err!(
            "types {} and {} cannot be matched",
            type_name(types[0]),
            type_name(other)
        );
    };
    let named = all.iter().find(|fields| !is_unnamed(fields));
    let fields = named
        .unwrap_or(&all[0])
        .iter()
        .enumerate()
        .map(|(at, field)| {
            let types: Vec<DataType> = all.iter().map(|own| own[at].data_type().clone()).collect();
            Ok(Field::new(field.name(), together(&types)?, true))
        });
    Ok(DataType::Struct(fields.collect::<Result<Fields>>()?))
}

/// The array that a function takes as its argument `at`.
///
/// # Errors
/// If it is none.
pub(crate) fn list_argument(name: &str, types: &[DataType], at: usize) -> Result<DataType> {
    match types.get(at) {
        Some(DataType::Null) => Ok(list_of(DataType::Utf8View)),
        Some(ty) if is_list(ty) => Ok(plain(ty)),
        Some(_) => {
            let names: Vec<String> = types.iter().map(type_name).collect();
            plan_err!(
                "function {name}({}) does not exist: its argument {} is an array",
                names.join(", "),
                at + 1
            )
        }
        None => plan_err!("function {name} takes an array"),
    }
}

/// The type of a constant in quotes beside values of this type, such as arrays: the digits of other decimals and seconds say nothing
/// of its own.
pub fn quoted_beside(ty: &DataType) -> DataType {
    match ty {
        DataType::Decimal128(_, scale) => DataType::Decimal128(38, (*scale).max(10)),
        DataType::Decimal256(_, scale) => DataType::Decimal256(76, (*scale).max(10)),
        DataType::Timestamp(TimeUnit::Second | TimeUnit::Millisecond, zone) => {
            DataType::Timestamp(TimeUnit::Microsecond, zone.clone())
        }
        ty => match item(ty) {
            Some(item) => list_of(quoted_beside(item)),
            None => ty.clone(),
        },
    }
}

/// The type of an array that these values may be items of: if it is a constant in quotes, they say what it is read as.
pub(crate) fn list_beside(list: &DataType, values: &[DataType]) -> DataType {
    if !is_text(list) || *list == DataType::Null {
        return list.clone();
    }
    match values.iter().find(|value| !is_text(value)) {
        // It is none of arrays.
        Some(value) if is_list(value) => list.clone(),
        Some(value) => list_of(quoted_beside(&plain(value))),
        None => list_of(DataType::Utf8View),
    }
}

/// An array and an item of it, of one type: `(array, item)`. What the array is not known to be, the item says.
///
/// # Errors
/// If they do not go together.
pub(crate) fn list_and_item(
    name: &str,
    list: &DataType,
    value: &DataType,
) -> Result<(DataType, DataType)> {
    if *list == DataType::Null && *value != DataType::Null {
        let item = plain(value);
        return Ok((list_of(item.clone()), item));
    }
    let list = list_beside(list, std::slice::from_ref(value));
    let list = list_argument(name, &[list], 0)?;
    let own = item(&list).cloned().unwrap_or(DataType::Null);
    if is_text(value) && !is_text(&own) {
        // A constant, which is read as an item.
        return Ok(if *value == DataType::Null {
            (list, own)
        } else {
            (quoted_beside(&list), quoted_beside(&own))
        });
    }
    let both = together(&[own, value.clone()])?;
    Ok((list_of(both.clone()), both))
}

/// An error that names how many arguments a function takes.
///
/// # Errors
/// If `types` are not so many.
pub(crate) fn count(
    name: &str,
    types: &[DataType],
    wanted: std::ops::RangeInclusive<usize>,
) -> Result<()> {
    if wanted.contains(&types.len()) {
        return Ok(());
    }
    plan_err!("function {name} does not take {} arguments", types.len())
}

/// The arrays of an argument.
pub fn lists(array: &ArrayRef) -> &ListArray {
    array.as_list::<i32>()
}

/// The positions of the items of a row among all items.
pub fn range(lists: &ListArray, row: usize) -> std::ops::Range<usize> {
    let ends = lists.value_offsets();
    if lists.is_null(row) {
        return 0..0;
    }
    ends[row] as usize..ends[row + 1] as usize
}
