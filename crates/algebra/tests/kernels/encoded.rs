use super::*;
use algebra::encoded::*;

fn bits(mask: &[u64], rows: usize) -> Vec<bool> {
    (0..rows)
        .map(|r| mask[r / 64] >> (r % 64) & 1 == 1)
        .collect()
}

/// [`in_range`] of no bits before, and over bits that are set already.
fn ranges<T: Stored + std::fmt::Debug>(values: &[T], low: T, span: T) -> Result<(), TestCaseError> {
    at_each_level(|| {
        let naive: Vec<bool> = values.iter().map(|v| v.minus(low) <= span).collect();
        let mut mask = vec![0; values.len().div_ceil(64)];
        in_range(values, low, span, &mut mask);
        prop_assert_eq!(bits(&mask, values.len()), naive.clone());
        let before: Vec<u64> = mask.iter().map(|word| word.rotate_left(7)).collect();
        let mut over = before.clone();
        in_range(values, low, span, &mut over);
        let either: Vec<u64> = before.iter().zip(&mask).map(|(a, b)| a | b).collect();
        prop_assert_eq!(over, either);
        Ok(())
    })
}

/// [`widen`] and [`widen_at`] behind what is there before.
fn widening<S: Stored, N: Number + PartialEq + std::fmt::Debug>(
    before: &[N],
    values: &[S],
    picks: &[prop::sample::Index],
    base: N,
    first: u32,
) -> Result<(), TestCaseError> {
    let naive = |picks: &mut dyn Iterator<Item = S>| -> Vec<N> {
        let own = picks.map(|v| base.plus(v.wide()));
        before.iter().copied().chain(own).collect()
    };
    let place = |at: usize| at as u32 + first;
    let some: Vec<u32> = picks.iter().map(|p| place(p.index(values.len()))).collect();
    // Neighbours, for the most part.
    let most = (0..values.len()).filter(|at| !values[*at].wide().is_multiple_of(16));
    let most: Vec<u32> = most.map(place).collect();
    at_each_level(|| {
        let mut out = before.to_vec();
        widen(values, base, &mut out);
        prop_assert_eq!(&out, &naive(&mut values.iter().copied()));
        for places in [&some, &most] {
            let mut out = before.to_vec();
            widen_at(values, places, first, base, &mut out);
            let mut picked = places.iter().map(|p| values[(p - first) as usize]);
            prop_assert_eq!(&out, &naive(&mut picked));
        }
        Ok(())
    })
}

#[test]
fn a_place_outside_is_refused() {
    for level in levels() {
        with_level(level, || {
            for places in [[3, 5], [2, 3]] {
                let refused = std::panic::catch_unwind(|| {
                    widen_at::<u8, i64>(&[1, 2], &places, 3, 0, &mut vec![]);
                });
                let message = *refused.unwrap_err().downcast::<&str>().unwrap();
                assert_eq!(message, "a row outside its page", "{level:?}");
            }
        });
    }
}

properties! {
    #[test]
    fn widening_as_the_naive_loop(
        before in vec(any::<i64>(), 0..3),
        values in vec(any::<u64>(), 1..300),
        picks in vec(any::<prop::sample::Index>(), 0..300),
        base in any::<i128>(),
        first in prop_oneof![0u32..9, Just(u32::MAX - 400)],
    ) {
        fn of<S: Stored>(values: &[u64]) -> Vec<S> {
            values.iter().map(|v| S::narrow(*v)).collect()
        }
        let (bytes, shorts, words) = (of::<u8>(&values), of::<u16>(&values), of::<u32>(&values));
        let long = base as i64;
        widening(&before, &bytes, &picks, long, first)?;
        widening(&before, &shorts, &picks, long, first)?;
        widening(&before, &words, &picks, long, first)?;
        widening(&before, &values, &picks, long, first)?;
        widening(&[], &bytes, &picks, base as i8, first)?;
        widening(&[], &bytes, &picks, base as u8, first)?;
        widening(&[], &shorts, &picks, base as i16, first)?;
        widening(&[], &bytes, &picks, base as u16, first)?;
        widening(&[], &shorts, &picks, base as i32, first)?;
        widening(&[], &words, &picks, base as u32, first)?;
        widening(&[], &words, &picks, base as u64, first)?;
        widening(&[], &values, &picks, base, first)?;
    }

    #[test]
    fn ranges_as_the_naive_loop(values in vec(any::<u16>(), 0..300), low in any::<u16>(), span in any::<u16>()) {
        ranges(&values, low, span)?;
    }

    #[test]
    fn ranges_of_bytes_and_words(values in vec(any::<u8>(), 0..300), low in any::<u8>(), span in any::<u8>()) {
        ranges(&values, low, span)?;
        let narrow: Vec<u32> = values.iter().map(|v| u32::from(*v) << 21).collect();
        ranges(&narrow, u32::from(low) << 21, u32::from(span) << 21)?;
        let wide: Vec<u64> = values.iter().map(|v| u64::from(*v) << 33).collect();
        ranges(&wide, u64::from(low) << 33, u64::from(span) << 33)?;
    }

    #[test]
    fn tables_as_the_naive_loop(codes in vec(0u32..90, 0..300), table in vec(any::<bool>(), 80)) {
        let naive: Vec<bool> = codes.iter().map(|c| table.get(*c as usize).copied().unwrap_or(false)).collect();
        let (bytes, shorts): (Vec<u8>, Vec<u16>) = codes.iter().map(|c| (*c as u8, *c as u16)).unzip();
        at_each_level(|| {
            let mut masks = [(); 3].map(|()| vec![0; codes.len().div_ceil(64)]);
            in_table(&codes, &table, &mut masks[0]);
            in_table(&shorts, &table, &mut masks[1]);
            in_table(&bytes, &table, &mut masks[2]);
            for mask in masks {
                prop_assert_eq!(bits(&mask, codes.len()), naive.clone());
            }
            Ok(())
        })?;
    }

    /// Few bits and many of a word take different ways.
    #[test]
    fn positions_as_the_naive_loop(
        words in vec(prop_oneof![Just(0), Just(u64::MAX), Just(1 << 63), any::<u64>()], 0..40),
        sparse in vec(0u32..64, 0..40),
        before in vec(any::<u32>(), 0..3),
    ) {
        let sparse: Vec<u64> = sparse.iter().map(|bit| 1 << bit).collect();
        for words in [words, sparse] {
            let set = bits(&words, words.len() * 64);
            let own = (0..set.len() as u32).filter(|row| set[*row as usize]);
            let naive: Vec<u32> = before.iter().copied().chain(own).collect();
            at_each_level(|| {
                let mut out = before.clone();
                positions(&words, &mut out);
                prop_assert_eq!(&out, &naive);
                Ok(())
            })?;
        }
    }

    #[test]
    fn the_greatest_as_the_naive_loop(values in vec(any::<u32>(), 0..300)) {
        at_each_level(|| {
            prop_assert_eq!(greatest(&values), values.iter().copied().max().unwrap_or(0));
            Ok(())
        })?;
    }
}
