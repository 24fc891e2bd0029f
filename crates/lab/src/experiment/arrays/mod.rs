//! The experiments of the text on thread placement for array databases (rows T4, T5, T8 to T11): strategies by chunks and
//! selectivity, every mapping of threads, two machines, and the scheduler for array queries.
//!
//! Bytes are counted in software over the description of a machine ([`traffic`]), on any machine within minutes, and a model of
//! that machine ([`placement::cost`]) makes seconds and joules of them. With `--emulate` an emulated machine counts some of
//! the bytes as well. Times of the machine at hand are taken only where `--gib` asks for them.

mod cache;
mod chunks;
mod emulated;
mod given;
mod mappings;
mod scheduler;
mod section;
mod selectivity;
mod text;
mod times;
mod traffic;
mod variants;
mod work;
mod works;

use clap::Args;
use report::{Report, Table};
use serde_json::{Map, Value};
use topology::Machine;

use self::given::Figures;
use self::section::Section;
use self::times::Times;
use self::variants::Setting;
use crate::desk::Desk;
use crate::error::{Error, Result};
use crate::guest::Guest;
use crate::options::{Options, folder_is_there};

/// The machine of figures 4 to 6, and that of 7 and 8.
const SKYLAKE: &str = "xeon-4114";
const SANDY_BRIDGE: &str = "xeon-2630";
/// Threads where all mappings are counted, at most.
const MAPPED: usize = 12;

/// `arrays`
#[derive(Args, Clone, Debug)]
pub struct Arrays {
    /// Figures of the text: 4, 4,7 or 4..9; with 7 and 9 comes the scheduler for array queries [default: all]
    #[arg(long, value_name = "N,...", value_parser = given::figures)]
    pub figure: Option<Figures>,
    /// Count on this machine: a shipped name, FILE.xml, 2x10, or an hwloc synthetic description [default: those of the
    /// text: xeon-4114, for 7 and 8 xeon-2630, for 9 both]
    #[arg(long, value_name = "SPEC")]
    pub machine: Option<String>,
    /// Threads [default: the cores of the machine; 12 for 7 and 8]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
    /// Divide the chunks (figures 5 and 6) or the bytes (9) of the array of 50 GB [default: 1, with --quick 10]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub scale: Option<u64>,
    /// Also count the mappings and the scheduler on the emulated machine, by lines of 64 bytes
    #[arg(long)]
    pub emulate: bool,
    /// Also time the queries of the authors' scripts on this machine, over an array of this size
    #[arg(long, value_name = "GIB", value_parser = gib)]
    pub gib: Option<f64>,
    /// Runs of each query with --gib [default: 5, with --quick 2]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub runs: Option<u64>,
    /// Less data, fewer mappings and runs: says whether it works, not how much
    #[arg(long)]
    pub quick: bool,
    /// Write the report to this file; the raw numbers go beside it, ending in .json
    #[arg(long, value_name = "FILE.html", default_value = "lab-arrays.html")]
    pub report: std::path::PathBuf,
    /// One JSON object instead of tables
    #[arg(long)]
    pub json: bool,
}

fn gib(text: &str) -> std::result::Result<f64, String> {
    match text.parse::<f64>() {
        Ok(gib) if (0.001..=64.0).contains(&gib) => Ok(gib),
        _ => Err("take 0.001 to 64".to_owned()),
    }
}

impl Arrays {
    pub(super) fn run(&self, desk: &mut Desk<'_>) -> Result<()> {
        folder_is_there(&self.report)?;
        let figures = self.figure.clone().unwrap_or_default();
        let mut sections = self.by_chunks(&figures, desk)?;
        sections.extend(self.by_mappings(&figures, desk)?);
        if figures.has(9) {
            let machines = self.machines()?;
            sections.push(chunks::figure_9(&machines, self.scale(), desk)?);
        }
        if figures.has(7) || figures.has(9) {
            let settings: Vec<Setting> = self
                .machines()?
                .into_iter()
                .map(|(machine, _)| self.mapped(&machine))
                .collect();
            sections.push(scheduler::section(&settings, self.quick, desk)?);
        }
        if self.emulate {
            let guest = self.guest()?;
            let setting = self.mapped(guest.machine());
            sections.push(emulated::section(&guest, &setting, self.quick, desk)?);
        }
        if let Some(gib) = self.gib {
            let times = Times {
                bytes: (gib * (1u64 << 30) as f64) as u64,
                runs: self
                    .runs
                    .map_or(if self.quick { 2 } else { 5 }, |runs| runs as usize),
            };
            sections.push(times.section(desk)?);
        }
        let report = self.page(&sections, &desk.command)?;
        let tables: Vec<&Table> = sections
            .iter()
            .flat_map(|section| &section.tables)
            .collect();
        desk.finish(&self.report, self.json, report, &tables)
    }

