//! Rewrites of tokens.

use messages::error::Position;
use sqlparser::keywords::Keyword;
use sqlparser::parser::ParserError;
use sqlparser::tokenizer::{Token, TokenWithSpan, Whitespace};

/// `abort` as the parser knows it: `rollback`.
pub(crate) fn abort(mut tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let first = tokens
        .iter_mut()
        .find(|token| !matches!(token.token, Token::Whitespace(_)));
    if let Some(Token::Word(word)) = first.map(|first| &mut first.token)
        && word.keyword == Keyword::ABORT
        && word.quote_style.is_none()
    {
        (word.keyword, word.value) = (Keyword::ROLLBACK, "rollback".into());
    }
    tokens
}

/// Without the word `lateral` before functions in `from`, of which it says nothing: they see what stands before them anyway.
pub(crate) fn laterals(mut tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let is_space = |token: &TokenWithSpan| matches!(token.token, Token::Whitespace(_));
    let said: Vec<usize> = (0..tokens.len())
        .filter(|&at| {
            let is_word = matches!(&tokens[at].token, Token::Word(word)
                if word.keyword == Keyword::LATERAL && word.quote_style.is_none());
            let mut after = tokens[at + 1..].iter().filter(|token| !is_space(token));
            let name = after.next().map(|next| &next.token);
            let next = after.next().map(|next| &next.token);
            // `lateral view explode(...)` is another thing.
            let is_call = matches!(next, Some(Token::LParen | Token::Period));
            is_word && matches!(name, Some(Token::Word(_))) && is_call
        })
        .collect();
    for at in said {
        tokens[at].token = Token::Whitespace(Whitespace::Space);
    }
    tokens
}

/// The type `struct(a int, b text)` as the parser knows it: `struct<a int, b text>`. A call has no two words one behind the
/// other.
pub(crate) fn structs(mut tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let whole: Vec<usize> = (0..tokens.len())
        .filter(|&at| !matches!(tokens[at].token, Token::Whitespace(_)))
        .collect();
    let token = |place: usize| whole.get(place).map(|&at| &tokens[at].token);
    let is_type = |place: usize| {
        let named = matches!(token(place), Some(Token::Word(word)) if word.keyword == Keyword::STRUCT && word.quote_style.is_none());
        named
            && token(place + 1) == Some(&Token::LParen)
            && matches!(token(place + 2), Some(Token::Word(_)))
            && matches!(token(place + 3), Some(Token::Word(_)))
    };
    let mut brackets = Vec::new();
    for place in (0..whole.len()).filter(|place| is_type(*place)) {
        let mut open = 0;
        let closing = (place + 1..whole.len()).find(|&at| {
            match token(at) {
                Some(Token::LParen) => open += 1,
                Some(Token::RParen) => open -= 1,
                _ => {}
            }
            open == 0
        });
        if let Some(closing) = closing {
            brackets.extend([(whole[place + 1], Token::Lt), (whole[closing], Token::Gt)]);
        }
    }
    for (at, bracket) in brackets {
        tokens[at].token = bracket;
    }
    tokens
}

/// Options of `explain` that say what is told beside a plan. What is known is told in any case.
const TOLD: [&str; 6] = ["buffers", "costs", "settings", "summary", "timing", "wal"];

/// Its other options.
const OPTIONS: [&str; 3] = ["analyze", "format", "verbose"];

