//! The names of functions that statements cannot write, since they have a space: those that operators become.

/// The name of the function that `array[...]` becomes.
pub const MAKE: &str = "array of";
/// The name of the function that `a[1]` becomes.
pub const SUBSCRIPT: &str = "array item";
/// The name of the function that makes the value of `set a[1] = 2`.
pub const ASSIGN: &str = "array assigned";
/// The name of the function that makes the value of `set a[1:2] = '{3,4}'`.
pub const ASSIGN_SLICE: &str = "array slice assigned";
/// The name of the function that `a[1:2]` becomes.
pub const SLICE: &str = "array slice";
/// The name of the function that `with ordinality` takes its numbers from.
pub const ORDINALS: &str = "array ordinals";
/// The name of the function below `unnest`: an array of any dimensions as a flat list of its values, NULL as an empty list.
pub const VALUES: &str = "array values";
/// The name of the function that gives the values of `generate_series`.
pub const SERIES: &str = "array series";
/// The name of the function that gives the positions of `generate_subscripts`.
pub const SUBSCRIPTS: &str = "array subscripts";
/// The name of the function that gives all that `regexp_matches` finds, an array for each.
pub const MATCHES: &str = "array matches";
/// The name of the function that `regexp_match` becomes with a pattern that the planner's function does not take.
pub const FIRST_MATCH: &str = "array first match";
/// The name of the function that `row(...)` and `struct_pack(a := 1)` become.
pub const STRUCT: &str = "struct of";
/// The name of the function that `(s).a` becomes.
pub const FIELD: &str = "struct field";
/// The name of the function that takes one field of each struct in an array.
pub const FIELDS: &str = "struct fields of items";
/// The operator that stands for a row of a table, of a column that may have its name and of that name.
pub const WHOLE: &str = "whole row";
/// The operator that stands for a row of a table that an outer join may leave without one.
pub const WHOLE_OUTER: &str = "whole row of an outer join";
/// The name of the function that makes rows of the arrays of a function that gives several columns.
pub const RECORDS: &str = "array records";
/// The operator that `is distinct from` becomes: what plans operators fits their sides to each other.
pub const DISTINCT: &str = "IS DISTINCT FROM";
/// The operator that `is not distinct from` becomes.
pub const NOT_DISTINCT: &str = "IS NOT DISTINCT FROM";
/// What the operator begins with that marks a condition; behind it stands of which clause it is an argument.
pub const CONDITION: &str = "condition of ";
/// The name of the function that makes the share of a percentage, from 0 to 1: that of `tablesample bernoulli (10 * 2)`.
pub const SHARE: &str = "share of a sample";
/// What the name begins with that `using (a) as x` has among its columns in the place of `as x`.
pub const USING_ALIAS: &str = "alias of using: ";
/// The name of the function that marks the condition of an `asof join`, or the rows of its right side.
pub const AS_OF: &str = "as of";
/// The name of the function below the rows of `_pg_expandarray`.
pub const EXPANDED: &str = "array expanded";
/// The name by which `(_pg_expandarray(a)).n` is called until it becomes rows.
pub const PLACES: &str = "array places";
/// The name of the function that `map {'a': 1}` becomes.
pub const MAP: &str = "map of";
/// The name of the function by which maps are equal.
pub const MAPS_EQUAL: &str = "map eq";
