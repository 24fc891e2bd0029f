//! Keys of more columns than hash tables hold: the last columns of such a key become one, a struct, which is kept as a text of bytes.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, StructArray, new_empty_array};
use arrow::buffer::NullBuffer;
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Fields, Float32Type, Float64Type};

use crate::error::{Error, Result};
use crate::expr::{Call, Expr, Node};
use crate::logical::relation::{Query, Rel};
use crate::logical::row_function::Made;
use crate::vector::key_encoding;
use crate::vector::opaque::is_opaque;
use crate::vector::value::{Kind, Type, Var};

/// Pairs of vectors of two sides that a join compares.
type Pairs = Vec<(Var, Var)>;

/// How many columns of a wide key stay as they are: each has two words at most, and so has the last one.
const KEPT: usize = 12;

/// `root` and the subqueries of `query` with keys that hash tables hold.
///
/// # Errors
/// [`Error::Unsupported`] for structs of such columns.
pub(crate) fn packed(query: &mut Query, root: Rel) -> Result<Rel> {
    let subqueries = query.parameters.iter().map(|(rel, _)| rel);
    if !subqueries.chain([&root]).any(|rel| has_any(query, rel)) {
        return Ok(root);
    }
    let mut packing = Packing {
        query,
        shared: HashMap::new(),
    };
    let mut parameters = std::mem::take(&mut packing.query.parameters);
    for (rel, _) in &mut parameters {
        *rel = packing.rel(rel.clone())?;
    }
    packing.query.parameters = parameters;
    packing.rel(root)
}

/// Whether a relation in `rel` has a key of too many columns.
fn has_any(query: &Query, rel: &Rel) -> bool {
    let own = match rel {
        Rel::Fold { keys, .. } => is_wide(query, keys.iter()),
        Rel::Join { inputs, equal, .. } => inputs.len() == 2 && is_wide_pair(query, equal),
        Rel::Semi { equal, .. } | Rel::Left { equal, .. } | Rel::Full { equal, .. } => {
            is_wide_pair(query, equal)
        }
        _ => false,
    };
    let mut found = own;
    rel.each_input(&mut |input| found = found || has_any(query, input));
    found
}

fn is_wide<'k>(query: &Query, keys: impl Iterator<Item = &'k Var>) -> bool {
    key_encoding::check(keys.map(|key| query.ty(*key))).is_err()
}

fn is_wide_pair(query: &Query, equal: &[(Var, Var)]) -> bool {
    is_wide(query, equal.iter().map(|(a, _)| a)) || is_wide(query, equal.iter().map(|(_, b)| b))
}

struct Packing<'q> {
    query: &'q mut Query,
    /// Shared relations that are done already, by the addresses of what they were.
    shared: HashMap<usize, (Arc<Rel>, Arc<Rel>)>,
}

