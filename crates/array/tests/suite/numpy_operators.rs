//! The operators on arrays of 1 to 6 dimensions beside plain NumPy, and `regrid` and `window` beside xarray: by both models,
//! with cells that do not exist, nulls, empty dimensions and ragged last chunks.

use array::expr::{BinaryOp, name, value};
use array::{
    Aggregate, Attribute, Bound, DataType, Dimension, Function, Model, Plan, Region, Run, Scalar,
    Schema, SortKey,
};

use crate::model::{block, positions, wait};
use crate::numpy::{float, python};

const CASES: usize = 1200;

/// Does what each line asks for, and prints the shape and the cells: `x` where there is none, `n` for a null.
const SCRIPT: &str = r#"
import itertools, operator, sys
import numpy as np, xarray as xr
np.seterr(all="ignore")
nan, inf, X, N = float("nan"), float("inf"), "x", None
class A:
    def __init__(self, v, ok, ex):
        self.v, self.ok, self.ex = v, ok & ex, ex
def D(shape, kind, cells):
    number = [0 if c is X or c is N else c for c in cells]
    of = lambda test: np.array([test(c) for c in cells], dtype=bool).reshape(shape)
    return A(np.array(number, dtype=kind).reshape(shape), of(lambda c: c is not N), of(lambda c: c is not X))
def wide(v):
    return v.astype("float64") if v.dtype.kind == "f" else v.astype(object)
def fold(f, v, ok, ex):
    v = wide(v[ok])
    if f == "count": return len(v)
    if f in ("var", "stdev"):
        v = v.astype("float64")
        return None if len(v) < 2 else getattr(np, f.replace("stdev", "std"))(v, ddof=1)
    if not len(v): return None
    if f == "avg": return np.mean(v.astype("float64"))
    return {"sum": np.sum, "min": np.min, "max": np.max}[f](v)
def grouped(a, f, shape, boxes):
    """A cell for each box of `a` that has some, or for all of `shape` where `boxes` says so."""
    v, ok, ex = np.zeros(shape, object), np.zeros(shape, bool), np.zeros(shape, bool)
    for at, box, always in boxes:
        if always or a.ex[box].any():
            found = fold(f, a.v[box], a.ok[box], a.ex[box])
            v[at], ok[at], ex[at] = 0 if found is None else found, found is not None, True
    return A(v, ok, ex)
def each(shape):
    return itertools.product(*map(range, shape))
def part(a, box): return A(a.v[box], a.ok[box], a.ex[box])
def sub(a, lo, hi): return part(a, tuple(slice(l, h + 1) for l, h in zip(lo, hi)))
def cut(a, d, p): return part(a, (slice(None),) * d + (p,))
def among(a, keep): return A(a.v, a.ok, a.ex & keep)
def between(a, lo, hi):
    keep = np.zeros(a.v.shape, bool)
    keep[tuple(slice(l, h + 1) for l, h in zip(lo, hi))] = True
    return among(a, keep)
def turn(a, order): return A(*(of.transpose(order) for of in (a.v, a.ok, a.ex)))
def concat(a, b, d): return A(*(np.concatenate(both, d) for both in ((a.v, b.v), (a.ok, b.ok), (a.ex, b.ex))))
def aggregate(a, f, by):
    if not by: return grouped(a, f, [1], [((0,), (slice(None),) * a.v.ndim, True)])
    boxes = ((at, tuple(at[by.index(d)] if d in by else slice(None) for d in range(a.v.ndim)), False) for at in each([a.v.shape[d] for d in by]))
    return grouped(a, f, [a.v.shape[d] for d in by], boxes)