/// The formats of `explain (format json)` as the parser calls them, and its options without those that change nothing.
pub(crate) fn explained(mut tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let whole: Vec<usize> = (0..tokens.len())
        .filter(|&at| !matches!(tokens[at].token, Token::Whitespace(_)))
        .collect();
    let word = |at: Option<&usize>| match at.map(|&at| &tokens[at].token) {
        Some(Token::Word(word)) if word.quote_style.is_none() => word.value.to_ascii_lowercase(),
        _ => String::new(),
    };
    let opens = whole
        .get(1)
        .filter(|&&at| tokens[at].token == Token::LParen);
    let mut closes = whole.iter().skip(2);
    let closes = closes.find(|&&at| tokens[at].token == Token::RParen);
    let (Some(&open), Some(&close)) = (opens, closes) else {
        return tokens;
    };
    if word(whole.first()) != "explain" {
        return tokens;
    }
    let inside: Vec<usize> = whole
        .iter()
        .copied()
        .filter(|at| (open + 1..close).contains(at))
        .collect();
    let all = inside.split(|&at| tokens[at].token == Token::Comma);
    let is_option = |own: &[usize]| {
        let name = word(own.first());
        own.len() < 3 && (OPTIONS.contains(&name.as_str()) || TOLD.contains(&name.as_str()))
    };
    // It may be a query.
    if !all.clone().all(is_option) {
        return tokens;
    }
    let kept: Vec<&[usize]> = all
        .filter(|own| !TOLD.contains(&word(own.first()).as_str()))
        .collect();
    let found = kept.iter().find(|own| word(own.first()) == "format");
    let format = found.and_then(|own| own.get(1)).map(|at| {
        let name = match word(Some(at)).as_str() {
            "json" => "pgjson",
            "text" => "indent",
            // One that is refused by its name.
            _ => "tree",
        };
        (*at, name)
    });
    let mut made = tokens[..open].to_vec();
    if !kept.is_empty() {
        made.push(tokens[open].clone());
        let comma = TokenWithSpan::new(Token::Comma, tokens[open].span);
        for (place, own) in kept.iter().enumerate() {
            made.extend((place > 0).then(|| comma.clone()));
            for at in *own {
                let mut token = tokens[*at].clone();
                if let (Some((format, name)), Token::Word(word)) = (format, &mut token.token)
                    && format == *at
                {
                    (word.keyword, word.value) = (Keyword::NoKeyword, name.into());
                }
                made.push(token);
            }
        }
        made.push(tokens[close].clone());
    }
    made.extend(tokens.drain(close + 1..));
    made
}

/// `with t as (...)` without `materialized` and `not materialized`: whether it is computed once changes no answer, and where
/// it does that is [seen to](crate::ctes).
pub(crate) fn without_materialized(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let whole: Vec<usize> = (0..tokens.len())
        .filter(|&at| !matches!(tokens[at].token, Token::Whitespace(_)))
        .collect();
    let keyword = |place: usize| match whole.get(place).map(|&at| &tokens[at].token) {
        Some(Token::Word(word)) if word.quote_style.is_none() => word.keyword,
        _ => Keyword::NoKeyword,
    };
    let mut gone = Vec::new();
    for place in 0..whole.len() {
        let words = 1 + usize::from(keyword(place + 1) == Keyword::NOT);
        if keyword(place) == Keyword::AS
            && keyword(place + words) == Keyword::MATERIALIZED
            && let Some(&next) = whole.get(place + words + 1)
            && tokens[next].token == Token::LParen
        {
            gone.extend(&whole[place + 1..=place + words]);
        }
    }
    let kept = tokens.into_iter().enumerate();
    let kept = kept.filter(|(at, _)| gone.binary_search(at).is_err());
    kept.map(|(_, token)| token).collect()
}

/// Texts between which there is nothing but the end of a line as one text, as the standard has it.
///
/// # Errors
/// For two texts on one line, of which the parser would take the second for a name.
pub(crate) fn continued(
    tokens: Vec<TokenWithSpan>,
) -> std::result::Result<Vec<TokenWithSpan>, ParserError> {
    let is_blank = |token: &&TokenWithSpan| matches!(token.token, Token::Whitespace(_));
    // Its options are pairs of texts.
    let first = tokens.iter().find(|token| !is_blank(token));
    let copies = first.is_some_and(
        |first| matches!(&first.token, Token::Word(word) if word.keyword == Keyword::COPY),
    );
    let mut read: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len());
    for token in tokens {
        if let Token::SingleQuotedString(more) = &token.token
            && let Some(at) = before_line(&read)
            && let Token::SingleQuotedString(text) = &mut read[at].token
        {
            text.push_str(more);
            read[at].span.end = token.span.end;
            read.truncate(at + 1);
            continue;
        }
        let last = read.iter().rfind(|token| !is_blank(token));
        if let (Token::SingleQuotedString(second), Some(Token::SingleQuotedString(_)), false) =
            (&token.token, last.map(|last| &last.token), copies)
        {
            let start = token.span.start;
            return Err(ParserError::ParserError(format!(
                "Expected: an operator or a comma, found: '{}' at Line: {}, Column: {}",
                second.replace('\'', "''"),
                start.line,
                start.column
            )));
        }
        read.push(token);
    }
    Ok(read)
}

