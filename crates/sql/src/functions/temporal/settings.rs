//! The order of the parts of dates, as the session has it, where a statement is planned.

use std::any::Any;

use datafusion::common::config::{ConfigEntry, ConfigExtension, ConfigOptions, ExtensionOptions};
use datafusion::common::{Result, config_err};

use crate::functions::temporal::moment::Order;

/// The order of the parts of dates among the options of a statement.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DateOrder(Order);

impl DateOrder {
    /// That of `DateStyle`, such as `ISO, DMY`.
    pub(crate) fn named(style: &str) -> DateOrder {
        let style = style.to_uppercase();
        let words = style.split(',').map(str::trim);
        let mut orders = words.filter_map(|word| match word {
            "DMY" | "EURO" | "EUROPEAN" => Some(Order::Dmy),
            "YMD" => Some(Order::Ymd),
            "MDY" | "US" | "NONEURO" | "NONEUROPEAN" => Some(Order::Mdy),
            _ => None,
        });
        DateOrder(orders.next_back().unwrap_or_default())
    }

    /// That of a statement with these options.
    pub(crate) fn of(options: &ConfigOptions) -> Order {
        let own = options.extensions.get::<DateOrder>();
        own.map_or_else(Order::default, |own| own.0)
    }
}

impl ConfigExtension for DateOrder {
    const PREFIX: &'static str = "dates";
}

impl ExtensionOptions for DateOrder {
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
    fn styles_name_an_order() {
        for (style, wanted) in [
            ("ISO, MDY", Order::Mdy),
            ("iso, dmy", Order::Dmy),
            ("ymd", Order::Ymd),
            ("ISO", Order::Mdy),
        ] {
            let mut options = ConfigOptions::default();
            options.extensions.insert(DateOrder::named(style));
            assert_eq!(DateOrder::of(&options), wanted, "{style}");
        }
        assert_eq!(DateOrder::of(&ConfigOptions::default()), Order::Mdy);
    }
}