def regrid(a, f, by):
    shape = [-(-n // b) for n, b in zip(a.v.shape, by)]
    return grouped(a, f, shape, ((at, tuple(slice(i * b, i * b + b) for i, b in zip(at, by)), False) for at in each(shape)))
def window(a, f, around):
    boxes = ((at, tuple(slice(max(i - b, 0), i + e + 1) for i, (b, e) in zip(at, around)), False) for at in each(a.v.shape) if a.ex[at])
    return grouped(a, f, a.v.shape, boxes)
def along(a, f, d, b, e):
    r = grouped(a, f, a.v.shape, [])
    for at in each(a.v.shape):
        if a.ex[at]:
            there = [i for i in range(a.v.shape[d]) if a.ex[at[:d] + (i,) + at[d + 1:]]]
            here = there.index(at[d])
            box = at[:d] + (there[max(here - b, 0):here + e + 1],) + at[d + 1:]
            found = fold(f, a.v[box], a.ok[box], a.ex[box])
            r.v[at], r.ok[at], r.ex[at] = 0 if found is None else found, found is not None, True
    return r
def both(f, a, b):
    of = lambda x: np.broadcast_arrays(*x)
    (v, w), (p, q), (s, t) = of((wide(a.v), wide(b.v))), of((a.ok, b.ok)), of((a.ex, b.ex))
    return A(f(v, w), p & q, s & t)
def over(f, a): return A(f(wide(a.v)), a.ok, a.ex)
def sort(a, down):
    v = np.sort(a.v[a.ok])
    v = v[::-1] if down else v
    count = int(a.ex.sum())
    return A(np.concatenate([v, np.zeros(count - len(v), v.dtype)]), np.arange(count) < len(v), np.ones(count, bool))
def dot(a, b): return A(wide(a.v) @ wide(b.v), np.ones((a.v.shape[0], b.v.shape[1]), bool), np.ones((a.v.shape[0], b.v.shape[1]), bool))
def build(shape):
    at = np.indices(shape)
    v = sum(10 ** n * of for n, of in enumerate(at))
    return A(v, np.ones(shape, bool), np.ones(shape, bool))
def cross(a, b, pairs):
    """Cells of b beside those of a at the same positions along pairs of dimensions."""
    others = [d for d in range(b.v.ndim) if d not in [q for _, q in pairs]]
    shape = list(a.v.shape) + [b.v.shape[d] for d in others]
    v, ok, ex = np.zeros(shape, b.v.dtype), np.zeros(shape, bool), np.zeros(shape, bool)
    for at in each(shape):
        here, there = at[:a.v.ndim], [0] * b.v.ndim
        for p, q in pairs: there[q] = at[p]
        for n, d in enumerate(others): there[d] = at[a.v.ndim + n]
        there = tuple(there)
        v[at], ok[at], ex[at] = b.v[there], b.ok[there], a.ex[here] & b.ex[there]
    return A(v, ok, ex)
def folded(a, f, m):
    """Cells by the remainder of their first position."""
    boxes = [((k,), (np.arange(a.v.shape[0]) % m == k,), False) for k in range(m)]
    return grouped(a, f, [m], boxes)
def xarray_of(a):
    return xr.DataArray(np.where(a.ok, a.v.astype("float64"), nan), dims=[f"d{n}" for n in range(a.v.ndim)])
def of_xarray(r): return A(r.values, ~np.isnan(r.values), np.ones(r.shape, bool))
names = {"avg": "mean", "min": "min", "max": "max"}
def coarse(a, f, by):
    r = xarray_of(a).coarsen({f"d{n}": b for n, b in enumerate(by)}, boundary="pad")
    return of_xarray(getattr(r, names[f])())
def rolling(a, f, before):
    r = xarray_of(a).rolling({f"d{n}": b + 1 for n, b in enumerate(before)}, min_periods=1)
    return of_xarray(getattr(r, names[f])())
def shown(v, ok, ex):
    if not ex: return "x"
    if not ok: return "n"
    return float(v).hex() if isinstance(v, (float, np.floating)) else str(int(v))
for line in sys.stdin:
    a = eval(line)
    cells = " ".join(shown(*of) for of in zip(a.v.ravel(), a.ok.ravel(), a.ex.ravel()))
    print(",".join(map(str, a.v.shape)) + "|" + cells)
"#;

/// An array of one attribute: each cell has a value, null, or does not exist.
struct Operand {
    of: DataType,
    shape: Vec<u64>,
    cells: Vec<Option<Scalar>>,
}

impl Operand {
    /// Of any type; of all cells exist if `whole`, and none is null if `plain`.
    fn random(
        random: &mut fastrand::Rng,
        shape: Vec<u64>,
        (whole, plain): (bool, bool),
    ) -> Operand {
        let of = DataType::ALL[random.usize(1..11)];
        let cell = |random: &mut fastrand::Rng| match random.u8(0..10) {
            0 if !whole => None,
            1 if !plain => Some(Scalar::Null),
            _ if of.is_float() => Some(Scalar::Float(f64::from(random.i32(-40..40)) / 4.0)),
            _ if of.is_signed() => Some(Scalar::Int(random.i128(-9..10))),
            _ => Some(Scalar::Int(random.i128(0..19))),
        };
        let count = shape.iter().product::<u64>();
        let cells = (0..count).map(|_| cell(random)).collect();
        Operand { of, shape, cells }
    }

    /// With cells that do not exist or not, and with nulls or not.
    fn any(random: &mut fastrand::Rng, shape: Vec<u64>) -> Operand {
        let kinds = (random.bool(), random.bool());
        Operand::random(random, shape, kinds)
    }

    /// In chunks that do not divide it.
    fn plan(&self, random: &mut fastrand::Rng, attribute: &str) -> Plan {
        let lengths = self.shape.iter().enumerate();
        let dimensions = lengths.map(|(at, &length)| {
            Dimension::integer(&format!("d{at}"), 0, length).chunk(random.u64(1..4))
        });
        let attribute = Attribute::new(attribute, self.of).nullable();
        let schema = Schema::new(dimensions.collect(), vec![attribute]).unwrap();
        let region = Region::of_shape(&self.shape);
        let all = positions(&region);
        let cell = |at: &[u64]| {
            let number = all.iter().position(|of| of == at).unwrap();
            self.cells[number].map(|value| vec![value])
        };
        Plan::of_block(&schema, block(&schema, &region, cell)).unwrap()
    }

    /// As Python has it.
    fn text(&self) -> String {
        let kind = match self.of {
            DataType::F32 => "float32",
            DataType::F64 => "float64",
            of => of.name(),
        };
        let cell = |of: &Option<Scalar>| match of {
            None => "X".to_owned(),
            Some(Scalar::Null) => "N".to_owned(),
            Some(value) => value.to_string(),
        };
        let cells: Vec<String> = self.cells.iter().map(cell).collect();
        format!("D({:?}, '{kind}', [{}])", self.shape, cells.join(", "))
    }
}

/// Up to 6 dimensions and some 100 cells; now and then one is empty.
fn shape(random: &mut fastrand::Rng) -> Vec<u64> {
    let rank = random.usize(1..7);
    let most = [0, 60, 9, 5, 4, 3, 3][rank];
    let length = |random: &mut fastrand::Rng| match random.u8(0..40) {
        0 => 0,
        _ => random.u64(1..most),
    };
    (0..rank).map(|_| length(random)).collect()
}

const FUNCTIONS: [Function; 7] = [
    Function::Sum,
    Function::Avg,
    Function::Min,
    Function::Max,
    Function::Count,
    Function::Var,
    Function::Stdev,
];

/// A case: what Python is asked, and our plan.
#[expect(clippy::too_many_lines, reason = "a case for each operator")]
fn case(random: &mut fastrand::Rng) -> (String, Plan) {
    let shape = shape(random);
    let rank = shape.len();
    let empty = shape.contains(&0);
    let names: Vec<String> = (0..rank).map(|at| format!("d{at}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let function = FUNCTIONS[random.usize(0..7)];
    let folds = [Aggregate::new(function, "v")];
    let f = function.name();
    let a = Operand::any(random, shape.clone());
    let (plan, text) = (a.plan(random, "v"), a.text());
    let mut order: Vec<usize> = (0..rank).collect();
    random.shuffle(&mut order);
    let corners: Vec<(u64, u64)> = shape
        .iter()
        .map(|&length| {
            let ends = [random.u64(..length.max(1)), random.u64(..length.max(1))];
            (ends[0].min(ends[1]), ends[0].max(ends[1]))
        })
        .collect();
    let lists = |of: &[(u64, u64)]| {
        let (a, b): (Vec<u64>, Vec<u64>) = of.iter().copied().unzip();
        format!("{a:?}, {b:?}")
    };
    let bounds: Vec<(Bound, Bound)> = corners
        .iter()
        .map(|&(low, high)| {
            let [low, high] = [low as i64, high as i64].map(Bound::from);
            if random.bool() {
                (high, low)
            } else {
                (low, high)
            }
        })
        .collect();
    let around: Vec<(u64, u64)> = (0..rank)
        .map(|_| (random.u64(..3), random.u64(..3)))
        .collect();
    let few: Vec<u64> = (0..rank).map(|_| random.u64(1..4)).collect();
    let other = Operand::any(random, shape.clone());
    let along = random.usize(0..rank);
    match random.u8(0..21) {
        0 if !empty => (
            format!("sub({text}, {})", lists(&corners)),
            plan.subarray(&bounds),
        ),
        1 if !empty && rank > 1 => {
            let at = corners[along].0;
            (
                format!("cut({text}, {along}, {at})"),
                plan.slice(&[(names[along], (at as i64).into())]),
            )
        }
        2 if !empty => (
            format!("between({text}, {})", lists(&corners)),
            plan.between(&bounds),
        ),
        3 => {
            let than = random.i64(-3..4);
            (
                format!("(lambda a: among(a, a.ok & (wide(a.v) > {than})))({text})"),
                plan.filter(name("v").gt(value(than))),
            )
        }
        4 => {
            let named: Vec<&str> = order.iter().map(|&at| names[at]).collect();
            (format!("turn({text}, {order:?})"), plan.transpose(&named))
        }
        5 => {
            let b = Operand {
                of: a.of,
                ..Operand::random(random, shape.clone(), (true, true))
            };
            // Of the first one's type, which has no sign perhaps.
            let cells = a.cells.iter().rev().copied().collect();
            let b = Operand { cells, ..b };
            let text = format!("concat({text}, {}, {along})", b.text());
            (text, plan.concat(b.plan(random, "v"), names[along]))
        }
        6 | 7 => {
            let by: Vec<usize> = order[..random.usize(0..=rank)].to_vec();
            let named: Vec<&str> = by.iter().map(|&at| names[at]).collect();
            (
                format!("aggregate({text}, '{f}', {by:?})"),
                plan.aggregate(&folds, &named),
            )
        }
        8 => (
            format!("regrid({text}, '{f}', {few:?})"),
            plan.regrid(&few, &folds),
        ),
        9 => (
            format!("window({text}, '{f}', {around:?})"),
            plan.window(&around, &folds),
        ),
        10 => {
            let (before, after) = around[along];
            (
                format!("along({text}, '{f}', {along}, {before}, {after})"),
                plan.variable_window(names[along], (before, after), &folds),
            )
        }
        11 => {
            let (op, with) = [
                (BinaryOp::Lt, "np.less"),
                (BinaryOp::Ge, "np.greater_equal"),
                (BinaryOp::Ne, "np.not_equal"),
            ][random.usize(0..3)];
            let text = format!(
                "both(lambda x, y: {with}(x, y).astype(int), {text}, {})",
                other.text()
            );
            (text, plan.elementwise(op, other.plan(random, "w")))
        }
        12 => {
            // Along the last dimensions, of which some have one cell; within what both types hold.
            let from = random.usize(0..rank);
            let lengths = shape[from..].iter();
            let lengths: Vec<u64> = lengths
                .map(|&n| if random.bool() { n } else { 1 })
                .collect();
            let b = Operand::any(random, lengths);
            let text = format!(
                "both(operator.mul, over(lambda v: v * 1.0, {text}), {})",
                b.text()
            );
            (
                text,
                plan.scalar(BinaryOp::Multiply, value(1.0))
                    .elementwise(BinaryOp::Multiply, b.plan(random, "w")),
            )
        }
        13 if a.of.is_signed() || a.of.is_float() => {
            (format!("over(operator.neg, {text})"), plan.opposite())
        }
        14 => {
            let descending = random.bool();
            let key = SortKey {
                attribute: "v".to_owned(),
                descending,
            };
            let down = if descending { "True" } else { "False" };
            (format!("sort({text}, {down})"), plan.sort(&[key]))
        }
        15 => {
            let square = |random: &mut fastrand::Rng, shape| {
                let mut of = Operand::random(random, shape, (true, true));
                of.of = DataType::F64;
                of
            };
            let (n, k, m) = (random.u64(1..6), random.u64(1..6), random.u64(1..6));
            let (a, b) = (square(random, vec![n, k]), square(random, vec![k, m]));
            let text = format!("dot({}, {})", a.text(), b.text());
            (text, a.plan(random, "v").matmul(b.plan(random, "w")))
        }
        16 => {
            let schema = shape.iter().enumerate();
            let schema = schema.map(|(at, &n)| Dimension::integer(names[at], 0, n).chunk(few[at]));
            let attribute = Attribute::new("v", DataType::I64);
            let schema = Schema::new(schema.collect(), vec![attribute]).unwrap();
            let terms = names.iter().enumerate();
            let mut terms = terms.map(|(at, &of)| name(of) * value(10i64.pow(at as u32)));
            let first = terms.next().unwrap();
            let sum = terms.fold(first, |sum, of| sum + of);
            (format!("build({shape:?})"), Plan::build(&schema, sum))
        }
        17 => {
            let text = format!(
                "cross({text}, {}, [(n, n) for n in range({rank})])",
                other.text()
            );
            (text, plan.join(other.plan(random, "w")).project(&["w"]))
        }
        18 if rank <= 3 => {
            let there = random.usize(0..rank);
            let mut lengths: Vec<u64> = (0..rank).map(|_| random.u64(1..4)).collect();
            lengths[there] = shape[along];
            let b = Operand::any(random, lengths);
            let text = format!("cross({text}, {}, [({along}, {there})])", b.text());
            let pairs = [(names[along], names[there])];
            (
                text,
                plan.cross_join(b.plan(random, "w"), &pairs).project(&["w"]),
            )
        }
        19 => {
            let by = random.u64(1..4);
            let key = name("d0").with(BinaryOp::Modulo, value(by as i64));
            let to = vec![Dimension::integer("k", 0, by)];
            (
                format!("folded({text}, '{f}', {by})"),
                plan.apply(&[("k", key)]).redimension_by(to, &folds),
            )
        }
        20 if !empty => {
            // A sum of nulls alone is 0 there.
            let function = FUNCTIONS[random.usize(1..4)];
            let folds = [Aggregate::new(function, "v")];
            let f = function.name();
            let a = Operand::random(random, shape, (true, false));
            let (plan, text) = (a.plan(random, "v"), a.text());
            if random.bool() {
                (
                    format!("coarse({text}, '{f}', {few:?})"),
                    plan.regrid(&few, &folds),
                )
            } else {
                let before: Vec<u64> = around.iter().map(|of| of.0).collect();
                let around: Vec<_> = before.iter().map(|&of| (of, 0)).collect();
                (
                    format!("rolling({text}, '{f}', {before:?})"),
                    plan.window(&around, &folds),
                )
            }
        }
        _ => (text, plan.rechunk(&few)),
    }
}

#[test]
fn operators_are_those_of_numpy_and_xarray() {
    let mut random = fastrand::Rng::with_seed(5);
    let cases: Vec<_> = (0..CASES).map(|_| case(&mut random)).collect();
    let asked: String = cases.iter().map(|of| format!("{}\n", of.0)).collect();
    let Some(answer) = python("numpy, xarray", SCRIPT, &asked) else {
        return;
    };
    assert_eq!(answer.lines().count(), cases.len());
    let mut compared = 0;
    for ((question, plan), line) in cases.iter().zip(answer.lines()) {
        let (shape, cells) = line.split_once('|').unwrap();
        for model in [Model::Materialise, Model::Pipeline] {
            let result = wait(plan.run(&Run::new().model(model)));
            let result = result.unwrap_or_else(|error| panic!("{question}: {error}"));
            let block = result.to_block().unwrap();
            let lengths: Vec<String> = result.schema().shape().iter().map(u64::to_string).collect();
            assert_eq!(lengths.join(","), shape, "{question}");
            let column = block.column(0).unwrap();
            let mut expected = cells.split_whitespace();
            for at in 0..block.cells() {
                let expected = expected.next().unwrap_or_else(|| panic!("{question}"));
                let found = if block.exists(at) {
                    Some(column.get(at))
                } else {
                    None
                };
                assert!(
                    agrees(found, expected),
                    "{question}: cell {at} is {found:?}, not {expected}"
                );
                compared += 1;
            }
            assert_eq!(expected.next(), None, "{question}");
        }
    }
    assert!(compared > 30_000, "{compared} cells were compared");
}

/// Whether a cell is what Python printed; floats may differ in the last digits, by the order of a sum.
fn agrees(found: Option<Scalar>, expected: &str) -> bool {
    match (found, expected) {
        (None, expected) => expected == "x",
        (Some(Scalar::Null), expected) => expected == "n",
        (Some(_), "x" | "n") => false,
        (Some(Scalar::Bool(found)), expected) => expected == if found { "1" } else { "0" },
        // xarray has floats only.
        (Some(found), hex) if hex.contains(['p', 'a', 'f']) => {
            let (found, expected) = (found.to_f64().unwrap(), float(hex));
            (found - expected).abs() <= 1e-9 * expected.abs().max(1e-3)
        }
        (Some(Scalar::Int(found)), expected) => expected == found.to_string(),
        (Some(Scalar::Float(found)), expected) => expected.parse() == Ok(found),
    }
}
