//! Asks the net.

use petri::{Net, Value};

use crate::error::Result;
use crate::policy::readings::{BUSY, Readings, WAITING};
use crate::policy::settings::{Policy, Sensor, Stride};

/// A load in per cent that counts as full: above it, how much more work there is cannot be told.
const FULL: f64 = 97.0;

/// The net's answer, after one or several questions.
pub(super) struct Asked {
    pub(super) cores: usize,
    pub(super) place: String,
    pub(super) transitions: Vec<String>,
}

/// Asks a net for a policy.
pub(super) struct Asker<'a> {
    pub(super) policy: &'a Policy,
    pub(super) net: &'a Net,
}

impl Asker<'_> {
    /// Asks the net within bounds. If the present number of cores lies outside them, it is brought inside first.
    pub(super) fn bounded(
        &self,
        u: f64,
        readings: &Readings,
        now: usize,
        floor: usize,
        ceiling: usize,
    ) -> Result<Asked> {
        let inside = now.clamp(floor, ceiling);
        if inside == now {
            return self.ask(u, readings, now, floor, ceiling);
        }
        Ok(Asked {
            cores: inside,
            place: "Checks".to_owned(),
            transitions: Vec::new(),
        })
    }

    /// Asks the net, repeatedly if the stride says so.
    pub(super) fn ask(
        &self,
        u: f64,
        readings: &Readings,
        now: usize,
        least: usize,
        most: usize,
    ) -> Result<Asked> {
        let mut asked = self.ask_once(u, now, least, most)?;
        if self.policy.stride == Stride::One || self.policy.sensor == Sensor::Traffic {
            return Ok(asked);
        }
        let busy = u * now as f64 / 100.0;
        let waiting = readings.number(WAITING).map(|waiting| waiting.max(0.0));
        let up = asked.cores > now;
        let mut last = now;
        // At most one step per core.
        while asked.cores != last {
            last = asked.cores;
            let demand = if up {
                // `u` may have what waits in it, as far as there were cores for it.
                let alone = readings.number(BUSY).map_or(busy, |alone| alone.min(busy));
                alone + waiting.unwrap_or(0.0)
            } else {
                busy
            };
            let full = up && waiting.is_none() && u >= FULL;
            let next = if full && last < now * 4 {
                u
            } else {
                (100.0 * demand / last as f64).min(100.0)
            };
            let more = self.ask_once(next, last, least, most)?;
            // It goes on in the direction it began.
            if (more.cores > last) != up || more.cores == last {
                break;
            }
            asked.cores = more.cores;
            asked.transitions.extend(more.transitions);
        }
        Ok(asked)
    }

    fn ask_once(&self, u: f64, now: usize, least: usize, most: usize) -> Result<Asked> {
        let mut th_min = self.policy.th_min;
        if self.policy.slack > 0.0 && self.policy.sensor != Sensor::Traffic {
            // With one core fewer the load stays below `slack`.
            th_min = th_min.max(self.policy.slack * (now as f64 - 1.0) / now as f64);
        }
        let net = self.net.with_all(&[
            ("n_min", least as f64),
            ("n_total", most as f64),
            ("th_min", th_min),
        ])?;
        let cores = Value::from(u32::try_from(now).unwrap_or(u32::MAX));
        let mut marking = net.start()?.replaced(&net, "Provision", cores)?;
        let check = net.check(&mut marking, &[("u", u)])?;
        let place = check.places(&net);
        Ok(Asked {
            cores: marking.number(&net, "Provision")? as usize,
            place: (*place.first().unwrap_or(&"Checks")).to_owned(),
            transitions: check
                .transitions(&net)
                .into_iter()
                .map(str::to_owned)
                .collect(),
        })
    }
}