impl Packing<'_> {
    fn rel(&mut self, mut rel: Rel) -> Result<Rel> {
        self.inputs(&mut rel)?;
        Ok(match rel {
            Rel::Fold { input, keys, folds } if is_wide(self.query, keys.iter()) => {
                let (kept, packed) = self.parted(&keys);
                let (input, one) = self.with_struct(*input, &packed, false)?;
                let fold = Rel::Fold {
                    input: Box::new(input),
                    keys: kept.into_iter().chain([one]).collect(),
                    folds,
                };
                let part = |(number, key): (usize, &Var)| {
                    let arg = self.query.expr(one);
                    let part = Arc::new(Part(number));
                    let ty = self.query.ty(*key).clone();
                    let node = Node::Call(vec![arg], part);
                    (*key, Expr { node, ty })
                };
                let exprs = packed.iter().enumerate().map(part).collect();
                Rel::Map {
                    input: Box::new(fold),
                    exprs,
                }
            }
            Rel::Join {
                mut inputs,
                mut equal,
                residual,
            } if inputs.len() == 2 => {
                let [left, right] = &mut inputs[..] else {
                    return Err(Error::internal("a join of other inputs"));
                };
                for (a, b) in &mut equal {
                    if !left.gives(*a) {
                        std::mem::swap(a, b);
                    }
                }
                self.join(left, right, &mut equal)?;
                Rel::Join {
                    inputs,
                    equal,
                    residual,
                }
            }
            mut other => {
                match &mut other {
                    Rel::Semi {
                        input,
                        other,
                        equal,
                        ..
                    } => self.join(input, other, equal)?,
                    Rel::Left {
                        left, right, equal, ..
                    }
                    | Rel::Full {
                        left, right, equal, ..
                    } => self.join(left, right, equal)?,
                    _ => {}
                }
                other
            }
        })
    }

    fn inputs(&mut self, rel: &mut Rel) -> Result<()> {
        let mut own = |input: &mut Rel| -> Result<()> {
            let none = Rel::Union {
                inputs: vec![],
                vars: vec![],
            };
            *input = self.rel(std::mem::replace(input, none))?;
            Ok(())
        };
        match rel {
            Rel::Scan(_) | Rel::Read(_) | Rel::Values { .. } => Ok(()),
            Rel::Filter { input, .. }
            | Rel::Map { input, .. }
            | Rel::Sort { input, .. }
            | Rel::Window { input, .. }
            | Rel::Expand { input, .. }
            | Rel::Fold { input, .. } => own(input),
            Rel::Reduced(reduced) => own(&mut reduced.input),
            Rel::Join { inputs, .. } => inputs.iter_mut().try_for_each(own),
            Rel::Union { inputs, .. } => inputs.iter_mut().try_for_each(|(input, _)| own(input)),
            Rel::Semi { input, other, .. } => own(input).and_then(|()| own(other)),
            Rel::AsOf(join) => own(&mut join.left).and_then(|()| own(&mut join.right)),
            Rel::Left { left, right, .. } | Rel::Full { left, right, .. } => {
                own(left).and_then(|()| own(right))
            }
            Rel::Shared { input, .. } => {
                let address = Arc::as_ptr(input) as usize;
                let done = match self.shared.get(&address) {
                    Some((_, done)) => Arc::clone(done),
                    None => {
                        let done = Arc::new(self.rel(Rel::clone(input))?);
                        // The old one is kept, so that no other gets its address.
                        let both = (Arc::clone(input), Arc::clone(&done));
                        self.shared.insert(address, both);
                        done
                    }
                };
                *input = done;
                Ok(())
            }
        }
    }

    /// The keys of both sides of a join, of which the last become one of each if there are too many.
    fn join(&mut self, left: &mut Rel, right: &mut Rel, equal: &mut Pairs) -> Result<()> {
        if !is_wide_pair(self.query, equal) {
            return Ok(());
        }
        let last: Pairs = equal.split_off(KEPT.min(equal.len()));
        let mut both = Vec::with_capacity(2);
        for (side, packed) in [
            (left, last.iter().map(|(a, _)| *a).collect::<Vec<_>>()),
            (right, last.iter().map(|(_, b)| *b).collect()),
        ] {
            let none = Rel::Union {
                inputs: vec![],
                vars: vec![],
            };
            let own = std::mem::replace(side, none);
            let (own, one) = self.with_struct(own, &packed, true)?;
            *side = own;
            both.push(one);
        }
        if let [a, b] = both[..] {
            equal.push((a, b));
        }
        Ok(())
    }

    /// The keys of groups that stay as they are, and those that become one. Labels stay: they are words by themselves.
    fn parted(&self, keys: &[Var]) -> (Vec<Var>, Vec<Var>) {
        let is_code = |key: &Var| self.query.ty(*key).kind == Kind::Code;
        let (mut kept, others): (Vec<Var>, Vec<Var>) = keys.iter().partition(|key| is_code(key));
        let mut others = others.into_iter();
        let room = KEPT.saturating_sub(kept.len().div_ceil(2));
        kept.extend(others.by_ref().take(room));
        (kept, others.collect())
    }

    /// `rel` with a struct of the values of `vars`. In a join it is NULL where one of them is, as NULL equals nothing there.
    fn with_struct(&mut self, rel: Rel, vars: &[Var], joins: bool) -> Result<(Rel, Var)> {
        let fields = vars.iter().enumerate().map(|(number, var)| {
            let data = match &self.query.ty(*var).data {
                // Both sides of a join have texts of one type then.
                DataType::Utf8 | DataType::LargeUtf8 => DataType::Utf8View,
                data => data.clone(),
            };
            Field::new(format!("{number}"), data, true)
        });
        let fields: Fields = fields.collect();
        let data = DataType::Struct(fields.clone());
        let ty = Type::of(&data, joins).filter(|_| is_opaque(&data));
        let ty = ty.ok_or_else(|| Error::unsupported("keys of so many columns"))?;
        let args = vars.iter().map(|var| self.query.expr(*var)).collect();
        let node = Node::Call(args, Arc::new(Pack { fields, joins }));
        let one = self.query.add("keys", ty.clone());
        let rel = Rel::Map {
            input: Box::new(rel),
            exprs: vec![(one, Expr { node, ty })],
        };
        Ok((rel, one))
    }
}

/// Makes one struct of several values.
#[derive(Debug)]
struct Pack {
    fields: Fields,
    /// Whether it is NULL where one of the values is.
    joins: bool,
}

impl Call for Pack {
    fn call(&self, args: &[ArrayRef], rows: usize) -> Made<ArrayRef> {
        let (mut columns, mut nulls) = (Vec::with_capacity(args.len()), None);
        for (arg, field) in args.iter().zip(&self.fields) {
            if self.joins {
                nulls = NullBuffer::union(nulls.as_ref(), arg.logical_nulls().as_ref());
            }
            columns.push(alike(&cast(arg, field.data_type())?));
        }
        let made = StructArray::try_new_with_length(self.fields.clone(), columns, nulls, rows)?;
        Ok(Arc::new(made))
    }

    fn name(&self) -> String {
        "keys".into()
    }
}

/// The values with one zero and one NaN: those of a struct are compared by their bits.
fn alike(array: &ArrayRef) -> ArrayRef {
    match array.data_type() {
        DataType::Float64 => {
            let one = |v: f64| if v.is_nan() { f64::NAN } else { v + 0.0 };
            Arc::new(
                array
                    .as_primitive::<Float64Type>()
                    .unary::<_, Float64Type>(one),
            )
        }
        DataType::Float32 => {
            let one = |v: f32| if v.is_nan() { f32::NAN } else { v + 0.0 };
            Arc::new(
                array
                    .as_primitive::<Float32Type>()
                    .unary::<_, Float32Type>(one),
            )
        }
        _ => Arc::clone(array),
    }
}

/// One of the values of a struct.
#[derive(Debug)]
struct Part(usize);

impl Call for Part {
    fn call(&self, args: &[ArrayRef], _: usize) -> Made<ArrayRef> {
        let one = args
            .first()
            .map(|own| Arc::clone(own.as_struct().column(self.0)));
        Ok(one.unwrap_or_else(|| new_empty_array(&DataType::Null)))
    }

    fn name(&self) -> String {
        format!("key {}", self.0)
    }
}
