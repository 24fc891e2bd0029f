//! Values that are written plainly, so that each reader of texts takes them for the same.

use arrow::datatypes::IntervalMonthDayNano;

/// The digits of a decimal that is written with a point between digits, and how many of them are behind it.
pub fn plain_decimal(text: &str) -> Option<(i128, usize)> {
    let (whole, places) = text.split_once('.')?;
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let unsigned = whole.strip_prefix('-').unwrap_or(whole);
    let fits = is_digits(unsigned) && is_digits(places) && unsigned.len() + places.len() < 30;
    let digits = fits.then(|| format!("{whole}{places}").parse().ok())??;
    Some((digits, places.len()))
}

/// The interval of a text like `3 month`: a number of up to five digits and a unit from days to years.
pub fn plain_interval(text: &str) -> Option<IntervalMonthDayNano> {
    let (count, unit) = text.split_once(' ')?;
    let is_plain =
        !count.is_empty() && count.len() < 6 && count.bytes().all(|b| b.is_ascii_digit());
    let count: i32 = is_plain.then(|| count.parse().ok())??;
    Some(match unit {
        "year" | "years" => IntervalMonthDayNano::new(12 * count, 0, 0),
        "month" | "months" => IntervalMonthDayNano::new(count, 0, 0),
        "day" | "days" => IntervalMonthDayNano::new(0, count, 0),
        _ => return None,
    })
}
