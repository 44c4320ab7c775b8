//! `result`: the output of an execution that completed.

use super::{
    Error,
    client::{Server, To},
    output::ValueOutput,
};

/// Prints the result of an execution that completed
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: sandkeep result order-2026-00417")]
pub(super) struct Args {
    /// The execution
    id: String,
    #[command(flatten)]
    server: Server,
    #[command(flatten)]
    output: ValueOutput,
}

pub(super) async fn run(args: Args) -> Result<(), Error> {
    let client = args.server.client()?;
    let result = client.get(&To::path(&["executions", &args.id, "result"])).await?;
    args.output.print(&result)
}
