//! What clients bind, as text.

use crate::values::binary::{EPOCH_DAYS, EPOCH_MICROS, infinity};
use crate::values::{calendar, text as written, types};
use crate::wire::frontend::{Fields, NO_TEXT};

/// The text of a value of the type `oid`.
///
/// # Errors
/// What is wrong with the bytes; that a type has no binary format here.
pub(crate) fn text(oid: u32, binary: bool, bytes: &[u8]) -> Result<String, String> {
    let utf8 = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).map_err(|_| NO_TEXT.to_string());
    if !binary {
        if bytes.contains(&0) {
            return Err(format!("{NO_TEXT}: 0x00"));
        }
        return utf8(bytes);
    }
    let mut out = Vec::new();
    match oid {
        types::BOOL => out.push(if number::<1>(bytes)? == [0] {
            b'f'
        } else {
            b't'
        }),
        types::INT2 => return Ok(i16::from_be_bytes(number(bytes)?).to_string()),
        types::INT4 => return Ok(i32::from_be_bytes(number(bytes)?).to_string()),
        types::OID => return Ok(u32::from_be_bytes(number(bytes)?).to_string()),
        types::INT8 => return Ok(i64::from_be_bytes(number(bytes)?).to_string()),
        types::FLOAT4 => written::single(f32::from_be_bytes(number(bytes)?), &mut out),
        types::FLOAT8 => written::double(f64::from_be_bytes(number(bytes)?), &mut out),
        types::BYTEA => written::bytes(bytes, &mut out),
        18 | 19 | types::TEXT | types::UNKNOWN | types::VARCHAR | 1042 | types::JSON | 142 => {
            return utf8(bytes);
        }
        types::JSONB => match bytes.split_first() {
            Some((1, text)) => return utf8(text),
            _ => return Err("unsupported jsonb version number".into()),
        },
        oid if types::item(oid).is_some() => array(bytes, &mut out)?,
        types::DATE => date(bytes, &mut out)?,
        types::TIME => calendar::time(i64::from_be_bytes(number(bytes)?), &mut out),
        types::TIMESTAMP => timestamp(bytes, false, &mut out)?,
        types::TIMESTAMPTZ => timestamp(bytes, true, &mut out)?,
        types::TIMETZ => {
            let all: [u8; 12] = number(bytes)?;
            let (time, zone) = all.split_at(8);
            calendar::time(i64::from_be_bytes(number(time)?), &mut out);
            calendar::offset(-i64::from(i32::from_be_bytes(number(zone)?)), &mut out);
        }
        types::INTERVAL => interval(bytes, &mut out)?,
        types::NUMERIC => return numeric(bytes),
        2950 => {
            let bytes: [u8; 16] = number(bytes)?;
            for (at, byte) in bytes.iter().enumerate() {
                let dash = if matches!(at, 4 | 6 | 8 | 10) {
                    "-"
                } else {
                    ""
                };
                out.extend(format!("{dash}{byte:02x}").bytes());
            }
        }
        // Of an enum.
        made if made >= types::MADE => return utf8(bytes),
        other => {
            return Err(format!(
                "values of type {other} are not supported in binary: send text"
            ));
        }
    }
    utf8(&out)
}

fn number<const N: usize>(bytes: &[u8]) -> Result<[u8; N], String> {
    bytes.try_into().map_err(|_| {
        format!(
            "incorrect binary data format: {} bytes in place of {N}",
            bytes.len()
        )
    })
}

fn date(bytes: &[u8], out: &mut Vec<u8>) -> Result<(), String> {
    let days = i32::from_be_bytes(number(bytes)?);
    match infinity(days, (i32::MIN, i32::MAX)) {
        Some(infinity) => out.extend(infinity.text().bytes()),
        None => calendar::date(i64::from(days) + EPOCH_DAYS, out),
    }
    Ok(())
}

fn timestamp(bytes: &[u8], zone: bool, out: &mut Vec<u8>) -> Result<(), String> {
    let micros = i64::from_be_bytes(number(bytes)?);
    if let Some(infinity) = infinity(micros, (i64::MIN, i64::MAX)) {
        out.extend(infinity.text().bytes());
        return Ok(());
    }
    let micros = micros.checked_add(EPOCH_MICROS);
    calendar::timestamp(micros.ok_or("timestamp out of range")?, zone, out);
    Ok(())
}

