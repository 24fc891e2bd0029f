use super::*;
use algebra::lift::*;

/// A checked kernel of two columns.
type CheckedBoth<T> = fn(&[T], &[T], &mut Vec<T>) -> Result<(), Overflow>;

/// A checked kernel of a column and a constant.
type CheckedConstant<T> = fn(&[T], T, &mut Vec<T>) -> Result<(), Overflow>;

/// A checked kernel against the checked scalar operation: with a column and with a constant.
fn checked<T: Copy + Default + PartialEq + Debug>(
    (a, b): (&[T], &[T]),
    both: CheckedBoth<T>,
    constant: CheckedConstant<T>,
    scalar: fn(T, T) -> Option<T>,
) -> TestCaseResult {
    at_each_level(|| {
        let mut out = vec![T::default()];
        let naive: Option<Vec<T>> = a.iter().zip(b).map(|(a, b)| scalar(*a, *b)).collect();
        let result = both(a, b, &mut out);
        prop_assert_eq!(result.is_ok().then(|| out.clone()), naive);
        for b in b.iter().take(9) {
            let naive: Option<Vec<T>> = a.iter().map(|a| scalar(*a, *b)).collect();
            let result = constant(a, *b, &mut out);
            prop_assert_eq!(result.is_ok().then(|| out.clone()), naive);
        }
        Ok(())
    })
}

/// Mostly columns where nothing overflows, so that both outcomes occur.
fn moderate() -> BoxedStrategy<i64> {
    prop_oneof![60 => -9i64..9, 20 => any::<i32>().prop_map(i64::from), 1 => integer()].boxed()
}

/// As [`moderate`], with products beyond 64 bits.
fn moderate_wide() -> BoxedStrategy<i128> {
    prop_oneof![60 => -9i128..9, 20 => any::<i64>().prop_map(i128::from), 1 => wide()].boxed()
}

properties! {
    #[test]
    fn i64_add((a, b) in pair(moderate())) {
        checked((&a, &b), try_add_i64, try_add_i64_const, i64::checked_add)?;
    }

    #[test]
    fn i64_sub((a, b) in pair(moderate())) {
        checked((&a, &b), try_sub_i64, try_sub_i64_const, i64::checked_sub)?;
    }

    #[test]
    fn i64_mul((a, b) in pair(moderate())) {
        checked((&a, &b), try_mul_i64, try_mul_i64_const, i64::checked_mul)?;
    }

    #[test]
    fn i128_add((a, b) in pair(moderate_wide())) {
        checked((&a, &b), try_add_i128, try_add_i128_const, i128::checked_add)?;
    }

    #[test]
    fn i128_sub((a, b) in pair(moderate_wide())) {
        checked((&a, &b), try_sub_i128, try_sub_i128_const, i128::checked_sub)?;
    }

    #[test]
    fn i128_mul((a, b) in pair(moderate_wide())) {
        checked((&a, &b), try_mul_i128, try_mul_i128_const, i128::checked_mul)?;
    }
}

/// A kernel that cannot fail against the scalar operation, bit by bit.
fn plain<T: Same + Default>(
    (a, b): (&[T], &[T]),
    both: fn(&[T], &[T], &mut Vec<T>),
    constant: fn(&[T], T, &mut Vec<T>),
    scalar: fn(T, T) -> T,
) -> TestCaseResult {
    at_each_level(|| {
        let mut out = vec![T::default(); 3];
        both(a, b, &mut out);
        prop_assert_eq!(out.len(), a.len());
        for row in 0..a.len() {
            prop_assert!(out[row].same(scalar(a[row], b[row])));
        }
        if let Some(b) = b.first() {
            constant(a, *b, &mut out);
            prop_assert_eq!(out.len(), a.len());
            for row in 0..a.len() {
                prop_assert!(out[row].same(scalar(a[row], *b)));
            }
        }
        Ok(())
    })
}