/// `rows from (f(1), g(2))` as a call that the parser knows: `"rows from"(f(1), g(2))`.
pub(crate) fn rows_from(mut tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let whole: Vec<usize> = (0..tokens.len())
        .filter(|&at| !matches!(tokens[at].token, Token::Whitespace(_)))
        .collect();
    let keyword = |place: usize| match whole.get(place).map(|&at| &tokens[at].token) {
        Some(Token::Word(word)) if word.quote_style.is_none() => word.keyword,
        _ => Keyword::NoKeyword,
    };
    let before = |place: usize| match place.checked_sub(1) {
        Some(before) => {
            let comma = tokens[whole[before]].token == Token::Comma;
            comma
                || matches!(
                    keyword(before),
                    Keyword::FROM | Keyword::JOIN | Keyword::LATERAL
                )
        }
        None => false,
    };
    let found: Vec<(usize, usize)> = (0..whole.len())
        .filter(|&place| {
            keyword(place) == Keyword::ROWS
                && keyword(place + 1) == Keyword::FROM
                && before(place)
                && whole
                    .get(place + 2)
                    .is_some_and(|&at| tokens[at].token == Token::LParen)
        })
        .map(|place| (whole[place], whole[place + 1]))
        .collect();
    for (rows, from) in found.into_iter().rev() {
        tokens[rows].token = Token::make_word(ROWS_FROM, Some('"'));
        tokens.remove(from);
    }
    tokens
}

/// The name of the call that `rows from` becomes.
pub(super) const ROWS_FROM: &str = "rows from";

/// Where the last token stands that is no blank, if a line has ended since and there is no other comment.
fn before_line(tokens: &[TokenWithSpan]) -> Option<usize> {
    let mut ended = false;
    for (at, token) in tokens.iter().enumerate().rev() {
        match &token.token {
            Token::Whitespace(Whitespace::Newline | Whitespace::SingleLineComment { .. }) => {
                ended = true;
            }
            Token::Whitespace(Whitespace::Space | Whitespace::Tab) => {}
            Token::Whitespace(_) => return None,
            _ => return ended.then_some(at),
        }
    }
    None
}

/// `substring(a similar b escape c)` as the parser knows it: `substring(a from b for c)`.
pub(crate) fn substrings(mut tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let called = |tokens: &[TokenWithSpan], at: usize| {
        let mut before = tokens[..at].iter().rev();
        let last = before.find(|token| !matches!(token.token, Token::Whitespace(_)));
        matches!(last.map(|last| &last.token), Some(Token::Word(word)) if word.keyword == Keyword::SUBSTRING)
    };
    // For each open parenthesis, whether it is that of a call, and whether `similar` has been there.
    let mut open: Vec<(bool, bool)> = Vec::new();
    for at in 0..tokens.len() {
        match &tokens[at].token {
            Token::LParen => open.push((called(&tokens, at), false)),
            Token::RParen => _ = open.pop(),
            Token::Word(word) if word.quote_style.is_none() => {
                let new = match (word.keyword, open.last_mut()) {
                    (Keyword::SIMILAR, Some((true, similar))) => {
                        *similar = true;
                        "FROM"
                    }
                    (Keyword::ESCAPE, Some((true, true))) => "FOR",
                    _ => continue,
                };
                tokens[at].token = Token::make_keyword(new);
            }
            _ => {}
        }
    }
    tokens
}

/// The position of the end of `tokens`, to report where something is missing behind them.
pub(crate) fn end(tokens: &[TokenWithSpan]) -> Option<Position> {
    let last = tokens
        .iter()
        .rev()
        .find(|t| !matches!(t.token, Token::Whitespace(_) | Token::EOF))?;
    (last.span.end.line > 0).then_some(Position {
        line: last.span.end.line,
        column: last.span.end.column,
    })
}

/// `?`, `?|` and `?&` as operators: the tokeniser takes them for places of parameters, which are `$1` here.
pub(crate) fn questions(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let mut read: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len());
    for token in tokens {
        let last = read.last().map(|last| &last.token);
        let whole = match (&token.token, last) {
            (Token::Placeholder(name), _) if name == "?" => Some(Token::Question),
            (Token::Pipe, Some(Token::Question)) => {
                read.pop();
                Some(Token::QuestionPipe)
            }
            (Token::Ampersand, Some(Token::Question)) => {
                read.pop();
                Some(Token::QuestionAnd)
            }
            _ => None,
        };
        read.push(match whole {
            Some(whole) => TokenWithSpan::new(whole, token.span),
            None => token,
        });
    }
    read
}

/// Texts between `$$` or `$tag$` as texts in quotes, which stand in places where the parser knows no others: `comment ... is $$a$$`.
pub(crate) fn quotes(mut tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    for token in &mut tokens {
        if let Token::DollarQuotedString(text) = &mut token.token {
            token.token = Token::SingleQuotedString(std::mem::take(&mut text.value));
        }
    }
    tokens
}

/// Words that end the name of a type, before which `array` stands in the standard's types of arrays.
const TYPES: [&str; 25] = [
    "bigint",
    "bool",
    "boolean",
    "bytea",
    "char",
    "character",
    "date",
    "decimal",
    "float4",
    "float8",
    "int",
    "int2",
    "int4",
    "int8",
    "integer",
    "json",
    "jsonb",
    "numeric",
    "precision",
    "real",
    "smallint",
    "text",
    "uuid",
    "varchar",
    "zone",
];

