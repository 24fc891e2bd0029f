//! A path followed through a value, with PostgreSQL's meaning.

use std::borrow::Cow;

use messages::{Error, Result};

use crate::json::cut;
use crate::json::path::item::Item;
use crate::json::path::number;
use crate::json::path::tree::{Base, Chain, Method, Path, Step};
use crate::regular::Compiled;

/// What is true, false or, as none, unknown.
pub(super) type Truth = Option<bool>;

/// How following a path ended: with an error that is not told, or without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Done,
    Failed,
}

/// Expressions of `like_regex`, each compiled once.
pub(super) type Patterns = Compiled;

/// What a path is followed through.
pub(super) struct Run<'p, 't> {
    pub(super) path: &'p Path,
    root: Item<'t>,
    vars: Option<Item<'t>>,
    /// What `@` is.
    current: Item<'t>,
    /// Whether errors are told.
    throw: bool,
    /// Whether steps that the value has no place for find nothing.
    forgiving: bool,
    /// The size of the array whose subscripts are read.
    size: usize,
    pub(super) patterns: &'p mut Patterns,
}

/// What is left of a chain.
#[derive(Clone, Copy)]
struct Rest<'p> {
    steps: &'p [Step],
}

impl<'p, 't> Run<'p, 't> {
    pub(super) fn new(
        path: &'p Path,
        root: Item<'t>,
        vars: Option<Item<'t>>,
        throw: bool,
        patterns: &'p mut Patterns,
    ) -> Run<'p, 't> {
        Run {
            path,
            current: root.clone(),
            root,
            vars,
            throw,
            forgiving: !path.strict,
            size: 0,
            patterns,
        }
    }

    /// Follows the path, and gathers what it finds.
    ///
    /// # Errors
    /// What goes wrong, if that is told.
    pub(super) fn all(&mut self, found: &mut Vec<Item<'t>>) -> Result<Outcome> {
        let path = self.path;
        self.chain(&path.chain, found)
    }

    fn lax(&self) -> bool {
        !self.path.strict
    }

    /// An error that is told, or counts as one.
    fn wrong(&self, code: &'static str, message: impl Into<String>) -> Result<Outcome> {
        if self.throw {
            Err(Error::coded(code, message))
        } else {
            Ok(Outcome::Failed)
        }
    }

    /// The same of what a value has no place for, which is nothing where that is forgiven.
    fn misplaced(&self, code: &'static str, message: impl Into<String>) -> Result<Outcome> {
        if self.forgiving {
            Ok(Outcome::Done)
        } else {
            self.wrong(code, message)
        }
    }

    fn chain(&mut self, chain: &'p Chain, found: &mut Vec<Item<'t>>) -> Result<Outcome> {
        let rest = Rest {
            steps: &chain.steps,
        };
        let value = match &chain.base {
            Base::Root => self.root.clone(),
            Base::Current => self.current.clone(),
            Base::Last => Item::Number(Cow::Owned((self.size as i64 - 1).to_string())),
            Base::Null => Item::Null,
            Base::Boolean(own) => Item::Boolean(*own),
            Base::Number(text) => Item::Number(Cow::Owned(number::normal(text)?)),
            Base::Text(text) => Item::Text(text.clone()),
            Base::Variable(name) => self.variable(name)?,
            Base::Signed(sign, operand) => return self.signed(*sign, operand, rest, found),
            Base::Binary(sign, left, right) => {
                return self.binary(*sign, (left, right), rest, found);
            }
            Base::Predicate(predicate) => match self.truth(predicate)? {
                Some(own) => Item::Boolean(own),
                None => Item::Null,
            },
        };
        self.next(rest, value, found)
    }

