//! Bracket expressions: `[a-z]`, `[^[:alpha:]_]`, `[\w.]`.

use messages::Result;

use crate::regular::collating::element;
use crate::regular::letters::{Class, escaped, named, variants};
use crate::regular::options::invalid;
use crate::regular::reader::Parser;

/// The most characters of a range whose other cases are listed.
const MAX_LISTED: u32 = 1_000;

/// One thing within brackets.
enum Item {
    Letter(char),
    /// Characters as the library `regex` writes them.
    Class(String),
}

/// The rest of a bracket expression.
///
/// # Errors
/// If it has no end, or a range that runs backwards.
pub(super) fn class(parser: &mut Parser<'_>) -> Result<Class> {
    let negated = parser.eat("^");
    let mut text = String::new();
    let mut first = true;
    let mut wide = false;
    while first || !parser.rest.starts_with(']') {
        // A line between two things joins them to a range; elsewhere it is itself.
        if !first && parser.rest.starts_with('-') && !parser.rest.starts_with("-]") {
            return Err(invalid("invalid character range"));
        }
        first = false;
        let from = match item(parser)? {
            Item::Letter(letter) => letter,
            Item::Class(class) => {
                text.push_str(&class);
                continue;
            }
        };
        let to = if parser.rest.starts_with('-') && !parser.rest.starts_with("-]") {
            parser.eat("-");
            match item(parser)? {
                Item::Letter(to) if to >= from => to,
                _ => return Err(invalid("invalid character range")),
            }
        } else {
            from
        };
        range(from, to, &mut text);
        if parser.options.alike {
            if to as u32 - from as u32 <= MAX_LISTED {
                let others = (from..=to).flat_map(variants);
                others.for_each(|letter| escaped(letter, &mut text));
            } else {
                wide = true;
            }
        }
    }
    parser.eat("]");
    let mark = if negated { "^" } else { "" };
    let line = if negated && parser.options.stops {
        r"\n"
    } else {
        ""
    };
    let own = format!("[{mark}{text}{line}]");
    // The library knows the cases of what is too wide to be listed.
    Class::new(if wide { format!("(?i:{own})") } else { own })
}

fn range(from: char, to: char, out: &mut String) {
    escaped(from, out);
    if to != from {
        out.push('-');
        escaped(to, out);
    }
}

/// The next thing within brackets.
fn item(parser: &mut Parser<'_>) -> Result<Item> {
    let unbalanced = || invalid("brackets [] not balanced");
    for (open, close) in [("[:", ":]"), ("[.", ".]"), ("[=", "=]")] {
        let Some(inside) = parser.rest.strip_prefix(open) else {
            continue;
        };
        let (name, rest) = inside.split_once(close).ok_or_else(unbalanced)?;
        parser.rest = rest;
        if open == "[:" {
            let both = matches!(name, "lower" | "upper") && parser.options.alike;
            let own = named(if both { "alpha" } else { name });
            let own = own.ok_or_else(|| invalid("invalid character class"))?;
            return Ok(Item::Class(own.to_string()));
        }
        let letter = element(name).ok_or_else(|| invalid("invalid collating element"))?;
        return Ok(Item::Letter(letter));
    }
    let letter = parser.next().ok_or_else(unbalanced)?;
    if letter != '\\' {
        return Ok(Item::Letter(letter));
    }
    let behind = parser.rest.chars().next().ok_or_else(unbalanced)?;
    if let Some(class) = parser.shorthand(behind) {
        parser.next();
        return Ok(Item::Class(class));
    }
    if matches!(behind, 'A' | 'Z' | 'm' | 'M' | 'y' | 'Y' | '1'..='9') {
        return Err(invalid("invalid escape \\ sequence"));
    }
    Ok(Item::Letter(parser.written()?))
}
