//! Inserts of one row of parameters, of which many rows are appended at once.

/// The statement that inserts rows of a frame called `frame`, whose columns are `1`, `2` and so on, as `text` inserts one row
/// of `width` parameters; none if `text` is anything else than `insert into table [(columns)] values ($1, $2, ...)`.
pub(crate) fn of_rows(text: &str, width: usize, frame: &str) -> Option<String> {
    let tokens = tokens(text)?;
    let mut rest = tokens.iter();
    let mut next = || rest.next().copied();
    let is = |token: Option<(usize, &str)>, word: &str| {
        token.is_some_and(|(_, found)| found.eq_ignore_ascii_case(word))
    };
    let name = |token: Option<(usize, &str)>| {
        token.is_some_and(|(_, found)| {
            found.starts_with(|c: char| c.is_alphabetic() || matches!(c, '_' | '"'))
        })
    };
    if !is(next(), "insert") || !is(next(), "into") {
        return None;
    }
    let mut token = next();
    loop {
        if !name(token) {
            return None;
        }
        token = next();
        if !is(token, ".") {
            break;
        }
        token = next();
    }
    if is(token, "(") {
        loop {
            if !name(next()) {
                return None;
            }
            token = next();
            if is(token, ")") {
                break;
            }
            if !is(token, ",") {
                return None;
            }
        }
        token = next();
    }
    let (values, _) = token.filter(|_| is(token, "values"))?;
    if !is(next(), "(") {
        return None;
    }
    let mut numbers = Vec::new();
    loop {
        let number: usize = next()?.1.strip_prefix('$')?.parse().ok()?;
        numbers.push(number);
        token = next();
        if is(token, ")") {
            break;
        }
        if !is(token, ",") {
            return None;
        }
    }
    token = next();
    if is(token, ";") {
        token = next();
    }
    let all = (1..=width).all(|number| numbers.contains(&number));
    if token.is_some() || !all || numbers.iter().any(|number| *number > width) {
        return None;
    }
    let columns: Vec<String> = numbers.iter().map(|n| format!("\"{n}\"")).collect();
    let head = &text[..values];
    Some(format!("{head}select {} from {frame}", columns.join(", ")))
}

/// Words, quoted names, parameters and signs, each with its place; none if there is anything else.
fn tokens(text: &str) -> Option<Vec<(usize, &str)>> {
    let word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$');
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        let rest = &text[at..];
        let length = match first {
            c if c.is_whitespace() => {
                at += c.len_utf8();
                continue;
            }
            '"' => {
                let end = rest[1..].find('"')? + 2;
                // A doubled quote goes on with the name; who writes one gets the rows one by one.
                if rest[end..].starts_with('"') {
                    return None;
                }
                end
            }
            '(' | ')' | ',' | '.' | ';' => 1,
            '$' => {
                1 + rest[1..]
                    .find(|c: char| !c.is_ascii_digit())
                    .unwrap_or(rest.len() - 1)
            }
            c if c.is_alphabetic() || c == '_' => {
                rest.find(|c: char| !word(c)).unwrap_or(rest.len())
            }
            _ => return None,
        };
        tokens.push((at, &rest[..length]));
        at += length;
    }
    Some(tokens)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_inserts_are_known() {
        for (text, wanted) in [
            (
                "insert into t values ($1, $2)",
                "insert into t select \"1\", \"2\" from f",
            ),
            (
                "INSERT INTO public.\"T x\" (\"a b\", c)\n VALUES ($2,$1) ; ",
                "INSERT INTO public.\"T x\" (\"a b\", c)\n select \"2\", \"1\" from f",
            ),
            (
                "insert into t (a) values ($1, $1, $2)",
                "insert into t (a) select \"1\", \"1\", \"2\" from f",
            ),
        ] {
            assert_eq!(of_rows(text, 2, "f").as_deref(), Some(wanted));
        }
        for text in [
            "insert into t values ($1, $3)",
            "insert into t values ($1)",
            "insert into t values ($1, $2), ($1, $2)",
            "insert into t values ($1, $2 + 1)",
            "insert into t values ($1, $2) on conflict do nothing",
            "insert into t values ($1, $2) returning a",
            "insert into t values ($1, '$2')",
            "insert into t -- values\n values ($1, $2)",
            "insert into t select $1, $2",
            "insert into t as x values ($1, $2)",
            "insert into \"t\"\"\" values ($1, $2)",
            "update t set a = $1 where b = $2",
            "insert into",
            "insert into t (",
            "insert into t values (",
            "insert into t values ($, $2)",
            "",
        ] {
            assert_eq!(of_rows(text, 2, "f"), None, "{text}");
        }
    }
}
