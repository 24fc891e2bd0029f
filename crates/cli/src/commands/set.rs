//! `atoll set`

use std::io::Write;
use std::path::PathBuf;

use anyhow::{anyhow, bail};
use atoll::{Access, Database, NumaPolicy, Options};
use clap::Args;

use crate::failure::Failure;
use crate::options::waiting::Waiting;
use crate::store::{current, files};
use crate::terminal::out;

/// `atoll set`
#[derive(Args, Debug)]
pub struct Set {
    /// The store
    pub store: PathBuf,
    /// Settings to change: plan=obliv, plan=shard, plan=distr; plan= for none. Without, they are shown
    #[arg(value_name = "NAME=VALUE")]
    pub settings: Vec<String>,
    #[command(flatten)]
    pub waiting: Waiting,
    /// One JSON object instead of text
    #[arg(long)]
    pub json: bool,
}

/// Runs the command.
pub fn run(args: &Set) -> Result<(), Failure> {
    let plans: Vec<Option<NumaPolicy>> = args
        .settings
        .iter()
        .map(|setting| plan(setting))
        .collect::<anyhow::Result<_>>()?;
    let mut options = Options::default();
    options.threads = Some(1);
    // The setting that the store keeps may be the mistake that this command is to correct.
    options.numa_policy = Some(NumaPolicy::default());
    if plans.is_empty() {
        options.access = Access::Read;
    }
    if files::absent(&args.store) {
        return Err(files::missing(&args.store).into());
    }
    let database = current::waiting(args.waiting.time(), || {
        Database::open(&args.store, &options)
    })?;
    for plan in plans {
        database.set_numa_policy(plan)?;
    }
    let kept = database.numa_policy()?;
    let mut out = out::stdout();
    if args.json {
        let json = serde_json::json!({"plan": kept.map(NumaPolicy::name)});
        writeln!(out, "{json}")?;
    } else {
        match kept {
            Some(plan) => writeln!(out, "plan={}", plan.name())?,
            None => writeln!(
                out,
                "plan= (none; --plan is {})",
                NumaPolicy::default().name()
            )?,
        }
    }
    out.flush()?;
    Ok(database.close()?)
}

/// The plan that `plan=NAME` asks for.
fn plan(setting: &str) -> anyhow::Result<Option<NumaPolicy>> {
    let Some((name, value)) = setting.split_once('=') else {
        bail!("'{setting}' is no setting; write it as plan=shard");
    };
    match (name, value) {
        ("plan", "") => Ok(None),
        ("plan", name) => NumaPolicy::named(name)
            .map(Some)
            .ok_or_else(|| anyhow!("there is no plan '{name}'; there are obliv, shard and distr")),
        (name, _) => bail!("there is no setting '{name}'; there is plan"),
    }
}
