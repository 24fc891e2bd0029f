//! The synthetic seismic array (row T7): velocities of layers, and the pulse of a shot.
//!
//! The ground is layers between surfaces that rise and fall along x and y; each layer has its velocity, in metres per
//! second, and velocities rise with depth. Each trial has a shot at the surface, elsewhere, whose pulse (a Ricker
//! wavelet) runs out from it and adds to the velocity where it is. So values are smooth within a layer, and no chunk is
//! like another.

use std::f64::consts::TAU;
use std::sync::Arc;
use std::time::{Duration, Instant};

use array::{
    Attribute, Block, Buffer, Column, Compression, DataType, Dimension, Grid, Region, Schema,
    Writer,
};
use fastrand::Rng;
use store::Store;

use crate::error::{Error, Result};
use crate::job::Job;
use crate::values::COPIES;

/// How many layers there are.
const LAYERS: usize = 12;
/// The most chunks.
const MOST_CHUNKS: u64 = u32::MAX as u64;
/// How much the pulse adds to the velocity at its crest.
const PULSE: f64 = 400.0;
/// Values of the pulse's table for each unit of its argument.
const STEPS: f64 = 256.0;
/// Where the pulse has ended, in units of its argument.
const REACH: f64 = 2.0;

/// The two shapes of the experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Shape {
    /// As in the text: \[x, y, z\], doubles, chunks twice as long in z (250 x 250 x 500 at 50 GB in 210 chunks).
    #[default]
    Volume,
    /// As in its scripts: \[trial, x, y, z\], floats, a chunk for each trial, half as long in x (251 x 501 x 501 at
    /// 50 GB in 210 chunks).
    Trials,
}

/// Which array is made.
#[derive(Debug, Clone, PartialEq)]
pub struct Seismic {
    /// Its shape.
    pub shape: Shape,
    /// How many chunks it has.
    pub chunks: u64,
    /// The cells of a chunk along x, y and z.
    pub chunk: [u64; 3],
    /// What differs from seed to seed: the layers and where the shots are.
    pub seed: u64,
    /// How the chunks are stored.
    pub compression: Compression,
}

/// What was made.
#[derive(Debug, Clone)]
pub struct Made {
    /// The array's dimensions and attribute.
    pub schema: Schema,
    /// Its chunks.
    pub chunks: u64,
    /// Bytes of its values.
    pub bytes: u64,
    /// How long it took.
    pub time: Duration,
}

impl Seismic {
    /// An array of about `bytes` bytes in `chunks` chunks of the experiment's proportions, not compressed, of seed 0.
    pub fn sized(shape: Shape, bytes: u64, chunks: u64) -> Seismic {
        let width = shape.data_type().width() as u64;
        let cells = (bytes / width / chunks.max(1)).max(1) as f64;
        let chunk = match shape {
            Shape::Volume => {
                let side = (cells / 2.0).cbrt().round().max(1.0);
                [side, side, (cells / side / side).round().max(1.0)]
            }
            Shape::Trials => {
                let side = (cells * 2.0).cbrt().round().max(1.0);
                [(cells / side / side).round().max(1.0), side, side]
            }
        };
        Seismic {
            shape,
            chunks,
            chunk: chunk.map(|of| of as u64),
            seed: 0,
            compression: Compression::None,
        }
    }

    /// Its dimensions, and its attribute `speed`.
    ///
    /// # Errors
    /// [`Error::Options`] for no chunks, too many, or none with cells; [`Error::Array`] if it is larger than arrays can be.
    pub fn schema(&self) -> Result<Schema> {
        if self.chunks == 0 || self.chunks > MOST_CHUNKS || self.chunk.contains(&0) {
            return Err(Error::Options {
                what: format!(
                    "the seismic array has 1 to {MOST_CHUNKS} chunks, and a chunk at least one cell"
                ),
            });
        }
        let counts = match self.shape {
            Shape::Volume => factors(self.chunks),
            Shape::Trials => [1; 3],
        };
        let mut dimensions = Vec::new();
        if self.shape == Shape::Trials {
            dimensions.push(Dimension::integer("trial", 0, self.chunks).chunk(1));
        }
        for ((name, chunk), count) in ["x", "y", "z"].iter().zip(self.chunk).zip(counts) {
            let length = chunk.checked_mul(count).ok_or_else(|| Error::Options {
                what: format!("{count} chunks of {chunk} cells along {name} are too many"),
            })?;
            dimensions.push(Dimension::integer(name, 0, length).chunk(chunk));
        }
        let speed = Attribute::new("speed", self.shape.data_type()).compressed(self.compression);
        Ok(Schema::new(dimensions, vec![speed])?)
    }
}

impl Shape {
    fn data_type(self) -> DataType {
        match self {
            Shape::Volume => DataType::F64,
            Shape::Trials => DataType::F32,
        }
    }
}

