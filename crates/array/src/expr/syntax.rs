//! Expressions as they are written.

use std::fmt;

use crate::model::types::{DataType, Scalar};

/// An expression over one cell. Built by [`name`], [`value`], and methods; arithmetic operators work on it, too.
///
/// ```
/// use array::expr::{name, value};
///
/// let warm = name("celsius").gt(value(30)).and(name("year").ge(value(2000)));
/// assert_eq!(warm.to_string(), "((celsius > 30) and (year >= 2000))");
/// assert_eq!((name("celsius") * value(1.8) + value(32)).to_string(), "((celsius * 1.8) + 32)");
/// ```
#[derive(Debug, Clone, PartialEq)]
pub enum Expr {
    /// An attribute, or the coordinate along a dimension.
    Name(String),
    /// A value.
    Value(Scalar),
    /// An operator on one value.
    Unary(UnaryOp, Box<Expr>),
    /// An operator on two values.
    Binary(BinaryOp, Box<Expr>, Box<Expr>),
    /// The value as another type: an error where that does not hold it; floats lose what is after the point.
    Cast(Box<Expr>, DataType),
    /// The second where the first is true, else the third.
    If(Box<Expr>, Box<Expr>, Box<Expr>),
}

/// An operator on one value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnaryOp {
    /// The opposite number.
    Negate,
    /// Not, of a bool.
    Not,
    /// Whether it is null.
    IsNull,
    /// Without its sign.
    Abs,
    /// The square root, a float.
    Sqrt,
    /// To the power of e, a float.
    Exp,
    /// The natural logarithm, a float.
    Log,
    /// The greatest whole number that is not greater.
    Floor,
    /// The least whole number that is not less.
    Ceil,
}

impl UnaryOp {
    /// Those that are written as functions, and the names.
    pub const FUNCTIONS: [(&'static str, UnaryOp); 7] = [
        ("is_null", UnaryOp::IsNull),
        ("abs", UnaryOp::Abs),
        ("sqrt", UnaryOp::Sqrt),
        ("exp", UnaryOp::Exp),
        ("log", UnaryOp::Log),
        ("floor", UnaryOp::Floor),
        ("ceil", UnaryOp::Ceil),
    ];
}

/// An operator on two values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BinaryOp {
    /// The sum.
    Add,
    /// The difference.
    Subtract,
    /// The product.
    Multiply,
    /// The quotient, a float.
    Divide,
    /// The rest of a division, with the sign of the divisor.
    Modulo,
    /// To the power, a float.
    Power,
    /// Equal.
    Eq,
    /// Not equal.
    Ne,
    /// Less.
    Lt,
    /// Less or equal.
    Le,
    /// Greater.
    Gt,
    /// Greater or equal.
    Ge,
    /// Both are true.
    And,
    /// At least one is true.
    Or,
}

impl BinaryOp {
    /// How it is written.
    pub fn sign(self) -> &'static str {
        match self {
            BinaryOp::Add => "+",
            BinaryOp::Subtract => "-",
            BinaryOp::Multiply => "*",
            BinaryOp::Divide => "/",
            BinaryOp::Modulo => "%",
            BinaryOp::Power => "^",
            BinaryOp::Eq => "=",
            BinaryOp::Ne => "<>",
            BinaryOp::Lt => "<",
            BinaryOp::Le => "<=",
            BinaryOp::Gt => ">",
            BinaryOp::Ge => ">=",
            BinaryOp::And => "and",
            BinaryOp::Or => "or",
        }
    }

    /// Whether it compares.
    pub(crate) fn is_comparison(self) -> bool {
        matches!(
            self,
            BinaryOp::Eq | BinaryOp::Ne | BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge
        )
    }

    /// Whether values that stand so to each other are what the comparison asks for; those that do not compare (NaN)
    /// are only unequal.
    pub(crate) fn holds(self, order: Option<std::cmp::Ordering>) -> bool {
        let Some(order) = order else {
            return self == BinaryOp::Ne;
        };
        match self {
            BinaryOp::Eq => order.is_eq(),
            BinaryOp::Ne => order.is_ne(),
            BinaryOp::Lt => order.is_lt(),
            BinaryOp::Le => order.is_le(),
            BinaryOp::Gt => order.is_gt(),
            BinaryOp::Ge => order.is_ge(),
            _ => false,
        }
    }
}