/// The most dimensions of an array, and items.
const DIMENSIONS: usize = 6;
const ITEMS: usize = 1 << 24;

/// An array.
fn array(bytes: &[u8], out: &mut Vec<u8>) -> Result<(), String> {
    let mut fields = Fields(bytes);
    let wrong = |e: crate::wire::frontend::Malformed| format!("incorrect binary data format: {e}");
    let mut part = |what| {
        let part = fields.number::<4>(what).map_err(wrong)?;
        Ok::<_, String>(i32::from_be_bytes(part))
    };
    let dimensions = usize::try_from(part("the dimensions")?).ok();
    let dimensions = dimensions.filter(|count| *count <= DIMENSIONS);
    let dimensions = dimensions.ok_or("incorrect binary data format: the dimensions")?;
    part("whether there are nulls")?;
    let item = part("the type of the items")?.cast_unsigned();
    let (mut lengths, mut count) = (Vec::new(), 1usize);
    for _ in 0..dimensions {
        let length = usize::try_from(part("a length")?).unwrap_or(usize::MAX);
        if part("a lower bound")? != 1 {
            return Err(
                "arrays whose positions begin elsewhere than at 1 are not supported".into(),
            );
        }
        count = count.saturating_mul(length);
        lengths.push(length);
    }
    if lengths.is_empty() || count == 0 {
        out.extend(b"{}");
        return Ok(());
    }
    if count > ITEMS || types::item(item).is_some() {
        return Err("incorrect binary data format: the items of an array".into());
    }
    for at in 0..count {
        // Braces where parts begin and end.
        let mut span = 1;
        for length in lengths.iter().rev() {
            span *= length;
            if at % span == 0 {
                out.push(b'{');
            }
        }
        let length = i32::from_be_bytes(fields.number("the length of an item").map_err(wrong)?);
        match usize::try_from(length) {
            Err(_) => out.extend(b"NULL"),
            Ok(length) => {
                let value = fields.bytes(length, "an item").map_err(wrong)?;
                written::item(text(item, true, value)?.as_bytes(), out);
            }
        }
        let mut span = 1;
        for length in lengths.iter().rev() {
            span *= length;
            if (at + 1) % span == 0 {
                out.push(b'}');
            }
        }
        if at + 1 < count {
            out.push(b',');
        }
    }
    Ok(())
}

/// An interval in words that cannot be misread.
fn interval(bytes: &[u8], out: &mut Vec<u8>) -> Result<(), String> {
    let bytes: [u8; 16] = number(bytes)?;
    let mut fields = Fields(&bytes);
    let wrong = |_| "incorrect binary data format".to_string();
    let micros = i64::from_be_bytes(fields.number("the time").map_err(wrong)?);
    let days = i32::from_be_bytes(fields.number("the days").map_err(wrong)?);
    let months = i32::from_be_bytes(fields.number("the months").map_err(wrong)?);
    let sign = if micros < 0 { "-" } else { "" };
    let micros = micros.unsigned_abs();
    let text = format!(
        "{months} months {days} days {sign}{}.{:06} seconds",
        micros / 1_000_000,
        micros % 1_000_000
    );
    out.extend(text.bytes());
    Ok(())
}

/// Most digits of a number that is read: more than any column has.
const DIGITS: usize = 2000;

