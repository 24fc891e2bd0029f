//! Random operations against a naive model.

mod source;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use buffer::{Error, OwnedPin, Pin, Pool};
use proptest::prelude::*;
use source::{Patterns, check, now, pool};

const NODES: usize = 2;
const FRAMES: usize = 8;

#[derive(Debug, Clone)]
enum Step {
    Pin(u32),
    TryPin(u32),
    Own(usize),
    Unpin(usize),
    Discard(u32),
    Rewrite(u32),
    Break(u32),
    Mend,
    Clear,
}

fn step() -> impl Strategy<Value = Step> {
    let page = 0..40u32;
    prop_oneof![
        12 => page.clone().prop_map(Step::Pin),
        3 => page.clone().prop_map(Step::TryPin),
        2 => (0..16usize).prop_map(Step::Own),
        9 => (0..16usize).prop_map(Step::Unpin),
        2 => page.clone().prop_map(Step::Discard),
        2 => page.clone().prop_map(Step::Rewrite),
        1 => page.prop_map(Step::Break),
        1 => Just(Step::Mend),
        1 => Just(Step::Clear),
    ]
}

enum Held<'p> {
    Lent(OwnedPin),
    Plain(Pin<'p>),
}

impl Held<'_> {
    fn page(&self) -> u32 {
        match self {
            Held::Lent(pin) => pin.page(),
            Held::Plain(pin) => pin.page(),
        }
    }

    fn check(&self, version: u64) {
        match self {
            Held::Lent(pin) => check(pin.page(), version, pin),
            Held::Plain(pin) => check(pin.page(), version, pin),
        }
    }
}

/// What must be so. Which page is evicted is the clock's choice, so after an eviction it is only
/// known which pages may be resident.
#[derive(Default)]
struct Model {
    pins: HashMap<u32, u32>,
    resident: BTreeSet<u32>,
    attempts: u64,
}

impl Model {
    fn unpin(&mut self, page: u32) {
        let pins = self.pins.get_mut(&page).expect("pinned");
        *pins -= 1;
        if *pins == 0 {
            self.pins.remove(&page);
        }
    }
}

/// Makes an owned pin of the pin at `index`: refused as soon as the pool's limit of them is reached.
fn lend(pool: &Arc<Pool>, held: &mut Vec<Held<'_>>, index: usize) -> Result<(), TestCaseError> {
    let lent = held.iter().filter(|h| matches!(h, Held::Lent(_))).count();
    match held.swap_remove(index) {
        Held::Plain(pin) => held.push(match pin.into_owned(pool) {
            Ok(owned) => {
                prop_assert!(lent < pool.lend_limit());
                Held::Lent(owned)
            }
            Err(pin) => {
                prop_assert_eq!(lent, pool.lend_limit());
                Held::Plain(pin)
            }
        }),
        lent => held.push(lent),
    }
    Ok(())
}

/// Compares what the pool says of itself, and the content of the pinned pages, with the model.
fn compare(
    pool: &Pool,
    source: &Patterns,
    model: &Model,
    held: &[Held<'_>],
) -> Result<(), TestCaseError> {
    let statistics = pool.statistics();
    prop_assert_eq!(statistics.pinned, model.pins.len());
    prop_assert_eq!(statistics.hits + statistics.misses, model.attempts);
    prop_assert!(statistics.resident <= model.resident.len());
    if statistics.evictions == 0 {
        prop_assert_eq!(statistics.resident, model.resident.len());
    }
    for pin in held {
        pin.check(source.version(pin.page()));
    }
    Ok(())
}

fn run(steps: &[Step]) -> Result<(), TestCaseError> {
    let (pool, source) = pool(NODES, FRAMES, 1);
    pool.set_patience(Duration::from_millis(1));
    let mut model = Model::default();
    let mut held: Vec<Held<'_>> = Vec::new();
    for step in steps {
        match *step {
            Step::Pin(page) => {
                let was = pool.is_resident(page);
                let broken = source.broken.lock().unwrap().contains(&page);
                let nodes = pool.statistics().nodes;
                let pinned: Vec<_> = nodes.iter().map(|node| node.pinned).collect();
                model.attempts += 1;
                match now(pool.pin(page)) {
                    Ok(pin) => {
                        prop_assert!(was || !broken);
                        let own = page as usize % NODES;
                        prop_assert!(was || pin.node() == own || pinned[own] == FRAMES);
                        *model.pins.entry(page).or_default() += 1;
                        model.resident.insert(page);
                        held.push(Held::Plain(pin));
                    }
                    Err(Error::Load { .. }) => prop_assert!(broken && !was),
                    Err(Error::Exhausted { frames, pinned, .. }) => {
                        prop_assert_eq!((frames, pinned), (NODES * FRAMES, NODES * FRAMES));
                        prop_assert_eq!(model.pins.len(), NODES * FRAMES);
                        prop_assert!(!was);
                    }
                    Err(other) => prop_assert!(false, "{}", other),
                }
            }
            Step::TryPin(page) => {
                if let Some(pin) = pool.try_pin(page) {
                    model.attempts += 1;
                    prop_assert!(model.resident.contains(&page));
                    *model.pins.entry(page).or_default() += 1;
                    held.push(Held::Plain(pin));
                }
            }
            Step::Own(index) if index < held.len() => lend(&pool, &mut held, index)?,
            Step::Unpin(index) if index < held.len() => {
                model.unpin(held.swap_remove(index).page());
            }
            Step::Own(_) | Step::Unpin(_) => {}
            Step::Discard(page) | Step::Rewrite(page) => match pool.discard(page) {
                Ok(()) => {
                    prop_assert!(!model.pins.contains_key(&page));
                    prop_assert!(!pool.is_resident(page));
                    model.resident.remove(&page);
                    if matches!(step, Step::Rewrite(_)) {
                        *source.versions.lock().unwrap().entry(page).or_default() += 1;
                    }
                }
                Err(Error::Pinned { pins, .. }) => {
                    prop_assert_eq!(model.pins.get(&page), Some(&pins));
                }
                Err(other) => prop_assert!(false, "{}", other),
            },
            Step::Break(page) => {
                source.broken.lock().unwrap().insert(page);
            }
            Step::Mend => source.broken.lock().unwrap().clear(),
            Step::Clear => {
                pool.clear();
                let pins = &model.pins;
                model.resident.retain(|page| pins.contains_key(page));
            }
        }
        compare(&pool, &source, &model, &held)?;
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn a_pool_does_what_the_model_says(steps in prop::collection::vec(step(), 1..120)) {
        run(&steps)?;
    }
}