    fn variable(&self, name: &str) -> Result<Item<'t>> {
        let known = match &self.vars {
            Some(vars) => vars.member(name)?,
            None => None,
        };
        known.ok_or_else(|| {
            Error::coded(
                "42704",
                format!("could not find jsonpath variable \"{name}\""),
            )
        })
    }

    /// The steps that are left, from a value.
    fn next(
        &mut self,
        rest: Rest<'p>,
        value: Item<'t>,
        found: &mut Vec<Item<'t>>,
    ) -> Result<Outcome> {
        if rest.steps.is_empty() {
            found.push(value);
            return Ok(Outcome::Done);
        }
        let unwrap = self.lax();
        stacker::maybe_grow(64 << 10, 1 << 20, || self.step(rest, value, found, unwrap))
    }

    /// The first of the steps that are left, from a value; an array stands for its items if `unwrap` says so.
    fn step(
        &mut self,
        rest: Rest<'p>,
        value: Item<'t>,
        found: &mut Vec<Item<'t>>,
        unwrap: bool,
    ) -> Result<Outcome> {
        let Some((first, steps)) = rest.steps.split_first() else {
            found.push(value);
            return Ok(Outcome::Done);
        };
        let behind = Rest { steps };
        let unwrapped = unwrap && matches!(value, Item::Array(_));
        match first {
            Step::Key(key) => {
                if matches!(value, Item::Object(_)) {
                    return match value.member(key)? {
                        Some(member) => self.next(behind, member, found),
                        None => self.misplaced(
                            "2203A",
                            format!("JSON object does not contain key \"{key}\""),
                        ),
                    };
                }
                if unwrapped {
                    return self.of_items(rest, &value, found);
                }
                self.misplaced(
                    "2203A",
                    "jsonpath member accessor can only be applied to an object",
                )
            }
            Step::AnyKey => self.any_key(rest, behind, &value, found, unwrapped),
            Step::AnyItem => match value {
                Item::Array(_) => self.below(behind, &value, found, (1, 1, Some(1)), false),
                value if self.lax() => self.next(behind, value, found),
                _ => self.misplaced(
                    "22039",
                    "jsonpath wildcard array accessor can only be applied to an array",
                ),
            },
            Step::Items(subscripts) => self.items(subscripts, behind, value, found),
            Step::Any(first, last) => self.any(behind, value, found, (*first, *last)),
            Step::Filter(predicate) => {
                if unwrapped {
                    return self.of_items(rest, &value, found);
                }
                let before = std::mem::replace(&mut self.current, value.clone());
                let truth = self.truth(predicate);
                self.current = before;
                match truth? {
                    Some(true) => self.next(behind, value, found),
                    _ => Ok(Outcome::Done),
                }
            }
            Step::Method(method) => {
                let whole = matches!(method, Method::Type | Method::Size);
                if unwrapped && !whole {
                    return self.of_items(rest, &value, found);
                }
                self.method(*method, behind, value, found)
            }
        }
    }

    /// `.*`
    fn any_key(
        &mut self,
        rest: Rest<'p>,
        behind: Rest<'p>,
        value: &Item<'t>,
        found: &mut Vec<Item<'t>>,
        unwrapped: bool,
    ) -> Result<Outcome> {
        if matches!(value, Item::Object(_)) {
            return self.below(behind, value, found, (1, 1, Some(1)), false);
        }
        if unwrapped {
            return self.of_items(rest, value, found);
        }
        self.misplaced(
            "2203C",
            "jsonpath wildcard member accessor can only be applied to an object",
        )
    }

    /// `.**`, from one level to another.
    fn any(
        &mut self,
        behind: Rest<'p>,
        value: Item<'t>,
        found: &mut Vec<Item<'t>>,
        (first, last): (Option<u32>, Option<u32>),
    ) -> Result<Outcome> {
        let first = first.unwrap_or(u32::MAX);
        if first == 0 {
            let before = std::mem::replace(&mut self.forgiving, true);
            let outcome = self.next(behind, value.clone(), found);
            self.forgiving = before;
            if outcome? == Outcome::Failed {
                return Ok(Outcome::Failed);
            }
        }
        if value.is_container() {
            self.below(behind, &value, found, (1, first, last), true)
        } else {
            Ok(Outcome::Done)
        }
    }

    /// The steps from each item of an array, which then stand for no others.
    fn of_items(
        &mut self,
        rest: Rest<'p>,
        value: &Item<'t>,
        found: &mut Vec<Item<'t>>,
    ) -> Result<Outcome> {
        for item in value.children()? {
            if self.step(rest, item, found, false)? == Outcome::Failed {
                return Ok(Outcome::Failed);
            }
        }
        Ok(Outcome::Done)
    }

    /// The steps from what is within a value, from level `first` to `last`; those are at `level`.
    fn below(
        &mut self,
        rest: Rest<'p>,
        value: &Item<'t>,
        found: &mut Vec<Item<'t>>,
        (level, first, last): (u32, u32, Option<u32>),
        forgive: bool,
    ) -> Result<Outcome> {
        let unwrap = self.lax();
        for child in value.children()? {
            let leaves = first == u32::MAX && last.is_none() && !child.is_container();
            if level >= first || leaves {
                let before = self.forgiving;
                self.forgiving |= forgive;
                let outcome = self.step(rest, child.clone(), found, unwrap);
                self.forgiving = before;
                if outcome? == Outcome::Failed {
                    return Ok(Outcome::Failed);
                }
            }
            let deeper = last.is_none_or(|last| level < last) && child.is_container();
            if deeper {
                let levels = (level + 1, first, last);
                let outcome = stacker::maybe_grow(64 << 10, 1 << 20, || {
                    self.below(rest, &child, found, levels, forgive)
                })?;
                if outcome == Outcome::Failed {
                    return Ok(Outcome::Failed);
                }
            }
        }
        Ok(Outcome::Done)
    }

    fn items(
        &mut self,
        subscripts: &'p [(Chain, Option<Chain>)],
        behind: Rest<'p>,
        value: Item<'t>,
        found: &mut Vec<Item<'t>>,
    ) -> Result<Outcome> {
        let items = match &value {
            Item::Array(_) => value.children()?,
            _ if self.lax() => vec![value.clone()],
            _ => {
                return self.misplaced(
                    "22039",
                    "jsonpath array accessor can only be applied to an array",
                );
            }
        };
        let outer = std::mem::replace(&mut self.size, items.len());
        let mut outcome = Outcome::Done;
        for (first, last) in subscripts {
            let Some(from) = self.subscript(first)? else {
                outcome = Outcome::Failed;
                break;
            };
            let to = match last {
                Some(last) => match self.subscript(last)? {
                    Some(to) => to,
                    None => {
                        outcome = Outcome::Failed;
                        break;
                    }
                },
                None => from,
            };
            let size = items.len() as i64;
            if !self.forgiving && (from < 0 || from > to || to >= size) {
                outcome = self.wrong("22033", "jsonpath array subscript is out of bounds")?;
                break;
            }
            for at in from.max(0)..=to.min(size - 1) {
                outcome = self.next(behind, items[at as usize].clone(), found)?;
                if outcome == Outcome::Failed {
                    break;
                }
            }
            if outcome == Outcome::Failed {
                break;
            }
        }
        self.size = outer;
        Ok(outcome)
    }

    /// A subscript; none for an error that is not told.
    fn subscript(&mut self, chain: &'p Chain) -> Result<Option<i64>> {
        let mut found = Vec::new();
        if self.chain(chain, &mut found)? == Outcome::Failed {
            return Ok(None);
        }
        let [Item::Number(own)] = &found[..] else {
            self.wrong(
                "22033",
                "jsonpath array subscript is not a single numeric value",
            )?;
            return Ok(None);
        };
        match number::whole(own) {
            Some(own) => Ok(Some(own)),
            None => {
                self.wrong("22033", "jsonpath array subscript is out of integer range")?;
                Ok(None)
            }
        }
    }

    fn method(
        &mut self,
        method: Method,
        behind: Rest<'p>,
        value: Item<'t>,
        found: &mut Vec<Item<'t>>,
    ) -> Result<Outcome> {
        let name = method.name();
        match method {
            Method::Type => {
                let text = Item::Text(value.type_name().into());
                self.next(behind, text, found)
            }
            Method::Size => {
                let size = match &value {
                    Item::Array(_) => value.children()?.len(),
                    _ if self.lax() => 1,
                    _ => {
                        return self.misplaced(
                            "22039",
                            format!(
                                "jsonpath item method .{name}() can only be applied to an array"
                            ),
                        );
                    }
                };
                let size = Item::Number(Cow::Owned(size.to_string()));
                self.next(behind, size, found)
            }
            Method::Abs | Method::Ceiling | Method::Floor => {
                let Item::Number(own) = &value else {
                    return self.wrong(
                        "22036",
                        format!(
                            "jsonpath item method .{name}() can only be applied to a numeric value"
                        ),
                    );
                };
                let own = match method {
                    Method::Abs => own.trim_start_matches('-').to_string(),
                    Method::Ceiling => number::rounded(own, true)?,
                    _ => number::rounded(own, false)?,
                };
                self.next(behind, Item::Number(Cow::Owned(own)), found)
            }
            Method::Double => self.double(behind, value, found),
            Method::KeyValue => self.members(behind, &value, found),
        }
    }

    fn double(
        &mut self,
        behind: Rest<'p>,
        value: Item<'t>,
        found: &mut Vec<Item<'t>>,
    ) -> Result<Outcome> {
        match &value {
            Item::Number(own) => {
                let finite = own.parse::<f64>().is_ok_and(f64::is_finite);
                if !finite {
                    return self.wrong(
                        "22036",
                        "numeric argument of jsonpath item method .double() is out of range for type double precision",
                    );
                }
                self.next(behind, value, found)
            }
            Item::Text(text) => match text.trim().parse::<f64>() {
                Ok(own) if own.is_finite() => {
                    let own = number::normal(&format!("{own:e}"))?;
                    self.next(behind, Item::Number(Cow::Owned(own)), found)
                }
                Ok(_) => self.wrong(
                    "22036",
                    "NaN or Infinity is not allowed for jsonpath item method .double()",
                ),
                Err(_) => self.wrong(
                    "22036",
                    "string argument of jsonpath item method .double() is not a valid representation of a double precision number",
                ),
            },
            _ => self.wrong(
                "22036",
                "jsonpath item method .double() can only be applied to a string or numeric value",
            ),
        }
    }

    /// `.keyvalue()`: an object for each member.
    fn members(
        &mut self,
        behind: Rest<'p>,
        value: &Item<'t>,
        found: &mut Vec<Item<'t>>,
    ) -> Result<Outcome> {
        let Item::Object(text) = value else {
            return self.wrong(
                "2203C",
                "jsonpath item method .keyvalue() can only be applied to an object",
            );
        };
        // PostgreSQL tells objects within apart by where they lie in its own form of the value.
        if *value != self.root {
            return Err(Error::unsupported(
                "not supported: .keyvalue() of an object that is not the whole value",
            ));
        }
        for (key, own) in cut::members(text) {
            let object = format!("{{\"id\": 0, \"key\": {key}, \"value\": {own}}}");
            let object = Item::Object(Cow::Owned(object));
            if self.next(behind, object, found)? == Outcome::Failed {
                return Ok(Outcome::Failed);
            }
        }
        Ok(Outcome::Done)
    }

    /// The values of an operand, in which arrays stand for their items where the path is lax.
    fn operand(&mut self, chain: &'p Chain, unwrap: bool) -> Result<Option<Vec<Item<'t>>>> {
        let mut found = Vec::new();
        if self.chain(chain, &mut found)? == Outcome::Failed {
            return Ok(None);
        }
        if !(unwrap && self.lax()) {
            return Ok(Some(found));
        }
        let mut all = Vec::with_capacity(found.len());
        for item in found {
            match item {
                Item::Array(_) => all.extend(item.children()?),
                item => all.push(item),
            }
        }
        Ok(Some(all))
    }

    /// The same with errors that are not told.
    pub(super) fn silent(
        &mut self,
        chain: &'p Chain,
        unwrap: bool,
    ) -> Result<Option<Vec<Item<'t>>>> {
        let before = std::mem::replace(&mut self.throw, false);
        let found = self.operand(chain, unwrap);
        self.throw = before;
        found
    }

    fn signed(
        &mut self,
        sign: char,
        operand: &'p Chain,
        rest: Rest<'p>,
        found: &mut Vec<Item<'t>>,
    ) -> Result<Outcome> {
        let Some(values) = self.operand(operand, true)? else {
            return Ok(Outcome::Failed);
        };
        for value in values {
            let Item::Number(own) = value else {
                return self.wrong(
                    "2203B",
                    format!("operand of unary jsonpath operator {sign} is not a numeric value"),
                );
            };
            let own = if sign == '-' {
                number::negated(&own)
            } else {
                own.into_owned()
            };
            let item = Item::Number(Cow::Owned(own));
            if self.next(rest, item, found)? == Outcome::Failed {
                return Ok(Outcome::Failed);
            }
        }
        Ok(Outcome::Done)
    }

    fn binary(
        &mut self,
        sign: char,
        (left, right): (&'p Chain, &'p Chain),
        rest: Rest<'p>,
        found: &mut Vec<Item<'t>>,
    ) -> Result<Outcome> {
        let (Some(left), Some(right)) = (self.operand(left, true)?, self.operand(right, true)?)
        else {
            return Ok(Outcome::Failed);
        };
        let single = |side: &str| {
            format!("{side} operand of jsonpath operator {sign} is not a single numeric value")
        };
        let [Item::Number(left)] = &left[..] else {
            return self.wrong("22038", single("left"));
        };
        let [Item::Number(right)] = &right[..] else {
            return self.wrong("22038", single("right"));
        };
        match number::computed(sign, left, right) {
            Ok(own) => self.next(rest, Item::Number(Cow::Owned(own)), found),
            Err(e) if self.throw || matches!(e, Error::Unsupported { .. }) => Err(e),
            Err(_) => Ok(Outcome::Failed),
        }
    }
}