/// `varchar(9) array` as `varchar(9)[]`.
pub(crate) fn array_types(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let is_space = |token: &TokenWithSpan| matches!(token.token, Token::Whitespace(_));
    let word = |at: usize| match tokens.get(at).map(|own| &own.token) {
        Some(Token::Word(word)) if word.quote_style.is_none() => word.value.to_lowercase(),
        _ => String::new(),
    };
    let ends_type = |at: usize| {
        let Some(before) = (0..at).rev().find(|&at| !is_space(&tokens[at])) else {
            return false;
        };
        if tokens[before].token != Token::RParen {
            // `x is json array` asks for the kind of a document.
            let first = (0..before).rev().find(|&at| !is_space(&tokens[at]));
            let is_test = first.is_some_and(|at| matches!(&word(at)[..], "is" | "not"));
            return !is_test && TYPES.contains(&word(before).as_str());
        }
        // What stands before the parentheses.
        let open = (0..before)
            .rev()
            .find(|&at| tokens[at].token == Token::LParen);
        let named = open.and_then(|open| (0..open).rev().find(|&at| !is_space(&tokens[at])));
        named.is_some_and(|named| TYPES.contains(&word(named).as_str()))
    };
    let opens = |at: usize| {
        let next = tokens[at + 1..].iter().find(|token| !is_space(token));
        next.is_some_and(|next| matches!(next.token, Token::LBracket | Token::LParen))
    };
    let is_one = |at: usize| word(at) == "array" && ends_type(at) && !opens(at);
    let found: Vec<usize> = (0..tokens.len()).filter(|at| is_one(*at)).collect();
    if found.is_empty() {
        return tokens;
    }
    let mut all = Vec::with_capacity(tokens.len() + found.len());
    for (at, token) in tokens.into_iter().enumerate() {
        if found.contains(&at) {
            let brackets = [Token::LBracket, Token::RBracket];
            all.extend(brackets.map(|own| TokenWithSpan::new(own, token.span)));
        } else {
            all.push(token);
        }
    }
    all
}

/// `operator(pg_catalog.=)` as `=`, which may stand before `any`.
pub(crate) fn operators(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let whole: Vec<usize> = (0..tokens.len())
        .filter(|&at| !matches!(tokens[at].token, Token::Whitespace(_)))
        .collect();
    let token = |place: usize| whole.get(place).map(|&at| &tokens[at].token);
    let is_word = |place: usize, wanted: &str| matches!(token(place), Some(Token::Word(word)) if word.value.eq_ignore_ascii_case(wanted));
    // From the word to the parenthesis that closes, but for the operator.
    let mut gone = vec![false; tokens.len()];
    for place in (0..whole.len()).filter(|place| is_word(*place, "operator")) {
        let schema = is_word(place + 2, "pg_catalog") && token(place + 3) == Some(&Token::Period);
        let sign = if schema { place + 4 } else { place + 2 };
        let signs = matches!(token(sign), Some(own) if !matches!(own, Token::Word(_)));
        if token(place + 1) == Some(&Token::LParen)
            && signs
            && token(sign + 1) == Some(&Token::RParen)
            && let (Some(&from), Some(&kept), Some(&to)) =
                (whole.get(place), whole.get(sign), whole.get(sign + 1))
        {
            gone[from..=to].fill(true);
            gone[kept] = false;
        }
    }
    let all = tokens.into_iter().zip(gone);
    all.filter(|(_, gone)| !gone).map(|(own, _)| own).collect()
}

/// `pg_catalog.unnest(...)` without its schema, as the parser knows it in `from`.
pub(crate) fn unnest(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let is = |at: usize, wanted: &str| {
        matches!(
            tokens.get(at).map(|own| &own.token),
            Some(Token::Word(word)) if word.value.eq_ignore_ascii_case(wanted)
        )
    };
    let starts = |at: usize| {
        is(at, "pg_catalog")
            && tokens.get(at + 1).map(|own| &own.token) == Some(&Token::Period)
            && is(at + 2, "unnest")
    };
    let gone: Vec<usize> = (0..tokens.len()).filter(|at| starts(*at)).collect();
    if gone.is_empty() {
        return tokens;
    }
    let stays = |at: usize| !gone.iter().any(|start| at == *start || at == start + 1);
    let all = tokens.into_iter().enumerate();
    all.filter(|(at, _)| stays(*at))
        .map(|(_, own)| own)
        .collect()
}
