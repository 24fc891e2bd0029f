//! Every figure of the text on SMILE: the scan of raw pages through the buffer pool, on the machine at hand (rows
//! B10 to B12).
//!
//! What is compared takes turns, and medians are shown. The sizes of the text are divided by a factor that the page
//! names.

mod figure;
mod given;
mod measure;
mod profile;

use clap::Args;
use report::{Report, Table};
use serde_json::json;
use topology::Machine;

use self::figure::Figure;
use self::given::Figures;
use self::measure::{Bench, Manner};
use self::profile::Profile;
use crate::desk::Desk;
use crate::error::{Error, Result};
use crate::options::folder_is_there;

/// `pool`
#[derive(Args, Clone, Debug)]
pub struct Pool {
    /// Figures of the text: 4.3, 4.1,4.6 or 4.1..4.6 [default: all of the profile]
    #[arg(long, value_name = "4.N,...", value_parser = given::figures)]
    pub figure: Option<Figures>,
    /// Whose figures: those of the server are 4.1 to 4.6, those of the board 4.7 to 4.11 [default: as --figure says, or
    /// server]
    #[arg(long, value_enum, value_name = "NAME")]
    pub profile: Option<Profile>,
    /// Divide the sizes of pool and data [default: server 4, board 1; with --quick 16 and 4]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=256))]
    pub scale: Option<u64>,
    /// Rounds, in each of which every variant has its turn; medians are shown [default: 5, with --quick 2]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub runs: Option<u64>,
    /// Less data and fewer rounds: says whether it works, not how much
    #[arg(long)]
    pub quick: bool,
    /// Empty the system's own caches before each cold run, which needs the rights of root
    #[arg(long)]
    pub drop_caches: bool,
    /// Lay pages and threads out as on this machine in NUMA mode
    #[arg(long, value_name = "SPEC")]
    pub machine: Option<String>,
    /// Write the report to this file; the raw numbers go beside it, ending in .json [default: lab-pool.html]
    #[arg(long, value_name = "FILE.html", default_value = "lab-pool.html")]
    pub report: std::path::PathBuf,
    /// One JSON object instead of tables
    #[arg(long)]
    pub json: bool,
}

impl Pool {
    pub(super) fn run(&self, desk: &mut Desk<'_>) -> Result<()> {
        folder_is_there(&self.report)?;
        let wanted = self.wanted()?;
        let machine = match &self.machine {
            Some(description) => Machine::parse(description)?,
            None => Machine::live()?,
        };
        let cpus = Machine::live()?.cpus();
        let mut found: Vec<Figure> = Vec::new();
        let mut facts = Vec::new();
        for profile in [Profile::Server, Profile::Board] {
            let own: Vec<u32> = wanted
                .iter()
                .copied()
                .filter(|number| profile.figures().contains(number))
                .collect();
            if own.is_empty() {
                continue;
            }
            let scale = self.scale.unwrap_or(profile.scale(self.quick));
            let manner = Manner {
                runs: self.runs(),
                drop_caches: self.drop_caches,
                machine: self.machine.clone(),
            };
            let bench = Bench::new(manner, profile.setup(scale, cpus))?;
            facts.push((profile, scale, bench.setup().bytes));
            found.extend(figure::measure(&bench, profile, &own, desk)?);
        }
        let tables: Vec<Table> = found.iter().map(Figure::table).collect();
        let report = self.page(&found, &tables, &facts, machine, &desk.command);
        let tables: Vec<&Table> = tables.iter().collect();
        desk.finish(&self.report, self.json, report, &tables)
    }

    fn page(
        &self,
        found: &[Figure],
        tables: &[Table],
        facts: &[(Profile, u64, u64)],
        machine: Machine,
        command: &str,
    ) -> Report {
        let mut report = Report::new("The scan through the buffer pool", command)
            .lead("Each figure of the text on SMILE, measured again: the time of a sequential scan with a threshold over raw pages.")
            .machine(machine)
            .fact("Runs", format!("{} of each variant, which take turns; the median is shown", self.runs()));
        for (profile, scale, bytes) in facts {
            let bytes = report::Unit::Bytes.show(*bytes as f64);
            report = report.fact(
                format!("Data of the {}", profile.name()),
                format!("{bytes}, the text's size divided by {scale}"),
            );
        }
        let cold = if self.drop_caches {
            "pool and system caches emptied"
        } else {
            "pool emptied; the system may still have the file in memory (--drop-caches)"
        };
        report = report.fact("Cold runs", cold);
        for (figure, table) in found.iter().zip(tables) {
            report = report
                .section(figure.heading())
                .text(figure.text)
                .table(table.clone())
                .plot(figure.plot());
        }
        report.results(json!(found))
    }

    /// The numbers after the point of the figures that are asked for.
    fn wanted(&self) -> Result<Vec<u32>> {
        let of_profile = |profile: Profile| profile.figures().collect::<Vec<_>>();
        let wanted = match (&self.figure, self.profile) {
            (None, profile) => of_profile(profile.unwrap_or(Profile::Server)),
            (Some(figures), None) => figures.0.clone(),
            (Some(figures), Some(profile)) => {
                let own = of_profile(profile);
                figures
                    .0
                    .iter()
                    .copied()
                    .filter(|number| own.contains(number))
                    .collect()
            }
        };
        if wanted.is_empty() {
            let why = "none of the figures belongs to the profile: those of the server are 4.1 to 4.6, those of the board 4.7 to 4.11";
            return Err(Error::Given {
                why: why.to_owned(),
            });
        }
        Ok(wanted)
    }

    fn runs(&self) -> usize {
        let usual = if self.quick { 2 } else { 5 };
        self.runs.map_or(usual, |runs| runs as usize)
    }
}
