//! Forms of dates that a file's options name: `dd.mm.yyyy`, `%m/%d/%Y`.

use std::str::FromStr;

use arrow::compute::kernels::cast_utils::Parser;
use arrow::datatypes::Date32Type;

use crate::error::{Error, Result};

/// A part of a date as it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Year,
    Month,
    Day,
    /// This character.
    Literal(char),
}

/// How the dates of a file are written.
///
/// ```
/// let form: ingest::DateForm = "dd.mm.yyyy".parse()?;
/// assert_eq!(form.day("05.03.2024"), Some(19_787));
/// assert_eq!(form.day("2024-03-05"), None);
/// # Ok::<(), ingest::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DateForm(Vec<Part>);

impl FromStr for DateForm {
    type Err = Error;

    /// A form of `dd`, `mm` and `yyyy`, or `%d`, `%m` and `%Y`, with other characters between them.
    fn from_str(form: &str) -> Result<DateForm> {
        const WORDS: [(&str, Part); 6] = [
            ("%Y", Part::Year),
            ("%m", Part::Month),
            ("%d", Part::Day),
            ("yyyy", Part::Year),
            ("mm", Part::Month),
            ("dd", Part::Day),
        ];
        let wrong = || {
            Error::Options(format!(
                "no form of dates {form:?}; it has dd, mm and yyyy (or %d, %m and %Y) once each, such as dd.mm.yyyy"
            ))
        };
        let (mut parts, mut rest) = (vec![], form);
        while let Some(first) = rest.chars().next() {
            let word = WORDS.iter().find(|(word, _)| {
                let start = rest.get(..word.len()).unwrap_or_default();
                // `%m` and `%M` are two things.
                if word.starts_with('%') {
                    start == *word
                } else {
                    start.eq_ignore_ascii_case(word)
                }
            });
            let length = match word {
                Some((word, part)) => {
                    parts.push(*part);
                    word.len()
                }
                None if first.is_alphanumeric() || first == '%' => return Err(wrong()),
                None => {
                    parts.push(Part::Literal(first));
                    first.len_utf8()
                }
            };
            rest = rest.get(length..).unwrap_or_default();
        }
        let once = |part: Part| parts.iter().filter(|found| **found == part).count() == 1;
        if [Part::Year, Part::Month, Part::Day].into_iter().all(once) {
            Ok(DateForm(parts))
        } else {
            Err(wrong())
        }
    }
}

impl DateForm {
    /// The day that a text in this form is, counted from 1970-01-01; none if it is none.
    pub fn day(&self, text: &str) -> Option<i32> {
        let mut rest = text;
        let (mut year, mut month, mut day) = ("", "", "");
        for (at, part) in self.0.iter().enumerate() {
            let (place, most) = match part {
                Part::Literal(wanted) => {
                    rest = rest.strip_prefix(*wanted)?;
                    continue;
                }
                Part::Year => (&mut year, 4),
                Part::Month => (&mut month, 2),
                Part::Day => (&mut day, 2),
            };
            let digits = rest.bytes().take(most).take_while(u8::is_ascii_digit);
            let count = digits.count();
            // One digit is enough where a separator follows, or nothing.
            // Beside another number it has all its digits, as nothing else tells where it ends.
            let is_number =
                |part: Option<&Part>| matches!(part, Some(Part::Year | Part::Month | Part::Day));
            let before = at.checked_sub(1).and_then(|before| self.0.get(before));
            let bounded = !is_number(before) && !is_number(self.0.get(at + 1));
            if count == 0 || count < most && (!bounded || most == 4) {
                return None;
            }
            (*place, rest) = rest.split_at_checked(count)?;
        }
        if !rest.is_empty() {
            return None;
        }
        Date32Type::parse(&format!("{year}-{month:0>2}-{day:0>2}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_read_in_their_form() {
        for (form, text, wanted) in [
            ("dd.mm.yyyy", "05.03.2024", Some("2024-03-05")),
            ("DD.MM.YYYY", "5.3.2024", Some("2024-03-05")),
            ("%m/%d/%Y", "03/05/2024", Some("2024-03-05")),
            ("yyyymmdd", "20240305", Some("2024-03-05")),
            ("yyyymmdd", "2024035", None),
            ("dd.mm.yyyy", "31.02.2024", None),
            ("dd.mm.yyyy", "05.03.24", None),
            ("dd.mm.yyyy", "05.03.2024 ", None),
            ("dd.mm.yyyy", "05/03/2024", None),
            ("dd.mm.yyyy", "", None),
            ("dd. mm. yyyy", "5. 3. 2024", Some("2024-03-05")),
        ] {
            let form: DateForm = form.parse().unwrap();
            assert_eq!(form.day(text), wanted.and_then(Date32Type::parse), "{text}");
        }
        for wrong in ["", "dd.mm", "dd.mm.yy", "dd.dd.mm.yyyy", "%d.%M.%Y", "day"] {
            assert!(wrong.parse::<DateForm>().is_err(), "{wrong}");
        }
    }
}
