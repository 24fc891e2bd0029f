//! Reading of expressions, with the casts that PostgreSQL adds.

use sqlparser::ast::{
    BinaryOperator, CastKind, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Ident,
    ObjectName, UnaryOperator, Value,
};

use crate::deparse::node::{Node, literal};
use crate::deparse::types::{Resolve, Type};
use crate::domains::VALUE;
use crate::names::{column_name, quoted};

/// Reads trees.
pub(super) struct Reading<'t> {
    pub resolve: &'t Resolve<'t>,
    /// Whether casts are added: in what was written before they are there.
    pub typed: bool,
}

/// A part of an expression, and its type.
pub(super) type Typed = (Node, Type);

impl Reading<'_> {
    /// The part that a tree is; none of what is not known here.
    pub(super) fn node(&self, expr: &Expr) -> Option<Typed> {
        match expr {
            Expr::Nested(inner) => self.node(inner),
            Expr::Identifier(name) => self.column(std::slice::from_ref(name)),
            Expr::CompoundIdentifier(parts) => self.column(parts),
            Expr::Value(value) => self.constant(&value.value),
            Expr::TypedString(typed) => match &typed.value.value {
                Value::SingleQuotedString(text) => self.labelled(text, Type::of(&typed.data_type)?),
                _ => None,
            },
            Expr::Cast {
                kind: CastKind::Cast | CastKind::DoubleColon,
                expr,
                data_type,
                array: false,
                format: None,
            } => {
                if let Some((to, title)) = Type::limited(data_type) {
                    return self.limited(expr, to, title);
                }
                let to = Type::of(data_type)?;
                match self.node(expr)? {
                    (Node::Quoted(text), _) => self.labelled(&text, to),
                    (node, own) if self.typed && own == to => Some((node, own)),
                    (node, _) => Some((Node::Cast(Box::new(node), to.title()?), to)),
                }
            }
            Expr::UnaryOp {
                op: UnaryOperator::Not,
                expr,
            } => Some((Node::Not(Box::new(self.node(expr)?.0)), Type::Boolean)),
            Expr::UnaryOp {
                op: UnaryOperator::Minus,
                expr,
            } => self.opposite(expr),
            Expr::Array(array) if array.named && !self.typed => {
                let items = array.elem.iter().map(|item| Some(self.node(item)?.0));
                Some((Node::Array(items.collect::<Option<_>>()?), Type::Any))
            }
            Expr::BinaryOp { left, op, right } => self.binary(left, op, right),
            Expr::Function(_) => self.call(expr),
            expr => self.predicate(expr),
        }
    }

    /// A cast to a [limited](Type::limited) type.
    fn limited(&self, expr: &Expr, to: Type, title: String) -> Option<Typed> {
        let is_number =
            matches!(expr, Expr::Value(value) if matches!(value.value, Value::Number(..)));
        let node = match self.node(expr)? {
            (Node::Quoted(text), _) if self.typed => {
                Node::Plain(to.limited_constant(&text, &title)?)
            }
            (Node::Quoted(text), _) => Node::Plain(format!("{}::{title}", literal(&text))),
            (Node::Plain(text), Type::Numeric) if is_number && to == Type::Numeric => {
                Node::Plain(format!("{text}::{title}"))
            }
            (node, _) => Node::Cast(Box::new(node), title),
        };
        Some((node, to))
    }

    /// What is true or false, but for operators.
    fn predicate(&self, expr: &Expr) -> Option<Typed> {
        match expr {
            Expr::IsNull(inner) => self.test(inner, "IS NULL"),
            Expr::IsNotNull(inner) => self.test(inner, "IS NOT NULL"),
            Expr::IsTrue(inner) => self.test(inner, "IS TRUE"),
            Expr::IsFalse(inner) => self.test(inner, "IS FALSE"),
            Expr::IsDistinctFrom(left, right) => self.distinct(left, right),
            Expr::IsNotDistinctFrom(left, right) => {
                let (same, own) = self.distinct(left, right)?;
                Some((Node::Not(Box::new(same)), own))
            }
            Expr::Between {
                expr,
                negated,
                low,
                high,
            } => {
                let ops = if *negated { ["<", ">"] } else { [">=", "<="] };
                let word = if *negated { "OR" } else { "AND" };
                let value = self.node(expr)?;
                let low = self.operator(ops[0], value.clone(), self.node(low)?)?;
                let high = self.operator(ops[1], value, self.node(high)?)?;
                Some((Node::Logic(word, vec![low.0, high.0]), Type::Boolean))
            }
            Expr::Like {
                negated,
                any: false,
                expr,
                pattern,
                escape_char: None,
            } => {
                let op = if *negated { "!~~" } else { "~~" };
                self.operator(op, self.node(expr)?, self.node(pattern)?)
            }
            Expr::ILike {
                negated,
                any: false,
                expr,
                pattern,
                escape_char: None,
            } => {
                let op = if *negated { "!~~*" } else { "~~*" };
                self.operator(op, self.node(expr)?, self.node(pattern)?)
            }
            Expr::InList {
                expr,
                list,
                negated,
            } => self.list(expr, list, *negated),
            Expr::AnyOp {
                left,
                compare_op,
                right,
                is_some: false,
            } => self.each(left, compare_op, right, "ANY"),
            Expr::AllOp {
                left,
                compare_op,
                right,
            } => self.each(left, compare_op, right, "ALL"),
            _ => None,
        }
    }

    fn distinct(&self, left: &Expr, right: &Expr) -> Option<Typed> {
        let (left, right, _) = self.pair(self.node(left)?, self.node(right)?)?;
        Some((Node::Distinct(left, right), Type::Boolean))
    }

    fn column(&self, name: &[Ident]) -> Option<Typed> {
        let (shown, own) = (self.resolve)(name)?;
        Some((Node::Plain(shown), own))
    }

    fn test(&self, inner: &Expr, word: &'static str) -> Option<Typed> {
        let (node, own) = self.node(inner)?;
        (own != Type::Unknown).then(|| (Node::Test(Box::new(node), word), Type::Boolean))
    }

    fn constant(&self, value: &Value) -> Option<Typed> {
        Some(match value {
            Value::Boolean(value) => (Node::Plain(value.to_string()), Type::Boolean),
            Value::SingleQuotedString(text) => (Node::Quoted(text.clone()), Type::Unknown),
            Value::Number(text, false) => {
                let is_whole = text.bytes().all(|byte| byte.is_ascii_digit());
                let own = match (is_whole, text.contains(['e', 'E'])) {
                    (true, _) if text.parse::<i32>().is_ok() => Type::Integer,
                    (true, _) if text.parse::<i64>().is_ok() => Type::Bigint,
                    (false, false) if !text.starts_with('.') && !text.ends_with('.') => {
                        Type::Numeric
                    }
                    _ => return None,
                };
                let shown = match own {
                    Type::Bigint if self.typed => format!("'{text}'::bigint"),
                    _ => text.clone(),
                };
                (Node::Plain(shown), own)
            }
            _ => return None,
        })
    }

    /// A constant in quotes of this type.
    fn labelled(&self, text: &str, own: Type) -> Option<Typed> {
        let shown = if self.typed {
            own.constant(text)?
        } else {
            format!("{}::{}", literal(text), own.title()?)
        };
        Some((Node::Plain(shown), own))
    }

    fn opposite(&self, expr: &Expr) -> Option<Typed> {
        if let Expr::Value(value) = expr
            && let Value::Number(..) = value.value
            && self.typed
        {
            let (Node::Plain(text), own) = self.constant(&value.value)? else {
                return None;
            };
            let shown = match own {
                Type::Integer | Type::Numeric => format!("'-{text}'::{}", own.title()?),
                _ => return None,
            };
            return Some((Node::Plain(shown), own));
        }
        let (node, own) = self.node(expr)?;
        let is_number = own.is_number() || own == Type::Any;
        is_number.then(|| (Node::Opposite(Box::new(node)), own))
    }

    fn binary(&self, left: &Expr, op: &BinaryOperator, right: &Expr) -> Option<Typed> {
        let word = match op {
            BinaryOperator::And => "AND",
            BinaryOperator::Or => "OR",
            op => {
                let (left, right) = (self.node(left)?, self.node(right)?);
                return self.operator(symbol(op)?, left, right);
            }
        };
        let (first, _) = self.node(left)?;
        let mut all = match first {
            Node::Logic(own, all) if own == word => all,
            first => vec![first],
        };
        all.push(self.node(right)?.0);
        Some((Node::Logic(word, all), Type::Boolean))
    }

    /// An operator between two values, each cast as PostgreSQL casts it.
    fn operator(&self, op: &str, left: Typed, right: Typed) -> Option<Typed> {
        let (left, right, both) = self.pair(left, right)?;
        let is_known = both == Type::Any;
        let own = match op {
            "+" | "-" | "*" | "/" | "%" if both.is_number() || is_known => both,
            "||" if both == Type::Text || is_known => both,
            "~~" | "!~~" | "~~*" | "!~~*" | "~" | "~*" | "!~" | "!~*"
                if both == Type::Text || is_known =>
            {
                Type::Boolean
            }
            "=" | "<>" | "<" | ">" | "<=" | ">=" => Type::Boolean,
            _ => return None,
        };
        Some((Node::Operator(op.to_owned(), left, right), own))
    }

    /// Two values as one operator takes them, and the type that they have then, or that is computed of them.
    fn pair(&self, left: Typed, right: Typed) -> Option<(Box<Node>, Box<Node>, Type)> {
        let both = Type::of_both(left.1, right.1)?;
        let cast = |(node, own): Typed, other: Type| match node {
            Node::Quoted(text) if both != Type::Any => Some(Node::Plain(both.constant(&text)?)),
            node if own.is_cast_to(both, other) => Some(Node::Cast(Box::new(node), both.title()?)),
            node => Some(node),
        };
        let (of_left, of_right) = (left.1, right.1);
        let (left, right) = (cast(left, of_right)?, cast(right, of_left)?);
        Some((Box::new(left), Box::new(right), both))
    }

    /// `x IN (a, b)`.
    fn list(&self, expr: &Expr, list: &[Expr], negated: bool) -> Option<Typed> {
        let value = self.node(expr)?;
        let (op, word) = if negated { ("<>", "ALL") } else { ("=", "ANY") };
        if let [one] = list {
            return self.operator(op, value, self.node(one)?);
        }
        let is_varchar = value.1 == Type::Varchar;
        let mut items = Vec::with_capacity(list.len());
        for item in list {
            items.push(match self.node(item)? {
                (Node::Quoted(text), _) => Node::Plain(value.1.constant(&text)?),
                (node @ Node::Plain(_), own) => match value.1.of_items(own)? {
                    Some(other) => Node::Cast(Box::new(node), other.title()?),
                    None => node,
                },
                _ => return None,
            });
        }
        let mut array = Node::Array(items);
        let mut value = value.0;
        if is_varchar {
            array = Node::Cast(Box::new(array), "text[]".into());
            value = Node::Cast(Box::new(value), "text".into());
        }
        let each = Node::Each(op.to_owned(), word, Box::new(value), Box::new(array));
        Some((each, Type::Boolean))
    }

    /// `x = ANY (array)`, as it is.
    fn each(
        &self,
        left: &Expr,
        op: &BinaryOperator,
        array: &Expr,
        word: &'static str,
    ) -> Option<Typed> {
        let items = Reading {
            typed: false,
            ..*self
        };
        let (left, array) = (self.node(left)?.0, items.node(array)?.0);
        let op = symbol(op)?.to_owned();
        let each = Node::Each(op, word, Box::new(left), Box::new(array));
        Some((each, Type::Boolean))
    }

    fn call(&self, expr: &Expr) -> Option<Typed> {
        let Expr::Function(function) = expr else {
            return None;
        };
        let list = match &function.args {
            FunctionArguments::List(list) => list,
            FunctionArguments::None => return keyword(&column_name(only(&function.name)?)),
            FunctionArguments::Subquery(_) => return None,
        };
        let is_plain = function.filter.is_none()
            && function.over.is_none()
            && list.clauses.is_empty()
            && list.duplicate_treatment.is_none();
        let name = column_name(only(&function.name).filter(|_| is_plain)?);
        let args = list.args.iter().map(|arg| match arg {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(arg)) => self.node(arg),
            FunctionArg::Unnamed(FunctionArgExpr::Wildcard) => {
                Some((Node::Plain("*".to_owned()), Type::Any))
            }
            _ => None,
        });
        let args: Vec<Typed> = args.collect::<Option<_>>()?;
        let (own, of_text) = match (name.as_str(), args.as_slice()) {
            ("now", []) => (Type::Timestamptz, false),
            ("coalesce", [(_, first), ..]) => (*first, false),
            ("length" | "char_length" | "character_length" | "octet_length", [_]) => {
                (Type::Integer, true)
            }
            ("lower" | "upper", [_]) => (Type::Text, true),
            ("abs", [(_, own)]) if own.is_number() || *own == Type::Any => (*own, false),
            ("count", [(node, own)]) if *own != Type::Unknown => {
                return Some((Node::Call(name, vec![node.clone()]), Type::Bigint));
            }
            ("sum" | "avg", [(node, own)]) if own.is_number() || *own == Type::Any => {
                let of = own.of_total(name == "sum");
                return Some((Node::Call(name, vec![node.clone()]), of));
            }
            ("min" | "max", [(_, Type::Text | Type::Varchar)]) => (Type::Text, true),
            ("min" | "max", [(node, own)]) if own.is_number() || *own == Type::Any => {
                return Some((Node::Call(name, vec![node.clone()]), *own));
            }
            _ => return None,
        };
        let mut nodes = Vec::with_capacity(args.len());
        for (node, of) in args {
            nodes.push(match (node, of) {
                // What PostgreSQL has written has all casts that it needs.
                (node, _) if !self.typed => node,
                (node, Type::Any) => node,
                (node, Type::Text) if of_text => node,
                (node, Type::Varchar) if of_text => Node::Cast(Box::new(node), "text".into()),
                (Node::Quoted(text), _) if of_text => Node::Plain(Type::Text.constant(&text)?),
                (Node::Quoted(text), _) => Node::Plain(own.constant(&text)?),
                (node, of) if of == own && of != Type::Unknown && !of_text => node,
                _ => return None,
            });
        }
        let shown = if name == "coalesce" {
            "COALESCE".to_owned()
        } else {
            name
        };
        Some((Node::Call(shown, nodes), own))
    }
}

