//! Patterns of names: `%` is any characters, `_` is one, a backslash makes the next one an ordinary character.

/// Whether `name` is as `pattern` says.
pub(super) fn matches(pattern: &str, name: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let name: Vec<char> = name.chars().collect();
    // Where the last `%` is, and how much of the name it has taken so far.
    let mut any: Option<(usize, usize)> = None;
    let (mut at, mut of) = (0, 0);
    loop {
        let step = match pattern.get(at) {
            Some('%') => {
                any = Some((at + 1, of));
                at += 1;
                continue;
            }
            Some('_') => (of < name.len()).then_some(1),
            Some('\\') if at + 1 < pattern.len() => {
                (name.get(of) == pattern.get(at + 1)).then_some(2)
            }
            Some(c) => (name.get(of) == Some(c)).then_some(1),
            None if of == name.len() => return true,
            None => None,
        };
        match (step, any) {
            (Some(length), _) => (at, of) = (at + length, of + 1),
            (None, Some((after, taken))) if taken < name.len() => {
                any = Some((after, taken + 1));
                (at, of) = (after, taken + 1);
            }
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By the definition.
    fn plainly(pattern: &[char], name: &[char]) -> bool {
        match (pattern, name) {
            ([], name) => name.is_empty(),
            (['%', rest @ ..], _) => (0..=name.len()).any(|taken| plainly(rest, &name[taken..])),
            (['_', rest @ ..], [_, names @ ..]) => plainly(rest, names),
            (['\\', c, rest @ ..], [d, names @ ..]) => c == d && plainly(rest, names),
            (['\\', _, ..], []) => false,
            ([c, rest @ ..], [d, names @ ..]) => c == d && plainly(rest, names),
            _ => false,
        }
    }

    #[test]
    fn patterns_are_those_of_like() {
        for (pattern, name, wanted) in [
            ("fish", "fish", true),
            ("f%", "fish", true),
            ("%", "", true),
            ("_", "", false),
            ("f__h", "fish", true),
            ("%s%", "fish", true),
            ("f\\_h", "f_h", true),
            ("f\\_h", "fxh", false),
            ("", "fish", false),
            ("Fish", "fish", false),
            ("é_", "éa", true),
        ] {
            assert_eq!(matches(pattern, name), wanted, "{pattern} {name}");
        }
    }

    #[test]
    fn any_pattern_is_read_as_defined() {
        let mut random = fastrand::Rng::with_seed(1);
        for _ in 0..20_000 {
            let mut text = |of: &str, longest: usize| -> String {
                let of: Vec<char> = of.chars().collect();
                let length = random.usize(0..=longest);
                (0..length).map(|_| of[random.usize(0..of.len())]).collect()
            };
            let (pattern, name) = (text("ab%_\\", 6), text("ab%_", 6));
            let (p, n): (Vec<char>, Vec<char>) =
                (pattern.chars().collect(), name.chars().collect());
            assert_eq!(
                matches(&pattern, &name),
                plainly(&p, &n),
                "{pattern} {name}"
            );
        }
    }
}
