use super::*;
use algebra::fold::*;
use std::cmp::Ordering;

/// A column with group numbers below a number of groups, few or many.
#[derive(Clone, Debug)]
struct Input<T> {
    values: Vec<T>,
    valid: Option<Vec<bool>>,
    groups: Option<Vec<u32>>,
    states: usize,
}

impl<T: Copy> Input<T> {
    fn rows(&self, state: usize) -> impl Iterator<Item = T> + '_ {
        let here = move |row: &usize| {
            self.groups.as_ref().map_or(0, |g| g[*row]) as usize == state && is(&self.valid, *row)
        };
        (0..self.values.len())
            .filter(here)
            .map(|row| self.values[row])
    }
}

fn input<T: Debug + Clone + 'static>(
    value: impl Strategy<Value = T> + 'static,
) -> BoxedStrategy<Input<T>> {
    inputs(column(value))
}

fn inputs<T: Debug + Clone + 'static>(
    column: BoxedStrategy<(Vec<T>, Option<Vec<bool>>)>,
) -> BoxedStrategy<Input<T>> {
    (column, prop_oneof![1usize..=9, Just(40)], 0u8..4)
        .prop_flat_map(|((values, valid), states, kind)| {
            // All rows of one group, or any.
            let top = if kind == 0 { 1 } else { states as u32 };
            let groups = vec(0..top, values.len());
            (Just((values, valid, states)), groups, Just(kind == 3)).prop_map(
                |((values, valid, states), groups, one)| Input {
                    values,
                    valid,
                    groups: (!one).then_some(groups),
                    states: if one { 1 } else { states },
                },
            )
        })
        .boxed()
}

properties! {
    #[test]
    fn integers(input in input(integer())) {
        at_each_level(|| {
            let Input { values, valid, groups, states } = &input;
            let (groups, valid) = (groups.as_deref(), valid.as_deref());
            let mut counts = vec![10; *states];
            let mut wide = vec![-10; *states];
            let mut small = vec![-10; *states];
            count(groups, values.len(), valid, &mut counts);
            sum_i64(groups, values, valid, &mut wide);
            sum_i64_small(groups, values, valid, &mut small);
            for state in 0..*states {
                prop_assert_eq!(counts[state], 10 + input.rows(state).count() as i64);
                let sum: i128 = input.rows(state).map(i128::from).sum();
                prop_assert_eq!(wide[state], sum - 10);
                prop_assert_eq!(small[state], (sum - 10) as i64);
            }
            Ok(())
        })?;
    }

    #[test]
    fn wide_integers(input in input(prop_oneof![300 => -9i128..9, 1 => wide()])) {
        at_each_level(|| {
            let Input { values, valid, groups, states } = &input;
            let mut state = vec![i128::MAX - 20; *states];
            let result = sum_i128(groups.as_deref(), values, valid.as_deref(), &mut state);
            let naive: Option<Vec<i128>> = (0..*states)
                .map(|s| input.rows(s).try_fold(i128::MAX - 20, i128::checked_add))
                .collect();
            prop_assert_eq!(result.is_ok().then_some(state), naive);
            Ok(())
        })?;
    }

    /// Halves of small integers: every order gives the same sum.
    #[test]
    fn floats(input in input((-99i64..99).prop_map(|v| v as f64 / 2.0))) {
        at_each_level(|| {
            let Input { values, valid, groups, states } = &input;
            let mut sums = vec![0.5; *states];
            sum_f64(groups.as_deref(), values, valid.as_deref(), &mut sums);
            for (state, sum) in sums.iter().enumerate() {
                prop_assert_eq!(*sum, 0.5 + input.rows(state).sum::<f64>());
            }
            Ok(())
        })?;
    }

    /// Zeros with a sign alone give one with a sign.
    #[test]
    fn zeros(input in input(prop_oneof![Just(0.0), Just(-0.0)])) {
        at_each_level(|| {
            let Input { values, valid, groups, states } = &input;
            let mut sums = vec![-0.0; *states];
            sum_f64(groups.as_deref(), values, valid.as_deref(), &mut sums);
            for (state, sum) in sums.iter().enumerate() {
                let negative = input.rows(state).all(f64::is_sign_negative);
                prop_assert_eq!((*sum, sum.is_sign_negative()), (0.0, negative));
            }
            Ok(())
        })?;
    }

    /// A value that is no number stays in its own group, and away if its row is not valid.
    #[test]
    fn infinities(input in input(float())) {
        at_each_level(|| {
            let Input { values, valid, groups, states } = &input;
            let mut sums = vec![0.0; *states];
            sum_f64(groups.as_deref(), values, valid.as_deref(), &mut sums);
            for (state, sum) in sums.iter().enumerate() {
                if input.rows(state).all(|v| v.abs() < 1e300) {
                    prop_assert!(sum.is_finite());
                }
                if input.rows(state).any(f64::is_nan) {
                    prop_assert!(sum.is_nan());
                }
            }
            Ok(())
        })?;
    }
}

/// A kernel of extremes: group numbers, values, validity, states and whether each was seen.
type Extreme<T> = fn(Option<&[u32]>, &[T], Option<&[bool]>, &mut [T], &mut [bool]);

/// Extremes against the naive ones, some groups seen before.
fn extremes<T: Copy>(
    (input, before, flags): (&Input<T>, T, &[bool]),
    (min, max): (Extreme<T>, Extreme<T>),
    order: fn(&T, &T) -> Ordering,
) -> TestCaseResult {
    at_each_level(|| {
        let states = input.states;
        let (groups, valid) = (input.groups.as_deref(), input.valid.as_deref());
        let (mut low, mut high) = (vec![before; states], vec![before; states]);
        let (mut seen, mut too) = (flags[..states].to_vec(), flags[..states].to_vec());
        min(groups, &input.values, valid, &mut low, &mut seen);
        max(groups, &input.values, valid, &mut high, &mut too);
        for state in 0..states {
            let all = || input.rows(state).chain(flags[state].then_some(before));
            prop_assert_eq!(seen[state], all().next().is_some());
            prop_assert_eq!(too[state], seen[state]);
            if let (Some(min), Some(max)) = (all().min_by(order), all().max_by(order)) {
                prop_assert!(order(&low[state], &min).is_eq());
                prop_assert!(order(&high[state], &max).is_eq());
            }
        }
        Ok(())
    })
}

properties! {
    #[test]
    fn extremes_i64(input in input(integer()), before in integer(), flags in vec(any::<bool>(), 40)) {
        extremes((&input, before, &flags), (min_i64, max_i64), Ord::cmp)?;
    }

    #[test]
    fn extremes_i128(input in input(wide()), before in wide(), flags in vec(any::<bool>(), 40)) {
        extremes((&input, before, &flags), (min_i128, max_i128), Ord::cmp)?;
    }

    #[test]
    fn extremes_f64(input in input(float()), before in float(), flags in vec(any::<bool>(), 40)) {
        extremes((&input, before, &flags), (min_f64, max_f64), f64::total_cmp)?;
    }
}

#[test]
#[should_panic]
fn a_group_without_state_is_refused() {
    sum_i64_small(Some(&[9]), &[1], None, &mut [0; 9]);
}
