use messages::Error;

use super::*;
use crate::regular::divided::Places;
use crate::regular::expression::Expression;
use crate::regular::library::{Library, Room};

fn expression(pattern: &str, options: &str) -> Known {
    Known::new(pattern, options).unwrap()
}

fn refusal(pattern: &str, options: &str) -> String {
    Known::new(pattern, options).unwrap_err().to_string()
}

/// What the groups of the first match found, or the match where there are none.
fn groups(text: &str, pattern: &str) -> Option<Vec<Option<String>>> {
    let mut regex = expression(pattern, "");
    let mut found = regex.matches(text, Some(0));
    let there = found.advance().unwrap();
    there.then(|| found.texts().map(|own| own.map(str::to_string)).collect())
}

#[test]
fn options_are_those_of_postgresql() {
    let is_match = |pattern: &str, options: &str, text: &str| {
        expression(pattern, options).is_match(text).unwrap()
    };
    assert!(is_match("A", "i", "a"));
    assert!(!is_match("A", "ic", "a"));
    assert!(!is_match("s", "i", "ſ"));
    assert!(is_match("a.b", "", "a\nb"));
    assert!(expression("a", "g").all());
    assert_eq!(
        refusal("a", "z"),
        "invalid regular expression option: \"z\""
    );
    assert!(refusal("a", "b").contains("not supported"));
    assert!(!is_match("a.b", "n", "a\nb"));
    assert!(!is_match("a[^x]b", "n", "a\nb"));
    assert!(is_match(r"a\Db", "n", "a\nb"));
    assert!(is_match("^b", "m", "a\nb"));
    assert!(!is_match("^b", "p", "a\nb"));
    assert!(is_match("a.b", "w", "a\nb"));
    assert!(!is_match("a.b", "q", "axb"));
    assert!(is_match("a(?=B)", "i", "Ab"));
    assert!(is_match("(?=a", "q", "x(?=ax"));
    assert!(is_match("a b # c", "x", "ab"));
    assert!(is_match("(?i)a", "", "A"));
    assert!(is_match("***=a.b", "", "a.b") && !is_match("***=a.b", "", "axb"));
    assert!(is_match("***:a", "", "a"));
}

