//! What pinning and tuning share: running a command on a placement, and placements as JSON.

use std::process::{Command, Stdio};

use anyhow::{Context, anyhow};
use placement::apply::{self, Options, Ran};
use placement::{Classes, Placement};
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::terminal::interrupt;

/// A number of classes as JSON: a string beyond 2^53, null beyond 2^128.
pub fn count(classes: &Classes) -> Value {
    match classes.count() {
        Some(count) if count <= 1 << 53 => json!(count as u64),
        Some(count) => json!(count.to_string()),
        None => Value::Null,
    }
}

/// The cpus of each thread.
pub fn sets(placement: &Placement) -> Value {
    json!(placement.sets())
}

/// Runs a command once on a placement. With `aside` its output goes to standard error.
pub fn run(
    command: &[String],
    placement: &Placement,
    skip: usize,
    aside: bool,
    begun: impl FnOnce(u32),
) -> Result<Ran, Failure> {
    let (program, arguments) = command.split_first().context("there is no command")?;
    let mut process = Command::new(program);
    process.args(arguments);
    if aside {
        process.stdout(Stdio::from(std::io::stderr()));
    }
    let options = Options {
        skip,
        ..Options::default()
    };
    Ok(apply::run(
        &mut process,
        placement,
        options,
        begun,
        interrupt::asked,
    )?)
}

/// Fails unless the command ended with success.
pub fn ended_well(command: &[String], ran: &Ran) -> Result<(), Failure> {
    if interrupt::asked() {
        return Err(Failure::Interrupted);
    }
    if ran.status.success() {
        return Ok(());
    }
    Err(anyhow!(
        "{} ended with {}; its own messages say why",
        command[0],
        ran.status
    )
    .into())
}
