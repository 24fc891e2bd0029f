//! Queries of the load program: scans, a group by and a sort over columns in memory, and work under
//! one lock.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use placement::CpuSet;

use crate::error::Result;

/// Rows on the machine at hand: 24 MiB, more than most caches hold.
pub(super) const ROWS: usize = 1 << 21;

/// Groups of the group by.
const GROUPS: usize = 1024;

/// Rows that are sorted at a time.
const SORTED: usize = 1 << 15;

/// The first scan selects quantities below this one.
pub(super) const BELOW: u32 = 23;

/// The other scan selects quantities below this one, which are all.
pub(super) const ALL: u32 = 51;

/// Days of the dates of [`Data::q6`], and the first of its year.
const DAYS: u64 = 2_526;
const YEAR: u32 = 731;

/// Bytes of a row.
pub(super) const ROW_BYTES: usize = 3 * size_of::<u32>();

/// The value of a row in a column that has `of` different values from `from` on.
fn value(row: u64, factor: u64, of: u64, from: u64) -> u32 {
    ((row.wrapping_mul(factor) >> 7) % of + from) as u32
}

/// The quantity of a row: 1 to 50.
fn quantity(row: u64) -> u32 {
    value(row, 7919 * 31, 50, 1)
}

/// The share of this many rows that a scan selects, found by counting.
pub(super) fn selected(rows: usize, below: u32) -> f64 {
    let selected = (0..rows as u64).filter(|row| quantity(*row) < below);
    selected.count() as f64 / rows.max(1) as f64
}

/// Columns like those that Q6 reads. The thread that makes them touches them first.
pub(super) struct Data {
    quantity: Vec<u32>,
    price: Vec<u32>,
    discount: Vec<u32>,
    /// Days, only for [`Data::q6`].
    date: Vec<u32>,
}

impl Data {
    /// Makes columns of this many rows (with `dates`, one more), in one equal part for each set of cpus: each part is written by a thread on
    /// its set, so that it lies there.
    ///
    /// # Errors
    ///
    /// If this thread may not run on one of the sets.
    pub(super) fn new(rows: usize, dates: bool, homes: &[CpuSet]) -> Result<Data> {
        let column = || Vec::with_capacity(rows);
        let mut data = Data {
            quantity: column(),
            price: column(),
            discount: column(),
            date: if dates { column() } else { Vec::new() },
        };
        let parts = homes.len().max(1);
        for part in 0..parts {
            let _here = homes.get(part).map(placement::apply::pin).transpose()?;
            let edge = |part: usize| (rows * part / parts) as u64;
            let part = edge(part)..edge(part + 1);
            data.quantity.extend(part.clone().map(quantity));
            let price = part.clone().map(|row| value(row, 104_729, 99_999, 900));
            data.price.extend(price);
            let discount = part.clone().map(|row| value(row, 613 * 127, 11, 0));
            data.discount.extend(discount);
            if dates {
                data.date
                    .extend(part.map(|row| value(row, 15_485_863, DAYS, 0)));
            }
        }
        Ok(data)
    }

    /// The sum over rows with less than this quantity; [`selected`] is their share.
    pub(super) fn scan(&self, below: u32) {
        let rows = self.quantity.iter().zip(&self.price).zip(&self.discount);
        let sum: u64 = rows
            .map(|((quantity, price), discount)| {
                if *quantity < below {
                    u64::from(*price) * u64::from(*discount)
                } else {
                    0
                }
            })
            .sum();
        black_box(sum);
    }

    /// TPC-H's Q6: what would have been earned without discounts of 5 to 7 % in a year, on quantities below 24. Returns the sum.
    pub(super) fn q6(&self) -> u64 {
        let rows = self.date.iter().zip(&self.discount);
        let rows = rows.zip(self.quantity.iter().zip(&self.price));
        let earned = |((date, discount), (quantity, price)): ((&u32, &u32), (&u32, &u32))| {
            // Without a branch, so that the loop is one of vectors.
            let in_year = date.wrapping_sub(YEAR) < 365;
            let cheap = discount.wrapping_sub(5) < 3;
            let chosen = u64::from(in_year & cheap & (*quantity < 24));
            chosen * u64::from(*price) * u64::from(*discount)
        };
        rows.map(earned).sum()
    }

    /// Sums by groups of prices.
    pub(super) fn group(&self) {
        let mut sums = vec![0u64; GROUPS];
        for (price, quantity) in self.price.iter().zip(&self.quantity) {
            sums[*price as usize % GROUPS] += u64::from(*quantity);
        }
        black_box(&sums);
    }

    /// Sorts a piece of the prices.
    pub(super) fn sort(&self, at: usize) {
        let pieces = self.price.len() / SORTED;
        let from = at % pieces.max(1) * SORTED;
        let mut piece = self.price[from..(from + SORTED).min(self.price.len())].to_vec();
        piece.sort_unstable();
        black_box(&piece);
    }
}

/// Work under one spin lock.
pub(super) struct Contended {
    held: AtomicBool,
    data: Vec<AtomicU64>,
    done: AtomicU64,
    clients: AtomicUsize,
}

impl Contended {
    pub(super) fn new() -> Contended {
        Contended {
            held: AtomicBool::new(false),
            data: (0..512).map(AtomicU64::new).collect(),
            done: AtomicU64::new(0),
            clients: AtomicUsize::new(0),
        }
    }

    /// Sets how many threads work from now on.
    pub(super) fn run(&self, clients: usize) {
        self.clients.store(clients, Ordering::Relaxed);
    }

    /// Units of work done so far.
    pub(super) fn count(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }

    /// Works for as long as the process runs.
    pub(super) fn work(&self, number: usize) -> ! {
        loop {
            if number >= self.clients.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(5));
                continue;
            }
            while self.held.swap(true, Ordering::Acquire) {
                std::hint::spin_loop();
            }
            for word in self.data.iter().step_by(8) {
                word.store(word.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
            }
            self.held.store(false, Ordering::Release);
            self.done.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_scans_select_is_what_is_in_the_columns() {
        for rows in [1 << 19, ROWS] {
            let data = Data::new(rows, true, &[]).unwrap();
            let mut earned = 0;
            for row in 0..rows {
                let (date, discount) = (data.date[row], data.discount[row]);
                if (731..1096).contains(&date)
                    && (5..=7).contains(&discount)
                    && data.quantity[row] < 24
                {
                    earned += u64::from(data.price[row]) * u64::from(discount);
                }
            }
            assert!(earned > 0);
            assert_eq!(data.q6(), earned);
            for below in [BELOW, ALL] {
                let counted = data.quantity.iter().filter(|own| **own < below).count();
                assert_eq!(selected(rows, below), counted as f64 / rows as f64);
            }
            // 22 of 50 quantities, and all of them.
            assert!((selected(rows, BELOW) - 0.44).abs() < 0.001);
            assert_eq!(selected(rows, ALL), 1.0);
            let bytes = size_of_val(&data.quantity[..]) * 3;
            assert_eq!(bytes, rows * ROW_BYTES);
        }
    }
}
