//! `why`: why an execution is where it is, and what would help.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use crate::{app::view::WorkerView, clock::Clock};

use super::{
    Error,
    advice::{self, Step},
    client::{Client, Server, To},
    output::{Output, Table, say},
    show,
    state::State,
    units::{self, Unit},
};

/// The most units that are shown.
const SHOWN_MAX: usize = 50;

/// Says why an execution is where it is, and what would help
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: sandkeep why order-2026-00417")]
pub(super) struct Args {
    /// The execution
    id: String,
    #[command(flatten)]
    server: Server,
    #[command(flatten)]
    output: Output,
}

/// The answer.
#[derive(Serialize)]
struct Why<'a> {
    execution_id: &'a str,
    status: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    waiting_for: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    units: Vec<Finding<'a>>,
}

/// What is known of a unit that is not resolved, or failed.
#[derive(Serialize)]
struct Finding<'a> {
    unit: &'a str,
    status: &'a str,
    attempt: u32,
    redelivery: bool,
    #[serde(skip_serializing_if = "String::is_empty")]
    last_error: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    advice: Option<String>,
}

pub(super) async fn run(args: Args) -> Result<(), Error> {
    let client = args.server.client()?;
    let state: State = client.get_as(&To::path(&["executions", &args.id])).await?;
    let units = units::find(&client, &args.id).await?;
    let told = |unit: &Unit| if state.is_terminal() { unit.status == "FAILED" } else { !unit.is_resolved() };
    let open: Vec<&(String, Unit)> = units.iter().filter(|(_, unit)| told(unit)).collect();
    let (steps, workers) = if open.is_empty() { Default::default() } else { context(&client, &state).await? };
    // This machine's clock; the server's is close enough for "in 12s".
    let now = Clock::system().now();
    let none = Step::default();
    let finding = |(key, unit): &&'_ (String, Unit)| {
        let step = steps.get(key.as_str()).unwrap_or(&none);
        (key.clone(), advice::advise(&state.execution_id, unit, step, workers.as_deref(), now))
    };
    let advised: BTreeMap<String, Option<String>> = open.iter().map(finding).collect();
    let findings = open.iter().map(|(key, unit)| Finding {
        unit: key,
        status: &unit.status,
        attempt: unit.attempt,
        redelivery: unit.redelivery,
        last_error: unit.failure(),
        advice: advised.get(key).cloned().flatten(),
    });
    let why = Why {
        execution_id: &state.execution_id,
        status: &state.status,
        waiting_for: state.waiting_for.as_deref(),
        error: state.error.as_ref().map(|error| format!("{}: {}", error.code, error.message)),
        units: findings.take(SHOWN_MAX).collect(),
    };
    let value: Box<RawValue> = to_raw_value(&why).map_err(|error| Error::Server(error.into()))?;
    args.output.value(&value, || Ok(text(&state, &why)))?;
    if open.len() > SHOWN_MAX {
        say(&format!("{} more units are not resolved", open.len() - SHOWN_MAX));
    }
    Ok(())
}

fn text(state: &State, why: &Why<'_>) -> String {
    let mut text = show::heading(state);
    if why.units.is_empty() {
        return text;
    }
    let mut table = Table::new(&["UNIT", "STATUS", "ATTEMPT", "LAST ERROR"]);
    for finding in &why.units {
        let attempt = finding.attempt.to_string();
        table.row(vec![finding.unit.to_owned(), finding.status.to_owned(), attempt, finding.last_error.clone()]);
    }
    text.push('\n');
    text.push_str(&table.to_text());
    let advised: Vec<_> =
        why.units.iter().filter_map(|finding| Some((finding.unit, finding.advice.as_ref()?))).collect();
    if !advised.is_empty() {
        text.push('\n');
    }
    for (unit, advice) in advised {
        text.push_str(&format!("{unit}: {advice}\n"));
    }
    text
}

/// Returns the steps of the execution's document and the workers that are there, as far as the caller may see them.
async fn context(client: &Client, state: &State) -> Result<(BTreeMap<String, Step>, Option<Vec<WorkerView>>), Error> {
    let document = match client.get(&To::path(&["workflows", &state.workflow, &state.version])).await {
        Ok(document) => Some(document),
        Err(Error::Refused(_)) => None,
        Err(error) => return Err(error),
    };
    let steps = document.map(|document| advice::steps(document.get())).unwrap_or_default();
    let workers = match client.page(&To::path(&["workers"]), "workers").await {
        Ok((workers, _)) => Some(workers.iter().map(|worker| client.read(worker)).collect::<Result<_, _>>()?),
        Err(Error::Refused(_)) => None,
        Err(error) => return Err(error),
    };
    Ok((steps, workers))
}