#[test]
fn classes_are_those_of_postgresql() {
    let is_match = |pattern: &str, text: &str| expression(pattern, "").is_match(text).unwrap();
    for (pattern, text, wanted) in [
        ("[[:alpha:]]", "é", true),
        ("[[:alpha:]]", "٣", true),
        ("[[:alpha:]]", "3", false),
        (r"\d", "٣", false),
        (r"\w", "é", true),
        (r"\w", "\u{203f}", false),
        (r"[\s]", "\u{a0}", false),
        ("[]]", "a]b", true),
        ("[a-]", "-", true),
        (r"[\w-]", "-", true),
        (r"[^\d]", "1", false),
        ("[[:punct:]]", "!", true),
        (r"[\x61-\x63]", "b", true),
        (r"\u00e9", "é", true),
        (r"\123", "S", true),
        ("a{", "a{", true),
        (r"\B", r"\", true),
        (r"\.", ".", true),
        (r"\mab\M", "x ab y", true),
        (r"\mab\M", "xab", false),
        ("(?#comment)a", "a", true),
    ] {
        assert_eq!(is_match(pattern, text), wanted, "{pattern} {text}");
    }
    for (pattern, reason) in [
        ("(", "parentheses () not balanced"),
        (")", "parentheses () not balanced"),
        ("[a", "brackets [] not balanced"),
        ("[b-a]", "invalid character range"),
        ("[a-c-e]", "invalid character range"),
        ("[[:foo:]]", "invalid character class"),
        ("*", "quantifier operand invalid"),
        ("a**", "quantifier operand invalid"),
        ("^*", "quantifier operand invalid"),
        ("(?=a)*b", "quantifier operand invalid"),
        ("a(?i)", "quantifier operand invalid"),
        ("(?y)a", "invalid embedded option"),
        (r"\q", r"invalid escape \ sequence"),
        (r"[\1]", r"invalid escape \ sequence"),
        ("a{256}", "invalid repetition count(s)"),
        ("a{2,1}", "invalid repetition count(s)"),
        (r"\1(a)", "invalid backreference number"),
        (r"x(\w)(?=\1)", "invalid backreference number"),
        (
            "((((a{255}){255}){255}){255})*?b*",
            "regular expression is too complex",
        ),
    ] {
        assert_eq!(
            refusal(pattern, ""),
            format!("invalid regular expression: {reason}"),
            "{pattern}"
        );
    }
}

#[test]
fn whether_there_is_a_match_is_found() {
    for (text, pattern, wanted) in [
        ("abc abc abd", r"^(.+)( \1)+$", false),
        ("abc abc abc", r"^(\w+)( \1)+$", true),
        ("aa x", "(^(?!aa)(?!bb)(?!cc))+", false),
        ("dd x", "(^(?!aa)(?!bb)(?!cc))+", true),
        ("x", r"x|(?:\M)+", true),
        ("zyy", "(?<=[xy])yy+", false),
        ("one two", r"\mtwo\M", true),
        ("onetwo", "[[:<:]]two", false),
        ("a-b", r"a(?=[-x])", true),
        ("a\nb", "a(?=.b)", true),
        ("aab", r"(a|ab)\1b", true),
        ("xaab", "(?<=xa+)b", true),
        ("aab", "(?<=xa+)b", false),
        ("ab", "(?<!^a)b", false),
        ("aaxaa", r"^(a+)x\1$", true),
        ("aaxa", r"^(a+)x\1$", false),
    ] {
        let regex = expression(pattern, "");
        assert_eq!(regex.is_match(text).unwrap(), wanted, "{text} {pattern}");
    }
    let alike = expression(r"^(ä.)\1$", "i");
    assert!(alike.is_match("äxÄX").unwrap());
    assert!(!alike.is_match("äxÄy").unwrap());
}

/// The answers are PostgreSQL's.
#[test]
fn matches_are_divided_as_postgresql_divides_them() {
    let some = |texts: &[&str]| texts.iter().map(|text| Some((*text).into())).collect();
    for (text, pattern, wanted) in [
        ("XY1234Z", "Y*([0-9]{1,3})", some(&["123"])),
        ("XY1234Z", "Y*?([0-9]{1,3})", some(&["1"])),
        (
            "abc01234xyz",
            r"(.*)(\d+)(.*)",
            some(&["abc0123", "4", "xyz"]),
        ),
        ("abc01234xyz", r"(.*?)(\d+)(.*)", some(&["abc", "0", ""])),
        (
            "abc01234xyz",
            r"(?:(.*?)(\d+)(.*)){1,1}",
            some(&["abc", "01234", "xyz"]),
        ),
        ("foobar", "foo|foobar", some(&["foobar"])),
        ("abc", "(x)?b", vec![None]),
        ("b", "(a?)*b", some(&[""])),
        ("b", "(a)*b", vec![None]),
        ("cbb", "(?:[ab]){0,2}?(a??)*", vec![None]),
        ("ab", "(?:(a)|b)*", vec![None]),
        ("aab", r"(a|ab)\1b", some(&["a"])),
        ("xaay", "(a*?)y", some(&["aa"])),
        ("aaab", "a{2,}?b", some(&["aaab"])),
        ("ab", "a?(?:ab)?", some(&["ab"])),
        ("abcc", "(a|ab)(c|bcc)", some(&["a", "bcc"])),
        (
            "http://www.a.b/c/d",
            r"^https?://(?:www\.)?([^/]+)/.*$",
            some(&["a.b"]),
        ),
        ("aaa", "(a)(a)?(a)*", some(&["a", "a", "a"])),
    ] {
        assert_eq!(groups(text, pattern), Some(wanted), "{text} {pattern}");
    }
    let foobar: Vec<Option<String>> = vec![Some("foobar".into()), None];
    assert_eq!(groups("foobar", "(foo|foobar)(bar)?"), Some(foobar));
}

#[test]
fn matches_follow_one_another() {
    for (text, pattern, wanted) in [
        ("Programmer", r"(\w)(.*?\1)", vec!["rogr", "mm"]),
        ("ab", "a*(?<!a)b*", vec!["", ""]),
        ("foobarrbazz", r"(.)\1", vec!["oo", "rr", "zz"]),
        ("price 12, 345 each", r"\d+(?= each)", vec!["345"]),
        ("a1b2", r"(?<=[a-z])\d", vec!["1", "2"]),
        ("aaa", "a*", vec!["aaa", ""]),
        ("baac", "a*", vec!["", "aa", "", ""]),
        ("a\nba", "a.*", vec!["a\nba"]),
        ("a\nba", "(?n)a.*", vec!["a", "a"]),
        ("ab", ".*", vec!["ab", ""]),
        ("", ".*$", vec![""]),
        ("xä", "ä.*", vec!["ä"]),
    ] {
        let mut regex = expression(pattern, "");
        for grouped in [false, true] {
            let mut matches = if grouped {
                regex.matches(text, Some(0))
            } else {
                regex.spans(text, Some(0))
            };
            let mut found = Vec::new();
            while matches.advance().unwrap() {
                let (start, end) = matches.whole();
                found.push(&text[start..end]);
            }
            assert_eq!(found, wanted, "{pattern}");
        }
    }
}

/// What is left to the library is found as by the parts.
#[test]
fn the_library_agrees_where_it_is_asked() {
    let patterns = [
        "a*b?",
        "(a*)(b?)c*",
        "^(a?)(?:ab)?(b*)$",
        "(?:ab)*",
        "(a|b)c?",
        "a+?b+?",
        "[^b]*b",
        "(a)?b",
        "(?:a{2}|bc)a*",
        "^([ab]+)(c*)$",
        "(a*)*",
        "^(?:ab)?(a*)(?:bc)*(b|c)*$",
        "a(b?).*",
        "(a)?b.*$",
        "^a(?:b)?([^c]+)c.*$",
        "^(?:ab)?([^c]+)c.*$",
        "^a?b(?:ab)?([ab]*)c.*",
    ];
    let letters = ["", "a", "b", "c"];
    for pattern in patterns {
        let (root, count, options) = parse::parse(pattern, Options::default()).unwrap();
        let own = Expression::new(&root, count, options).unwrap();
        let part = structure::structure(&root).unwrap();
        let mut room = Room::default();
        for number in 0..4usize.pow(6) {
            let text: String = (0..6).map(|at| letters[number >> (2 * at) & 3]).collect();
            let found = own.find(&text, 0, true, &mut room).unwrap();
            let found = found.then(|| room.places.clone());
            let wanted = divided::search(&part, &text, 0, (count, false)).unwrap();
            assert_eq!(found, wanted, "{text} {pattern}");
        }
    }
    for (pattern, agrees) in [
        ("a*b", true),
        ("foo|foobar", false),
        ("foo|bar", true),
        ("a*?b*", false),
        (r"^https?://(?:www\.)?([^/]+)/.*$", true),
        ("(?:ab)*a*", false),
        ("(?:(a)|b)*", false),
    ] {
        let (root, ..) = parse::parse(pattern, Options::default()).unwrap();
        assert_eq!(plain::agrees(&root), agrees, "{pattern}");
    }
}

/// The library finds without the tail and in two expressions what it finds in the whole one.
#[test]
fn shorter_expressions_find_the_same() {
    let letters = ["", "a", "b", "\n"];
    for pattern in [
        ".*",
        "a.*",
        "a.*$",
        "(a)b?.*",
        "(?w)(a)b.*$",
        "(?w)^(a|b).*$",
        "(?n)a(b).*$",
        "(?p)(a).*$",
        "(a).*?$",
        "(a).+$",
        "(a)$.*",
        "^(?:a)?(b*).*$",
        "^a?b(?:ab)?([^b]+)b.*",
        "^a*b(?:a|b)?(b*)a",
        "^(?:ab)?([^b]+)$",
    ] {
        let (root, ..) = parse::parse(pattern, Options::default()).unwrap();
        let whole = Regex::new(&plain::written([&root]).unwrap()).unwrap();
        let own = plain::source(&root).and_then(Library::new).unwrap();
        let mut room = Room::default();
        for number in 0..4usize.pow(6) {
            let text: String = (0..6).map(|at| letters[number >> (2 * at) & 3]).collect();
            for at in 0..=text.len().min(1) {
                let wanted = whole.captures_at(&text, at).map(|found| {
                    let place = |own: regex::Match<'_>| (own.start(), own.end());
                    found.iter().map(|own| own.map(place)).collect::<Places>()
                });
                let found = own.groups(&text, at, &mut room);
                let found = found.then(|| room.places.clone());
                assert_eq!(found, wanted, "{text} {pattern}");
                let span = wanted.as_ref().and_then(|wanted| wanted[0]);
                assert_eq!(own.span(&text, at), span, "{text} {pattern}");
            }
        }
    }
}

#[test]
fn tails_and_optional_parts_are_left_out() {
    for (pattern, to_end, is_split) in [
        (r"^https?://(?:www\.)?([^/]+)/.*$", true, true),
        ("a.*", true, false),
        ("(?w)a.*$", true, false),
        ("(?n)a.*", false, false),
        ("(?p)a.*$", false, false),
        ("a.*?", false, false),
        ("a.+", false, false),
        ("(a.*)", false, false),
        ("a|b.*", false, false),
        ("^(ab)?(a*)", false, false),
        ("^a*(?:b)?(c)", false, false),
        ("^a*b(?:b)?(c)", false, true),
        ("a(?:b)?(c)", false, false),
        ("^a(?:b)?c", false, false),
        ("^a(?:b)??(c)", false, false),
    ] {
        let (root, ..) = parse::parse(pattern, Options::default()).unwrap();
        let source = plain::source(&root).unwrap();
        let found = (source.to_end, source.split.is_some());
        assert_eq!(found, (to_end, is_split), "{pattern}");
    }
}

#[test]
fn templates_are_postgresqls() {
    let mut regex = expression("(b)(x)?", "");
    let mut found = regex.matches("abc", Some(0));
    assert!(found.advance().unwrap());
    let mut template = Template::default();
    for (text, wanted, refers) in [
        ("", "", false),
        ("x", "x", false),
        (r"<\&>", "<b>", false),
        (r"\1\1", "bb", true),
        (r"\2\3", "", true),
        (r"\0", r"\0", false),
        (r"\\1", r"\1", false),
        (r"\\\1", r"\b", true),
        (r"a\", r"a\", false),
        (r"\ä\&", r"\äb", false),
        ("", "", false),
    ] {
        template.read(text);
        let mut out = String::new();
        template.put(&found, &mut out);
        assert_eq!(
            (out.as_str(), template.refers()),
            (wanted, refers),
            "{text}"
        );
    }
}

#[test]
fn searches_are_cancelled() {
    let regex = expression(r"^(\w+)\w+\w+\w+\1$", "");
    let text = format!("{}!", "ab".repeat(4_000));
    let stop = engine::Stop::default();
    stop.stop();
    let found = stop.within(|| regex.is_match(&text));
    assert!(matches!(found, Err(Error::Cancelled)));
}
