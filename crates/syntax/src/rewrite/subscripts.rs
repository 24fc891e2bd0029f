//! `set a[2] = 1`, which the parser does not know: `set a = "array assigned"(a, 1, 'i', 2)`.

use functions::lists::names::{ASSIGN, ASSIGN_SLICE};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Span, Token, TokenWithSpan, Whitespace};

use crate::ways::{self, Target};

/// Rewrites the lists behind `set` in which items of columns are assigned.
pub(crate) fn subscripts(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let mut made = Vec::with_capacity(tokens.len());
    let mut at = 0;
    while at < tokens.len() {
        made.push(tokens[at].clone());
        at += 1;
        if keyword(&tokens[at - 1]) != Keyword::SET {
            continue;
        }
        let end = at + list(&tokens[at..]);
        match rewritten(&tokens[at..end]) {
            Some(list) => made.extend(list),
            None => made.extend_from_slice(&tokens[at..end]),
        }
        at = end;
    }
    made
}

fn keyword(token: &TokenWithSpan) -> Keyword {
    match &token.token {
        Token::Word(word) if word.quote_style.is_none() => word.keyword,
        _ => Keyword::NoKeyword,
    }
}

/// How deep behind a token things are nested.
fn nested(depth: usize, token: &Token) -> Option<usize> {
    match token {
        Token::LParen | Token::LBracket | Token::LBrace => Some(depth + 1),
        Token::RParen | Token::RBracket | Token::RBrace => depth.checked_sub(1),
        // `when` stands within it, too.
        Token::Word(word) if word.quote_style.is_none() => match word.keyword {
            Keyword::CASE => Some(depth + 1),
            Keyword::END => depth.checked_sub(1),
            _ => Some(depth),
        },
        _ => Some(depth),
    }
}

/// How many tokens the list of a `set` has.
fn list(tokens: &[TokenWithSpan]) -> usize {
    let mut depth = 0;
    for (at, token) in tokens.iter().enumerate() {
        let ends = matches!(
            keyword(token),
            Keyword::FROM | Keyword::WHERE | Keyword::RETURNING | Keyword::WHEN
        );
        match nested(depth, &token.token) {
            Some(_) if depth == 0 && ends => return at,
            Some(deeper) => depth = deeper,
            None => return at,
        }
    }
    tokens.len()
}

/// The parts of a list between commas.
fn parts(tokens: &[TokenWithSpan]) -> Vec<&[TokenWithSpan]> {
    let (mut depth, mut start) = (0usize, 0);
    let mut found = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        depth = nested(depth, &token.token).unwrap_or(0);
        if depth == 0 && token.token == Token::Comma {
            found.push(&tokens[start..at]);
            start = at + 1;
        }
    }
    found.push(&tokens[start..]);
    found
}

/// An assignment to an item: the column, the brackets, and the value.
struct Item<'t> {
    column: Vec<TokenWithSpan>,
    brackets: Vec<&'t [TokenWithSpan]>,
    value: &'t [TokenWithSpan],
}

fn is_blank(token: &TokenWithSpan) -> bool {
    matches!(token.token, Token::Whitespace(_))
}

fn item(tokens: &[TokenWithSpan]) -> Option<Item<'_>> {
    let mut column = Vec::new();
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        match &token.token {
            Token::Whitespace(_) => {}
            Token::Word(_) | Token::Period => column.push(token.clone()),
            Token::LBracket if !column.is_empty() => break,
            _ => return None,
        }
        at += 1;
    }
    let mut brackets = Vec::new();
    loop {
        let token = tokens.get(at)?;
        match &token.token {
            Token::Whitespace(_) => at += 1,
            Token::LBracket => {
                let mut depth = 0;
                let length = tokens[at..].iter().position(|token| {
                    depth = nested(depth, &token.token).unwrap_or(0);
                    depth == 0
                })?;
                brackets.push(&tokens[at + 1..at + length]);
                at += length + 1;
            }
            Token::Eq if !brackets.is_empty() => break,
            _ => return None,
        }
    }
    Some(Item {
        column,
        brackets,
        value: &tokens[at + 1..],
    })
}

/// A row of columns that are assigned, of which some are items: the bracket that opens it, the list with
/// [marks](crate::ways), and what comes behind it.
fn row(part: &[TokenWithSpan]) -> Option<(&TokenWithSpan, Vec<TokenWithSpan>, &[TokenWithSpan])> {
    let open = part.iter().position(|token| !is_blank(token))?;
    if part[open].token != Token::LParen {
        return None;
    }
    let mut depth = 0;
    let length = part[open..].iter().position(|token| {
        depth = nested(depth, &token.token).unwrap_or(0);
        depth == 0
    })?;
    let inside = &part[open + 1..open + length];
    let items = inside.iter().any(|own| own.token == Token::LBracket);
    let list = ways::list(inside).filter(|_| items)?;
    Some((&part[open], list, &part[open + length..]))
}

