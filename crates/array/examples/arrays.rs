//! The queries of `bench/arrays`, one line of the standard input after the other: for each the seconds that it took, and the
//! sum of the bits of its values, wherever they lie. `bench/arrays/run` starts it beside its peers, and says what they do.
//!
//! `cargo run --release -p array --example arrays -- DIRECTORY SIDE CHUNKS THREADS POOL_MB`: `DIRECTORY/array.raw` has
//! doubles, `SIDE` along each of three dimensions; `CHUNKS` are the lengths of a chunk, as `52,52,52`.

use std::error::Error;
use std::io::{BufRead, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use array::{
    Aggregate, Array, ArrayData, Attribute, Block, Buffer, Column, Compression, DataType,
    Dimension, Function, Plan, Region, Run, Schema, Writer,
};
use store::{Access, Durability, Options, PoolOptions, Store};
use workers::{Layout, Workers};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

type Done<T> = Result<T, Box<dyn Error + Send + Sync>>;

fn main() -> Done<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [directory, side, chunks, threads, pool] = words.as_slice() else {
        return Err("give DIRECTORY SIDE CHUNKS THREADS POOL_MB".into());
    };
    let live = topology::Machine::live()?;
    let mut peer = Peer {
        directory: directory.into(),
        side: side.parse()?,
        chunks: chunks
            .split(',')
            .map(str::parse)
            .collect::<Result<_, _>>()?,
        workers: Workers::new(Layout::of(&live, &live, threads.parse()?, false))?,
        pool: pool.parse::<u64>()? << 20,
        array: None,
    };
    let mut out = std::io::stdout();
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let words: Vec<&str> = line.split_whitespace().collect();
        match peer.answer(&words) {
            Ok((time, sum)) => writeln!(out, "{} {sum}", time.as_secs_f64())?,
            Err(error) => writeln!(out, "no {error}")?,
        }
        out.flush()?;
    }
    Ok(())
}

struct Peer {
    directory: PathBuf,
    side: u64,
    chunks: Vec<u64>,
    workers: Arc<Workers>,
    pool: u64,
    array: Option<Arc<Array>>,
}

impl Peer {
    fn answer(&mut self, words: &[&str]) -> Done<(Duration, u64)> {
        match words {
            ["load"] => self.load(),
            ["open"] => self.open(),
            ["close"] => {
                self.array = None;
                Ok((Duration::ZERO, 0))
            }
            ["read", ranges @ ..] => self.read(&ranges_of(ranges)?),
            ["slices", file] => self.slices(file),
            ["reduce", function, kept @ ..] => {
                let named: Vec<&str> = kept
                    .iter()
                    .map(|at| NAMES[at.parse().unwrap_or(0)])
                    .collect();
                let all = [aggregate(function)?];
                self.plan(|plan| plan.aggregate(&all, &named))
            }
            ["regrid", by] => {
                let by = [by.parse()?; 3];
                self.plan(|plan| plan.regrid(&by, &[Aggregate::new(Function::Avg, "v")]))
            }
            ["window", function, around] => {
                let around = [(around.parse()?, around.parse()?); 3];
                let all = [aggregate(function)?];
                self.plan(|plan| plan.window(&around, &all))
            }
            ["write", packing] => self.write(packing, false),
            ["append", packing] => self.write(packing, true),
            _ => Err(format!("what is {words:?}?").into()),
        }
    }

    fn path(&self) -> PathBuf {
        let lengths: Vec<String> = self.chunks.iter().map(u64::to_string).collect();
        self.directory.join(format!("{}.atoll", lengths.join("x")))
    }

    fn options(&self) -> Options {
        Options {
            pool: PoolOptions {
                bytes: self.pool,
                ..PoolOptions::default()
            },
            compress: false,
            // As the peers: files are written, and not waited for.
            durability: Durability::Process,
            ..Options::default()
        }
    }

    fn schema(&self, compression: Compression) -> Done<Schema> {
        let both = NAMES.iter().zip(&self.chunks);
        let mut dimensions: Vec<_> = both
            .map(|(name, &chunk)| Dimension::integer(name, 0, self.side).chunk(chunk))
            .collect();
        let outermost = Dimension::integer(NAMES[0], 0, 0).chunk(self.chunks[0]);
        dimensions[0] = outermost.growing();
        let attribute = Attribute::new("v", DataType::F64).compressed(compression);
        Ok(Schema::new(dimensions, vec![attribute])?)
    }

    /// Positions from one to before another along the outermost dimension, as a block.
    fn block(&self, from: u64, to: u64) -> Done<Block> {
        use std::os::unix::fs::FileExt;
        let row = self.side * self.side * 8;
        let mut bytes = vec![0; ((to - from) * row) as usize];
        let file = std::fs::File::open(self.directory.join("array.raw"))?;
        file.read_exact_at(&mut bytes, from * row)?;
        let values: Vec<f64> = bytes
            .as_chunks()
            .0
            .iter()
            .map(|&of| f64::from_le_bytes(of))
            .collect();
        let region = Region::new([(from, to), (0, self.side), (0, self.side)]);
        let column = Column::new(Buffer::of(DataType::F64, &values));
        Ok(Block::new(region, vec![Some(column)])?)
    }

