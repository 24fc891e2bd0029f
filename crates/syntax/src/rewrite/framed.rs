//! Frames of windows that the parser or the planner does not know, as a last sort key of their window.
//!
//! `rows between 1 preceding and 1 following exclude ties` becomes the call `"window frame"('rows preceding following ties', 1, 1)`,
//! from which [the planner](crate::windows) takes it. That goes for `groups`, for `range` with distances, for what is
//! excluded, and for distances that are no plain numbers.

use functions::windows::MARK;
use functions::windows::frame::{Bound, Exclude, Frame, Units};
use sqlparser::ast::{Expr, OrderByExpr};
use sqlparser::tokenizer::{Span, Token, TokenWithSpan, Whitespace};

use crate::words::is_word;

/// Whether a sort key is a frame.
pub(super) fn is_mark(key: &OrderByExpr) -> bool {
    matches!(&key.expr, Expr::Function(function) if function.name.to_string() == format!("\"{MARK}\""))
}

/// Makes the last sort key of each window that has such a frame.
pub(crate) fn framed(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let whole: Vec<usize> = (0..tokens.len())
        .filter(|at| !matches!(tokens[*at].token, Token::Whitespace(_)))
        .collect();
    let places = Places {
        tokens: &tokens,
        whole: &whole,
    };
    let mut changes = Vec::new();
    for open in 0..whole.len() {
        if !places.opens_window(open) {
            continue;
        }
        if let Some(close) = places.closing(open)
            && let Some((start, parts)) = places.frame(open, close)
        {
            // The frame ends with the window.
            changes.push((whole[start], whole[close], parts));
        }
    }
    if changes.is_empty() {
        return tokens;
    }
    // From the last to the first, so that places stay; a window within another's parentheses stands within its sort keys.
    let mut tokens = tokens;
    changes.sort_by_key(|(start, ..)| std::cmp::Reverse(*start));
    for (start, end, parts) in changes {
        tokens.splice(start..end, parts);
    }
    tokens
}

struct Places<'t> {
    tokens: &'t [TokenWithSpan],
    /// Where tokens stand that are no blanks.
    whole: &'t [usize],
}

/// A bound of a frame, and where its distance stands.
type Edge = (Bound, Option<(usize, usize)>);