/// The list with marks in the places of parts of columns, if there is one that has items and fields; none of others.
fn marked(parts: &[&[TokenWithSpan]]) -> Option<Vec<TokenWithSpan>> {
    let mixed = |part: &&[TokenWithSpan]| {
        row(part).is_some() || Target::read(part).is_some_and(|own| own.is_mixed())
    };
    if !parts.iter().any(mixed) {
        return None;
    }
    let mut made = Vec::new();
    for (at, part) in parts.iter().enumerate() {
        if at > 0 {
            made.push(TokenWithSpan::new(Token::Comma, part.first()?.span));
        }
        if let Some((open, list, rest)) = row(part) {
            made.push(open.clone());
            made.extend(list);
            made.extend_from_slice(rest);
            continue;
        }
        match Target::read(part).filter(Target::has_items) {
            Some(target) => {
                made.push(target.marked());
                made.extend_from_slice(target.rest);
            }
            None => made.extend_from_slice(part),
        }
    }
    Some(made)
}

/// The list with calls in the place of assignments to items; none if there are none.
fn rewritten(tokens: &[TokenWithSpan]) -> Option<Vec<TokenWithSpan>> {
    let parts = parts(tokens);
    if let Some(marked) = marked(&parts) {
        return Some(marked);
    }
    let mut found = false;
    // Columns by their texts, and what they get; several items of one column are assigned one after the other.
    let mut all: Vec<(Option<String>, Vec<TokenWithSpan>, Vec<TokenWithSpan>)> = Vec::new();
    for part in parts {
        let Some(item) = item(part) else {
            all.push((None, part.to_vec(), vec![]));
            continue;
        };
        found = true;
        let name: String = item.column.iter().map(|t| t.token.to_string()).collect();
        let before = all.iter().position(|(own, ..)| own.as_ref() == Some(&name));
        let own = match before {
            Some(before) => std::mem::take(&mut all[before].2),
            None => item.column.clone(),
        };
        let value = call(own, &item)?;
        match before {
            Some(before) => all[before].2 = value,
            None => all.push((Some(name), item.column, value)),
        }
    }
    if !found {
        return None;
    }
    let span = tokens.first()?.span;
    let put = |token| TokenWithSpan::new(token, span);
    let mut made = Vec::new();
    for (at, (name, first, value)) in all.into_iter().enumerate() {
        if at > 0 {
            made.push(put(Token::Comma));
        }
        made.push(put(Token::Whitespace(Whitespace::Space)));
        made.extend(first);
        if name.is_some() {
            made.push(put(Token::Eq));
            made.extend(value);
        }
    }
    made.push(put(Token::Whitespace(Whitespace::Space)));
    Some(made)
}

/// `"array assigned"(own, value, 'kinds', subscripts)`.
fn call(own: Vec<TokenWithSpan>, item: &Item<'_>) -> Option<Vec<TokenWithSpan>> {
    let span: Span = item.column.first()?.span;
    let put = |token| TokenWithSpan::new(token, span);
    let mut kinds = String::new();
    let mut given: Vec<&[TokenWithSpan]> = Vec::new();
    for bracket in &item.brackets {
        let (kind, subscripts) = ways::bounds(bracket);
        kinds.push(kind);
        given.extend(subscripts);
    }
    let items = kinds.chars().all(|kind| kind == 'i');
    let name = if items { ASSIGN } else { ASSIGN_SLICE };
    let mut made = vec![put(Token::make_word(name, Some('"'))), put(Token::LParen)];
    made.extend(own);
    made.push(put(Token::Comma));
    made.extend_from_slice(item.value);
    made.push(put(Token::Comma));
    made.push(put(Token::SingleQuotedString(kinds)));
    for subscript in given {
        made.push(put(Token::Comma));
        made.extend_from_slice(subscript);
    }
    made.push(put(Token::RParen));
    Some(made)
}

#[cfg(test)]
mod tests {
    use sqlparser::tokenizer::Tokenizer;

    use super::*;
    use crate::dialect::DIALECT;

    fn changed(text: &str) -> String {
        let tokens = Tokenizer::new(&DIALECT, text).tokenize_with_location();
        let tokens = subscripts(tokens.unwrap());
        tokens.iter().map(|token| token.token.to_string()).collect()
    }

    #[test]
    fn items_are_assigned_by_calls() {
        for (text, wanted) in [
            (
                "update t set a[1] = 2 where a[1] = 3",
                "update t set a=\"array assigned\"(a, 2 ,'i',1) where a[1] = 3",
            ),
            (
                "update t set b = 1, a[1] = 2, a[2:] = x",
                "update t set  b = 1, a=\"array slice assigned\"(\"array assigned\"(a, 2,'i',1), x,'l',2) ",
            ),
            (
                "update t set j['a'][0] = '1'",
                "update t set j=\"array assigned\"(j, '1','ii','a',0) ",
            ),
        ] {
            assert_eq!(changed(text), wanted);
        }
        assert_eq!(
            changed("update t set a[1] = case when b then 1 end, c = 2"),
            "update t set a=\"array assigned\"(a, case when b then 1 end,'i',1),  c = 2 "
        );
        for (text, wanted) in [
            (
                "update t set a[1].f = 1, c = d[1], b[2] = 3 where x",
                "update t set\"a\u{2}[1].f\" = 1, c = d[1],\"b\u{2}[2]\" = 3 where x",
            ),
            (
                "update t set (c.f, a[1]) = (1, 2)",
                "update t set(\"c\u{2}.f\",\"a\u{2}[1]\") = (1, 2)",
            ),
        ] {
            assert_eq!(changed(text), wanted);
        }
        for text in [
            "update t set c.f = b[1]",
            "update t set a = b[1], c = 2",
            "set search_path = a, b",
            "update t set (a, b) = (1, c[2])",
        ] {
            assert_eq!(changed(text), text);
        }
    }
}
