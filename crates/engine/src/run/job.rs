//! A pipeline being run: what its workers share, and a worker's way through the pieces of its source.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use memory::Traffic;

use super::enough::Enough;
use super::open::Opened;
use super::sink::{End, Shape};
use crate::batch::Batch;
use crate::error::Result;
use crate::expr::Var;
use crate::ledger::{At, Kernel, Meter, Watch};
use crate::lookup::Lookup;
use crate::plan::Pipe;
use crate::source::{Feed, Origin};
use crate::step::{Line, Scratch};
use crate::stop::Stop;
use crate::value::{Type, Vector};

/// A pipeline being run by several workers.
pub(crate) struct Job {
    pub source: Opened,
    pub pipe: Pipe,
    pub live: Vec<Vec<Var>>,
    pub shape: Shape,
    pub types: Arc<[Type]>,
    pub lookups: Vec<Option<Arc<Lookup>>>,
    pub parameters: Vec<Option<Vector>>,
    pub traffic: Arc<Traffic>,
    pub stop: Stop,
    /// Set if its operators are measured.
    pub(super) meter: Option<Arc<Meter>>,
}

pub(crate) fn node() -> usize {
    fiber::here().map_or(0, |here| here.node)
}

impl Job {
    /// A worker's share of it.
    pub(super) async fn work(&self, end: &mut End, enough: &Enough) -> Result<()> {
        let watch = self.meter.as_ref();
        let watch = watch.map(|meter| meter.watch(self.traffic.nodes()));
        self.pieces(end, enough, watch.as_ref()).await?;
        if let Some(watch) = watch {
            watch.end(&self.traffic);
        }
        Ok(())
    }

    /// What its operators did.
    pub(super) fn kernels(&self) -> Vec<Kernel> {
        self.meter.as_ref().map_or(vec![], |meter| meter.kernels())
    }

    async fn pieces(&self, end: &mut End, enough: &Enough, watch: Option<&Watch>) -> Result<()> {
        let traffic = watch.map_or(&*self.traffic, |watch| &watch.traffic);
        let mut batch = Batch::new(self.types.len());
        let mut origin = Origin::default();
        let mut scratch: Vec<Scratch> = std::iter::repeat_with(Scratch::default)
            .take(self.pipe.steps.len())
            .collect();
        let mut claimant = self.source.claimant();
        while !enough.reached() {
            self.stop.check()?;
            match &self.source {
                Opened::Scan {
                    scan,
                    filters,
                    vars,
                    pieces,
                    ..
                } => {
                    let claimed = claimant.as_mut().and_then(|own| own.claim(node()));
                    let Some(piece) = claimed else {
                        return Ok(());
                    };
                    end.start(piece.into());
                    let pool = scan.table().snapshot().pool();
                    for morsel in &pieces[piece as usize] {
                        watch.inspect(|watch| watch.turn(At::Scan));
                        let filters = self.shape.filters(filters, scan, vars);
                        let opened = scan.open(pool, *morsel, &filters, traffic, node);
                        let opened = opened.await?;
                        if let Some(watch) = watch {
                            watch.opened(morsel.rows(scan.table()));
                            watch.turn(At::Elsewhere);
                        }
                        let Some(mut cursor) = opened else {
                            continue;
                        };
                        while origin.advance(&mut cursor) {
                            let feed = Feed::Scan(&cursor, vars);
                            let rows =
                                self.push(&mut batch, &mut origin, feed, &mut scratch, end, watch)?;
                            if enough.count(rows) {
                                return Ok(());
                            }
                            end.flush().await?;
                        }
                    }
                }
                Opened::Read(opened) => {
                    let (batch, origin) = (&mut batch, &mut origin);
                    let more = self.part(opened, batch, origin, &mut scratch, end, enough);
                    if !more.await? {
                        return Ok(());
                    }
                }
                Opened::Filed { filed, own, next } => {
                    let Some(extent) = own.get(next.fetch_add(1, Ordering::Relaxed)) else {
                        return Ok(());
                    };
                    end.start(*extent as u64);
                    let stored = filed.get(&filed.extents[*extent])?;
                    for start in (0..stored.rows).step_by(algebra::VECTOR_ROWS) {
                        origin.start(start..(start + algebra::VECTOR_ROWS).min(stored.rows));
                        let feed = Feed::Stored(&stored);
                        let rows =
                            self.push(&mut batch, &mut origin, feed, &mut scratch, end, watch)?;
                        if enough.count(rows) {
                            return Ok(());
                        }
                        end.flush().await?;
                    }
                }
                Opened::Stored {
                    stored,
                    pieces,
                    next,
                } => {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(piece) = pieces.get(number) else {
                        return Ok(());
                    };
                    end.start(piece.start as u64);
                    for start in piece.clone().step_by(algebra::VECTOR_ROWS) {
                        origin.start(start..(start + algebra::VECTOR_ROWS).min(piece.end));
                        let feed = Feed::Stored(stored);
                        let rows =
                            self.push(&mut batch, &mut origin, feed, &mut scratch, end, watch)?;
                        if enough.count(rows) {
                            return Ok(());
                        }
                        end.flush().await?;
                    }
                }
                Opened::Marked {
                    lookup,
                    rows,
                    pieces,
                    next,
                    row,
                } => {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(piece) = pieces.get(number) else {
                        return Ok(());
                    };
                    end.start(piece.start as u64);
                    for some in rows[piece.clone()].chunks(algebra::VECTOR_ROWS) {
                        origin.list(some);
                        let feed = Feed::Lookup(lookup, *row);
                        let rows =
                            self.push(&mut batch, &mut origin, feed, &mut scratch, end, watch)?;
                        if enough.count(rows) {
                            return Ok(());
                        }
                        end.flush().await?;
                    }
                }
            }
            tokio::task::yield_now().await;
        }
        Ok(())
    }

    /// Some of its steps; see [`Line::complete`].
    pub fn line(&self, steps: std::ops::Range<usize>, complete: bool) -> Line<'_> {
        Line {
            types: &self.types,
            live: &self.live[steps.start..=steps.end],
            steps: &self.pipe.steps[steps],
            lookups: &self.lookups,
            parameters: &self.parameters,
            complete,
            bar: self.shape.bar.as_ref(),
            stop: &self.stop,
            watch: None,
        }
    }

    /// Bytes of a row where most vectors are there.
    pub fn row_bytes(&self) -> usize {
        let bytes = |vars: &Vec<Var>| vars.iter().map(|var| self.types[*var].width()).sum();
        self.live.iter().map(bytes).max().unwrap_or(0).max(1)
    }

    /// Takes one vector through all steps; gives how many rows came to the end.
    pub(crate) fn push(
        &self,
        batch: &mut Batch,
        origin: &mut Origin,
        feed: Feed<'_, '_>,
        scratch: &mut [Scratch],
        end: &mut End,
        watch: Option<&Watch>,
    ) -> Result<usize> {
        batch.restart(origin.rows().len());
        let line = Line {
            watch,
            ..self.line(0..self.pipe.steps.len(), true)
        };
        let mut rows = 0;
        let mut add = |batch: &mut Batch, _: &mut Origin| {
            // One piece may have very many partners.
            self.stop.check()?;
            rows += batch.rows;
            self.shape.add(end, batch)
        };
        line.run(0, batch, origin, feed, scratch, &mut add)?;
        watch.inspect(|watch| watch.turn(At::Elsewhere));
        Ok(rows)
    }
}