/// An attribute, or the coordinate along a dimension.
pub fn name(name: impl Into<String>) -> Expr {
    Expr::Name(name.into())
}

/// A value.
pub fn value(value: impl Into<Scalar>) -> Expr {
    Expr::Value(value.into())
}

macro_rules! methods {
    ($($(#[$meta:meta])* $name:ident $op:ident),*) => {$(
        $(#[$meta])*
        pub fn $name(self, other: Expr) -> Expr {
            self.with(BinaryOp::$op, other)
        }
    )*};
}

impl Expr {
    /// An operator on this and another.
    pub fn with(self, op: BinaryOp, other: Expr) -> Expr {
        Expr::Binary(op, Box::new(self), Box::new(other))
    }

    /// An operator on this.
    pub fn unary(self, op: UnaryOp) -> Expr {
        Expr::Unary(op, Box::new(self))
    }

    /// This as another type.
    pub fn cast(self, of: DataType) -> Expr {
        Expr::Cast(Box::new(self), of)
    }

    methods! {
        /// Equal.
        eq Eq,
        /// Not equal.
        ne Ne,
        /// Less.
        lt Lt,
        /// Less or equal.
        le Le,
        /// Greater.
        gt Gt,
        /// Greater or equal.
        ge Ge,
        /// Both are true.
        and And,
        /// At least one is true.
        or Or,
        /// The rest of a division, with the sign of the divisor.
        modulo Modulo
    }

    /// How many levels of operators stand in one another.
    pub(crate) fn depth(&self) -> usize {
        let mut deepest = 0;
        let mut left = vec![(self, 1)];
        // By a list, since a recursion would overflow the stack before it knew.
        while let Some((expr, depth)) = left.pop() {
            deepest = deepest.max(depth);
            match expr {
                Expr::Name(_) | Expr::Value(_) => {}
                Expr::Unary(_, of) | Expr::Cast(of, _) => left.push((of, depth + 1)),
                Expr::Binary(_, a, b) => left.extend([(&**a, depth + 1), (&**b, depth + 1)]),
                Expr::If(a, b, c) => left.extend([a, b, c].map(|of| (&**of, depth + 1))),
            }
        }
        deepest
    }
}

macro_rules! signs {
    ($($name:ident $method:ident $op:ident),*) => {$(
        impl std::ops::$name for Expr {
            type Output = Expr;

            fn $method(self, other: Expr) -> Expr {
                self.with(BinaryOp::$op, other)
            }
        }
    )*};
}

signs!(Add add Add, Sub sub Subtract, Mul mul Multiply, Div div Divide);

impl std::ops::Neg for Expr {
    type Output = Expr;

    fn neg(self) -> Expr {
        self.unary(UnaryOp::Negate)
    }
}

impl std::ops::Not for Expr {
    type Output = Expr;

    fn not(self) -> Expr {
        self.unary(UnaryOp::Not)
    }
}

impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Expr::Name(name) => f.write_str(name),
            Expr::Value(value) => write!(f, "{value}"),
            Expr::Unary(UnaryOp::Negate, of) => write!(f, "(-{of})"),
            Expr::Unary(UnaryOp::Not, of) => write!(f, "(not {of})"),
            Expr::Unary(op, of) => {
                let name = UnaryOp::FUNCTIONS
                    .iter()
                    .find(|(_, function)| function == op);
                write!(f, "{}({of})", name.map_or("?", |(name, _)| name))
            }
            Expr::Binary(op, a, b) => write!(f, "({a} {} {b})", op.sign()),
            Expr::Cast(of, to) => write!(f, "{to}({of})"),
            Expr::If(a, b, c) => write!(f, "iif({a}, {b}, {c})"),
        }
    }
}
