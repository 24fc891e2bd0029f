//! The order in which the pieces of a scan are claimed, for sinks that keep the first rows of an order.

use table::Morsel;

use crate::logical::relation::{Key, Scan};
use crate::vector::value::{Kind, Type};

/// Puts the pieces first whose values of `first`, the first key of an order, come first: rows of later pieces then lose
/// against those that are kept already, and only what decides about that is read of them. Does nothing unless the key is a
/// column of whole numbers that the table lies in the order of, by and large: the order of pieces may be good for something
/// else. Each piece comes with its home node.
pub(crate) fn order_pieces(
    pieces: &mut [(usize, Box<[Morsel]>)],
    scan: &Scan,
    first: Option<Key>,
    types: &[Type],
) {
    let Some(key) = first.filter(|key| types[key.var].kind == Kind::Int) else {
        return;
    };
    let found = scan.columns.iter().find(|(var, _)| *var == key.var);
    let Some((_, column)) = found else {
        return;
    };
    let zone = |(_, piece): &(usize, Box<[Morsel]>)| {
        let zones = piece.iter().map(|morsel| morsel.zone(&scan.table, *column));
        zones.reduce(|a, b| Some(joined(a?, b?))).flatten()
    };
    let known = || pieces.iter().filter_map(zone);
    let Some(all) = known().reduce(joined) else {
        return;
    };
    let width = |(least, most): (i128, i128)| most as f64 - least as f64;
    let widths: f64 = known().map(width).sum();
    if widths > 2.0 * width(all) {
        return;
    }
    // Pieces of which nothing is known come first: they are the newest.
    if key.descending {
        pieces.sort_by_key(|piece| {
            let most = zone(piece).map(|(_, most)| most);
            most.map(std::cmp::Reverse)
        });
    } else {
        pieces.sort_by_key(|piece| zone(piece).map(|(least, _)| least));
    }
}

/// The range of both.
fn joined(a: (i128, i128), b: (i128, i128)) -> (i128, i128) {
    (a.0.min(b.0), a.1.max(b.1))
}
