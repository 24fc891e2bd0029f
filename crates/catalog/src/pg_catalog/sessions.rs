//! What sessions do, and what they have set.

use functions::temporal::abbreviations::is_of_summer;
use functions::temporal::zones::{self, Zone};
use messages::numbers::{DATABASE, role_number};
use syntax::names::CATALOG;

use crate::activity::Activity;
use crate::pg_catalog::build::Built;
use crate::settings::{OpenCursor, Setting, StatementSettings};

/// `pg_settings`.
pub(super) fn settings(settings: &StatementSettings) -> Built {
    let all: Vec<Setting> = settings.all().collect();
    let rows = all.len();
    let context = |own: &Setting| if own.fixed { "internal" } else { "user" };
    let source = |own: &Setting| {
        if own.value == own.first {
            "default"
        } else {
            "session"
        }
    };
    Built::default()
        .names("name", all.iter().map(|own| own.name.as_str()))
        .names("setting", all.iter().map(|own| own.value.as_str()))
        .nothing("unit", rows)
        .text("category", "Settings of the session", rows)
        .nothing("short_desc", rows)
        .nothing("extra_desc", rows)
        .names("context", all.iter().map(context))
        .names("vartype", all.iter().map(|own| own.kind))
        .names("source", all.iter().map(source))
        .nothing("min_val", rows)
        .nothing("max_val", rows)
        .nothing("enumvals", rows)
        .names("boot_val", all.iter().map(|own| own.first.as_str()))
        .names("reset_val", all.iter().map(|own| own.first.as_str()))
        .nothing("sourcefile", rows)
        .some_numbers("sourceline", all.iter().map(|_| None))
        .truth("pending_restart", false, rows)
}

/// `pg_timezone_names`.
pub(super) fn zones() -> Built {
    let now = chrono::Utc::now().timestamp();
    let all: Vec<(&str, Zone)> = zones::names().collect();
    Built::default()
        .names("name", all.iter().map(|(name, _)| *name))
        .names("abbrev", all.iter().map(|(_, zone)| zone.abbreviation(now)))
        .times(
            "utc_offset",
            all.iter()
                .map(|(_, zone)| zone.at_instant(now).unwrap_or(0)),
        )
        .truths("is_dst", all.iter().map(|(_, zone)| zone.is_summer(now)))
}

/// `pg_timezone_abbrevs`.
pub(super) fn abbreviations() -> Built {
    let now = chrono::Utc::now().timestamp();
    let all: Vec<(&str, i64)> = zones::abbreviations(now).collect();
    Built::default()
        .names("abbrev", all.iter().map(|(word, _)| word.to_uppercase()))
        .times("utc_offset", all.iter().map(|(_, east)| *east))
        .truths("is_dst", all.iter().map(|(word, _)| is_of_summer(word)))
}

/// `pg_cursors`.
pub(super) fn cursors(all: &[OpenCursor]) -> Built {
    Built::default()
        .names("name", all.iter().map(|own| own.name.as_str()))
        .names("statement", all.iter().map(|own| own.statement.as_str()))
        .truths("is_holdable", all.iter().map(|own| own.hold))
        .truths("is_binary", all.iter().map(|own| own.binary))
        .truths("is_scrollable", all.iter().map(|own| own.scroll))
        .moments("creation_time", all.iter().map(|own| Some(own.declared)))
}

/// `pg_stat_gssapi`: nobody is let in by Kerberos.
pub(super) fn kerberos(all: &[Activity]) -> Built {
    let rows = all.len();
    Built::default()
        .numbers("pid", all.iter().map(|session| session.process.into()))
        .truth("gss_authenticated", false, rows)
        .truth("encrypted", false, rows)
}

/// `pg_stat_activity`.
pub(super) fn activity(all: Vec<Activity>) -> Built {
    let rows = all.len();
    Built::default()
        .number("datid", DATABASE, rows)
        .text("datname", CATALOG, rows)
        .numbers("pid", all.iter().map(|session| session.process.into()))
        .numbers(
            "usesysid",
            all.iter().map(|session| role_number(&session.user)),
        )
        .names("usename", all.iter().map(|session| session.user.as_str()))
        .names(
            "application_name",
            all.iter().map(|session| session.application.as_str()),
        )
        .names(
            "client_addr",
            all.iter().map(|session| session.address.as_str()),
        )
        .some_numbers(
            "client_port",
            all.iter().map(|session| session.port.map(i64::from)),
        )
        .moments(
            "backend_start",
            all.iter().map(|session| Some(session.began)),
        )
        .moments("query_start", all.iter().map(|session| session.query_began))
        .moments(
            "state_change",
            all.iter().map(|session| Some(session.changed)),
        )
        .nothing("wait_event_type", rows)
        .nothing("wait_event", rows)
        .names("state", all.iter().map(|session| session.state))
        .names("query", all.iter().map(|session| session.query.as_str()))
        .text("backend_type", "client backend", rows)
}
