//! Whole numbers as digits, two at a time: most of what is sent as text is numbers, and the standard library's way through
//! formatters takes several times as long.

/// The two digits of each number below 100.
const PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[0; 2]; 100];
    let mut at = 0;
    while at < 100 {
        pairs[at] = [b'0' + (at / 10) as u8, b'0' + (at % 10) as u8];
        at += 1;
    }
    pairs
};

/// Appends the two digits of a number below 100; of another, its last two.
pub(crate) fn two(number: u32, out: &mut Vec<u8>) {
    out.extend(PAIRS[(number % 100) as usize]);
}

/// Appends a number.
pub(crate) fn unsigned(mut number: u64, out: &mut Vec<u8>) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    while number >= 100 {
        at -= 2;
        digits[at..at + 2].copy_from_slice(&PAIRS[(number % 100) as usize]);
        number /= 100;
    }
    if number >= 10 {
        at -= 2;
        digits[at..at + 2].copy_from_slice(&PAIRS[number as usize]);
    } else {
        at -= 1;
        digits[at] = b'0' + number as u8;
    }
    out.extend_from_slice(&digits[at..]);
}

/// Appends a number with its sign.
pub(crate) fn signed(number: i64, out: &mut Vec<u8>) {
    if number < 0 {
        out.push(b'-');
    }
    unsigned(number.unsigned_abs(), out);
}

/// Appends a number with zeros before it, so that it has `width` digits at least.
pub(crate) fn padded(number: u64, width: usize, out: &mut Vec<u8>) {
    let start = out.len();
    unsigned(number, out);
    let digits = out.len() - start;
    if digits < width {
        out.resize(start + width, b'0');
        out.copy_within(start..start + digits, start + width - digits);
        out[start..start + width - digits].fill(b'0');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_those_of_the_standard_library() {
        let mut random = fastrand::Rng::with_seed(9);
        let mut numbers = vec![0, 1, 9, 10, 11, 99, 100, 101, 999, 1000, u64::MAX];
        numbers.extend((0..50_000).map(|_| random.u64(..) >> random.u32(0..64)));
        let mut out = Vec::new();
        for number in numbers {
            out.clear();
            unsigned(number, &mut out);
            assert_eq!(out, number.to_string().as_bytes());
            out.clear();
            signed(number as i64, &mut out);
            assert_eq!(out, (number as i64).to_string().as_bytes());
            let width = random.usize(0..24);
            out.clear();
            out.push(b'x');
            padded(number, width, &mut out);
            assert_eq!(out, format!("x{number:0width$}").as_bytes());
            out.clear();
            two((number % 100) as u32, &mut out);
            assert_eq!(out, format!("{:02}", number % 100).as_bytes());
        }
    }
}
