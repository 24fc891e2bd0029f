//! Random tables: types, NULLs, duplicates, skew, extreme values, and how their rows lie in the store.

use std::sync::Arc;

use arrow::array::*;
use arrow::datatypes::{DataType, Field, Schema};
use arrow::record_batch::RecordBatch;

use crate::random::Random;

/// Types as queries see them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    Int,
    Big,
    Decimal,
    Wide,
    Float,
    Date,
    Text,
    Bool,
}

const TYPES: [Type; 8] = [
    Type::Int,
    Type::Big,
    Type::Decimal,
    Type::Wide,
    Type::Float,
    Type::Date,
    Type::Text,
    Type::Bool,
];

#[derive(Clone, Debug)]
pub struct Column {
    pub name: String,
    pub ty: Type,
    /// About how many different values there are.
    pub values: usize,
    /// Whether sums of it may leave their type.
    pub extreme: bool,
}

#[derive(Clone, Debug)]
pub struct Table {
    pub name: String,
    pub rows: usize,
    /// The first is `rid`, the number of the row.
    pub columns: Vec<Column>,
    pub batch: RecordBatch,
    /// Rows that are loaded besides and deleted again, so that the others come to lie in blocks.
    pub filler: usize,
}

/// Rows and filler of the tables of a set: in the tail, in blocks (with texts coded where they repeat), in two
/// blocks.
const SIZES: [(&str, usize, usize); 7] = [
    ("none", 0, 0),
    ("one", 1, 0),
    ("few", 40, 0),
    ("packed", 45, 16_500),
    ("many", 400, 0),
    ("blocks", 1_500, 16_000),
    ("large", 66_500, 0),
];

/// The tables of a set.
pub fn tables(seed: u64) -> Vec<Table> {
    let mut random = Random::new(seed);
    SIZES
        .iter()
        .map(|(name, rows, filler)| table(&mut random, name, *rows, *filler))
        .collect()
}

fn table(random: &mut Random, name: &str, rows: usize, filler: usize) -> Table {
    let rid: ArrayRef = Arc::new(Int64Array::from_iter_values(
        (0..rows as i64).chain((1..=filler as i64).map(|i| -i)),
    ));
    let mut columns = vec![Column {
        name: "rid".into(),
        ty: Type::Big,
        values: rows,
        extreme: false,
    }];
    let (mut arrays, mut fields) = (vec![rid], vec![Field::new("rid", DataType::Int64, false)]);
    // Every type once, some twice.
    let mut types = TYPES.to_vec();
    types.extend((0..4).map(|_| *random.one(&TYPES)));
    for (number, ty) in types.into_iter().enumerate() {
        let nulls = *random.one(&[0, 0, 5, 30, 95]);
        let values = *random.one(&[1, 3, 3, 12, 12, rows.max(1) * 2]);
        let extreme = values > 3 && random.chance(20);
        let skew = random.chance(30);
        let shape = Shape {
            rows: rows + filler,
            nulls,
            values,
            extreme,
            skew,
        };
        let array = shape.array(random, ty);
        let letter = format!("{ty:?}")[..1].to_lowercase();
        let name = format!("{letter}{number}");
        fields.push(Field::new(&name, array.data_type().clone(), nulls > 0));
        columns.push(Column {
            name,
            ty,
            values,
            extreme,
        });
        arrays.push(array);
    }
    Table {
        name: name.into(),
        rows,
        columns,
        batch: RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).unwrap(),
        filler,
    }
}

impl Table {
    pub fn create(&self) -> String {
        let fields = self.batch.schema();
        let columns: Vec<String> = fields
            .fields()
            .iter()
            .map(|field| {
                let null = if field.is_nullable() { "" } else { " not null" };
                format!("{} {}{null}", field.name(), sql_type(field.data_type()))
            })
            .collect();
        format!("create table {} ({})", self.name, columns.join(", "))
    }
}

fn sql_type(data: &DataType) -> String {
    match data {
        DataType::Int32 => "integer".into(),
        DataType::Int64 => "bigint".into(),
        DataType::Decimal128(p, s) => format!("decimal({p},{s})"),
        DataType::Float64 => "double".into(),
        DataType::Date32 => "date".into(),
        DataType::Boolean => "boolean".into(),
        _ => "varchar".into(),
    }
}

