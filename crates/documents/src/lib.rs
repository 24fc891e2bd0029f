//! Walks through JSON texts: to the end of a value, to a member of an object, to several parts at once.
//!
//! Nothing is parsed and nothing is copied. Strings are passed from quote to quote, and what stands between brackets 64 bytes
//! at a time ([`Walk::value`]). [`Paths`] follow any number of keys through one text in one walk.
//!
//! Texts are valid JSON; of others some part is found, or none.
//!
//! ```
//! use documents::{Form, Paths};
//!
//! let paths = Paths::new(&[vec!["a"], vec!["b", "c"], vec!["d"]]);
//! let mut found = vec![None; 3];
//! paths.find(r#"{"a": 1, "b": {"c": [2]}}"#, Form::Normal, &mut found)?;
//! assert_eq!(found, [Some("1"), Some("[2]"), None]);
//! # Ok::<(), documents::BadEscape>(())
//! ```

mod blocks;
mod paths;
mod strings;
mod walk;

pub use paths::{Form, Paths};
pub use strings::{BadEscape, characters, inner, text_of, unescaped};
pub use walk::Walk;
