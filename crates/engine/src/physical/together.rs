//! Functions of one vector that are computed together: what takes several parts out of a value goes through it once.
//!
//! Such calls are looked for in the filters and maps of a pipeline. The first of them computes all those up to the next join, which
//! may leave few rows; what is the same is computed once, also behind joins.

use std::ops::Range;
use std::sync::Arc;

use crate::expr::{Call, Expr, Node};
use crate::logical::relation::Query;
use crate::physical::program::{Operator, Together};
use crate::vector::value::{Type, Var};

/// How many are computed together at most: values are made for all rows, also for those that filters drop before they are read.
const MOST: usize = 16;

/// Calls of one vector.
struct Group {
    of: Var,
    /// The operators that may read their values: from the first that does to the one that sets the vector anew.
    operators: Range<usize>,
    calls: Vec<Member>,
    /// How many places read one of the values.
    uses: usize,
    /// Whether there is no join since its first operator.
    is_open: bool,
}

/// One of several calls.
struct Member {
    call: Arc<dyn Call>,
    name: String,
    ty: Type,
    /// The vector of its values.
    var: Var,
}

/// Puts operators that compute calls together before those that read their values, where there are several reads.
pub(crate) fn computed(query: &mut Query, operators: &mut Vec<Operator>) {
    let mut groups = groups(operators);
    groups.retain(|group| group.uses > 1);
    if groups.is_empty() {
        return;
    }
    let mut before: Vec<(usize, Operator)> = Vec::new();
    for group in &mut groups {
        for member in &mut group.calls {
            member.var = query.add(member.name.clone(), member.ty.clone());
        }
        let calls: Vec<_> = group
            .calls
            .iter()
            .map(|own| Arc::clone(&own.call))
            .collect();
        let Some(together) = calls.first().and_then(|first| first.together(&calls)) else {
            group.calls.clear();
            continue;
        };
        let vars = group.calls.iter().map(|own| own.var).collect();
        let (of, calls) = (group.of, together);
        let operator = Operator::Together(Together { of, vars, calls });
        before.push((group.operators.start, operator));
    }
    for (number, operator) in operators.iter_mut().enumerate() {
        if let Some(e) = expression(operator) {
            e.each_mut(&mut |e| read_value(e, number, &groups));
        }
    }
    before.sort_by_key(|(number, _)| *number);
    for (number, operator) in before.into_iter().rev() {
        operators.insert(number, operator);
    }
}

/// The expression that an operator evaluates for each row that it gets.
fn expression(operator: &mut Operator) -> Option<&mut Expr> {
    match operator {
        Operator::Filter(e) | Operator::Map(_, e) => Some(e),
        _ => None,
    }
}

/// The vector that `e` is a call of, and the call, if it may be computed together with others.
fn member(e: &Expr) -> Option<(Var, &Arc<dyn Call>)> {
    let Node::Call(args, call) = &e.node else {
        return None;
    };
    let of = match &args[..] {
        [arg] => arg.as_var()?,
        _ => return None,
    };
    let is_one = call.together(std::slice::from_ref(call)).is_some();
    is_one.then_some((of, call))
}

/// The calls that may be computed together.
fn groups(operators: &mut [Operator]) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for (number, operator) in operators.iter_mut().enumerate() {
        if let Some(e) = expression(operator) {
            e.each_mut(&mut |e| add(e, number, &mut groups));
        }
        operator.makes(&mut |var| {
            for group in groups.iter_mut().filter(|group| group.of == var) {
                group.operators.end = group.operators.end.min(number + 1);
            }
        });
        if matches!(operator, Operator::Probe(_)) {
            groups.iter_mut().for_each(|group| group.is_open = false);
        }
    }
    groups
}

/// Adds the call `e` of operator `number`, if it is one that may be computed together with others.
fn add(e: &mut Expr, number: usize, groups: &mut Vec<Group>) {
    let Some((of, call)) = member(e) else {
        return;
    };
    let name = call.name();
    let usable = |group: &&mut Group| group.of == of && group.operators.contains(&number);
    for group in groups.iter_mut().filter(|group| usable(group)) {
        if group.calls.iter().any(|own| own.name == name) {
            group.uses += 1;
            return;
        }
    }
    let call = Member {
        call: Arc::clone(call),
        name,
        ty: e.ty.clone(),
        var: Var::MAX,
    };
    let mut open = groups.iter_mut().filter(usable);
    match open.find(|group| group.is_open && group.calls.len() < MOST) {
        Some(group) => {
            group.calls.push(call);
            group.uses += 1;
        }
        None => groups.push(Group {
            of,
            operators: number..usize::MAX,
            calls: vec![call],
            uses: 1,
            is_open: true,
        }),
    }
}

/// Puts the vector of its values in the place of the call `e` of operator `number`, if there is one.
fn read_value(e: &mut Expr, number: usize, groups: &[Group]) {
    let Some((of, call)) = member(e) else {
        return;
    };
    let name = call.name();
    let usable = |group: &&Group| group.of == of && group.operators.contains(&number);
    let mut known = groups.iter().filter(usable).flat_map(|group| &group.calls);
    if let Some(own) = known.find(|own| own.name == name) {
        e.node = Node::Var(own.var);
    }
}
