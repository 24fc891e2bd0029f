//! How calls end: the codes of gRPC.

use crate::errors;
use crate::http2::connection::Gone;
use crate::wire::backend::Report;

/// What a call ends with. The numbers are those of gRPC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Code {
    Cancelled = 1,
    InvalidArgument = 3,
    DeadlineExceeded = 4,
    NotFound = 5,
    AlreadyExists = 6,
    PermissionDenied = 7,
    ResourceExhausted = 8,
    FailedPrecondition = 9,
    Aborted = 10,
    OutOfRange = 11,
    Unimplemented = 12,
    Internal = 13,
    Unavailable = 14,
    DataLoss = 15,
    Unauthenticated = 16,
}

/// Why a call is not done.
#[derive(Clone, Debug)]
pub(crate) struct Status {
    pub code: Code,
    /// In a box: what fails should not make what succeeds larger.
    pub report: Box<Report>,
}

/// Why a call ends before its answer does.
#[derive(Clone, Debug)]
pub(crate) enum Ended {
    /// The client is told.
    Told(Box<Status>),
    /// It wants nothing more.
    Gone,
}

impl From<Gone> for Ended {
    fn from(_: Gone) -> Ended {
        Ended::Gone
    }
}

impl From<Status> for Ended {
    fn from(status: Status) -> Ended {
        Ended::Told(Box::new(status))
    }
}

impl From<Report> for Ended {
    fn from(report: Report) -> Ended {
        Status::from(report).into()
    }
}

impl From<Report> for Status {
    fn from(report: Report) -> Status {
        Status {
            code: code(&report),
            report: Box::new(report),
        }
    }
}

impl Status {
    /// What is not understood.
    pub(crate) fn invalid(message: impl Into<String>) -> Status {
        Status {
            code: Code::InvalidArgument,
            report: Box::new(Report::error(errors::PROTOCOL, message)),
        }
    }

    /// What this server does not do.
    pub(crate) fn unsupported(message: impl Into<String>) -> Status {
        Report::error(errors::NOT_SUPPORTED, message).into()
    }

    /// What this server does not know, or no longer.
    pub(crate) fn unknown(message: impl Into<String>) -> Status {
        Status {
            code: Code::NotFound,
            report: Box::new(Report::error(errors::NO_STATEMENT, message)),
        }
    }
}

/// The code of gRPC for one of SQL.
fn code(report: &Report) -> Code {
    match report.code {
        // A time that is over is another matter than a wish.
        errors::CANCELLED if report.message.contains("timeout") => Code::DeadlineExceeded,
        errors::CANCELLED => Code::Cancelled,
        "42501" => Code::PermissionDenied,
        "42P01" | "42704" | "3F000" | errors::NO_STATEMENT => Code::NotFound,
        "42P07" | "23505" => Code::AlreadyExists,
        "40001" | "40P01" | "55P03" => Code::Aborted,
        "22003" => Code::OutOfRange,
        "XX001" => Code::DataLoss,
        errors::NOT_SUPPORTED => Code::Unimplemented,
        other => match &other[..2] {
            "28" => Code::Unauthenticated,
            "53" | "54" => Code::ResourceExhausted,
            "25" | "55" | "3B" => Code::FailedPrecondition,
            "57" => Code::Unavailable,
            "XX" | "58" => Code::Internal,
            _ => Code::InvalidArgument,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sessions::Reason;

    #[test]
    fn codes_of_sql_have_codes_of_grpc() {
        for (sql, wanted) in [
            ("42P01", Code::NotFound),
            ("42601", Code::InvalidArgument),
            ("40001", Code::Aborted),
            ("53200", Code::ResourceExhausted),
            ("28P01", Code::Unauthenticated),
            ("0A000", Code::Unimplemented),
            ("25P02", Code::FailedPrecondition),
            ("57P01", Code::Unavailable),
        ] {
            assert_eq!(Status::from(Report::error(sql, "x")).code, wanted, "{sql}");
        }
        let of = |reason| Status::from(errors::of_reason(reason)).code;
        assert_eq!(of(Reason::Timeout), Code::DeadlineExceeded);
        assert_eq!(of(Reason::Cancelled), Code::Cancelled);
    }
}