impl Places<'_> {
    fn token(&self, place: usize) -> Option<&Token> {
        self.whole.get(place).map(|at| &self.tokens[*at].token)
    }

    fn is(&self, place: usize, word: &str) -> bool {
        self.token(place).is_some_and(|token| is_word(token, word))
    }

    /// Whether the parenthesis at `place` opens what is said of a window: `over (`, or `window w as (` and `, w as (`.
    fn opens_window(&self, place: usize) -> bool {
        if self.token(place) != Some(&Token::LParen) {
            return false;
        }
        let Some(before) = place.checked_sub(1) else {
            return false;
        };
        if self.is(before, "over") {
            return true;
        }
        self.is(before, "as") && before >= 2 && self.in_window_clause(before - 2)
    }

    /// Whether `window` stands at `place`, or a comma behind another window of such a clause.
    fn in_window_clause(&self, place: usize) -> bool {
        if self.is(place, "window") {
            return true;
        }
        if self.token(place) != Some(&Token::Comma) {
            return false;
        }
        // Back over the window before, `w as (...)`.
        let mut depth = 0usize;
        for at in (0..place).rev() {
            match self.token(at) {
                Some(Token::RParen) => depth += 1,
                Some(Token::LParen) => {
                    let Some(less) = depth.checked_sub(1) else {
                        return false;
                    };
                    depth = less;
                    if depth == 0 {
                        return at >= 3 && self.is(at - 1, "as") && self.in_window_clause(at - 3);
                    }
                }
                _ if depth == 0 => return false,
                _ => {}
            }
        }
        false
    }

    fn closing(&self, open: usize) -> Option<usize> {
        let mut depth = 0usize;
        for place in open..self.whole.len() {
            match self.token(place) {
                Some(Token::LParen) => depth += 1,
                Some(Token::RParen) => depth = depth.checked_sub(1)?,
                _ => {}
            }
            if depth == 0 {
                return Some(place);
            }
        }
        None
    }

    /// The places between two parentheses that stand in no others.
    fn outside(&self, open: usize, close: usize) -> Vec<usize> {
        let mut depth = 0usize;
        let mut found = Vec::new();
        for place in open + 1..close {
            match self.token(place) {
                Some(Token::LParen | Token::LBracket) => depth += 1,
                Some(Token::RParen | Token::RBracket) => depth = depth.saturating_sub(1),
                _ if depth == 0 => found.push(place),
                _ => {}
            }
        }
        found
    }

    /// Where the frame begins that ends at `close`, and what stands for it, if it is to be changed.
    fn frame(&self, open: usize, close: usize) -> Option<(usize, Vec<TokenWithSpan>)> {
        let outside = self.outside(open, close);
        let units = [
            ("rows", Units::Rows),
            ("range", Units::Range),
            ("groups", Units::Groups),
        ];
        let unit = |place: usize| units.iter().find(|(word, _)| self.is(place, word));
        // A column may be called so, too: the last is it, if bounds follow.
        let at = outside.iter().rposition(|place| unit(*place).is_some())?;
        let start = outside[at];
        let (_, units) = unit(start)?;
        let (end, exclude) = self.excluded(start, close);
        let (first, last) = self.bounds(start + 1, end)?;
        let offsets: Vec<(usize, usize)> = [first.1, last.1].into_iter().flatten().collect();
        let plain = offsets.iter().all(|(from, to)| {
            from + 1 == *to && matches!(self.token(*from), Some(Token::Number(..)))
        });
        let known = match units {
            // Others may end before they begin, which the planner refuses.
            Units::Rows => {
                let early = matches!(first.0, Bound::First | Bound::Preceding | Bound::Current);
                let late = matches!(last.0, Bound::Current | Bound::Following | Bound::Last);
                plain && early && late
            }
            Units::Range => offsets.is_empty(),
            Units::Groups => false,
        };
        if known && exclude == Some(Exclude::None) && end == close {
            return None;
        }
        let frame = Frame {
            units: *units,
            start: first.0,
            end: last.0,
            exclude: exclude?,
        };
        let ordered = outside[..at]
            .windows(2)
            .any(|pair| self.is(pair[0], "order") && self.is(pair[1], "by"));
        Some((start, self.mark(start, &frame, &offsets, ordered)))
    }

    /// Where `exclude ...` begins, or `close`, and what it leaves out; none for other words.
    fn excluded(&self, start: usize, close: usize) -> (usize, Option<Exclude>) {
        let Some(at) = (start..close)
            .rev()
            .find(|place| self.is(*place, "exclude"))
        else {
            return (close, Some(Exclude::None));
        };
        let kind = match close - at {
            2 if self.is(at + 1, "group") => Some(Exclude::Group),
            2 if self.is(at + 1, "ties") => Some(Exclude::Ties),
            3 if self.is(at + 1, "current") && self.is(at + 2, "row") => Some(Exclude::Current),
            3 if self.is(at + 1, "no") && self.is(at + 2, "others") => Some(Exclude::None),
            _ => None,
        };
        (at, kind)
    }

    /// The bounds that stand from `start` to `end`.
    fn bounds(&self, start: usize, end: usize) -> Option<(Edge, Edge)> {
        if !self.is(start, "between") {
            let first = self.bound(start, end)?;
            return Some((first, (Bound::Current, None)));
        }
        let mut depth = 0usize;
        for place in start + 1..end {
            match self.token(place) {
                Some(Token::LParen) => depth += 1,
                Some(Token::RParen) => depth = depth.checked_sub(1)?,
                _ => {}
            }
            let ends = ["preceding", "following", "row"]
                .iter()
                .any(|word| self.is(place - 1, word));
            if depth == 0 && ends && self.is(place, "and") {
                let first = self.bound(start + 1, place)?;
                return Some((first, self.bound(place + 1, end)?));
            }
        }
        None
    }

    fn bound(&self, start: usize, end: usize) -> Option<Edge> {
        let last = end.checked_sub(1).filter(|last| *last > start)?;
        if self.is(start, "current") && self.is(last, "row") && last == start + 1 {
            return Some((Bound::Current, None));
        }
        let unbounded = self.is(start, "unbounded") && last == start + 1;
        let offset = (!unbounded).then_some((start, last));
        match (self.is(last, "preceding"), self.is(last, "following")) {
            (true, _) if unbounded => Some((Bound::First, None)),
            (_, true) if unbounded => Some((Bound::Last, None)),
            (true, _) => Some((Bound::Preceding, offset)),
            (_, true) => Some((Bound::Following, offset)),
            _ => None,
        }
    }

    /// The sort key that stands for a frame.
    fn mark(
        &self,
        start: usize,
        frame: &Frame,
        offsets: &[(usize, usize)],
        ordered: bool,
    ) -> Vec<TokenWithSpan> {
        let span: Span = self.tokens[self.whole[start]].span;
        let space = || Token::Whitespace(Whitespace::Space);
        let mut parts = if ordered {
            vec![Token::Comma]
        } else {
            vec![
                space(),
                Token::make_keyword("ORDER"),
                space(),
                Token::make_keyword("BY"),
                space(),
            ]
        };
        parts.extend([
            Token::make_word(MARK, Some('"')),
            Token::LParen,
            Token::SingleQuotedString(frame.text()),
        ]);
        let put = |token: Token| TokenWithSpan::new(token, span);
        let mut made: Vec<TokenWithSpan> = parts.into_iter().map(put).collect();
        for (from, to) in offsets {
            made.push(put(Token::Comma));
            let own = self.whole[*from]..=self.whole[to - 1];
            made.extend(self.tokens[own].iter().cloned());
        }
        made.push(put(Token::RParen));
        made
    }
}