fn numeric(bytes: &[u8]) -> Result<String, String> {
    let wrong = |e: crate::wire::frontend::Malformed| format!("incorrect binary data format: {e}");
    let mut fields = Fields(bytes);
    let mut part = |what| fields.number::<2>(what).map_err(wrong);
    let count = usize::from(u16::from_be_bytes(part("the count of digits")?));
    let weight = i32::from(i16::from_be_bytes(part("the weight")?));
    let sign = u16::from_be_bytes(part("the sign")?);
    let scale = usize::from(u16::from_be_bytes(part("the scale")?));
    match sign {
        0 | 0x4000 => {}
        0xC000 => return Ok("NaN".into()),
        0xD000 => return Ok("Infinity".into()),
        0xF000 => return Ok("-Infinity".into()),
        other => return Err(format!("incorrect binary data format: the sign {other}")),
    }
    if count > DIGITS || scale > 4 * DIGITS || weight.unsigned_abs() as usize > DIGITS {
        return Err("the number has too many digits".into());
    }
    let mut groups = Vec::with_capacity(count);
    for _ in 0..count {
        let group = u16::from_be_bytes(part("a digit")?);
        if group > 9999 {
            return Err(format!("incorrect binary data format: the digit {group}"));
        }
        groups.push(group);
    }
    let group = |at: i32| {
        let at = usize::try_from(at).ok();
        at.and_then(|at| groups.get(at)).copied().unwrap_or(0)
    };
    let mut text = String::new();
    for at in 0..=weight {
        text.push_str(&format!("{:04}", group(at)));
    }
    let whole = text.trim_start_matches('0');
    let mut text = if whole.is_empty() {
        "0".to_string()
    } else {
        whole.to_string()
    };
    if scale > 0 {
        text.push('.');
        let start = text.len();
        let mut at = weight + 1;
        // Groups between the point and the first that is there.
        while at < 0 && text.len() < start + scale {
            text.push_str("0000");
            at += 1;
        }
        while text.len() < start + scale {
            text.push_str(&format!("{:04}", group(at)));
            at += 1;
        }
        text.truncate(start + scale);
    }
    let zero = text.bytes().all(|byte| matches!(byte, b'0' | b'.'));
    Ok(if sign == 0x4000 && !zero {
        format!("-{text}")
    } else {
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn binary_values_become_texts() {
        let of = |oid, bytes: &[u8]| text(oid, true, bytes).unwrap();
        assert_eq!(of(types::INT2, &[0xff, 0xfe]), "-2");
        assert_eq!(of(types::BOOL, &[1]), "t");
        assert_eq!(of(types::FLOAT8, &1e-7f64.to_be_bytes()), "1e-07");
        assert_eq!(of(types::DATE, &0i32.to_be_bytes()), "2000-01-01");
        assert_eq!(
            of(types::TIMESTAMPTZ, &(-1i64).to_be_bytes()),
            "1999-12-31 23:59:59.999999+00"
        );
        for (ends, of_date) in [(i64::MAX, i32::MAX), (i64::MIN, i32::MIN)]
            .map(|(count, days)| (count.to_be_bytes(), days.to_be_bytes()))
        {
            let wanted = of(types::DATE, &of_date);
            assert!(wanted.ends_with("infinity"));
            assert_eq!(of(types::TIMESTAMP, &ends), wanted);
            assert_eq!(of(types::TIMESTAMPTZ, &ends), wanted);
        }
        assert_eq!(of(types::BYTEA, b"a\0"), "\\x6100");
        let mut interval = 1_500_000i64.to_be_bytes().to_vec();
        interval.extend(3i32.to_be_bytes());
        interval.extend(14i32.to_be_bytes());
        assert_eq!(
            of(types::INTERVAL, &interval),
            "14 months 3 days 1.500000 seconds"
        );
        // 0.0001, as PostgreSQL sends it: one group of weight -1.
        assert_eq!(
            of(types::NUMERIC, &[0, 1, 255, 255, 0, 0, 0, 4, 0, 1]),
            "0.0001"
        );
    }

    #[test]
    fn numbers_come_back_from_their_groups() {
        let mut random = fastrand::Rng::with_seed(5);
        for _ in 0..50_000 {
            let scale = random.i8(0..=38);
            let unscaled = random.i128(..) >> random.u32(0..128);
            let mut out = Vec::new();
            crate::values::binary::numeric(unscaled, scale, &mut out);
            let mut shown = Vec::new();
            written::decimal(unscaled, scale, &mut shown);
            let back = super::text(types::NUMERIC, true, &out).unwrap();
            assert_eq!(back, String::from_utf8(shown).unwrap());
        }
    }

    #[test]
    fn any_bytes_are_a_value_or_an_error() {
        let mut random = fastrand::Rng::with_seed(11);
        let all = [
            16, 17, 18, 20, 21, 23, 25, 26, 700, 701, 1043, 1082, 1083, 1114, 1184, 1186, 1700,
            2950, 1,
        ];
        for _ in 0..200_000 {
            let bytes: Vec<u8> = (0..random.usize(0..20)).map(|_| random.u8(..)).collect();
            let oid = all[random.usize(0..all.len())];
            if let Ok(text) = text(oid, random.bool(), &bytes) {
                assert!(text.len() < 20_000);
            }
        }
        assert!(text(types::INT4, true, &[0; 5]).is_err());
        assert!(text(types::TEXT, false, &[0xff]).is_err());
        assert!(text(types::TIMESTAMP, true, &(i64::MAX - 1).to_be_bytes()).is_err());
    }
}
