use super::*;
use algebra::filter::*;
use std::cmp::Ordering;

const OPS: [Op; 6] = [Op::Eq, Op::Ne, Op::Lt, Op::Le, Op::Gt, Op::Ge];

fn holds(op: Op, order: Ordering) -> bool {
    match op {
        Op::Eq => order.is_eq(),
        Op::Ne => order.is_ne(),
        Op::Lt => order.is_lt(),
        Op::Le => order.is_le(),
        Op::Gt => order.is_gt(),
        Op::Ge => order.is_ge(),
    }
}

/// Compares with the naive loop, by column and by constant.
fn as_the_naive_loop<T: Copy + PartialEq>(
    (a, b, op): (&[T], &[T], Op),
    both: fn(Op, &[T], &[T], &mut Vec<bool>),
    constant: fn(Op, &[T], T, &mut Vec<bool>),
    order: fn(&T, &T) -> Ordering,
) -> TestCaseResult {
    at_each_level(|| {
        let mut out = vec![true; 3];
        both(op, a, b, &mut out);
        let naive: Vec<bool> = a
            .iter()
            .zip(b)
            .map(|(a, b)| holds(op, order(a, b)))
            .collect();
        prop_assert_eq!(&out, &naive);
        both(op.flipped(), b, a, &mut out);
        prop_assert_eq!(&out, &naive);
        both(op.negated(), a, b, &mut out);
        prop_assert!(out.iter().zip(&naive).all(|(a, b)| a != b));
        if let Some(first) = b.first() {
            constant(op, a, *first, &mut out);
            let naive: Vec<bool> = a.iter().map(|a| holds(op, order(a, first))).collect();
            prop_assert_eq!(&out, &naive);
        }
        Ok(())
    })
}

fn ops() -> BoxedStrategy<Op> {
    prop::sample::select(OPS.to_vec()).boxed()
}

properties! {
    #[test]
    fn i64_compare((a, b) in pair(integer()), op in ops()) {
        as_the_naive_loop((&a, &b, op), compare_i64, compare_i64_const, Ord::cmp)?;
    }

    #[test]
    fn i128_compare((a, b) in pair(wide()), op in ops()) {
        as_the_naive_loop((&a, &b, op), compare_i128, compare_i128_const, Ord::cmp)?;
    }

    #[test]
    fn f64_compare((a, b) in pair(float()), op in ops()) {
        as_the_naive_loop((&a, &b, op), compare_f64, compare_f64_const, as_sql_does)?;
    }

    #[test]
    fn u32_compare((a, b) in pair(0u32..9), op in ops()) {
        as_the_naive_loop((&a, &b, op), compare_u32, compare_u32_const, Ord::cmp)?;
    }
}

/// A NaN equals every NaN and is greater than all numbers; zeros of both signs are equal.
fn as_sql_does(a: &f64, b: &f64) -> std::cmp::Ordering {
    let nan = a.is_nan().cmp(&b.is_nan());
    a.partial_cmp(b).unwrap_or(nan)
}

/// SQL's value, from a value and its validity.
fn three(values: &[bool], valid: &Option<Vec<bool>>, row: usize) -> Option<bool> {
    is(valid, row).then(|| values[row])
}

properties! {
    #[test]
    fn membership((values, _) in column(integer()), set in vec(integer(), 0..40), near in vec(-3000i64..3000, 0..40)) {
        for mut set in [set, near] {
            set.sort();
            at_each_level(|| {
                let mut out = Vec::new();
                in_set_i64(&values, &set, &mut out);
                let naive: Vec<bool> = values.iter().map(|v| set.contains(v)).collect();
                prop_assert_eq!(out, naive);
                Ok(())
            })?;
        }
    }

    #[test]
    fn labels_of_codes((codes, _) in column(prop_oneof![4 => 0u32..90, 1 => any::<u32>()]), hits in vec(any::<bool>(), 0..80)) {
        at_each_level(|| {
            let mut out = Vec::new();
            labels(&codes, &hits, &mut out);
            let naive: Vec<bool> = codes.iter().map(|c| hits.get(*c as usize) == Some(&true)).collect();
            prop_assert_eq!(out, naive);
            Ok(())
        })?;
    }

    #[test]
    fn three_valued_logic(
        ((a, av), (b, bv)) in rows().prop_flat_map(|n| {
            let side = || (vec(any::<bool>(), n), prop::option::of(vec(any::<bool>(), n)));
            (side(), side())
        })
    ) {
        at_each_level(|| {
            let (mut out, mut known) = (vec![true], vec![true]);
            let check = |out: &[bool], known: &[bool], some: bool, naive: &dyn Fn(usize) -> Option<bool>| {
                prop_assert_eq!(out.len(), a.len());
                prop_assert_eq!(known.len(), if some { a.len() } else { 0 });
                for row in 0..a.len() {
                    prop_assert_eq!((!some || known[row]).then_some(out[row]), naive(row));
                    prop_assert!(!out[row] || !some || known[row], "true and unknown");
                }
                Ok(())
            };
            let some = and(&a, av.as_deref(), &b, bv.as_deref(), &mut out, &mut known);
            check(&out, &known, some, &|r| match (three(&a, &av, r), three(&b, &bv, r)) {
                (Some(false), _) | (_, Some(false)) => Some(false),
                (Some(true), Some(true)) => Some(true),
                _ => None,
            })?;
            let some = or(&a, av.as_deref(), &b, bv.as_deref(), &mut out, &mut known);
            check(&out, &known, some, &|r| match (three(&a, &av, r), three(&b, &bv, r)) {
                (Some(true), _) | (_, Some(true)) => Some(true),
                (Some(false), Some(false)) => Some(false),
                _ => None,
            })?;
            let some = not(&a, av.as_deref(), &mut out, &mut known);
            check(&out, &known, some, &|r| three(&a, &av, r).map(|v| !v))?;
            definite(&a, av.as_deref(), &mut out);
            let naive: Vec<bool> = (0..a.len()).map(|r| three(&a, &av, r) == Some(true)).collect();
            prop_assert_eq!(&out, &naive);
            prop_assert_eq!(count(&out), naive.iter().filter(|k| **k).count());
            Ok(())
        })?;
    }

    #[test]
    fn selections((values, keep) in rows().prop_flat_map(|n| (vec(integer(), n), vec(any::<bool>(), n))), blocks in any::<bool>()) {
        // Runs of equal flags too: whole words of one kind.
        let keep: Vec<bool> = (0..keep.len()).map(|r| keep[if blocks { r / 70 } else { r }]).collect();
        at_each_level(|| {
            let (mut rows, mut out, mut kept) = (vec![7], vec![7], values.clone());
            positions(&keep, &mut rows);
            let naive: Vec<u32> = (0..keep.len() as u32).filter(|r| keep[*r as usize]).collect();
            prop_assert_eq!(&rows, &naive);
            gather(&values, &rows, &mut out);
            let naive: Vec<i64> = rows.iter().map(|r| values[*r as usize]).collect();
            prop_assert_eq!(&out, &naive);
            compact(&mut kept, &rows);
            prop_assert_eq!(&kept, &naive);
            Ok(())
        })?;
    }
}

#[test]
#[should_panic(expected = "behind the values")]
fn a_position_behind_the_values_is_not_followed() {
    gather(&[1u64, 2], &[0, 2], &mut Vec::new());
}

#[test]
#[should_panic(expected = "different lengths")]
fn lengths_that_differ_are_refused() {
    compare_i64(Op::Eq, &[1, 2], &[1], &mut Vec::new());
}
