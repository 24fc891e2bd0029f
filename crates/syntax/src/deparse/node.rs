//! The parts of an expression, and their text.

/// A part of an expression.
#[derive(Clone, Debug)]
pub(super) enum Node {
    /// A column, or a constant with its type.
    Plain(String),
    /// A constant in quotes that has no type yet.
    Quoted(String),
    Cast(Box<Node>, String),
    Operator(String, Box<Node>, Box<Node>),
    Opposite(Box<Node>),
    Not(Box<Node>),
    /// `AND` or `OR` between these.
    Logic(&'static str, Vec<Node>),
    /// `IS NULL` and its kin.
    Test(Box<Node>, &'static str),
    Distinct(Box<Node>, Box<Node>),
    /// `x = ANY (array)`, or `ALL`.
    Each(String, &'static str, Box<Node>, Box<Node>),
    Array(Vec<Node>),
    Call(String, Vec<Node>),
}

impl Node {
    /// Its text, for people if it is to be `pretty`.
    pub(super) fn text(&self, pretty: bool) -> String {
        let part = |node: &Node| {
            let text = node.text(pretty);
            if pretty && !node.stands_alone(self) {
                format!("({text})")
            } else {
                text
            }
        };
        let list = |nodes: &[Node], between: &str| {
            let texts: Vec<String> = nodes.iter().map(part).collect();
            texts.join(between)
        };
        let whole = match self {
            Node::Plain(text) => return text.clone(),
            Node::Quoted(text) => return literal(text),
            Node::Cast(inner, to) if pretty => return format!("{}::{to}", part(inner)),
            Node::Cast(inner, to) => return format!("({})::{to}", part(inner)),
            Node::Array(items) => return format!("ARRAY[{}]", list(items, ", ")),
            Node::Call(name, args) => return format!("{name}({})", list(args, ", ")),
            Node::Operator(op, left, right) => format!("{} {op} {}", part(left), part(right)),
            Node::Opposite(inner) => format!("- {}", part(inner)),
            Node::Not(inner) => format!("NOT {}", part(inner)),
            Node::Logic(word, all) => list(all, &format!(" {word} ")),
            Node::Test(inner, word) => format!("{} {word}", part(inner)),
            Node::Distinct(left, right) => {
                format!("{} IS DISTINCT FROM {}", part(left), part(right))
            }
            Node::Each(op, word, left, array) => {
                format!("{} {op} {word} ({})", part(left), part(array))
            }
        };
        if pretty { whole } else { format!("({whole})") }
    }

    /// Whether it needs no parentheses within `around`, by the rules of PostgreSQL's `isSimpleNode`.
    fn stands_alone(&self, around: &Node) -> bool {
        let has_own = matches!(around, Node::Array(_) | Node::Call(..));
        match self {
            Node::Plain(_) | Node::Quoted(_) | Node::Cast(..) | Node::Array(_) | Node::Call(..) => {
                true
            }
            Node::Operator(op, ..) => match around {
                Node::Operator(outer, left, _) => {
                    let level = |op: &str| match op {
                        "+" | "-" => Some(1),
                        "*" | "/" | "%" => Some(2),
                        _ => None,
                    };
                    match (level(op), level(outer)) {
                        (Some(own), Some(outer)) if own == outer => {
                            std::ptr::eq(self, left.as_ref())
                        }
                        (Some(own), Some(outer)) => own > outer,
                        _ => false,
                    }
                }
                around => has_own || matches!(around, Node::Logic(..) | Node::Not(_)),
            },
            Node::Test(..) | Node::Distinct(..) | Node::Opposite(_) => {
                has_own || matches!(around, Node::Logic(..) | Node::Not(_))
            }
            Node::Not(_) | Node::Logic("AND", _) => has_own || matches!(around, Node::Logic(..)),
            Node::Logic(..) => has_own || matches!(around, Node::Logic("OR", _)),
            Node::Each(..) => has_own,
        }
    }
}

/// A text in quotes.
pub(super) fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