/// Equal, or both not numbers, whose bits no rule fixes.
trait Same: Copy {
    fn same(self, other: Self) -> bool;
}
impl Same for i64 {
    fn same(self, other: i64) -> bool {
        self == other
    }
}
impl Same for f64 {
    fn same(self, other: f64) -> bool {
        self.to_bits() == other.to_bits() || self.is_nan() && other.is_nan()
    }
}
properties! {
    #[test]
    fn least_of_integers((a, b) in pair(integer())) {
        plain((&a, &b), least_i64, least_i64_const, |a: i64, b: i64| a.min(b))?;
    }

    #[test]
    fn greatest_of_integers((a, b) in pair(integer())) {
        plain((&a, &b), greatest_i64, greatest_i64_const, |a: i64, b: i64| a.max(b))?;
    }

    #[test]
    fn least_of_floats((a, b) in pair(float())) {
        plain((&a, &b), least_f64, least_f64_const, |a: f64, b: f64| chosen(a, b, true))?;
    }

    #[test]
    fn greatest_of_floats((a, b) in pair(float())) {
        plain((&a, &b), greatest_f64, greatest_f64_const, |a: f64, b: f64| chosen(a, b, false))?;
    }

    /// Halves and their neighbours, and floats around where all are whole numbers.
    #[test]
    fn functions_of_a_float(a in vec(roundable(), 0..99)) {
        one_float(&a, floor_f64, f64::floor)?;
        one_float(&a, ceil_f64, f64::ceil)?;
        one_float(&a, trunc_f64, f64::trunc)?;
        one_float(&a, round_f64, f64::round_ties_even)?;
        one_float(&a, abs_f64, f64::abs)?;
        one_float(&a, sqrt_f64, f64::sqrt)?;
    }

    #[test]
    fn whole_numbers_of_floats(a in vec(roundable(), 0..99), near in vec(-99i64..99, 0..99)) {
        let near: Vec<f64> = near.iter().map(|n| *n as f64 / 4.0).collect();
        at_each_level(|| {
            for values in [&a, &near] {
                let mut out = vec![3];
                round_to_i64(values, &mut out);
                prop_assert_eq!(out.len(), values.len());
                for (found, value) in out.iter().zip(values) {
                    prop_assert_eq!(*found, value.round_ties_even() as i64, "{}", value);
                }
            }
            Ok(())
        })?;
    }
}

/// The lesser or the greater float: what is no number is greater than all that are.
fn chosen(a: f64, b: f64, least: bool) -> f64 {
    let order = a.is_nan().cmp(&b.is_nan()).then(a.total_cmp(&b));
    if order.is_le() == least { a } else { b }
}

/// Floats, of which many lie halfway between whole numbers, and such as are about as great as the greatest with a part behind
/// the point, or as whole numbers of 64 bits.
fn roundable() -> BoxedStrategy<f64> {
    let ends = vec![31, 51, 52, 53, 63];
    let near =
        (prop::sample::select(ends), -9i32..9, any::<bool>()).prop_map(|(bits, off, sign)| {
            let value = 2f64.powi(bits) + f64::from(off) / 2.0;
            if sign { -value } else { value }
        });
    prop_oneof![3 => float(), 1 => near].boxed()
}

/// A kernel of a float against the scalar function, bit by bit.
fn one_float(
    a: &[f64],
    kernel: fn(&[f64], &mut Vec<f64>),
    scalar: fn(f64) -> f64,
) -> TestCaseResult {
    at_each_level(|| {
        let mut out = vec![3.0];
        kernel(a, &mut out);
        prop_assert_eq!(out.len(), a.len());
        for (found, value) in out.iter().zip(a) {
            prop_assert!(found.same(scalar(*value)), "{} of {}", found, value);
        }
        Ok(())
    })
}

properties! {
    #[test]
    fn wrapping_add((a, b) in pair(integer())) {
        plain((&a, &b), add_i64, add_i64_const, i64::wrapping_add)?;
    }

    #[test]
    fn wrapping_sub((a, b) in pair(integer())) {
        plain((&a, &b), sub_i64, sub_i64_const, i64::wrapping_sub)?;
    }

    #[test]
    fn wrapping_mul((a, b) in pair(integer())) {
        plain((&a, &b), mul_i64, mul_i64_const, i64::wrapping_mul)?;
    }

    #[test]
    fn scaled((a, b) in pair(integer())) {
        plain((&a, &b), mul_i64, scale_i64, i64::wrapping_mul)?;
    }

    #[test]
    fn reversed_sub((a, b) in pair(integer())) {
        plain((&a, &b), reversed_i64, reversed_i64_const, |a: i64, b: i64| b.wrapping_sub(a))?;
    }

    #[test]
    fn float_add((a, b) in pair(float())) {
        plain((&a, &b), add_f64, add_f64_const, |a: f64, b: f64| a + b)?;
    }

    #[test]
    fn float_sub((a, b) in pair(float())) {
        plain((&a, &b), sub_f64, sub_f64_const, |a: f64, b: f64| a - b)?;
    }

    #[test]
    fn float_mul((a, b) in pair(float())) {
        plain((&a, &b), mul_f64, mul_f64_const, |a: f64, b: f64| a * b)?;
    }

    #[test]
    fn float_div((a, b) in pair(float())) {
        plain((&a, &b), div_f64, div_f64_const, |a: f64, b: f64| a / b)?;
    }

    #[test]
    fn float_rsub((a, b) in pair(float())) {
        plain((&a, &b), reversed_f64, reversed_f64_const, |a: f64, b: f64| b - a)?;
    }
}

