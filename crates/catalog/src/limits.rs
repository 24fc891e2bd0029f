//! What an administrator lets the user of a role have: `alter role name set memory_limit = '1GB'`.

use messages::{Error, Result};
use table::Role;

/// The setting of how much memory all statements of a user may reserve at a time.
pub(crate) const MEMORY: &str = "memory_limit";

/// The setting of the path in which names are looked up.
pub const PATH: &str = "search_path";

/// The settings of how long statements may take, and transactions may wait for their client.
const TIMES: [&str; 2] = ["idle_in_transaction_session_timeout", "statement_timeout"];

/// The least memory that makes sense: with less, operators would spill row by row.
const LEAST: u64 = 1 << 20;

/// Whether a setting of a role bounds what its user may have. Who has it cannot give itself more.
pub fn bounds(name: &str) -> bool {
    name != PATH
}

/// The value of a setting of a role as it is kept and shown.
///
/// # Errors
/// If roles have no setting of that name, or it cannot be that.
pub fn normal(name: &str, value: &str) -> Result<String> {
    let wrong = |hint: &str| {
        let message = format!("invalid value for parameter \"{name}\": \"{value}\"; {hint}");
        Error::coded("22023", message)
    };
    match name {
        MEMORY => match bytes(value) {
            None => Err(wrong("it is a size such as 512MB, or 0 for no limit")),
            Some(1..LEAST) => Err(wrong("1MB is the least")),
            Some(bytes) => Ok(size(bytes)),
        },
        PATH => Ok(value.to_owned()),
        name if TIMES.contains(&name) => match millis(value) {
            None => Err(wrong("it is a time such as 30s, or 0 for no limit")),
            Some(millis) => Ok(millis.to_string()),
        },
        "work_mem" | "temp_file_limit" | "maintenance_work_mem" => {
            Err(Error::unsupported(format!(
                "`{name}` bounds nothing here: memory_limit is for all statements of a user together"
            )))
        }
        _ => Err(Error::unsupported(format!(
            "roles have no setting \"{name}\": there are memory_limit, statement_timeout, idle_in_transaction_session_timeout and search_path; clients set others when they connect"
        ))),
    }
}

/// The memory limit of a role, in bytes; none if it has none.
pub fn memory(role: &Role) -> Option<u64> {
    let bytes = bytes(role.settings.get(MEMORY)?)?;
    (bytes > 0).then_some(bytes)
}

/// A number, and the unit that follows it.
fn parts(text: &str) -> Option<(u64, &str)> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit());
    let (number, unit) = text.split_at(digits.unwrap_or(text.len()));
    Some((number.parse().ok()?, unit.trim()))
}

/// A size in bytes. A number alone is of kilobytes, as PostgreSQL has it.
fn bytes(text: &str) -> Option<u64> {
    let (number, unit) = parts(text)?;
    let shift = match unit {
        "B" => 0,
        "" | "kB" => 10,
        "MB" => 20,
        "GB" => 30,
        "TB" => 40,
        _ => return None,
    };
    number
        .checked_mul(1 << shift)
        .filter(|bytes| *bytes <= i64::MAX as u64)
}

/// A size in the largest unit in which it is a whole number.
fn size(bytes: u64) -> String {
    const UNITS: [(&str, u64); 4] = [("TB", 40), ("GB", 30), ("MB", 20), ("kB", 10)];
    let fits = |(_, shift): &&(&str, u64)| bytes.is_multiple_of(1 << shift);
    match UNITS.iter().find(fits) {
        _ if bytes == 0 => "0".into(),
        Some((unit, shift)) => format!("{}{unit}", bytes >> shift),
        None => format!("{bytes}B"),
    }
}

/// A time in milliseconds.
fn millis(text: &str) -> Option<u64> {
    let (number, unit) = parts(text)?;
    let unit = match unit {
        "" | "ms" => 1,
        "s" => 1000,
        "min" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    let millis = number.checked_mul(unit)?;
    (millis <= i32::MAX as u64).then_some(millis)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_kept_as_they_are_shown() {
        for (name, value, kept) in [
            (MEMORY, "65536", Some("64MB")),
            (MEMORY, " 1024 MB", Some("1GB")),
            (MEMORY, "1048577B", Some("1048577B")),
            (MEMORY, "0", Some("0")),
            (MEMORY, "1kB", None),
            (MEMORY, "1mb", None),
            (MEMORY, "much", None),
            (MEMORY, "99999999TB", None),
            ("statement_timeout", "2min", Some("120000")),
            ("statement_timeout", "-1", None),
            ("idle_in_transaction_session_timeout", "30s", Some("30000")),
            ("work_mem", "64MB", None),
            ("nothing", "1", None),
        ] {
            assert_eq!(normal(name, value).ok().as_deref(), kept, "{name} {value}");
        }
        let mut role = Role::default();
        assert_eq!(memory(&role), None);
        role.settings.insert(MEMORY.into(), "64MB".into());
        assert_eq!(memory(&role), Some(64 << 20));
    }
}
