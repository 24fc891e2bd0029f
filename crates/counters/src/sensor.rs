//! [`Sensor`], the interface of everything that can be read, and [`Board`], which reads several sensors at their own
//! intervals.

use std::time::{Duration, Instant};

use crate::Reading;

/// Something that can be read again and again.
///
/// A sensor does not fail: what it cannot read is an unavailable value with its reason, under
/// the name that the value would have had.
pub trait Sensor {
    /// What there is to say now. Counts are since the sensor was made.
    fn read(&mut self) -> Vec<Reading>;
}

/// Sensors that are read together, each no more often than it is worth.
///
/// ```
/// use std::time::{Duration, Instant};
///
/// let mut board = counters::Board::new();
/// let pressure = counters::Pressure::new(&counters::System::real());
/// board.add(pressure, Duration::from_secs(1));
/// let begun = Instant::now();
/// let first = board.read(begun);
/// assert!(first.iter().all(|reading| reading.age.is_zero()));
/// let second = board.read(begun + Duration::from_millis(300));
/// assert!(second.iter().all(|reading| reading.age == Duration::from_millis(300)));
/// ```
#[derive(Default)]
pub struct Board {
    entries: Vec<Entry>,
}

struct Entry {
    sensor: Box<dyn Sensor + Send>,
    every: Duration,
    last: Option<(Instant, Vec<Reading>)>,
}

impl Board {
    /// No sensors yet.
    pub fn new() -> Board {
        Board::default()
    }

    /// Adds a sensor that is read at most once in the time `every`.
    pub fn add(&mut self, sensor: impl Sensor + Send + 'static, every: Duration) {
        self.entries.push(Entry {
            sensor: Box::new(sensor),
            every,
            last: None,
        });
    }

    /// The readings of all sensors, in the order they were added; those that are not yet due
    /// again are repeated, with their age.
    pub fn read(&mut self, now: Instant) -> Vec<Reading> {
        let mut readings = Vec::new();
        for entry in &mut self.entries {
            let due = entry
                .last
                .as_ref()
                .is_none_or(|(at, _)| now.saturating_duration_since(*at) >= entry.every);
            if due {
                entry.last = Some((now, entry.sensor.read()));
            }
            let Some((at, last)) = &entry.last else {
                continue;
            };
            let age = now.saturating_duration_since(*at);
            readings.extend(last.iter().cloned().map(|mut reading| {
                reading.age += age;
                reading
            }));
        }
        readings
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Scope, Source, Unit, Value};

    struct Ticks(u64);

    impl Sensor for Ticks {
        fn read(&mut self) -> Vec<Reading> {
            self.0 += 1;
            let value = Value::Count(self.0);
            vec![Reading::new(
                "ticks",
                value,
                Unit::Events,
                Source::Engine,
                Scope::Machine,
            )]
        }
    }

    #[test]
    fn a_sensor_is_read_when_it_is_due() {
        let mut board = Board::new();
        board.add(Ticks(0), Duration::ZERO);
        board.add(Ticks(100), Duration::from_millis(10));
        let begun = Instant::now();
        let at = |board: &mut Board, ms| -> Vec<(Option<f64>, u128)> {
            let readings = board.read(begun + Duration::from_millis(ms));
            let told = |r: &Reading| (r.value.number(), r.age.as_millis());
            readings.iter().map(told).collect()
        };
        assert_eq!(at(&mut board, 0), [(Some(1.0), 0), (Some(101.0), 0)]);
        assert_eq!(at(&mut board, 9), [(Some(2.0), 0), (Some(101.0), 9)]);
        assert_eq!(at(&mut board, 10), [(Some(3.0), 0), (Some(102.0), 0)]);
        assert_eq!(
            at(&mut board, 5).len(),
            2,
            "time that goes back is no panic"
        );
    }
}
