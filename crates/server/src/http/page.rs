//! The page for a browser: one document with its style and its program, which loads nothing from anywhere.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use ring::digest;

const DOCUMENT: &str = include_str!("page/page.html");
const STYLE: &str = include_str!("page/style.css");
/// The parts of the program, in this order.
const PROGRAM: [&str; 6] = [
    include_str!("page/base.js"),
    include_str!("page/editor.js"),
    include_str!("page/result.js"),
    include_str!("page/plan.js"),
    include_str!("page/machine.js"),
    include_str!("page/main.js"),
];

/// The page, ready to be sent.
#[derive(Debug)]
pub(crate) struct Page {
    /// Headers: its kind, and what a browser may run and load of it, which is what is in it.
    pub headers: String,
    pub text: String,
}

impl Page {
    pub(crate) fn new() -> Page {
        let program = PROGRAM.concat();
        let hash = |text: &str| {
            let hash = digest::digest(&digest::SHA256, text.as_bytes());
            format!("'sha256-{}'", BASE64.encode(hash))
        };
        let headers = format!(
            "Content-Type: text/html; charset=utf-8\r\nContent-Security-Policy: default-src 'none'; script-src {}; style-src {}; img-src data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'\r\n",
            hash(&program),
            hash(STYLE)
        );
        let text = DOCUMENT
            .replace("/* style */", STYLE)
            .replace("/* program */", &program);
        Page { headers, text }
    }
}

#[cfg(test)]
mod tests {
    use super::Page;

    #[test]
    fn the_page_loads_nothing_from_anywhere() {
        let Page { headers, text } = Page::new();
        assert!(text.contains("<style>") && text.contains("<script>"));
        assert!(!text.contains("/* program */") && !text.contains("/* style */"));
        for outside in [
            "src=\"http",
            "href=\"http",
            "url(http",
            "import(",
            "@import",
            "//cdn",
        ] {
            assert!(!text.contains(outside), "{outside}");
        }
        // It is sent as it is: styles that the program sets go through the object model, which the policy lets through.
        assert!(
            !text.contains(" style=\""),
            "a style that the policy refuses"
        );
        assert!(headers.contains("default-src 'none'"));
        assert_eq!(text.matches("</script>").count(), 1);
    }
}