/// How the values of a column are distributed.
struct Shape {
    rows: usize,
    /// Percent.
    nulls: u64,
    values: usize,
    extreme: bool,
    skew: bool,
}

impl Shape {
    /// For each row which of the values it has, counted from 0.
    fn picks(&self, random: &mut Random) -> Vec<Option<usize>> {
        (0..self.rows)
            .map(|_| {
                if random.chance(self.nulls) {
                    return None;
                }
                let common = self.skew && random.chance(70);
                Some(if common { 0 } else { random.below(self.values) })
            })
            .collect()
    }

    #[expect(clippy::too_many_lines, reason = "each type has its own values")]
    fn array(&self, random: &mut Random, ty: Type) -> ArrayRef {
        let offset = random.within(-3, 3);
        let extreme = self.extreme;
        let end = |pick: usize| extreme && pick < 4;
        let picks = self.picks(random);
        let each = |f: &dyn Fn(usize) -> i64| -> Vec<Option<i64>> {
            picks.iter().map(|p| p.map(f)).collect()
        };
        match ty {
            Type::Int => {
                let ends = [i32::MAX, i32::MIN, i32::MAX - 1, 0];
                let value = |p: usize| {
                    if end(p) {
                        i64::from(ends[p])
                    } else {
                        p as i64 + offset
                    }
                };
                let values = each(&value).into_iter().map(|v| v.map(|v| v as i32));
                Arc::new(values.collect::<Int32Array>())
            }
            Type::Big => {
                let ends = [i64::MAX, i64::MIN, i64::MIN + 1, 1 << 53];
                let value = |p: usize| if end(p) { ends[p] } else { p as i64 + offset };
                Arc::new(Int64Array::from(each(&value)))
            }
            Type::Decimal => {
                let most = 999_999_999_999;
                let ends = [most, -most, 1, 0];
                let value = |p: usize| {
                    if end(p) {
                        ends[p]
                    } else {
                        (p as i64 + offset) * 25
                    }
                };
                let values = each(&value).into_iter().map(|v| v.map(i128::from));
                let array = values.collect::<Decimal128Array>();
                Arc::new(array.with_precision_and_scale(12, 2).unwrap())
            }
            Type::Wide => {
                let most = 10i128.pow(30) - 1;
                let ends = [most, -most, i64::MAX.into(), 1];
                let values = picks.iter().map(|p| {
                    p.map(|p| {
                        if end(p) {
                            ends[p]
                        } else {
                            i128::from(p as i64 + offset) * 10_000_000_000
                        }
                    })
                });
                let array = values.collect::<Decimal128Array>();
                Arc::new(array.with_precision_and_scale(30, 10).unwrap())
            }
            Type::Float => {
                let ends = [f64::NAN, -0.0, f64::INFINITY, f64::NEG_INFINITY];
                // Quarters: their sums are exact in any order.
                let values = picks.iter().map(|p| {
                    p.map(|p| {
                        if end(p) {
                            ends[p]
                        } else {
                            (p as i64 + offset) as f64 * 0.25
                        }
                    })
                });
                Arc::new(values.collect::<Float64Array>())
            }
            Type::Date => {
                let ends = [-719_162, 2_932_896, -1, 0];
                let value = |p: usize| {
                    if end(p) {
                        ends[p]
                    } else {
                        (p as i64 + offset) % 10_000 + 8_000
                    }
                };
                let values = each(&value).into_iter().map(|v| v.map(|v| v as i32));
                Arc::new(values.collect::<Date32Array>())
            }
            Type::Bool => {
                let values = picks.iter().map(|p| p.map(|p| p % 2 == 0));
                Arc::new(values.collect::<BooleanArray>())
            }
            Type::Text => {
                let words = [
                    "ab",
                    "",
                    "b",
                    "Äpfel",
                    "a%b",
                    "longer than twelve bytes",
                    "A",
                    "ba",
                ];
                let values = picks.iter().map(|p| {
                    p.map(|p| match p {
                        0..8 => words[(p + offset.unsigned_abs() as usize) % 8].to_string(),
                        _ => format!("{}{p}", words[p % 8]),
                    })
                });
                Arc::new(values.collect::<StringViewArray>())
            }
        }
    }
}
