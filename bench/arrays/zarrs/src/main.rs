//! The queries of bench/arrays by the crate zarrs, over the chunks that zarr-python wrote; a line of the standard input is a
//! query, its answer the seconds and the sum of the bits. `zarrs-bench DIRECTORY SIDE CHUNKS`.

use std::error::Error;
use std::io::{BufRead, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use zarrs::array::{Array, ArraySubset};
use zarrs::filesystem::FilesystemStore;

type Done<T> = Result<T, Box<dyn Error>>;
type Stored = Array<FilesystemStore>;

fn main() -> Done<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [directory, side, chunks] = words.as_slice() else {
        return Err("give DIRECTORY SIDE CHUNKS".into());
    };
    let mut peer = Peer {
        directory: directory.into(),
        side: side.parse()?,
        chunks: chunks.clone(),
        array: None,
    };
    let mut out = std::io::stdout();
    writeln!(out, "ready")?;
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        match peer.answer(&line.split_whitespace().collect::<Vec<_>>()) {
            Ok((time, sum)) => writeln!(out, "{} {sum}", time.as_secs_f64())?,
            Err(error) => writeln!(out, "no {}", error.to_string().replace('\n', " "))?,
        }
        out.flush()?;
    }
    Ok(())
}

struct Peer {
    directory: PathBuf,
    side: u64,
    chunks: String,
    array: Option<Stored>,
}

impl Peer {
    fn answer(&mut self, words: &[&str]) -> Done<(Duration, u64)> {
        let none = (Duration::ZERO, 0);
        match words {
            ["load"] if self.path().exists() => Ok(none),
            ["load"] => Err("zarr has to be loaded before".into()),
            ["open"] => {
                let begun = Instant::now();
                self.array = Some(opened(&self.path())?);
                Ok((begun.elapsed(), 0))
            }
            ["close"] => {
                self.array = None;
                Ok(none)
            }
            ["read", ranges @ ..] => self.read(ranges),
            ["slices", file] => {
                let mut all = none;
                for line in std::fs::read_to_string(file)?.lines() {
                    let ranges: Vec<&str> = line.split_whitespace().collect();
                    let (time, sum) = self.read(&ranges)?;
                    all = (all.0 + time, all.1.wrapping_add(sum));
                }
                Ok(all)
            }
            ["write", packing] => self.write(packing),
            ["append", _] => self.append(),
            _ => Err("no such operator".into()),
        }
    }

    fn path(&self) -> PathBuf {
        self.directory.join(format!("{}.zarr", self.chunks.replace(',', "x")))
    }

    fn read(&self, ranges: &[&str]) -> Done<(Duration, u64)> {
        let range = |word: &&str| -> Done<Range<u64>> {
            let (start, end) = word.split_once(':').ok_or("a range is START:END")?;
            Ok(start.parse()?..end.parse()?)
        };
        let ranges = ranges.iter().map(range).collect::<Done<Vec<_>>>()?;
        let array = self.array.as_ref().ok_or("open it first")?;
        let begun = Instant::now();
        let values: Vec<f64> = array.retrieve_array_subset(&ArraySubset::new_with_ranges(&ranges))?;
        let time = begun.elapsed();
        Ok((time, sum(&values)))
    }

    /// Positions from one to before another along the outermost dimension.
    fn part(&self, from: u64, to: u64) -> Done<Vec<f64>> {
        use std::os::unix::fs::FileExt;
        let row = self.side * self.side * 8;
        let mut bytes = vec![0; ((to - from) * row) as usize];
        let file = std::fs::File::open(self.directory.join("array.raw"))?;
        file.read_exact_at(&mut bytes, from * row)?;
        let values = bytes.as_chunks().0.iter();
        Ok(values.map(|&of| f64::from_le_bytes(of)).collect())
    }

    fn cut(&self) -> u64 {
        self.side - self.side / 8
    }

    fn write(&self, packing: &str) -> Done<(Duration, u64)> {
        let path = self.directory.join("written.zarrs");
        let _ = std::fs::remove_dir_all(&path);
        let values = self.part(0, self.cut())?;
        let begun = Instant::now();
        std::fs::create_dir(&path)?;
        std::fs::write(path.join("zarr.json"), self.metadata(packing))?;
        let array = opened(&path)?;
        array.store_array_subset(&array.subset_all(), values)?;
        Ok((begun.elapsed(), 0))
    }

    fn append(&self) -> Done<(Duration, u64)> {
        let path = self.directory.join("written.zarrs");
        let values = self.part(self.cut(), self.side)?;
        let begun = Instant::now();
        let mut array = opened(&path)?;
        array.set_shape(vec![self.side; 3])?;
        array.store_metadata()?;
        let ranges = [self.cut()..self.side, 0..self.side, 0..self.side];
        array.store_array_subset(&ArraySubset::new_with_ranges(&ranges), values)?;
        let time = begun.elapsed();
        let values: Vec<f64> = opened(&path)?.retrieve_array_subset(&array.subset_all())?;
        Ok((time, sum(&values)))
    }

    fn metadata(&self, packing: &str) -> String {
        let blosc = r#", {"name": "blosc", "configuration":
            {"cname": "zstd", "clevel": 3, "shuffle": "shuffle", "typesize": 8, "blocksize": 0}}"#;
        let blosc = if packing == "zstd" { blosc } else { "" };
        let (cut, side, chunks) = (self.cut(), self.side, &self.chunks);
        format!(
            r#"{{"zarr_format": 3, "node_type": "array", "shape": [{cut}, {side}, {side}], "data_type": "float64",
            "chunk_grid": {{"name": "regular", "configuration": {{"chunk_shape": [{chunks}]}}}},
            "chunk_key_encoding": {{"name": "default", "configuration": {{"separator": "/"}}}}, "fill_value": 0.0,
            "codecs": [{{"name": "bytes", "configuration": {{"endian": "little"}}}}{blosc}]}}"#
        )
    }
}

fn opened(path: &Path) -> Done<Stored> {
    Ok(Array::open(Arc::new(FilesystemStore::new(path)?), "/")?)
}

/// The sum of the bits of all values.
fn sum(values: &[f64]) -> u64 {
    values.iter().fold(0, |sum, value| sum.wrapping_add(value.to_bits()))
}