    /// Figures 4 to 6.
    fn by_chunks(&self, figures: &Figures, desk: &mut Desk<'_>) -> Result<Vec<Section>> {
        let setting = self.setting(&self.on(SKYLAKE)?);
        let mut sections = Vec::new();
        if figures.has(4) {
            sections.push(chunks::figure_4(&setting, desk)?);
        }
        if figures.has(5) || figures.has(6) {
            let rows = selectivity::rows(&setting, self.scale(), desk)?;
            if figures.has(5) {
                sections.push(selectivity::figure_5(&setting, &rows));
            }
            if figures.has(6) {
                sections.push(selectivity::figure_6(&setting, &rows));
            }
        }
        Ok(sections)
    }

    /// Figures 7 and 8.
    fn by_mappings(&self, figures: &Figures, desk: &mut Desk<'_>) -> Result<Vec<Section>> {
        if !figures.has(7) && !figures.has(8) {
            return Ok(Vec::new());
        }
        let setting = self.mapped(&self.on(SANDY_BRIDGE)?);
        let (mapped, how) = mappings::count(&setting, self.quick, desk)?;
        let mut sections = Vec::new();
        if figures.has(7) {
            sections.push(mappings::figure_7(&setting, &mapped, &how));
        }
        if figures.has(8) {
            sections.push(mappings::figure_8(&setting, &mapped));
        }
        Ok(sections)
    }

    /// The machine that was named, or this one.
    fn on(&self, usual: &str) -> Result<Machine> {
        let machine = Machine::parse(self.machine.as_deref().unwrap_or(usual))?;
        // Nodes are kept in a byte each.
        if machine.nodes().len() > 255 {
            return Err(Error::Given {
                why: format!(
                    "{} has more than 255 nodes: name a smaller --machine",
                    machine.name()
                ),
            });
        }
        Ok(machine)
    }

    /// The machines of the text, or the one that was named.
    fn machines(&self) -> Result<Vec<(Machine, Setting)>> {
        let usual: &[&str] = match self.machine {
            Some(_) => &[SKYLAKE],
            None => &[SKYLAKE, SANDY_BRIDGE],
        };
        let both = usual.iter().map(|name| {
            let machine = self.on(name)?;
            let setting = self.setting(&machine);
            Ok((machine, setting))
        });
        both.collect()
    }

    fn setting(&self, machine: &Machine) -> Setting {
        let threads = self.threads.map_or(machine.cores(), usize::from);
        Setting::new(machine, threads, self.quick)
    }

    /// With as many threads as all mappings are counted of.
    fn mapped(&self, machine: &Machine) -> Setting {
        let threads = self
            .threads
            .map_or(machine.cores().min(MAPPED), usize::from);
        Setting::new(machine, threads, self.quick)
    }

    /// The emulated machine.
    fn guest(&self) -> Result<Guest> {
        let options = Options {
            report: None,
            quick: self.quick,
            runs: None,
            machine: self.machine.clone(),
            mem: None,
            cache_scale: 16,
            json: self.json,
        };
        Guest::new(&options, SANDY_BRIDGE, 256)
    }

    fn scale(&self) -> u64 {
        self.scale.unwrap_or(if self.quick { 10 } else { 1 })
    }

    fn page(&self, sections: &[Section], command: &str) -> Result<Report> {
        let mut report = Report::new("Thread placement for queries over arrays", command)
            .lead("The experiments of the text on array databases: where the bytes of subarray queries come from under each placement strategy and what time and energy follow from that, every mapping of threads, and a scheduler made for array queries, beside the text's own numbers.")
            .machine(self.on(SKYLAKE)?)
            .fact("A model", "bytes are counted by a model of threads, memory and last-level caches; time and energy are computed from them by a model of the machine's cores, memories and links, and measured nowhere (placement::cost)")
            .fact("Counting", "threads take turns by blocks of 64 KiB; caches of 16 ways that forget what was least recently used; first touch; no prefetching, no private caches; what may run anywhere is moved at random")
            .fact("Strategies", "os: any cpu; compact, sparse, shared: atoll pin; petri: the cores that the text's net hands out for so many busy threads; random: the best of 20 that are like neither compact nor sparse")
            .fact("Text", text::SOURCE);
        if self.quick {
            report = report.fact("Quick", "fewer mappings, seeds and chunks");
        }
        let mut raw = Map::new();
        for section in sections {
            report = section.add(report);
            raw.insert(section.key.clone(), section.raw.clone());
        }
        Ok(report.results(Value::Object(raw)))
    }
}
