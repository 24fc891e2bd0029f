//! Names and passwords as HTTP has them (`Authorization: Basic`, RFC 7617).

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;

/// The name and the password that the value of such a header has.
pub(crate) fn read(value: &str) -> Option<(String, String)> {
    let (scheme, rest) = value.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let rest = rest.trim();
    // Some clients leave the padding out.
    let padding = "=".repeat(rest.len().wrapping_neg() % 4);
    let plain = BASE64.decode(format!("{rest}{padding}")).ok()?;
    let plain = String::from_utf8(plain).ok()?;
    let (name, password) = plain.split_once(':')?;
    Some((name.to_string(), password.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_passwords_are_read() {
        let ann = Some(("ann".to_string(), "re:ef".to_string()));
        assert_eq!(read("Basic YW5uOnJlOmVm"), ann);
        assert_eq!(read("basic  YW5uOnJlOmVm"), ann);
        let bob = Some(("bob".to_string(), "x".to_string()));
        assert_eq!(read("Basic Ym9iOng"), bob);
        for wrong in ["", "Basic", "Bearer YW5uOnJlOmVm", "Basic !", "Basic YW5u"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
