use std::collections::HashMap;

use proptest::prelude::*;

use super::*;

/// Texts that fit in a view, that just do not, and that fill blocks; `None` is NULL.
fn text() -> impl Strategy<Value = Option<String>> {
    prop_oneof![
        1 => Just(None),
        4 => "[ab]{0,3}".prop_map(Some),
        4 => "same beginning [ab]{0,4}".prop_map(Some),
        1 => (0usize..3, 5_000usize..20_000).prop_map(|(n, length)| Some(n.to_string().repeat(length))),
    ]
}

fn list() -> impl Strategy<Value = Vec<Option<String>>> {
    prop::collection::vec(text(), 0..60)
}

/// What numbers are worth: those of a plain map, in the order of first appearance.
#[derive(Default)]
struct Plain {
    numbers: HashMap<String, u32>,
    texts: Vec<String>,
}

impl Plain {
    fn add(&mut self, text: &Option<String>) -> u32 {
        let Some(text) = text else { return NOBODY };
        let next = self.texts.len() as u32;
        let number = *self.numbers.entry(text.clone()).or_insert(next);
        if number == next {
            self.texts.push(text.clone());
        }
        number
    }

    fn check(&self, interner: &Interner) {
        assert_eq!(interner.len(), self.texts.len());
        let array = interner.array(0..interner.len() as u32);
        let array = array.as_string_view();
        // As Arrow would have checked it.
        let (views, buffers) = (array.views().clone(), array.data_buffers().to_vec());
        StringViewArray::try_new(views, buffers, None).unwrap();
        let found: Vec<&str> = array.iter().map(Option::unwrap).collect();
        assert_eq!(found, self.texts);
        assert!(interner.memory() >= self.texts.iter().map(String::len).sum::<usize>() / 2);
    }
}

fn array(list: &[Option<String>]) -> ArrayRef {
    Arc::new(StringViewArray::from(
        list.iter().map(Option::as_deref).collect::<Vec<_>>(),
    ))
}

proptest! {
    /// Whole arrays, some of their rows, and rows of one array that comes again.
    #[test]
    fn numbers_are_those_of_a_map(
        lists in prop::collection::vec(list(), 1..5),
        picks in prop::collection::vec(any::<prop::sample::Index>(), 0..40),
        valid in prop::collection::vec(any::<bool>(), 100),
    ) {
        let (mut interner, mut plain, mut out) = (Interner::default(), Plain::default(), vec![]);
        let check = |interner: &mut Interner, plain: &mut Plain, texts: &Strings, list: &[Option<String>]| {
            let mut out = vec![];
            interner.add(texts, None, &mut out);
            let expected: Vec<u32> = list.iter().map(|text| plain.add(text)).collect();
            assert_eq!(out, expected);
        };
        for list in &lists {
            check(&mut interner, &mut plain, &Strings::new(array(list)), list);
        }
        // One so long that its rows are remembered.
        let mut long: Vec<Option<String>> = (0..5_000).map(|n| Some(format!("a text with number {}", n % 40))).collect();
        long[7] = None;
        let shared = Strings::new(array(&long));
        for chunk in picks.chunks(7) {
            let rows: Vec<u32> = chunk.iter().map(|pick| pick.index(long.len()) as u32).collect();
            let list: Vec<Option<String>> = rows.iter().map(|row| long[*row as usize].clone()).collect();
            check(&mut interner, &mut plain, &shared.at(&rows), &list);
        }
        // A row that is not valid has no text, whatever stands there.
        let list: Vec<Option<String>> = (0..100).map(|n| Some(format!("{n}"))).collect();
        interner.add(&Strings::new(array(&list)), Some(&valid), &mut out);
        let there = |(text, valid): (&Option<String>, &bool)| text.clone().filter(|_| *valid);
        let expected: Vec<u32> = list.iter().zip(&valid).map(there).map(|text| plain.add(&text)).collect();
        prop_assert_eq!(out, expected);
        plain.check(&interner);
    }

    /// What another worker numbered, the number of NULL included.
    #[test]
    fn adopted_texts_are_the_same(lists in prop::collection::vec((list(), any::<bool>()), 1..5)) {
        let (mut all, mut plain) = (Interner::default(), Plain::default());
        for (list, null) in &lists {
            let (mut own, mut texts) = (Interner::default(), Plain::default());
            own.add(&Strings::new(array(list)), None, &mut vec![]);
            list.iter().for_each(|text| { texts.add(text); });
            if *null {
                prop_assert_eq!(own.null() as usize, texts.texts.len());
            }
            let numbers = all.adopt(&own);
            prop_assert_eq!(numbers.len(), own.len());
            for (text, number) in texts.texts.iter().zip(&numbers) {
                // The number of NULL stands for a text that nobody has.
                let known = plain.numbers.contains_key(text);
                if !known {
                    while plain.texts.len() < *number as usize {
                        plain.texts.push(String::new());
                    }
                }
                prop_assert_eq!(plain.add(&Some(text.clone())), *number);
            }
            if *null {
                prop_assert!(all.is_null(numbers[own.len() - 1]));
            }
        }
        for (text, number) in &plain.numbers {
            let (mut out, mut hashes) = (vec![], vec![]);
            let asked = array(&[None, Some(text.clone()), Some("nobody".into())]);
            all.find(asked.as_string_view(), &[2, 1], &mut out, &mut hashes);
            prop_assert_eq!(hashes[1], all.hash(*number));
            prop_assert_eq!(out, [NOBODY, *number]);
            let own = all.array(std::iter::once(*number));
            prop_assert_eq!(own.as_string_view().value(0), text);
        }
    }

    /// Loose or not: each row has a number of its string, and its hash; those of several workers become one for each string.
    #[test]
    fn loose_texts_are_merged(lists in prop::collection::vec((list(), list(), any::<bool>()), 1..5)) {
        let (mut all, mut numbered) = (Interner::default(), HashMap::<String, (u32, u64)>::new());
        for (first, second, loose) in &lists {
            let mut own = Interner::default();
            let (mut rows, mut numbers, mut hashes) = (vec![], vec![], vec![]);
            for (list, loosen) in [(first, *loose), (second, false)] {
                let there: Vec<Option<String>> = list.iter().filter(|text| text.is_some()).cloned().collect();
                let places: Vec<u32> = (0..there.len() as u32).collect();
                let (mut some, mut own_hashes) = (vec![], vec![]);
                own.add_hashed(&array(&there), &places, &mut some, &mut own_hashes);
                rows.extend(there.into_iter().flatten());
                numbers.extend(some);
                hashes.extend(own_hashes);
                if loosen {
                    own.loosen_if_new();
                }
            }
            let found = own.array(numbers.iter().copied());
            let found: Vec<&str> = found.as_string_view().iter().map(Option::unwrap).collect();
            prop_assert_eq!(&found, &rows);
            own.seal();
            let before = all.memory();
            let place = all.share(&own, 2);
            // Shared blocks, and slots for the strings to come.
            let slots = 4 * (all.len() + own.len()) + FIRST_SLOTS;
            prop_assert!(all.memory() <= before + own.memory() + 8 * slots);
            for ((text, number), hash) in rows.iter().zip(&numbers).zip(&hashes) {
                let merged = all.adopt_one(&own, place, *number, *hash);
                let known = *numbered.entry(text.clone()).or_insert((merged, *hash));
                prop_assert_eq!(known, (merged, *hash));
            }
        }
        prop_assert_eq!(all.len(), numbered.len());
        for (text, (number, _)) in &numbered {
            let own = all.array(std::iter::once(*number));
            prop_assert_eq!(own.as_string_view().value(0), text);
        }
    }
}
