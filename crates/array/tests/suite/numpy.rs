//! Types, arithmetic, broadcasting and aggregates beside NumPy's.

use std::process::Command;

use array::expr::{BinaryOp, UnaryOp};
use array::{
    Aggregate, Attribute, Block, DataType, Dimension, Error, Function, Model, Plan, Region, Run,
    Scalar, Schema,
};

use crate::model::{column, positions, wait};

/// Computes in NumPy what the lines of its input ask for: operator, and for each operand type, shape and values. Prints
/// type, shape and values, floats in hexadecimal.
const SCRIPT: &str = r#"
import sys, numpy as np
np.seterr(all="ignore")
names = {"float": "float32", "double": "float64"}
back = {"float32": "float", "float64": "double"}
def operand(text):
    kind, shape, values = text.split("|")
    shape = [int(n) for n in shape.split(",")]
    kind = names.get(kind, kind)
    number = float if kind.startswith("float") else int
    return np.array([number(v) for v in values.split()], dtype=kind).reshape(shape)
ops = {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.true_divide, "%": np.mod,
       "=": np.equal, "<>": np.not_equal, "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal}
folds = {"sum": lambda a: a.astype("float64").sum() if a.dtype == "float32" else a.sum(),
         "min": np.min, "max": np.max, "avg": lambda a: np.mean(a, dtype="float64"),
         "var": lambda a: np.var(a.astype("float64"), ddof=1), "stdev": lambda a: np.std(a.astype("float64"), ddof=1)}
for line in sys.stdin:
    op, *rest = line.rstrip("\n").split(";")
    values = [operand(r) for r in rest]
    if op in folds:
        result = np.asarray(folds[op](values[0])).reshape([1])
    elif op == "sqrt":
        result = np.sqrt(values[0].astype("float64") if values[0].dtype.kind != "f" else values[0])
    else:
        result = ops[op](*values)
    kind = str(result.dtype)
    if kind == "float16":
        # Quotients of 8 bits: a float of 16 bits there, a double here.
        result = ops[op](*[v.astype("float64") for v in values]); kind = "float64"
    if op == "/" and kind == "float32" and any(v.dtype.kind != "f" for v in values) and not any(v.dtype.kind == "f" for v in values):
        result = ops[op](*[v.astype("float64") for v in values]); kind = "float64"
    shown = [float(v).hex() if kind.startswith("float") else str(int(v)) for v in result.ravel()]
    print("|".join([back.get(kind, kind), ",".join(map(str, result.shape)), " ".join(shown)]))
"#;

/// An array of one attribute.
struct Operand {
    of: DataType,
    shape: Vec<u64>,
    values: Vec<Scalar>,
}

impl Operand {
    fn random(random: &mut fastrand::Rng, of: DataType, shape: Vec<u64>) -> Operand {
        let count = shape.iter().product::<u64>();
        let value = |random: &mut fastrand::Rng| match of {
            DataType::F32 | DataType::F64 => match random.u8(0..12) {
                0 => Scalar::Float(f64::NAN),
                1 => Scalar::Float(f64::INFINITY),
                2 => Scalar::Float(-0.0),
                _ => Scalar::Float(f64::from(random.i32(-40..40)) / 4.0),
            },
            // Small enough that nothing overflows, of which NumPy says nothing.
            _ if of.is_signed() => Scalar::Int(random.i128(-5..6)),
            _ => Scalar::Int(random.i128(6..11)),
        };
        let values = (0..count).map(|_| value(random)).collect();
        Operand { of, shape, values }
    }

    fn plan(&self, name: &str) -> Plan {
        let dimensions = self
            .shape
            .iter()
            .enumerate()
            .map(|(at, &length)| Dimension::integer(&format!("d{at}"), 0, length).chunk(2));
        let schema =
            Schema::new(dimensions.collect(), vec![Attribute::new(name, self.of)]).unwrap();
        let block = Block::new(
            Region::of_shape(&self.shape),
            vec![Some(column(self.of, &self.values))],
        )
        .unwrap();
        Plan::of_block(&schema, block).unwrap()
    }

    fn line(&self) -> String {
        let values: Vec<String> = self
            .values
            .iter()
            .map(|of| match of {
                Scalar::Float(value) if value.is_nan() => "nan".to_owned(),
                Scalar::Float(value) => value.to_string(),
                of => of.to_string(),
            })
            .collect();
        let shape: Vec<String> = self.shape.iter().map(u64::to_string).collect();
        format!("{}|{}|{}", self.of, shape.join(","), values.join(" "))
    }
}

fn shape(random: &mut fastrand::Rng, of: &[u64]) -> Vec<u64> {
    // The last dimensions of a shape, some of them 1.
    let skipped = random.usize(0..of.len());
    of[skipped..]
        .iter()
        .map(|&length| if random.u8(0..3) == 0 { 1 } else { length })
        .collect()
}

const OPERATORS: [BinaryOp; 11] = [
    BinaryOp::Add,
    BinaryOp::Subtract,
    BinaryOp::Multiply,
    BinaryOp::Divide,
    BinaryOp::Modulo,
    BinaryOp::Eq,
    BinaryOp::Ne,
    BinaryOp::Lt,
    BinaryOp::Le,
    BinaryOp::Gt,
    BinaryOp::Ge,
];

/// A case: what NumPy is asked, and our plan.
fn case(random: &mut fastrand::Rng) -> (String, Plan) {
    let types = &DataType::ALL[1..];
    let of = |random: &mut fastrand::Rng| types[random.usize(0..types.len())];
    let whole: Vec<u64> = (0..random.usize(1..4)).map(|_| random.u64(1..5)).collect();
    let first = of(random);
    let a = Operand::random(random, first, whole.clone());
    match random.u8(0..10) {
        0..=5 => {
            let op = OPERATORS[random.usize(0..OPERATORS.len())];
            let (second, other) = (of(random), shape(random, &whole));
            let mut b = Operand::random(random, second, other);
            if op == BinaryOp::Modulo {
                // A whole number by zero is an error here.
                b.values.iter_mut().for_each(|of| {
                    if let Scalar::Int(0) = of {
                        *of = Scalar::Int(3)
                    }
                });
            }
            if op == BinaryOp::Subtract && !first.is_signed() && !second.is_signed() {
                // The difference of what is less wraps around there.
                b.values.iter_mut().for_each(|of| *of = Scalar::Int(2));
            }
            (
                format!("{};{};{}", op.sign(), a.line(), b.line()),
                a.plan("a").elementwise(op, b.plan("b")),
            )
        }
        6 => {
            let a = Operand {
                values: a
                    .values
                    .iter()
                    .map(|of| match of {
                        Scalar::Int(of) => Scalar::Int(of.abs()),
                        of => *of,
                    })
                    .collect(),
                ..a
            };
            let root = array::expr::name("a").unary(UnaryOp::Sqrt);
            (
                format!("sqrt;{}", a.line()),
                a.plan("a").apply(&[("r", root)]).project(&["r"]),
            )
        }
        _ => {
            let functions = [
                Function::Sum,
                Function::Min,
                Function::Max,
                Function::Avg,
                Function::Var,
                Function::Stdev,
            ];
            let function = functions[random.usize(0..6)];
            (
                format!("{};{}", function.name(), a.line()),
                a.plan("a").aggregate(&[Aggregate::new(function, "a")], &[]),
            )
        }
    }
}

/// What a script prints that reads `asked`. `None`, and that the test is not run, without a Python that has these modules:
/// `$ATOLL_PYTHON`, or the system's.
///
/// # Panics
/// If the script fails.
pub fn python(modules: &str, script: &str, asked: &str) -> Option<String> {
    let python = std::env::var("ATOLL_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let imports = format!("import {modules}");
    let there = Command::new(&python).args(["-c", &imports]).output();
    if !there.is_ok_and(|of| of.status.success()) {
        notrun::not_run(format!(
            "{python} has not {modules}; name one that has in ATOLL_PYTHON"
        ));
        return None;
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("cases");
    std::fs::write(&path, asked).unwrap();
    let answer = Command::new(&python)
        .args(["-c", script])
        .stdin(std::fs::File::open(&path).unwrap())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&answer.stderr);
    assert!(answer.status.success(), "{said}");
    Some(String::from_utf8(answer.stdout).unwrap())
}

#[test]
fn types_and_values_are_those_of_numpy() {
    let mut random = fastrand::Rng::with_seed(11);
    let cases: Vec<_> = (0..1500).map(|_| case(&mut random)).collect();
    let asked: String = cases.iter().map(|of| format!("{}\n", of.0)).collect();
    let Some(answer) = python("numpy", SCRIPT, &asked) else {
        return;
    };
    assert_eq!(answer.lines().count(), cases.len());
    let mut compared = 0;
    for ((question, plan), line) in cases.iter().zip(answer.lines()) {
        let result = match wait(plan.run(&Run::new().model(Model::Materialise))) {
            Ok(result) => result,
            // Fewer than two have no variance; NumPy says NaN.
            Err(Error::Arithmetic { what }) => panic!("{question}: {what}"),
            Err(error) => panic!("{question}: {error}"),
        };
        let block = result.to_block().unwrap();
        let column = block.column(0).unwrap();
        let parts: Vec<&str> = line.split('|').collect();
        assert_eq!(column.values().data_type().name(), parts[0], "{question}");
        let shape: Vec<String> = result.schema().shape().iter().map(u64::to_string).collect();
        assert_eq!(shape.join(","), parts[1], "{question}");
        assert_eq!(positions(block.region()).len(), parts[2].split(' ').count());
        for (at, expected) in parts[2].split(' ').enumerate() {
            let found = column.get(at);
            assert!(
                agrees(found, expected),
                "{question}: {found} is not {expected}"
            );
            compared += 1;
        }
    }
    assert!(compared > 5000, "{compared} values were compared");
}

/// Whether a value is what NumPy printed; floats may differ in the last digits, by the order of a sum.
fn agrees(found: Scalar, expected: &str) -> bool {
    match found {
        Scalar::Null => expected == "nan",
        Scalar::Bool(value) => expected == if value { "1" } else { "0" },
        Scalar::Int(value) => expected == value.to_string(),
        Scalar::Float(value) => match expected {
            "nan" => value.is_nan(),
            "inf" => value == f64::INFINITY,
            "-inf" => value == f64::NEG_INFINITY,
            hex => {
                let expected = of_hex(hex);
                (value - expected).abs() <= 1e-12 * expected.abs().max(1e-300)
            }
        },
    }
}

/// A float as Python prints it in hexadecimal, `nan` or `inf`.
pub fn float(text: &str) -> f64 {
    match text {
        "nan" => f64::NAN,
        "inf" => f64::INFINITY,
        "-inf" => f64::NEG_INFINITY,
        hex => of_hex(hex),
    }
}

/// A float as Python prints it: a sign, `0x1.` and hexadecimal digits, `p` and the power of two.
fn of_hex(text: &str) -> f64 {
    let (negative, text) = text
        .strip_prefix('-')
        .map_or((false, text), |rest| (true, rest));
    let (digits, power) = text.trim_start_matches("0x").split_once('p').unwrap();
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let mut value = u64::from_str_radix(whole, 16).unwrap() as f64;
    for (at, digit) in fraction.chars().enumerate() {
        value += f64::from(digit.to_digit(16).unwrap()) / 16f64.powi(at as i32 + 1);
    }
    let value = value * 2f64.powi(power.parse().unwrap());
    if negative { -value } else { value }
}