#[cfg(test)]
mod tests {
    use sqlparser::tokenizer::Tokenizer;

    use super::*;
    use crate::dialect::DIALECT;

    fn changed(text: &str) -> String {
        let tokens = Tokenizer::new(&DIALECT, text).tokenize_with_location();
        let tokens = framed(tokens.unwrap());
        tokens.iter().map(|token| token.token.to_string()).collect()
    }

    #[test]
    fn frames_become_sort_keys() {
        for (text, wanted) in [
            (
                "sum(a) over (order by b groups 1 preceding)",
                "sum(a) over (order by b ,\"window frame\"('groups preceding current all',1))",
            ),
            (
                "sum(a) over (rows current row exclude ties)",
                "sum(a) over ( ORDER BY \"window frame\"('rows current current ties'))",
            ),
            (
                "sum(a) over (w range between '1 day'::interval preceding and (2 + 1) following exclude no others) from t window w as (order by c), v as (order by d rows between a and b preceding)",
                "sum(a) over (w  ORDER BY \"window frame\"('range preceding following all','1 day'::interval,(2 + 1))) from t window w as (order by c), v as (order by d rows between a and b preceding)",
            ),
            (
                "x from t window w as (order by c), v as (order by d rows f(1) preceding)",
                "x from t window w as (order by c), v as (order by d ,\"window frame\"('rows preceding current all',f(1)))",
            ),
        ] {
            assert_eq!(changed(text), wanted);
        }
    }

    #[test]
    fn other_frames_stay() {
        for text in [
            "sum(a) over (order by rows)",
            "sum(a) over (partition by range order by groups)",
            "sum(a) over (order by b rows between 1 preceding and 2 following)",
            "sum(a) over (order by b range between unbounded preceding and current row)",
            "with w as (select groups from t) select 1 from w",
        ] {
            assert_eq!(changed(text), text);
        }
    }
}
