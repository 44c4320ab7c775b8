//! `query`: asks one of the queries that the workflow declares.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use super::{
    Error,
    client::{Server, To},
    output::ValueOutput,
};

/// Asks an execution one of the queries that its workflow declares
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: sandkeep query order-2026-00417 receipt --raw")]
pub(super) struct Args {
    /// The execution
    id: String,
    /// The query
    name: String,
    #[command(flatten)]
    server: Server,
    #[command(flatten)]
    output: ValueOutput,
}

pub(super) async fn run(args: Args) -> Result<(), Error> {
    let client = args.server.client()?;
    let to = To::path(&["executions", &args.id, "queries", &args.name]);
    let mut answer: BTreeMap<String, Box<RawValue>> = client.get_as(&to).await?;
    let value = answer.remove("value").ok_or_else(|| client.odd("its answer has no `value`".to_owned()))?;
    args.output.print(&value)
}
