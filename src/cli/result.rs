//! `result`: the output of an execution that completed.

use super::{
    Error,
    client::{Server, To},
    output::Output,
};

/// Prints the result of an execution that completed
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: sandkeep result order-2026-00417")]
pub(super) struct Args {
    /// The execution
    id: String,
    /// A result that is a text: without quotes and escapes
    #[arg(long, conflicts_with = "output")]
    raw: bool,
    #[command(flatten)]
    server: Server,
    #[command(flatten)]
    output: Output,
}

pub(super) async fn run(args: Args) -> Result<(), Error> {
    let client = args.server.client()?;
    let result = client.get(&To::path(&["executions", &args.id, "result"])).await?;
    if args.raw { args.output.raw(&result) } else { args.output.json(&result) }
}
