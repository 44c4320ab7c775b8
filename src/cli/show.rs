//! `show`: the state of one execution.

use crate::model::Timestamp;

use super::{
    Error,
    client::{Server, To},
    output::{Output, Table},
    state::State,
    units,
};

/// Shows the state of an execution and its units
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: sandkeep show order-2026-00417")]
pub(super) struct Args {
    /// The execution
    id: String,
    #[command(flatten)]
    server: Server,
    #[command(flatten)]
    output: Output,
}

pub(super) async fn run(args: Args) -> Result<(), Error> {
    let client = args.server.client()?;
    let answer = client.get(&To::path(&["executions", &args.id])).await?;
    let units = if args.output.is_table() { units::find(&client, &args.id).await? } else { Vec::new() };
    args.output.value(&answer, || {
        let state: State = client.read(&answer)?;
        let mut table = Table::new(&["UNIT", "STATUS", "ATTEMPT", "BY", "LAST ERROR"]);
        for (key, unit) in &units {
            table.row(vec![key.clone(), unit.status.clone(), unit.attempt.to_string(), unit.server(), unit.failure()]);
        }
        let more = state.units_total.saturating_sub(units.len() as u64);
        let more = if more > 0 { format!("and {more} more\n") } else { String::new() };
        Ok(format!("{}\n{}{more}", heading(&state), table.to_text()))
    })
}

/// Returns what is known of an execution as a whole, a line for each fact.
pub(super) fn heading(state: &State) -> String {
    let State { execution_id, workflow, version, run, status, created_at_ms, .. } = state;
    let mut text =
        format!("execution    {execution_id}\nworkflow     {workflow} {version}, run {run}\nstatus       {status}\n");
    text.push_str(&format!("created      {}\n", Timestamp(*created_at_ms)));
    if let Some(finished) = state.finished_at_ms {
        let took = Timestamp(finished).since(Timestamp(*created_at_ms));
        text.push_str(&format!("finished     {}, after {took}\n", Timestamp(finished)));
    }
    if let Some(waiting_for) = &state.waiting_for {
        text.push_str(&format!("waiting for  {waiting_for}\n"));
    }
    if let Some(error) = &state.error {
        text.push_str(&format!("error        {}: {} ({})\n", error.code, error.message, error.origin));
    }
    text
}
