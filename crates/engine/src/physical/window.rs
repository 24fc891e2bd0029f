//! Planning of window functions: which there are, of which values and over which frames, and which share a sort.

use arrow::datatypes::DataType;

use crate::error::{Error, Result};
use crate::expr::Literal;
use crate::logical::relation::{Function, Key, Rel};
use crate::logical::window::{
    Distance, FrameBounds, FrameEdge, FrameRow, FrameUnits, WindowFold, WindowFunction, WindowPart,
    tick,
};
use crate::physical::planner::Planner;
use crate::physical::program::{Pipeline, Required, Sink, Source, pipeline};
use crate::vector::value::{Kind, Type, Var};

/// Functions over the same partitions and order.
struct Layer {
    /// The partition keys, each once.
    partition: Vec<Var>,
    order: Vec<Key>,
    functions: Vec<WindowFold>,
}

impl Layer {
    fn reads(&self) -> Required {
        let order = self.order.iter().map(|key| key.var);
        let args = self.functions.iter().filter_map(|fold| fold.arg);
        let partition = self.partition.iter().copied();
        partition.chain(order).chain(args).collect()
    }

    fn gives(&self, vars: &Required) -> bool {
        self.functions.iter().any(|fold| vars.contains(&fold.var))
    }
}

/// Functions that are computed of rows sorted once.
struct SharedSort {
    order: Vec<Key>,
    parts: Vec<WindowPart>,
}

impl SharedSort {
    fn gives(&self, vars: &Required) -> bool {
        let mut functions = self.parts.iter().flat_map(|part| &part.functions);
        functions.any(|fold| vars.contains(&fold.var))
    }

    /// The keys of a sort for these functions and those of `layer`; `None` if no sort is both. The first of them are the
    /// partition keys of the layer, in whatever order and direction, and those behind them are its order.
    fn order_with(&self, layer: &Layer) -> Option<Vec<Key>> {
        let (own, rest) = self
            .order
            .split_at(self.order.len().min(layer.partition.len()));
        let missing = layer.partition.iter().filter(|var| {
            let mut own = own.iter();
            own.all(|key| key.var != **var)
        });
        let missing: Vec<Key> = missing.map(|var| ascending(*var)).collect();
        // Otherwise there are others among the first.
        if own.len() + missing.len() != layer.partition.len() {
            return None;
        }
        let both = rest.len().min(layer.order.len());
        if rest[..both] != layer.order[..both] {
            return None;
        }
        let longer = if rest.len() > both {
            rest
        } else {
            &layer.order
        };
        Some([own, &missing, longer].concat())
    }
}

fn ascending(var: Var) -> Key {
    Key {
        var,
        descending: false,
        nulls_first: false,
    }
}

/// The sorts that the layers need, of which each may read what those before it give.
fn sorts(mut layers: Vec<Layer>) -> Vec<SharedSort> {
    let depend = layers.iter().any(|layer| {
        let reads = layer.reads();
        layers.iter().any(|other| other.gives(&reads))
    });
    if !depend {
        // The keys of larger partitions are the first of the sort, wherever they stand among those of smaller ones.
        layers.sort_by_key(|layer| layer.partition.len());
    }
    let mut sorts: Vec<SharedSort> = Vec::new();
    for layer in layers {
        let reads = layer.reads();
        let before = sorts.iter().rposition(|sort| sort.gives(&reads));
        let later = before.map_or(0, |before| before + 1);
        let mut shared = sorts.iter_mut().skip(later);
        let shared = shared.find_map(|sort| Some((sort.order_with(&layer)?, sort)));
        let part = WindowPart {
            partition: layer.partition.len(),
            order: layer.order.len(),
            functions: layer.functions,
        };
        match shared {
            Some((order, sort)) => {
                sort.order = order;
                sort.parts.push(part);
            }
            None => {
                let partition = layer.partition.into_iter().map(ascending);
                sorts.push(SharedSort {
                    order: partition.chain(layer.order).collect(),
                    parts: vec![part],
                });
            }
        }
    }
    sorts
}

impl Planner<'_> {
    /// The stages that collect and sort the rows and compute the functions of windows that read each other, and the
    /// pipeline that reads the rows of the last.
    pub(super) fn windows(&mut self, mut rel: Rel, required: &Required) -> Result<Vec<Pipeline>> {
        let mut layers = Vec::new();
        let mut wanted = required.clone();
        loop {
            match rel {
                Rel::Window {
                    input,
                    partition,
                    order,
                    mut functions,
                } => {
                    functions.retain(|fold| wanted.contains(&fold.var));
                    if !functions.is_empty() {
                        let layer = self.layer(&partition, order, functions)?;
                        wanted.extend(layer.reads());
                        layers.push(layer);
                    }
                    rel = *input;
                }
                other => {
                    rel = other;
                    break;
                }
            }
        }
        layers.reverse();
        let sorts = sorts(layers);
        // For each sort, from the last on, what is read above, and what it reads itself.
        let mut reads = Vec::with_capacity(sorts.len());
        let mut above = required.clone();
        for sort in sorts.iter().rev() {
            let mut kept = above;
            let functions = sort.parts.iter().flat_map(|part| &part.functions);
            functions.for_each(|fold| _ = kept.remove(&fold.var));
            let mut vars = kept.clone();
            for part in &sort.parts {
                vars.extend(part.functions.iter().filter_map(|fold| fold.arg));
            }
            vars.extend(sort.order.iter().map(|key| key.var));
            above = vars.clone();
            reads.push((kept, vars));
        }
        let mut pipelines = self.pipelines(rel, &above)?;
        for (sort, (kept, vars)) in sorts.into_iter().zip(reads.into_iter().rev()) {
            let sink = Sink::Window {
                vars: vars.into_iter().collect(),
                kept: kept.into_iter().collect(),
                order: sort.order,
                parts: sort.parts,
            };
            let stage = self.stage(pipelines, sink);
            pipelines = vec![pipeline(Source::Rows(stage))];
        }
        Ok(pipelines)
    }

    fn layer(
        &self,
        partition: &[Var],
        order: Vec<Key>,
        functions: Vec<WindowFold>,
    ) -> Result<Layer> {
        for fold in &functions {
            let arg = fold.arg.map(|arg| self.query.ty(arg));
            let types = |key: &Key| self.query.ty(key.var);
            check(fold, &order, arg, self.query.ty(fold.var), types)?;
        }
        let mut keys: Vec<Var> = Vec::with_capacity(partition.len());
        for var in partition {
            if !keys.contains(var) {
                keys.push(*var);
            }
        }
        Ok(Layer {
            partition: keys,
            order,
            functions,
        })
    }
}

