use super::*;

fn parts(pattern: &str, options: &str) -> Expression {
    compiled(pattern, options, Asked::Parts).unwrap().0
}

fn refusal(pattern: &str, options: &str, asked: Asked) -> String {
    Error::from(compiled(pattern, options, asked).unwrap_err()).to_string()
}

#[test]
fn options_are_those_of_postgresql() {
    let is_match =
        |pattern: &str, options: &str, text: &str| parts(pattern, options).is_match(text).unwrap();
    assert!(is_match("A", "i", "a"));
    assert!(!is_match("A", "ic", "a"));
    assert!(is_match("a.b", "", "a\nb"));
    assert!(compiled("a", "g", Asked::Parts).unwrap().1);
    let message = |options: &str| refusal("a", options, Asked::Parts);
    assert_eq!(message("z"), "invalid regular expression option: \"z\"");
    assert!(message("b").contains("not supported"));
    assert!(!is_match("a.b", "n", "a\nb"));
    assert!(is_match("^b", "m", "a\nb"));
    assert!(is_match("a.b", "w", "a\nb"));
    assert!(!is_match("a.b", "q", "axb"));
    assert!(is_match("a(?=B)", "i", "Ab"));
    assert!(is_match("(?=a", "q", "x(?=ax"));
    let e = refusal("(", "", Asked::Parts);
    assert!(e.starts_with("invalid regular expression '('"), "{e}");
}

#[test]
fn only_what_the_plain_library_cannot_do_backtracks() {
    for plain in ["a|b", "[(?=]", r"\\1", r"a\.b", "(?:a)", r"\d\w"] {
        assert!(!is_beyond(plain), "{plain}");
    }
    for beyond in [
        r"(a)\1", "a(?=b)", "a(?!b)", "(?<=a)b", "(?<!a)b", r"\mab", "[[:<:]]a",
    ] {
        assert!(is_beyond(beyond), "{beyond}");
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
        ("a]b", r"a(?=[]x])", true),
        ("a.b", r"a(?=\.)", true),
        ("a\nb", "a(?=.b)", true),
        ("aab", r"(a|ab)\1b", true),
        ("xaab", "(?<=xa+)b", true),
        ("aab", "(?<=xa+)b", false),
        ("ab", "(?<!^a)b", false),
        ("aaxaa", r"^(a+)x\1$", true),
        ("aaxa", r"^(a+)x\1$", false),
    ] {
        let (regex, _) = compiled(pattern, "", Asked::Truth).unwrap();
        assert_eq!(regex.is_match(text).unwrap(), wanted, "{text} {pattern}");
    }
}

#[test]
fn what_is_found_is_what_postgresql_finds() {
    for (text, pattern, wanted) in [
        ("Programmer", r"(\w)(.*?\1)", vec!["rogr", "mm"]),
        ("ab", "a*(?<!a)b*", vec!["", ""]),
        ("foobarrbazz", r"(.)\1", vec!["oo", "rr", "zz"]),
        ("price 12, 345 each", r"\d+(?= each)", vec!["345"]),
        ("a1b2", r"(?<=[a-z])\d", vec!["1", "2"]),
    ] {
        let regex = parts(pattern, "");
        let found = regex.matches(text, Some(0));
        let found: Vec<&str> = found.map(|own| own.unwrap().get(0).unwrap().text).collect();
        assert_eq!(found, wanted, "{pattern}");
    }
}

#[test]
fn what_may_differ_is_refused() {
    for (pattern, asked) in [
        (r"((a*)a*)b\2", Asked::Truth),
        (r"$()|^\1", Asked::Truth),
        (r"^(.)\1|\1.", Asked::Truth),
        (r"(b|$)\1", Asked::Truth),
        (r"((.)\2|..)\2", Asked::Truth),
        ("(?:a*)*(?=b)", Asked::Truth),
        ("(?i)a(?=b)", Asked::Truth),
        (r"a(?=b)|cc", Asked::Parts),
        ("a*?b*(?=c)", Asked::Parts),
        ("a?(?:ab)?(?=c)", Asked::Parts),
        (r"(a*)b\1", Asked::Parts),
        (r"\by(?=z)", Asked::Truth),
    ] {
        let message = refusal(pattern, "", asked);
        assert!(
            message.contains("not supported") || message.contains("backspace"),
            "{message}"
        );
    }
    for pattern in [
        r"x(\w)(?=\1)",
        r"\1(a)",
        "(a(?=b)",
        "(?=a)*b",
        "a**(?=b)",
        "a{2,1}(?=b)",
    ] {
        let message = refusal(pattern, "", Asked::Truth);
        assert!(
            message.starts_with("invalid regular expression: "),
            "{message}"
        );
    }
}

#[test]
fn steps_are_limited() {
    let (regex, _) = compiled(r"^(\w+)\w+\w+\w+\1$", "", Asked::Truth).unwrap();
    let text = format!("{}!", "ab".repeat(400));
    let message = Error::from(regex.is_match(&text).unwrap_err()).to_string();
    assert!(message.contains("1000000 ways"), "{message}");
}

#[test]
fn letters_are_alike_where_it_is_said() {
    let (regex, _) = compiled(r"^(ä.)\1$", "i", Asked::Truth).unwrap();
    assert!(regex.is_match("äxÄX").unwrap());
    assert!(!regex.is_match("äxÄy").unwrap());
    assert!(parts("[a-c](?=D)", "i").is_match("Bd").unwrap());
}
