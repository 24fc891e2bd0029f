//! Values as text, as PostgreSQL writes them.

use std::io::Write;

use crate::values::digits;

/// A number with a point that floats: the fewest digits that give it back; with an exponent below 1e-4 and from
/// `10^most` on.
fn float(shortest: &str, most: i32, out: &mut Vec<u8>) {
    let (digits, exponent) = shortest.split_once('e').unwrap_or((shortest, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let (sign, digits) = match digits.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", digits),
    };
    out.extend(sign.as_bytes());
    if exponent < -4 || exponent >= most {
        let sign = if exponent < 0 { '-' } else { '+' };
        let _ = write!(out, "{digits}e{sign}{:02}", exponent.abs());
        return;
    }
    let plain: Vec<u8> = digits.bytes().filter(|byte| *byte != b'.').collect();
    if exponent < 0 {
        out.extend(b"0.");
        out.extend(std::iter::repeat_n(b'0', (-exponent - 1) as usize));
        out.extend(&plain);
        return;
    }
    let whole = exponent as usize + 1;
    for at in 0..whole.max(plain.len()) {
        if at == whole {
            out.push(b'.');
        }
        out.push(plain.get(at).copied().unwrap_or(b'0'));
    }
}

/// What has no digits.
fn special(value: f64, out: &mut Vec<u8>) -> bool {
    let text: &[u8] = match value {
        v if v.is_nan() => b"NaN",
        f64::INFINITY => b"Infinity",
        f64::NEG_INFINITY => b"-Infinity",
        _ => return false,
    };
    out.extend(text);
    true
}

pub(crate) fn double(value: f64, out: &mut Vec<u8>) {
    if !special(value, out) && !few_digits(value, out) {
        float(&format!("{value:e}"), 15, out);
    }
}

/// Writes a double that has few digits before the point and four at most behind it, as prices and measurements do; false if
/// it is none. To find the fewest digits of others takes ten times as long.
fn few_digits(value: f64, out: &mut Vec<u8>) -> bool {
    const UNIT: f64 = 1e4;
    // Both sides of the division are exact, so it gives the double that these digits are read as. No two numbers of 15 digits
    // are read as the same double: there are no fewer digits.
    let scaled = (value.abs() * UNIT).round();
    if scaled >= 1e15 || scaled / UNIT != value.abs() {
        return false;
    }
    if value.is_sign_negative() {
        out.push(b'-');
    }
    let (whole, fraction) = (scaled as u64 / UNIT as u64, scaled as u64 % UNIT as u64);
    digits::unsigned(whole, out);
    if fraction > 0 {
        out.push(b'.');
        digits::padded(fraction, 4, out);
        while out.last() == Some(&b'0') {
            out.pop();
        }
    }
    true
}

pub(crate) fn single(value: f32, out: &mut Vec<u8>) {
    if !special(value.into(), out) {
        float(&format!("{value:e}"), 6, out);
    }
}

/// A decimal number, `unscaled / 10^scale`.
pub(crate) fn decimal(unscaled: i128, scale: i8, out: &mut Vec<u8>) {
    if scale <= 0 {
        let _ = write!(out, "{unscaled}");
        if unscaled != 0 {
            out.extend(std::iter::repeat_n(b'0', usize::from(scale.unsigned_abs())));
        }
        return;
    }
    if unscaled < 0 {
        out.push(b'-');
    }
    let scale = usize::from(scale.unsigned_abs());
    // Most have few digits, and arithmetic on 128 bits is slow.
    if let (Ok(all), Some(unit)) = (
        u64::try_from(unscaled.unsigned_abs()),
        u32::try_from(scale)
            .ok()
            .and_then(|scale| 10u64.checked_pow(scale)),
    ) {
        digits::unsigned(all / unit, out);
        out.push(b'.');
        digits::padded(all % unit, scale, out);
        return;
    }
    let start = out.len();
    let _ = write!(
        out,
        "{:0width$}",
        unscaled.unsigned_abs(),
        width = scale + 1
    );
    let point = out.len() - scale;
    debug_assert!(point > start);
    out.insert(point, b'.');
}

pub(crate) fn bytes(value: &[u8], out: &mut Vec<u8>) {
    out.extend(b"\\x");
    for byte in value {
        let _ = write!(out, "{byte:02x}");
    }
}

/// An item of an array: in quotes where it would be read as something else.
pub(crate) fn item(text: &[u8], out: &mut Vec<u8>) {
    let plain = !text.is_empty()
        && !text.eq_ignore_ascii_case(b"null")
        && !text.iter().any(|byte| {
            matches!(byte, b'{' | b'}' | b',' | b'"' | b'\\') || byte.is_ascii_whitespace()
        });
    if plain {
        out.extend(text);
        return;
    }
    out.push(b'"');
    for byte in text {
        if matches!(byte, b'"' | b'\\') {
            out.push(b'\\');
        }
        out.push(*byte);
    }
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn floats_are_written_as_in_postgresql() {
        for (value, wanted) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (1.0, "1"),
            (0.1, "0.1"),
            (-12.5, "-12.5"),
            (100_000.0, "100000"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (1e14, "100000000000000"),
            (1e15, "1e+15"),
            (1.5e300, "1.5e+300"),
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "-Infinity"),
        ] {
            assert_eq!(written(|out| double(value, out)), wanted);
        }
        assert_eq!(written(|out| single(0.1, out)), "0.1");
        assert_eq!(written(|out| single(1e6, out)), "1e+06");
    }

    #[test]
    fn few_digits_are_written_as_any_others() {
        let mut random = fastrand::Rng::with_seed(5);
        let mut quick = 0;
        for _ in 0..200_000 {
            let unit = 10_f64.powi(random.i32(0..7));
            let whole = random.i64(..) >> random.u32(0..64);
            let value = match random.u8(0..8) {
                0 => f64::from_bits(random.u64(..)),
                1 => (whole as f64 / unit).next_up(),
                _ => whole as f64 / unit,
            };
            let plain = written(|out| {
                if !special(value, out) {
                    float(&format!("{value:e}"), 15, out);
                }
            });
            assert_eq!(written(|out| double(value, out)), plain);
            quick += usize::from(few_digits(value, &mut Vec::new()));
        }
        assert!(quick > 50_000, "{quick}");
    }

    #[test]
    fn floats_come_back() {
        let mut random = fastrand::Rng::with_seed(3);
        for _ in 0..100_000 {
            let value = f64::from_bits(random.u64(..));
            let text = written(|out| double(value, out));
            let back: f64 = text.parse().unwrap();
            assert!(
                back.to_bits() == value.to_bits() || value.is_nan(),
                "{text}"
            );
        }
    }

    #[test]
    fn decimals_have_all_their_digits() {
        let shown = |unscaled, scale| written(|out| decimal(unscaled, scale, out));
        assert_eq!(shown(0, 2), "0.00");
        assert_eq!(shown(-5, 2), "-0.05");
        assert_eq!(shown(12_345, 2), "123.45");
        assert_eq!(shown(7, 0), "7");
        assert_eq!(shown(7, -2), "700");
        let mut random = fastrand::Rng::with_seed(11);
        for _ in 0..50_000 {
            let (unscaled, scale) = (random.i128(..) >> random.u32(0..128), random.usize(1..38));
            let sign = if unscaled < 0 { "-" } else { "" };
            let all = format!("{:0width$}", unscaled.unsigned_abs(), width = scale + 1);
            let (whole, fraction) = all.split_at(all.len() - scale);
            let wanted = format!("{sign}{whole}.{fraction}");
            assert_eq!(shown(unscaled, scale as i8), wanted);
        }
        let least = written(|out| decimal(i128::MIN, 38, out));
        assert_eq!(least, "-1.70141183460469231731687303715884105728");
    }

    #[test]
    fn items_have_quotes_where_they_need_them() {
        let shown = |text: &str| written(|out| item(text.as_bytes(), out));
        assert_eq!(shown("a"), "a");
        assert_eq!(shown(""), "\"\"");
        assert_eq!(shown("NULL"), "\"NULL\"");
        assert_eq!(shown("a\"b\\c"), "\"a\\\"b\\\\c\"");
        assert_eq!(shown("a b"), "\"a b\"");
    }
}
