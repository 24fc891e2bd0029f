//! Days, and times of a day, as people write them.

use std::io::Write;

use sql::Infinity;

use crate::values::digits;

const MICROS_OF_DAY: i64 = 86_400_000_000;

/// Year, month and day of a number of days since 1970, in the calendar that goes on in both directions.
pub(crate) fn civil(days: i64) -> (i64, u32, u32) {
    // Counted from the first of March of the year 0, so that the day that leap years have is the last of a year.
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = (day_of_year - (153 * month + 2) / 5 + 1) as u32;
    let month = if month < 10 { month + 3 } else { month - 9 } as u32;
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

/// Writes a day: `2026-11-25`, with ` BC` where the year is before 1.
pub(crate) fn date(days: i64, out: &mut Vec<u8>) {
    if let Some(infinity) = i32::try_from(days).ok().and_then(Infinity::of_day) {
        return out.extend(infinity.text().bytes());
    }
    if day(days, out) {
        out.extend(b" BC");
    }
}

/// Writes a day without the words for years before 1; whether there are to be some.
fn day(days: i64, out: &mut Vec<u8>) -> bool {
    let (year, month, day) = civil(days);
    let shown = if year > 0 { year } else { 1 - year };
    digits::padded(shown.unsigned_abs(), 4, out);
    out.push(b'-');
    digits::two(month, out);
    out.push(b'-');
    digits::two(day, out);
    year <= 0
}

/// Writes microseconds since midnight: `12:00:00.5`.
pub(crate) fn time(micros: i64, out: &mut Vec<u8>) {
    let seconds = micros / 1_000_000;
    digits::padded((seconds / 3600).unsigned_abs(), 2, out);
    for part in [seconds / 60 % 60, seconds % 60] {
        out.push(b':');
        digits::two(part.unsigned_abs() as u32, out);
    }
    fraction(micros % 1_000_000, out);
}

/// Writes how far a zone is from UTC, in seconds to the east: `+01`, `-03:30`.
pub(crate) fn offset(east: i64, out: &mut Vec<u8>) {
    let (sign, all) = (if east < 0 { '-' } else { '+' }, east.abs());
    let _ = write!(out, "{sign}{:02}", all / 3600);
    if all % 3600 != 0 {
        let _ = write!(out, ":{:02}", all / 60 % 60);
    }
    if all % 60 != 0 {
        let _ = write!(out, ":{:02}", all % 60);
    }
}

/// Writes microseconds of a second, without zeros at the end.
pub(crate) fn fraction(micros: i64, out: &mut Vec<u8>) {
    if micros != 0 {
        out.push(b'.');
        digits::padded(micros.unsigned_abs(), 6, out);
        while out.last() == Some(&b'0') {
            out.pop();
        }
    }
}

/// Writes microseconds since 1970: `2026-11-25 12:00:00.5`.
pub(crate) fn timestamp(micros: i64, zone: bool, out: &mut Vec<u8>) {
    if let Some(infinity) = Infinity::of_count(micros) {
        return out.extend(infinity.text().bytes());
    }
    let before = day(micros.div_euclid(MICROS_OF_DAY), out);
    out.push(b' ');
    time(micros.rem_euclid(MICROS_OF_DAY), out);
    if zone {
        out.extend(b"+00");
    }
    if before {
        out.extend(b" BC");
    }
}

/// Writes an interval as PostgreSQL does: `1 year 2 mons -3 days 04:05:06.7`.
pub(crate) fn interval(months: i32, days: i32, micros: i64, out: &mut Vec<u8>) {
    let start = out.len();
    let mut negative_before = false;
    let parts = [
        (i64::from(months / 12), "year"),
        (i64::from(months % 12), "mon"),
        (i64::from(days), "day"),
    ];
    for (count, unit) in parts {
        if count == 0 {
            continue;
        }
        if out.len() > start {
            out.push(b' ');
        }
        // After a negative part, a positive one says so.
        let sign = if negative_before && count > 0 {
            "+"
        } else {
            ""
        };
        let plural = if count == 1 { "" } else { "s" };
        let _ = write!(out, "{sign}{count} {unit}{plural}");
        negative_before = count < 0;
    }
    if micros != 0 || out.len() == start {
        if out.len() > start {
            out.push(b' ');
        }
        if micros < 0 {
            out.push(b'-');
        } else if negative_before {
            out.push(b'+');
        }
        let micros = micros.unsigned_abs();
        let seconds = micros / 1_000_000;
        let _ = write!(
            out,
            "{:02}:{:02}:{:02}",
            seconds / 3600,
            seconds / 60 % 60,
            seconds % 60
        );
        fraction((micros % 1_000_000) as i64, out);
    }
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
    fn days_are_those_of_the_calendar() {
        let day = |days| written(|out| date(days, out));
        assert_eq!(day(0), "1970-01-01");
        assert_eq!(day(-1), "1969-12-31");
        assert_eq!(day(11_016), "2000-02-29");
        assert_eq!(day(11_017), "2000-03-01");
        assert_eq!(day(2_932_896), "9999-12-31");
        assert_eq!(day(-719_162), "0001-01-01");
        assert_eq!(day(-719_163), "0001-12-31 BC");
        // Each day follows the one before.
        let mut before = civil(-800_000);
        for days in -799_999..800_000 {
            let now = civil(days);
            let next_day = (before.0, before.1, before.2 + 1);
            let next_month = (before.0, before.1 + 1, 1);
            assert!(
                now == next_day || now == next_month || now == (before.0 + 1, 1, 1),
                "{before:?} {now:?}"
            );
            before = now;
        }
    }

    #[test]
    fn moments_have_the_digits_that_they_need() {
        let moment = |micros, zone| written(|out| timestamp(micros, zone, out));
        assert_eq!(moment(0, false), "1970-01-01 00:00:00");
        assert_eq!(moment(-1, true), "1969-12-31 23:59:59.999999+00");
        assert_eq!(moment(1_500_000, true), "1970-01-01 00:00:01.5+00");
    }

    #[test]
    fn intervals_are_written_as_in_postgresql() {
        let shown = |months, days, micros| written(|out| interval(months, days, micros, out));
        assert_eq!(shown(0, 0, 0), "00:00:00");
        assert_eq!(
            shown(14, 3, 14_706_700_000),
            "1 year 2 mons 3 days 04:05:06.7"
        );
        assert_eq!(shown(-1, 3, 0), "-1 mons +3 days");
        assert_eq!(shown(0, -1, 1_000_000), "-1 days +00:00:01");
        assert_eq!(shown(0, 0, -1), "-00:00:00.000001");
    }
}
