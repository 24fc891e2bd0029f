//! What each step of reading costs, beside a bare loop over the same bytes.
//!
//! `cargo test --release -p graph --lib -- --ignored --nocapture each_step_of_reading`

use std::hint::black_box;
use std::time::Instant;

use super::ids::Ids;
use super::input::Block;
use super::naive::budget;
use super::parse::Parser;
use super::raw::Raw;
use crate::sort::spool::Spill;

/// Counts line feeds, one byte after the other.
fn bare(text: &[u8]) -> u64 {
    let mut lines = 0;
    for &byte in text {
        // Without the box the compiler looks at 32 bytes at once.
        lines += u64::from(black_box(byte == b'\n'));
    }
    lines
}

fn parsed(blocks: &[Block], weighted: bool) -> u64 {
    let (mut parser, mut sum) = (Parser::new(weighted), 0_u64);
    for block in blocks {
        parser
            .parse(block, |edge| sum = sum.wrapping_add(edge.from ^ edge.to))
            .unwrap();
    }
    sum
}

fn numbered(blocks: &[Block]) -> u64 {
    let (mut parser, mut ids) = (
        Parser::new(false),
        Ids::new(String::new(), &budget(), 1 << 30).unwrap(),
    );
    for block in blocks {
        let sink = |edge: super::parse::Edge| {
            ids.insert(edge.from)
                .and_then(|()| ids.insert(edge.to))
                .unwrap()
        };
        parser.parse(block, sink).unwrap();
    }
    ids.number().unwrap().len()
}

fn kept(blocks: &[Block]) -> u64 {
    let (mut parser, mut raw) = (
        Parser::new(false),
        Raw::new(&Spill::default(), 1 << 30, false),
    );
    for block in blocks {
        parser.parse(block, |edge| raw.push(edge).unwrap()).unwrap();
    }
    raw.len()
}

#[test]
#[ignore = "prints figures"]
fn each_step_of_reading() {
    let mut random = fastrand::Rng::with_seed(1);
    let mut line = |weight: &str| {
        format!(
            "{}\t{}{weight}\n",
            random.u32(..1 << 20),
            random.u32(..1 << 20)
        )
    };
    let mut blocks = |weight: &str| -> Vec<Block> {
        (0..40)
            .map(|_| {
                Block::of(
                    (0..60_000)
                        .map(|_| line(weight))
                        .collect::<String>()
                        .as_bytes(),
                )
            })
            .collect()
    };
    let (plain, heavy) = (blocks(""), blocks("\t0.25"));
    type Step<'s> = (&'s str, &'s [Block], Box<dyn Fn() -> u64 + 's>);
    let steps: [Step<'_>; 5] = [
        (
            "bare loop",
            &plain,
            Box::new(|| {
                plain
                    .iter()
                    .map(|block| bare(&block.padded()[..block.len()]))
                    .sum()
            }),
        ),
        ("parse", &plain, Box::new(|| parsed(&plain, false))),
        ("parse weights", &heavy, Box::new(|| parsed(&heavy, true))),
        ("parse, collect ids", &plain, Box::new(|| numbered(&plain))),
        ("parse, keep edges", &plain, Box::new(|| kept(&plain))),
    ];
    let mut times = vec![Vec::new(); steps.len()];
    for _ in 0..9 {
        for ((.., step), times) in steps.iter().zip(&mut times) {
            let begun = Instant::now();
            black_box(step());
            times.push(begun.elapsed().as_secs_f64());
        }
    }
    let mut first = None;
    for ((name, blocks, _), mut times) in steps.iter().zip(times) {
        times.sort_by(f64::total_cmp);
        let bytes: usize = blocks.iter().map(Block::len).sum();
        let rate = bytes as f64 / 1e6 / times[times.len() / 2];
        let bare = *first.get_or_insert(rate);
        eprintln!(
            "{name:20} {rate:6.0} MB/s, {:.2} of the bare loop",
            rate / bare
        );
    }
}
