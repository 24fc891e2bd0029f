//! Why a request is not done.

use crate::errors;
use crate::wire::backend::Report;

/// Why a request is not done: a status of HTTP, a code of SQL, and words.
#[derive(Clone, Debug)]
pub(crate) struct Refusal {
    pub status: &'static str,
    /// In a box: what fails should not make what succeeds larger.
    pub report: Box<Report>,
    /// Headers that the answer has beside.
    pub headers: String,
}

impl Refusal {
    pub(crate) fn new(
        status: &'static str,
        code: &'static str,
        message: impl Into<String>,
    ) -> Refusal {
        Refusal {
            status,
            report: Box::new(Report::error(code, message)),
            headers: String::new(),
        }
    }
}

impl From<Report> for Refusal {
    fn from(report: Report) -> Refusal {
        Refusal {
            status: status(report.code),
            report: Box::new(report),
            headers: String::new(),
        }
    }
}

/// The status of an answer that is nothing but an error.
fn status(code: &str) -> &'static str {
    match code {
        errors::CANCELLED => "504 Gateway Timeout",
        errors::SHUTDOWN => "503 Service Unavailable",
        "42501" => "403 Forbidden",
        code => match &code[..2] {
            "53" => "503 Service Unavailable",
            "28" => "401 Unauthorized",
            "XX" | "58" => "500 Internal Server Error",
            _ => "400 Bad Request",
        },
    }
}