/// Checks that a function can be computed of an argument of type `arg` with a result of type `ty`, and its frames found in
/// rows sorted by `order`, whose types `types` tells.
///
/// # Errors
/// [`Error::Unsupported`] if it cannot.
fn check<'t>(
    fold: &WindowFold,
    order: &[Key],
    arg: Option<&Type>,
    ty: &Type,
    types: impl Fn(&Key) -> &'t Type,
) -> Result<()> {
    let refused = |why: &str| {
        let name = fold.function.name();
        Err(Error::unsupported(format!("{name} over a window, {why}")))
    };
    if let Some(frame) = fold.function.frame() {
        let key = match order {
            [key] => Some(types(key)),
            _ => None,
        };
        let edges = [frame.start, frame.end];
        if !edges.iter().all(|edge| is_there(&frame, *edge, key)) {
            return refused("of such distances");
        }
    }
    let whole = matches!(ty.kind, Kind::Int | Kind::Wide);
    match (&fold.function, arg) {
        (
            WindowFunction::Ntile(0)
            | WindowFunction::Value {
                row: FrameRow::Nth(0),
                ..
            },
            _,
        ) => refused("of none"),
        (
            WindowFunction::Shift {
                rows: 0,
                ignore_nulls: true,
                ..
            },
            _,
        ) => refused("of the row itself"),
        (
            WindowFunction::RowNumber
            | WindowFunction::Rank
            | WindowFunction::DenseRank
            | WindowFunction::Ntile(_),
            None,
        ) if whole => Ok(()),
        (WindowFunction::PercentRank | WindowFunction::CumeDist, None)
            if ty.kind == Kind::Float =>
        {
            Ok(())
        }
        (WindowFunction::Shift { default, .. }, Some(arg))
            if arg.represents_as(ty) && is_of(default, ty.kind) =>
        {
            Ok(())
        }
        (WindowFunction::Value { .. }, Some(arg)) if arg.represents_as(ty) => Ok(()),
        (WindowFunction::Aggregate(function, _), arg) if is_aggregate(*function, arg, ty) => Ok(()),
        _ => refused("of such values"),
    }
}

/// Whether there is such an aggregate over windows.
fn is_aggregate(function: Function, arg: Option<&Type>, ty: &Type) -> bool {
    let whole = |ty: &Type| matches!(ty.kind, Kind::Int | Kind::Wide);
    match (function, arg) {
        (Function::Count, _) => whole(ty),
        (Function::Min | Function::Max, Some(arg)) => arg.represents_as(ty) && !arg.is_opaque(),
        (Function::Sum, Some(arg)) => {
            whole(arg) && whole(ty) && arg.scale() == ty.scale()
                || arg.kind == Kind::Float && ty.kind == Kind::Float && ty.data != DataType::Float32
        }
        (Function::Avg, Some(arg)) => match ty.kind {
            Kind::Float => whole(arg) && arg.scale() == 0 || arg.kind == Kind::Float,
            Kind::Int | Kind::Wide => whole(arg) && arg.scale() <= ty.scale(),
            _ => false,
        },
        (
            Function::VarSamp | Function::VarPop | Function::StddevSamp | Function::StddevPop,
            Some(arg),
        ) => arg.kind == Kind::Float && ty.kind == Kind::Float,
        (Function::Call(_), Some(_)) => true,
        _ => false,
    }
}

/// Whether there is such an edge of a frame, in an order of a single key of type `key`, if it is one.
fn is_there(frame: &FrameBounds, edge: FrameEdge, key: Option<&Type>) -> bool {
    match edge {
        FrameEdge::First | FrameEdge::Current | FrameEdge::Last => true,
        FrameEdge::Preceding(_) | FrameEdge::Following(_) => frame.units != FrameUnits::Range,
        FrameEdge::PrecedingBy(distance) | FrameEdge::FollowingBy(distance) => {
            let fits = key.is_some_and(|key| match distance {
                Distance::Whole(by) => by >= 0 && matches!(key.kind, Kind::Int | Kind::Wide),
                Distance::Float(by) => by >= 0.0 && key.kind == Kind::Float,
                Distance::Months { .. } => key.kind == Kind::Int && has_months(&key.data),
            });
            frame.units == FrameUnits::Range && fits
        }
    }
}

fn has_months(data: &DataType) -> bool {
    tick(data).is_some()
}

/// Whether a constant is represented as values of this kind are.
fn is_of(literal: &Literal, kind: Kind) -> bool {
    match literal {
        Literal::Null => true,
        Literal::Int(_) => kind == Kind::Int,
        Literal::Wide(_) => kind == Kind::Wide,
        Literal::Float(_) => kind == Kind::Float,
        Literal::Bool(_) => kind == Kind::Bool,
        Literal::Text(_) => kind == Kind::Text,
    }
}