/// Three factors of `number` that are close to each other, the least first: 5, 6, 7 of 210.
fn factors(number: u64) -> [u64; 3] {
    let mut best = [1, 1, number];
    let least = (1..).take_while(|&a| a * a <= number / a);
    for a in least.filter(|&a| number.is_multiple_of(a)) {
        let rest = number / a;
        let mut largest = (1..=rest.isqrt()).rev();
        let b = largest.find(|&b| rest.is_multiple_of(b)).unwrap_or(1);
        let mut found = [a, b, rest / b];
        found.sort_unstable();
        if found[2] - found[0] < best[2] - best[0] {
            best = found;
        }
    }
    best
}

/// Makes the array in one transaction, a chunk at a time.
///
/// # Errors
/// [`Error::Array`] if there is an array of that name and `replace` does not say to put this in its place, or the store
/// fails; [`Error::Options`], [`Error::Memory`], [`Error::Interrupted`]. The store is then as it was.
pub async fn make(
    store: &Arc<Store>,
    name: &str,
    seismic: &Seismic,
    replace: bool,
    mut job: Job<'_>,
) -> Result<Made> {
    let begun = Instant::now();
    let schema = seismic.schema()?;
    let width = seismic.shape.data_type().width() as u64;
    let cells: u64 = seismic.chunk.iter().product();
    let _reserved = job.reserve("a chunk of the array", cells.saturating_mul(width * COPIES))?;
    let mut writer = Writer::begin(store)?.threads(job.most_threads());
    if replace {
        match writer.delete(name) {
            Ok(()) | Err(array::Error::NoArray { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    writer.create(name, &schema)?;
    let total = schema.cells() * width;
    let ground = Ground::new(seismic.seed, &schema.shape());
    let grid = Grid::of(&schema);
    for (number, at) in grid.all().enumerate() {
        job.at(number as u64 * cells * width, total)?;
        let region = grid.region(&at);
        let column = Column::new(ground.values(seismic.shape, &region)?);
        writer
            .write(name, &Block::new(region, vec![Some(column)])?)
            .await?;
    }
    job.at(total, total)?;
    writer.commit()?;
    Ok(Made {
        chunks: grid.chunks(),
        schema,
        bytes: total,
        time: begun.elapsed(),
    })
}

/// The layers, and the pulse.
struct Ground {
    seed: u64,
    /// Cells along x, y and z.
    lengths: [f64; 3],
    layers: Vec<Layer>,
    /// The pulse by its argument, from `-REACH` on.
    pulse: Vec<f64>,
}

/// A layer of the ground.
struct Layer {
    /// The depth of its lower surface, as a share of all.
    depth: f64,
    /// The velocity in it, in metres per second.
    speed: f64,
    /// How much the surface rises and falls, as a share of the whole depth, how often along x and y, and from where.
    height: f64,
    waves: [f64; 2],
    phases: [f64; 2],
}

impl Ground {
    fn new(seed: u64, shape: &[u64]) -> Ground {
        let mut random = Rng::with_seed(seed);
        let mut speed = 1500.0;
        let layers = (1..=LAYERS).map(|number| {
            speed += 150.0 + 250.0 * random.f64();
            Layer {
                depth: (number as f64 - 0.25 + 0.5 * random.f64()) / LAYERS as f64,
                speed,
                height: 0.02 * random.f64(),
                waves: [1.0 + 3.0 * random.f64(), 1.0 + 3.0 * random.f64()],
                phases: [random.f64(), random.f64()],
            }
        });
        let layers = layers.collect();
        let count = (2.0 * REACH * STEPS) as usize + 1;
        let pulse = (0..count)
            .map(|at| ricker(at as f64 / STEPS - REACH))
            .collect();
        let last = &shape[shape.len() - 3..];
        Ground {
            seed,
            lengths: [last[0] as f64, last[1] as f64, last[2] as f64],
            layers,
            pulse,
        }
    }

    /// The values of a region.
    fn values(&self, shape: Shape, region: &Region) -> Result<Buffer> {
        let data_type = shape.data_type();
        let mut values = Buffer::zeros(data_type, region.cells("a chunk")?);
        let mut at = 0;
        let length = region.length(region.rank() - 1) as usize;
        let mut line = vec![0.0; length];
        let first = region.rank() - 3;
        let trials = if first == 0 {
            (0, 1)
        } else {
            region.ranges()[0]
        };
        for trial in trials.0..trials.1 {
            let shot = self.shot(trial);
            for x in region.ranges()[first].0..region.ranges()[first].1 {
                for y in region.ranges()[first + 1].0..region.ranges()[first + 1].1 {
                    self.line(
                        &shot,
                        x as f64,
                        y as f64,
                        region.start(first + 2),
                        &mut line,
                    );
                    match data_type {
                        DataType::F32 => {
                            let target = &mut values.values_mut::<f32>()[at..at + length];
                            target
                                .iter_mut()
                                .zip(&line)
                                .for_each(|(to, &of)| *to = of as f32);
                        }
                        _ => values.values_mut::<f64>()[at..at + length].copy_from_slice(&line),
                    }
                    at += length;
                }
            }
        }
        Ok(values)
    }

    /// Where the shot of a trial is along x and y, how far its pulse has run, and how wide it is, in cells.
    fn shot(&self, trial: u64) -> [f64; 4] {
        let seed = self
            .seed
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .wrapping_add(trial + 1);
        let mut random = Rng::with_seed(seed);
        let longest = self.lengths.iter().copied().fold(1.0, f64::max);
        [
            random.f64() * self.lengths[0],
            random.f64() * self.lengths[1],
            (0.2 + 0.6 * random.f64()) * longest,
            (0.03 * longest).max(1.0),
        ]
    }

    /// The values of a line along z from `start` on.
    fn line(&self, shot: &[f64; 4], x: f64, y: f64, start: u64, line: &mut [f64]) {
        let depth = self.lengths[2];
        let surface = |layer: &Layer| {
            let wave = (TAU * (layer.waves[0] * x / self.lengths[0] + layer.phases[0])).sin()
                * (TAU * (layer.waves[1] * y / self.lengths[1] + layer.phases[1])).cos();
            (layer.depth + layer.height * wave) * depth
        };
        let mut from = 0;
        for (number, layer) in self.layers.iter().enumerate() {
            let end = if number + 1 == LAYERS {
                f64::INFINITY
            } else {
                surface(layer)
            };
            let end = (end - start as f64).clamp(from as f64, line.len() as f64) as usize;
            line[from..end].fill(layer.speed);
            from = end;
        }
        let aside = (x - shot[0]).powi(2) + (y - shot[1]).powi(2);
        for (at, value) in line.iter_mut().enumerate() {
            let z = start as f64 + at as f64;
            let way = ((aside + z * z).sqrt() - shot[2]) / shot[3];
            if way.abs() < REACH {
                *value += PULSE * self.pulse[((way + REACH) * STEPS) as usize];
            }
        }
    }
}

/// The wavelet: 1 at 0, below zero on both sides, nothing from 2 on.
fn ricker(at: f64) -> f64 {
    let square = (std::f64::consts::PI * at).powi(2) / 2.0;
    (1.0 - 2.0 * square) * (-square).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_cut_as_in_the_text() {
        assert_eq!(factors(210), [5, 6, 7]);
        assert_eq!(factors(100), [4, 5, 5]);
        assert_eq!(factors(1000), [10, 10, 10]);
        assert_eq!(factors(7), [1, 1, 7]);
        assert_eq!(factors(1), [1, 1, 1]);
        for number in 1..500 {
            let of = factors(number);
            assert_eq!(of.iter().product::<u64>(), number);
            assert!(of.is_sorted(), "{of:?}");
        }
        let text = Seismic::sized(Shape::Volume, 210 * 250 * 250 * 500 * 8, 210);
        assert_eq!(text.chunk, [250, 250, 500]);
        assert_eq!(text.schema().unwrap().shape(), [1250, 1500, 3500]);
        let scripts = Seismic::sized(Shape::Trials, 210 * 252_004_004, 210);
        assert_eq!(scripts.chunk, [251, 501, 501]);
        for none in [
            Seismic::sized(Shape::Volume, 1, 0),
            Seismic {
                chunk: [0, 1, 1],
                ..text
            },
        ] {
            assert!(none.schema().is_err());
        }
        let most = Seismic::sized(Shape::Volume, u64::MAX, u64::MAX);
        assert!(most.schema().is_err());
    }

    #[test]
    fn values_follow_from_the_seed_and_differ_by_trial() {
        let shape = [3, 20, 20, 40];
        let values = |seed, trial| {
            let region = Region::new([(trial, trial + 1), (0, 20), (0, 20), (0, 40)]);
            Ground::new(seed, &shape)
                .values(Shape::Trials, &region)
                .unwrap()
        };
        assert_eq!(values(1, 0), values(1, 0));
        assert!(values(1, 0) != values(2, 0) && values(1, 0) != values(1, 1));
        let all = values(1, 0);
        let all = all.values::<f32>();
        assert!(all.iter().all(|speed| (1000.0..8000.0).contains(speed)));
        // A part is the part of the whole.
        let part = Region::new([(0, 1), (3, 5), (7, 8), (10, 30)]);
        let part = Ground::new(1, &shape).values(Shape::Trials, &part).unwrap();
        assert_eq!(
            part.values::<f32>()[..20],
            all[(3 * 20 + 7) * 40 + 10..][..20]
        );
    }
}