fn reversed_i64(a: &[i64], b: &[i64], out: &mut Vec<i64>) {
    sub_i64(b, a, out);
}
fn reversed_i64_const(a: &[i64], b: i64, out: &mut Vec<i64>) {
    rsub_i64_const(b, a, out);
}
fn reversed_f64(a: &[f64], b: &[f64], out: &mut Vec<f64>) {
    sub_f64(b, a, out);
}
fn reversed_f64_const(a: &[f64], b: f64, out: &mut Vec<f64>) {
    rsub_f64_const(b, a, out);
}

/// A calendar that is counted day by day from 1970-01-01, forwards or back.
struct Calendar(i64, i64, i64);

impl Calendar {
    fn length(&self) -> i64 {
        match self.1 {
            2 if self.0 % 4 == 0 && (self.0 % 100 != 0 || self.0 % 400 == 0) => 29,
            2 => 28,
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        }
    }
    fn forward(&mut self) {
        self.2 += 1;
        if self.2 > self.length() {
            (self.1, self.2) = (self.1 + 1, 1);
        }
        if self.1 > 12 {
            (self.0, self.1) = (self.0 + 1, 1);
        }
    }
    fn back(&mut self) {
        self.2 -= 1;
        if self.2 == 0 {
            self.1 -= 1;
            if self.1 == 0 {
                (self.0, self.1) = (self.0 - 1, 12);
            }
            self.2 = self.length();
        }
    }
}

#[test]
fn dates_as_counted_day_by_day() {
    let days = 900_000; // from about -494 to 4434
    let mut naive = vec![(0, 0, 0); 2 * days + 1];
    let (mut up, mut down) = (Calendar(1970, 1, 1), Calendar(1970, 1, 1));
    for day in 0..=days {
        naive[days + day] = (up.0, up.1, up.2);
        naive[days - day] = (down.0, down.1, down.2);
        up.forward();
        down.back();
    }
    let numbers: Vec<i64> = (-(days as i64)..=days as i64).collect();
    at_each_level(|| {
        let (mut year, mut month, mut day) = (vec![], vec![], vec![]);
        for (numbers, naive) in numbers.chunks(VECTOR_ROWS).zip(naive.chunks(VECTOR_ROWS)) {
            year_of_day(numbers, &mut year);
            month_of_day(numbers, &mut month);
            day_of_day(numbers, &mut day);
            for row in 0..numbers.len() {
                assert_eq!(
                    (year[row], month[row], day[row]),
                    naive[row],
                    "day {}",
                    numbers[row]
                );
            }
        }
        Ok::<(), ()>(())
    })
    .unwrap();
}

