//! `wait`: until an execution has ended; prints its result.

use std::{collections::BTreeMap, time::Duration};

use serde_json::value::{RawValue, to_raw_value};

use crate::model::Millis;

use super::{
    Error,
    client::{Client, Server, To},
    output::{Format, Output},
    state::{self, State},
};

/// Waits until an execution has ended and prints its result
///
/// The exit code is 0 only when it completed. With `--output json` the answer is an object with its id, status, and
/// output or error, also when it did not complete.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: sandkeep wait order-2026-00417 --timeout 5m")]
pub(super) struct Args {
    /// The execution
    id: String,
    /// Stop waiting after this long, such as `30s`; without it wait for ever
    #[arg(long, value_parser = Millis::parse)]
    timeout: Option<Millis>,
    #[command(flatten)]
    server: Server,
    #[command(flatten)]
    output: Output,
}

pub(super) async fn run(args: Args) -> Result<(), Error> {
    let client = args.server.client()?;
    wait_and_print(&client, &args.id, args.timeout.map(Duration::from), args.output).await
}

/// Waits, and prints what came of it. An execution that did not complete is an error.
pub(super) async fn wait_and_print(
    client: &Client,
    id: &str,
    timeout: Option<Duration>,
    output: Output,
) -> Result<(), Error> {
    let (state, answer) = state::wait(client, id, timeout).await?;
    let result =
        if state.is_completed() { Some(client.get(&To::path(&["executions", id, "result"])).await?) } else { None };
    match (output.output, &result) {
        (Format::Table, Some(result)) => output.json(result)?,
        (Format::Table, None) => {}
        (Format::Json | Format::Jsonl, _) => output.json(&summary(&state, &answer, result.as_deref())?)?,
    }
    if state.is_completed() { Ok(()) } else { Err(Error::Failed(state.sentence())) }
}

fn summary(state: &State, answer: &RawValue, result: Option<&RawValue>) -> Result<Box<RawValue>, Error> {
    #[derive(serde::Serialize)]
    struct Summary<'a> {
        execution_id: &'a str,
        workflow: &'a str,
        version: &'a str,
        status: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        output: Option<&'a RawValue>,
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<Box<RawValue>>,
    }
    let mut fields: BTreeMap<String, Box<RawValue>> = serde_json::from_str(answer.get()).unwrap_or_default();
    let summary = Summary {
        execution_id: &state.execution_id,
        workflow: &state.workflow,
        version: &state.version,
        status: &state.status,
        output: result,
        error: fields.remove("error"),
    };
    to_raw_value(&summary).map_err(|error| Error::Server(error.into()))
}
