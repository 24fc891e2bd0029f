//! What a table is called, its columns with their types, and its declared keys; sequences.

mod comments;
mod definition;
mod domains;
mod enums;
mod infinite;
mod names;
mod normalise;
mod rights;
mod rounding;
mod sequence;
mod special;
mod types;

pub use comments::Comments;
pub use definition::{
    Action, Check, Column, Deferral, Definition, ForeignKey, Generated, Index, IndexColumn, Key,
    MAX_COLUMNS, OnCommit, Rule, SECOND_DIGITS, may_refer, referred_key,
};
pub use domains::Domain;
pub(crate) use enums::replaced;
pub use enums::{EnumType, Label, enum_name, enum_type, enum_within, is_enum, places};
pub use infinite::{Infinities, Infinity, cast_moments, finite_part, has_infinite, infinity_at};
pub use names::{WITHIN, base_of, schema_of, titled, within};
pub use normalise::normalise;
pub use rights::{Acl, Grant, Privileges, Role};
pub use rounding::to_second_digits;
pub use sequence::{Position, Sequence};
pub use special::{
    NotFinite, decimal_text, is_wide, not_finite, only_numbers, refuse_not_finite, rescaled,
    with_not_finite,
};
pub use types::{
    DOMAIN, JsonKind, is_map_key, json_kind, json_type, jsonb_type, map_parts, map_type,
    stored_type, timetz_type, uuid_type,
};