    fn load(&mut self) -> Done<(Duration, u64)> {
        let path = self.path();
        if path.exists() {
            return Ok((Duration::ZERO, 0));
        }
        let store = Store::create(path, &self.options())?;
        let mut writer = Writer::begin(&store)?.threads(self.workers.width());
        writer.create("a", &self.schema(Compression::None)?)?;
        let mut time = Duration::ZERO;
        for from in (0..self.side).step_by(self.chunks[0] as usize) {
            let block = self.block(from, self.side.min(from + self.chunks[0]))?;
            let begun = Instant::now();
            futures::executor::block_on(writer.append("a", "x", &block, &[]))?;
            time += begun.elapsed();
        }
        writer.commit()?;
        Ok((time, 0))
    }

    fn open(&mut self) -> Done<(Duration, u64)> {
        self.array = None;
        let begun = Instant::now();
        let options = Options {
            access: Access::Read,
            ..self.options()
        };
        let store = Store::open(self.path(), &options)?;
        self.array = Some(Array::open(&store.snapshot(), "a")?);
        Ok((begun.elapsed(), 0))
    }

    fn array(&self) -> Done<&Arc<Array>> {
        self.array.as_ref().ok_or_else(|| "open it first".into())
    }

    /// A box of the array as one block.
    fn read(&self, ranges: &[(u64, u64)]) -> Done<(Duration, u64)> {
        let bounds: Vec<_> = ranges
            .iter()
            .map(|&(start, end)| ((start as i64).into(), (end as i64 - 1).into()))
            .collect();
        let plan = Plan::scan(self.array()?)
            .rechunk(&[self.side; 3])
            .subarray(&bounds);
        let run = Run::new().on_all(&self.workers, 1);
        let begun = Instant::now();
        let data = self.workers.block_on(async move { plan.run(&run).await })?;
        Ok((begun.elapsed(), sum(&data)))
    }

    fn slices(&self, file: &str) -> Done<(Duration, u64)> {
        let text = std::fs::read_to_string(file)?;
        let (mut time, mut sums) = (Duration::ZERO, 0u64);
        let array = self.array()?;
        for line in text.lines() {
            let ranges = ranges_of(&line.split_whitespace().collect::<Vec<_>>())?;
            let begun = Instant::now();
            let block = futures::executor::block_on(array.read(&Region::new(ranges), &[true]))?;
            time += begun.elapsed();
            sums = sums.wrapping_add(sum_of(&block));
        }
        Ok((time, sums))
    }

    fn plan(&self, of: impl FnOnce(Plan) -> Plan) -> Done<(Duration, u64)> {
        let array = self.array()?;
        let plan = of(Plan::scan(array));
        let run = Run::new().on_all(&self.workers, array.grid().chunks());
        let begun = Instant::now();
        let data = self.workers.block_on(async move { plan.run(&run).await })?;
        Ok((begun.elapsed(), sum(&data)))
    }

    /// Writes the array, but for the last eighth along its outermost dimension; or appends that to what was written.
    fn write(&mut self, packing: &str, append: bool) -> Done<(Duration, u64)> {
        let compression = match packing {
            "zstd" => Compression::Zstd(3),
            _ => Compression::None,
        };
        let path = self.directory.join("written.atoll");
        let cut = self.side - self.side / 8;
        if !append {
            let _ = std::fs::remove_file(&path);
            let _ = std::fs::remove_file(self.directory.join("written.atoll.log"));
        }
        let step = self.chunks[0] as usize;
        let (from, to) = if append { (cut, self.side) } else { (0, cut) };
        let blocks = (from..to)
            .step_by(step)
            .map(|at| self.block(at, to.min(at + step as u64)));
        let blocks = blocks.collect::<Done<Vec<_>>>()?;
        let begun = Instant::now();
        let store = if append {
            Store::open(&path, &self.options())?
        } else {
            Store::create(&path, &self.options())?
        };
        let mut writer = Writer::begin(&store)?.threads(self.workers.width());
        if !append {
            writer.create("a", &self.schema(compression)?)?;
        }
        for block in &blocks {
            futures::executor::block_on(writer.append("a", "x", block, &[]))?;
        }
        writer.commit()?;
        drop(store);
        let time = begun.elapsed();
        if !append {
            return Ok((time, 0));
        }
        let store = Store::open(&path, &self.options())?;
        let array = Array::open(&store.snapshot(), "a")?;
        let block = futures::executor::block_on(array.read(&array.region(), &[true]))?;
        Ok((time, sum_of(&block)))
    }
}

const NAMES: [&str; 3] = ["x", "y", "z"];

fn aggregate(name: &str) -> Done<Aggregate> {
    let of = Function::ALL.into_iter().find(|of| of.name() == name);
    let of = of.ok_or_else(|| format!("there is no function {name}"))?;
    Ok(Aggregate::new(of, "v"))
}

/// Ranges as they are written: `0:64 10:20 0:8`.
fn ranges_of(words: &[&str]) -> Done<Vec<(u64, u64)>> {
    let range = |word: &&str| {
        let (start, end) = word.split_once(':').ok_or("a range is START:END")?;
        Ok((start.parse()?, end.parse()?))
    };
    words.iter().map(range).collect()
}

/// The sum of the bits of all values.
fn sum(data: &ArrayData) -> u64 {
    let all = data.blocks().iter().map(sum_of);
    all.fold(0, u64::wrapping_add)
}

fn sum_of(block: &Block) -> u64 {
    let values = block.column(0).map(|of| of.values().bytes());
    let words = values.unwrap_or_default().as_chunks::<8>().0.iter();
    words.fold(0, |sum, &word| sum.wrapping_add(u64::from_le_bytes(word)))
}
