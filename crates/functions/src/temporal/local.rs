//! How a session reads and writes dates and times: its time zone, `DateStyle` and `IntervalStyle`.
//!
//! A statement has it among its options. What evaluates a function [enters](Local::within) it for that long, so that all that is
//! read and written meanwhile, however deep within arrays, is read and written so.

use std::any::Any;
use std::cell::Cell;

use datafusion_common::config::{ConfigEntry, ConfigExtension, ConfigOptions, ExtensionOptions};
use datafusion_common::{Result, config_err};

use crate::temporal::zones::{self, Zone};

/// The order of the parts of a date that are numbers, where nothing else tells it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum Order {
    #[default]
    Mdy,
    Dmy,
    Ymd,
}

/// How dates and timestamps are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum Style {
    #[default]
    Iso,
    Postgres,
    Sql,
    German,
}

/// How intervals are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum Spans {
    #[default]
    Postgres,
    Verbose,
    Iso,
}

/// How a session reads and writes dates and times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Local {
    pub(crate) zone: Zone,
    pub(crate) style: Style,
    pub(crate) order: Order,
    pub(crate) spans: Spans,
}

impl Default for Local {
    fn default() -> Local {
        Local::PLAIN
    }
}

thread_local! {
    static NOW: Cell<Local> = const { Cell::new(Local::PLAIN) };
}

/// Puts back what was, also where a function panics.
struct Back(Local);

impl Drop for Back {
    fn drop(&mut self) {
        NOW.set(self.0);
    }
}

impl Local {
    /// UTC, and the styles of ISO: what a session has that sets nothing.
    pub const PLAIN: Local = Local {
        zone: Zone::UTC,
        style: Style::Iso,
        order: Order::Mdy,
        spans: Spans::Postgres,
    };

    /// How a session reads and writes dates and times whose `TimeZone`, `DateStyle` and `IntervalStyle` these are.
    pub fn new(zone: &str, dates: &str, intervals: &str) -> Local {
        let mut local = Local {
            zone: zones::of_setting(zone).map_or(Zone::UTC, |(_, zone)| zone),
            ..Local::PLAIN
        };
        for word in dates.split(',').map(|word| word.trim().to_uppercase()) {
            match word.as_str() {
                "ISO" => local.style = Style::Iso,
                "POSTGRES" => local.style = Style::Postgres,
                "SQL" => local.style = Style::Sql,
                "GERMAN" => local.style = Style::German,
                "DMY" | "EURO" | "EUROPEAN" => local.order = Order::Dmy,
                "YMD" => local.order = Order::Ymd,
                "MDY" | "US" | "NONEURO" | "NONEUROPEAN" => local.order = Order::Mdy,
                _ => {}
            }
        }
        local.spans = match intervals {
            "postgres_verbose" => Spans::Verbose,
            "iso_8601" => Spans::Iso,
            _ => Spans::Postgres,
        };
        local
    }

    /// In UTC, with the parts of dates in this order.
    #[cfg(test)]
    pub(crate) fn in_order(order: Order) -> Local {
        Local {
            order,
            ..Local::PLAIN
        }
    }

    /// Whether it is what a session has that sets nothing.
    pub fn is_plain(&self) -> bool {
        self.zone.is_utc() && self.style == Style::Iso && self.spans == Spans::Postgres
    }

    /// Whether its clocks show UTC.
    pub fn is_utc(&self) -> bool {
        self.zone.is_utc()
    }

    /// How a statement with these options reads and writes dates and times.
    pub fn of(options: &ConfigOptions) -> Local {
        let own = options.extensions.get::<Local>();
        own.copied().unwrap_or_default()
    }

    /// That of the function that is evaluated now.
    pub(crate) fn now() -> Local {
        NOW.get()
    }

    /// What `run` makes where this is how dates and times are read and written.
    pub fn within<T>(self, run: impl FnOnce() -> T) -> T {
        let _back = Back(NOW.replace(self));
        run()
    }

    /// What clocks show at an instant, both in microseconds from 1970 on; none if it is out of range.
    pub(crate) fn shown(&self, micros: i64) -> Option<i64> {
        let east = self.zone.at_instant(micros.div_euclid(1_000_000))?;
        micros.checked_add(east * 1_000_000)
    }

    /// When clocks show a time, both in microseconds from 1970 on; none if it is out of range.
    pub(crate) fn instant(&self, shown: i64) -> Option<i64> {
        let east = self.zone.at_local(shown.div_euclid(1_000_000))?;
        shown.checked_sub(east * 1_000_000)
    }
}

impl ConfigExtension for Local {
    const PREFIX: &'static str = "dates";
}

impl ExtensionOptions for Local {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }

    fn cloned(&self) -> Box<dyn ExtensionOptions> {
        Box::new(*self)
    }

    fn set(&mut self, key: &str, _: &str) -> Result<()> {
        config_err!("there is no option {key} of dates")
    }

    fn entries(&self) -> Vec<ConfigEntry> {
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read() {
        for (style, order, wanted) in [
            ("ISO, MDY", Order::Mdy, Style::Iso),
            ("iso, dmy", Order::Dmy, Style::Iso),
            ("German, DMY", Order::Dmy, Style::German),
            ("Postgres, MDY", Order::Mdy, Style::Postgres),
            ("SQL, YMD", Order::Ymd, Style::Sql),
        ] {
            let mut options = ConfigOptions::default();
            let local = Local::new("Europe/Berlin", style, "postgres_verbose");
            options.extensions.insert(local);
            let found = Local::of(&options);
            assert_eq!((found.order, found.style), (order, wanted), "{style}");
            assert_eq!(found.spans, Spans::Verbose);
            assert!(!found.is_utc());
        }
        assert_eq!(Local::of(&ConfigOptions::default()), Local::PLAIN);
    }

    #[test]
    fn it_is_entered_and_left() {
        let berlin = Local::new("Europe/Berlin", "ISO", "postgres");
        let inner = berlin.within(|| {
            let inner = Local::PLAIN.within(Local::now);
            (inner, Local::now())
        });
        assert_eq!(inner, (Local::PLAIN, berlin));
        assert_eq!(Local::now(), Local::PLAIN);
        let summer = 1_720_000_000_000_000;
        assert_eq!(berlin.shown(summer), Some(summer + 7_200_000_000));
        assert_eq!(berlin.instant(summer + 7_200_000_000), Some(summer));
    }
}
