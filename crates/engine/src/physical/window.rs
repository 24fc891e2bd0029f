//! Which window functions there are, of which values and over which frames.

use arrow::datatypes::DataType;

use crate::error::{Error, Result};
use crate::expr::Literal;
use crate::logical::relation::{FrameBounds, FrameEdge, Function, WindowFold, WindowFunction};
use crate::vector::value::{Kind, Type};

/// Checks that a function can be computed of an argument of type `arg` with a result of type `ty`.
///
/// # Errors
/// [`Error::Unsupported`] if it cannot.
pub(crate) fn check(fold: &WindowFold, arg: Option<&Type>, ty: &Type) -> Result<()> {
    let refused = |why: &str| {
        let name = fold.function.name();
        Err(Error::unsupported(format!("{name} over a window, {why}")))
    };
    if let Some(frame) = fold.function.frame()
        && frame.peers
        && (is_distant(frame.start) || is_distant(frame.end))
    {
        return refused("of peers at a distance");
    }
    let whole = matches!(ty.kind, Kind::Int | Kind::Wide);
    match (&fold.function, arg) {
        (WindowFunction::Ntile(0) | WindowFunction::NthValue(_, 0), _) => refused("of none"),
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
        (
            WindowFunction::FirstValue(_)
            | WindowFunction::LastValue(_)
            | WindowFunction::NthValue(..),
            Some(arg),
        ) if arg.represents_as(ty) => Ok(()),
        (WindowFunction::Aggregate(function, frame), arg) => {
            aggregate(*function, *frame, arg, ty).or_else(refused)
        }
        _ => refused("of such values"),
    }
}

/// Why an aggregate is not there, if it is not.
fn aggregate(
    function: Function,
    frame: FrameBounds,
    arg: Option<&Type>,
    ty: &Type,
) -> std::result::Result<(), &'static str> {
    let whole = |ty: &Type| matches!(ty.kind, Kind::Int | Kind::Wide);
    let fits = match (function, arg) {
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
        _ => false,
    };
    let floats = arg.is_some_and(|arg| arg.kind == Kind::Float);
    let sums = matches!(function, Function::Sum | Function::Avg);
    if !fits {
        Err("of such values")
    } else if floats && sums && !is_short(frame) {
        Err("of floats in long frames that leave rows behind")
    } else {
        Ok(())
    }
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

fn is_distant(edge: FrameEdge) -> bool {
    matches!(edge, FrameEdge::Preceding(_) | FrameEdge::Following(_))
}

/// Most rows of a frame whose sum is computed anew for each row.
const SHORT: u64 = 256;

/// Whether sums of the frame can be computed without taking values away again, which would lose digits of floats: the
/// frame only grows from row to row, or it has few rows, or it is the same for all peers.
fn is_short(frame: FrameBounds) -> bool {
    let place = |edge: FrameEdge| match edge {
        FrameEdge::Preceding(rows) => -i128::from(rows),
        FrameEdge::Following(rows) => i128::from(rows),
        _ => 0,
    };
    match (frame.start, frame.end) {
        (FrameEdge::First, _) => true,
        (_, FrameEdge::Last) => false,
        (start, end) => place(end) - place(start) <= i128::from(SHORT),
    }
}