/// A name of one part.
fn only(name: &ObjectName) -> Option<&Ident> {
    match name.0.as_slice() {
        [part] => part.as_ident(),
        _ => None,
    }
}

/// What is called without parentheses, which PostgreSQL writes in capitals.
fn keyword(name: &str) -> Option<Typed> {
    let own = match name {
        "current_date" => Type::Date,
        "current_timestamp" => Type::Timestamptz,
        "localtimestamp" => Type::Timestamp,
        "current_time" | "localtime" | "current_user" | "session_user" | "current_role"
        | "current_catalog" | "user" => Type::Other,
        _ => return None,
    };
    Some((Node::Plain(name.to_uppercase()), own))
}

fn symbol(op: &BinaryOperator) -> Option<&'static str> {
    use BinaryOperator::{
        Divide, Eq, Gt, GtEq, Lt, LtEq, Minus, Modulo, Multiply, NotEq, PGILikeMatch, PGLikeMatch,
        PGNotILikeMatch, PGNotLikeMatch, PGRegexIMatch, PGRegexMatch, PGRegexNotIMatch,
        PGRegexNotMatch, Plus, StringConcat,
    };
    Some(match op {
        Eq => "=",
        NotEq => "<>",
        Lt => "<",
        LtEq => "<=",
        Gt => ">",
        GtEq => ">=",
        Plus => "+",
        Minus => "-",
        Multiply => "*",
        Divide => "/",
        Modulo => "%",
        StringConcat => "||",
        PGLikeMatch => "~~",
        PGNotLikeMatch => "!~~",
        PGILikeMatch => "~~*",
        PGNotILikeMatch => "!~~*",
        PGRegexMatch => "~",
        PGRegexIMatch => "~*",
        PGRegexNotMatch => "!~",
        PGRegexNotIMatch => "!~*",
        _ => return None,
    })
}

/// A column as it was written before.
pub(super) fn as_it_is(name: &[Ident]) -> Option<(String, Type)> {
    let parts = name.iter().map(|part| {
        // Of what was written before it is not known whether it is of a domain.
        if part.quote_style.is_none() && part.value == VALUE.to_uppercase() {
            part.value.clone()
        } else {
            quoted(&column_name(part))
        }
    });
    Some((parts.collect::<Vec<_>>().join("."), Type::Any))
}
