//! Hostile bytes for the metadata page.

use fuzz::{Draw, Target};

use super::meta::{Array, Meta, Order, Sort};

const PAGE: usize = 4096;

fn any_meta(draw: &mut Draw) -> Meta {
    let vertices = draw.below(2000) as u64;
    let edges = draw.below(9000) as u64;
    let directed = draw.one_in(2);
    let mut sorts = vec![Sort::Offsets, Sort::Neighbours, Sort::Ids];
    if directed {
        sorts.extend([Sort::InOffsets, Sort::InNeighbours]);
    }
    if draw.one_in(2) {
        sorts.push(Sort::Weights);
    }
    if draw.one_in(2) {
        sorts.push(Sort::Ranks);
    }
    let array = |sort: Sort| {
        let elements = sort.elements(vertices, edges);
        let mut array = Array {
            sort,
            elements,
            index: Vec::new(),
        };
        let pages = array.pages(PAGE).div_ceil(PAGE as u64 / 4);
        array.index = (0..pages as u32).map(|page| page + sort as u32).collect();
        array
    };
    Meta {
        vertices,
        edges,
        directed,
        // Of undirected edges two entries each are left.
        loops: edges - draw.below(edges as usize / 2 + 1) as u64 * 2,
        repeats: draw.one_in(2),
        ends: (vertices > 0 && edges > 0).then_some((0, vertices.saturating_sub(1))),
        order: *draw.one_of(&Order::ALL),
        arrays: sorts.into_iter().map(array).collect(),
    }
}

#[test]
fn metadata_pages() {
    let words = &["valid", "refused"];
    let target = Target::new("format::fuzzed::metadata_pages", 20_000).expects(words);
    target.run(|draw| {
        let meta = any_meta(draw);
        let mut bytes = meta.encode(PAGE).unwrap();
        assert_eq!(Meta::decode(&bytes, PAGE), Ok(meta));
        if draw.one_in(3) {
            draw.mutate(&mut bytes);
        } else {
            draw.disturb(&mut bytes);
        }
        match Meta::decode(&bytes, PAGE) {
            Ok(found) => {
                // But for a pair of ends that both say none.
                assert_eq!(found.encode(PAGE).as_ref(), Some(&bytes));
                "valid"
            }
            Err(_) => "refused",
        }
    });
}
