//! Who may ask.
//!
//! A browser sends requests of any page to any address that it reaches, this machine's too. Pages of others are kept out by
//! three things: bodies must be declared as JSON, for which a browser asks first, and gets no permission; what a browser
//! says of the page that asks must be this server; and without users, whose passwords a foreign page has not got, the
//! name by which it reached the server must be one that nobody can point elsewhere (DNS rebinding).

use std::net::IpAddr;

use crate::errors;
use crate::http::refusal::Refusal;
use crate::http::request::Request;
use crate::security::basic;
use crate::security::identity::Identity;
use crate::shared::Shared;

/// Who asks whoever has no name: there are no users.
const ANYBODY: &str = "atoll";

/// The user that the request is of.
///
/// # Errors
/// If it may not ask.
pub(crate) fn admit(shared: &Shared, request: &Request) -> Result<Identity, Refusal> {
    let host = request.header("host").unwrap_or_default();
    let refused = |message: String| Refusal::new("421 Misdirected Request", "28000", message);
    if request.count("host") > 1 || host.is_empty() && request.chunks {
        return Err(refused("name one Host".into()));
    }
    if !shared.admission.asks(&shared.database)? && !is_own(host) {
        return Err(refused(format!(
            "this server answers to localhost and to addresses of this machine, not to {host:?}; with --users it answers to any name"
        )));
    }
    let foreign = |message: &str| Err(Refusal::new("403 Forbidden", "28000", message));
    // Browsers say so; other clients do not.
    if let Some(origin) = request.header("origin") {
        let own = origin.split_once("://").map(|(_, own)| own);
        if own != Some(host) {
            return foreign("a page of another server asks, which may not");
        }
    }
    if let Some(site) = request.header("sec-fetch-site")
        && !matches!(site, "same-origin" | "none")
        && request.method != "GET"
    {
        return foreign("a page of another server asks, which may not");
    }
    if request.method == "POST" && !is_json(request) {
        let message = "send JSON, and say so: Content-Type: application/json";
        return Err(Refusal::new(
            "415 Unsupported Media Type",
            errors::PROTOCOL,
            message,
        ));
    }
    user(shared, request)
}

/// Whether `host` is an address of this machine alone, or the name that always is.
fn is_own(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let bare = name
        .strip_prefix('[')
        .and_then(|name| name.strip_suffix(']'));
    let address: Option<IpAddr> = bare.unwrap_or(name).parse().ok();
    // An address in the place of a name is no name that somebody could point elsewhere.
    address.is_some() || name.eq_ignore_ascii_case("localhost") || host.is_empty()
}

fn is_json(request: &Request) -> bool {
    let kind = request.header("content-type").unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    kind.eq_ignore_ascii_case("application/json")
}

/// The user whose name and password the request has (`Authorization: Basic`).
fn user(shared: &Shared, request: &Request) -> Result<Identity, Refusal> {
    if !shared.admission.asks(&shared.database)? {
        return Ok(Identity::unasked(ANYBODY));
    }
    let given = request.header("authorization").and_then(basic::read);
    let mut refusal = Refusal::new(
        "401 Unauthorized",
        errors::NOT_LET_IN,
        "name a user and the password",
    );
    refusal.headers = "WWW-Authenticate: Basic realm=\"atoll\", charset=\"UTF-8\"\r\n".into();
    let Some((name, password)) = given else {
        return Err(refusal);
    };
    let admitted = shared.admission.admit(&shared.database, &name, &password);
    admitted.map_err(|report| {
        shared.counts.failed_logins.add(1);
        *refusal.report = report;
        refusal
    })
}

#[cfg(test)]
mod tests {
    use super::is_own;

    #[test]
    fn names_that_can_be_pointed_here_are_not_own() {
        for host in [
            "localhost",
            "LOCALHOST:8123",
            "127.0.0.1:8123",
            "[::1]:8123",
            "[::1]",
            "10.1.2.3",
        ] {
            assert!(is_own(host), "{host}");
        }
        for host in [
            "reef.example",
            "reef.example:8123",
            "localhost.example",
            "127.0.0.1.example",
            "127.0.0.1@evil",
        ] {
            assert!(!is_own(host), "{host}");
        }
    }
}
