//! Hostile edge lists, plain and gzip.

use futures::executor::block_on;
use fuzz::{Draw, Target};
use io::fault::Disk;
use memory::Budget;

use super::input::Block;
use super::naive::{contents, gzip, spill, store, text};
use super::parse::Parser;
use super::{LoadOptions, load};
use crate::error::Error;
use crate::job::Job;
use crate::read::graph::Graph;

/// A file with some edges, of which bytes were changed.
fn any_text(draw: &mut Draw, weighted: bool) -> Vec<u8> {
    let mut lines = Vec::new();
    for _ in 0..1 + draw.below(40) {
        let id = |draw: &mut Draw| match draw.below(3) {
            0 => draw.number(),
            _ => draw.below(50) as u64,
        };
        lines.push((id(draw), id(draw), draw.number() as f64 / 8.0));
    }
    let seed = draw.number();
    let mut text = text(&lines, weighted, seed);
    match draw.below(5) {
        0 | 1 => {}
        2 => draw.mutate(&mut text),
        // What stands in such files, where it does not belong.
        _ => {
            let pieces: [&[u8]; 12] = [
                b"\n",
                b"\r",
                b" ",
                b",",
                b"#",
                b"%%MatrixMarket",
                b"-",
                b"99999999999999999999",
                b"\0",
                b"nan",
                b"\xef\xbb\xbf",
                b"1e400",
            ];
            for _ in 0..1 + draw.below(3) {
                let at = draw.below(text.len() + 1);
                text.splice(at..at, draw.one_of(&pieces).iter().copied());
            }
        }
    }
    text
}

#[test]
fn lines_of_edges() {
    let words = &["edges", "refused"];
    let target = Target::new("load::fuzzed::lines_of_edges", 20_000).expects(words);
    target.run(|draw| {
        let weighted = draw.one_in(2);
        let mut text = any_text(draw, weighted);
        if text.last() != Some(&b'\n') {
            text.push(b'\n');
        }
        let lines = text.iter().filter(|&&byte| byte == b'\n').count() as u64;
        let (mut edges, mut parser) = (0, Parser::new(weighted));
        let parsed = parser.parse(&Block::of(&text), |edge| {
            assert!(edge.weight.is_finite());
            edges += 1;
        });
        assert!(edges <= lines);
        match parsed {
            Ok(()) => {
                assert_eq!(parser.lines, lines);
                "edges"
            }
            Err(wrong) => {
                assert!((1..=lines).contains(&wrong.line) && !wrong.what.is_empty());
                "refused"
            }
        }
    });
}

/// All of a load, which leaves a graph that is whole, or nothing.
#[test]
fn files_are_loaded() {
    let words = &["loaded", "line", "file"];
    let target = Target::new("load::fuzzed::files_are_loaded", 150).expects(words);
    target.run(|draw| {
        let options = LoadOptions {
            directed: draw.one_in(2),
            weighted: draw.one_in(2),
            loops: draw.one_in(2),
            repeats: draw.one_in(2),
            memory: 1,
            spill: spill(&Disk::new(2)),
            ..LoadOptions::default()
        };
        let mut bytes = any_text(draw, options.weighted);
        if draw.one_in(2) {
            bytes = gzip(&bytes, 1 + draw.below(3));
            if draw.one_in(2) {
                draw.mutate(&mut bytes);
            }
        }
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("edges");
        std::fs::write(&path, &bytes).unwrap();
        let store = store(&Disk::new(1));
        let job = Job::new(Budget::new(32 << 20));
        match block_on(load(&store, "g", &path, &options, job)) {
            Ok(loaded) => {
                let graph = block_on(Graph::open(&store.snapshot(), "g")).unwrap();
                assert_eq!(contents(&graph).edges, loaded.edges);
                "loaded"
            }
            Err(error) => {
                assert!(error.to_string().contains("edges"), "{error}");
                assert_eq!(store.statistics().pages.pages, 0);
                match error {
                    Error::Line { .. } => "line",
                    Error::File { .. } => "file",
                    Error::NoEdges { .. } => "no edges",
                    error => panic!("not an error of a hostile file: {error}"),
                }
            }
        }
    });
}
