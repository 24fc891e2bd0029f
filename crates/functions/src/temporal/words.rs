//! The words in texts of dates and times.

/// What a word stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Word {
    Month(i64),
    Weekday,
    /// Before noon or not.
    Noon {
        after: bool,
    },
    /// Before the year 1 or not.
    Era {
        before: bool,
    },
    /// It says nothing: `at`, `on`.
    Filler,
    /// `T`: a time follows.
    Time,
    /// What the number that follows counts.
    Unit(Unit),
    Now,
    Today,
    Tomorrow,
    Yesterday,
    /// Midnight in UTC.
    AllBalls,
    Epoch,
    Infinity,
    /// Summer time, an hour more.
    Summer,
}

/// What a number behind a letter counts: `J2451187`, `y2001m02d04`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    Julian,
    Year,
    Month,
    Day,
    Hour,
    Minute,
    Second,
    Time,
}

const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

const WEEKDAYS: [&str; 16] = [
    "sunday",
    "sun",
    "monday",
    "mon",
    "tuesday",
    "tue",
    "tues",
    "wednesday",
    "wed",
    "weds",
    "thursday",
    "thu",
    "thur",
    "thurs",
    "friday",
    "fri",
];

/// What a word in lower case stands for in a date or time.
pub(crate) fn word(text: &str) -> Option<Word> {
    let month = MONTHS
        .iter()
        .position(|name| *name == text || name[..3] == *text);
    if let Some(month) = month {
        return Some(Word::Month(month as i64 + 1));
    }
    if WEEKDAYS.contains(&text) {
        return Some(Word::Weekday);
    }
    Some(match text {
        "sept" => Word::Month(9),
        "saturday" | "sat" => Word::Weekday,
        "am" => Word::Noon { after: false },
        "pm" => Word::Noon { after: true },
        "ad" => Word::Era { before: false },
        "bc" => Word::Era { before: true },
        "at" | "on" => Word::Filler,
        "t" => Word::Time,
        "j" | "jd" | "julian" => Word::Unit(Unit::Julian),
        "y" => Word::Unit(Unit::Year),
        "m" => Word::Unit(Unit::Month),
        "mm" => Word::Unit(Unit::Minute),
        "d" => Word::Unit(Unit::Day),
        "h" => Word::Unit(Unit::Hour),
        "s" => Word::Unit(Unit::Second),
        "now" => Word::Now,
        "today" => Word::Today,
        "tomorrow" => Word::Tomorrow,
        "yesterday" => Word::Yesterday,
        "allballs" => Word::AllBalls,
        "epoch" => Word::Epoch,
        "infinity" => Word::Infinity,
        "dst" => Word::Summer,
        _ => return None,
    })
}

/// Whether a word stands for itself where a digit follows.
pub(crate) fn is_known(text: &str) -> bool {
    word(text).is_some()
}