properties! {
    #[test]
    fn dates_repeat_after_400_years(days in vec(prop_oneof![-800_000i64..800_000, any::<i32>().prop_map(i64::from)], 0..99), eras in -14_000i64..14_000) {
        let later: Vec<i64> = days.iter().map(|d| d + eras * 146_097).collect();
        at_each_level(|| {
            let (mut a, mut b) = (vec![], vec![]);
            year_of_day(&days, &mut a);
            year_of_day(&later, &mut b);
            prop_assert!(a.iter().zip(&b).all(|(a, b)| a + 400 * eras == *b));
            for part in [month_of_day, day_of_day] {
                part(&days, &mut a);
                part(&later, &mut b);
                prop_assert_eq!(&a, &b);
            }
            Ok(())
        })?;
    }

    #[test]
    fn one_input((a, valid) in column(integer()), floats in vec(float(), 0..99)) {
        at_each_level(|| {
            let (mut out, mut long) = (vec![1], vec![1]);
            negate_i64(&a, &mut out);
            prop_assert!(out.iter().zip(&a).all(|(n, a)| *n == a.wrapping_neg()));
            prop_assert_eq!(out.len(), a.len());
            let naive: Option<Vec<i64>> = a.iter().map(|a| a.checked_neg()).collect();
            prop_assert_eq!(try_negate_i64(&a, &mut out).is_ok().then(|| out.clone()), naive);
            widen(&a, &mut long);
            prop_assert!(long.iter().zip(&a).all(|(l, a)| *l == i128::from(*a)));
            prop_assert_eq!(narrow(&long, &mut out), Ok(()));
            prop_assert_eq!(&out, &a);
            if !long.is_empty() {
                long[0] = i128::from(i64::MAX) + 1;
                prop_assert_eq!(narrow(&long, &mut out), Err(Overflow));
            }
            let mut negated = vec![];
            prop_assert_eq!(try_negate_i128(&long, &mut negated), Ok(()));
            prop_assert!(long.iter().zip(&negated).all(|(a, b)| *a == -b));
            prop_assert_eq!(try_negate_i128(&[i128::MIN], &mut negated), Err(Overflow));
            let mut out = vec![];
            to_f64(&a, &mut out);
            prop_assert!(out.iter().zip(&a).all(|(f, a)| *f == *a as f64));
            negate_f64(&floats, &mut out);
            prop_assert!(out.iter().zip(&floats).all(|(n, f)| n.to_bits() == f.to_bits() ^ 1 << 63));
            if let Some(valid) = &valid {
                let mut blanked = a.clone();
                blank(&mut blanked, valid, 1);
                for row in 0..a.len() {
                    prop_assert_eq!(blanked[row], if valid[row] { a[row] } else { 1 });
                }
            }
            Ok(())
        })?;
    }

    #[test]
    fn choices((mask, a, b) in rows().prop_flat_map(|n| (vec(any::<bool>(), n), vec(wide(), n), vec(wide(), n)))) {
        at_each_level(|| {
            let mut out = vec![0];
            select(&mask, &a, &b, &mut out);
            prop_assert_eq!(out.len(), a.len());
            for row in 0..a.len() {
                prop_assert_eq!(out[row], if mask[row] { a[row] } else { b[row] });
            }
            Ok(())
        })?;
    }

    /// Whatever two numbers within bounds give lies within the bounds that are computed.
    #[test]
    fn bounds_hold(a in vec(wide(), 2), b in vec(wide(), 2), rows in 0u64..1000) {
        let bounds = |v: &[i128]| Bounds::new(v[0].min(v[1]), v[0].max(v[1]));
        let (x, y) = (bounds(&a), bounds(&b));
        let inside = |bounds: Bounds, value: Option<i128>| match value {
            Some(value) => bounds.min <= value && value <= bounds.max,
            None => !bounds.fits_i128() && !bounds.fits_i64(),
        };
        for a in &a {
            prop_assert!(inside(x.neg(), a.checked_neg()));
            prop_assert!(inside(x.union(y), Some(*a)));
            prop_assert!(inside(x.sum_of(rows), a.checked_mul(rows.into())) || rows == 0);
            for b in &b {
                prop_assert!(inside(x.add(y), a.checked_add(*b)));
                prop_assert!(inside(x.sub(y), a.checked_sub(*b)));
                prop_assert!(inside(x.mul(y), a.checked_mul(*b)));
            }
        }
        prop_assert_eq!(x.fits_i64(), a.iter().all(|a| i64::try_from(*a).is_ok()));
        prop_assert!(!Bounds::UNKNOWN.sub(Bounds::UNKNOWN).fits_i64());
    }
}

#[test]
fn bounds_of_values() {
    assert_eq!(Bounds::of(&[]), None);
    assert_eq!(Bounds::of(&[3, -1, 2]), Some(Bounds::new(-1, 3)));
    // A price times (1 - discount) times (1 + tax), of 6 M rows, fits 64 bits.
    let price = Bounds::new(90_000, 10_500_000);
    let charge = price.mul(Bounds::new(90, 100)).mul(Bounds::new(100, 108));
    assert!(charge.sum_of(6_001_215).fits_i64() && !charge.sum_of(6_001_215_000).fits_i64());
}
