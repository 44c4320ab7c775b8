//! `cancel`: asks an execution to stop.

use super::{
    Error,
    client::{Body, Server, To},
    output::Output,
    state::State,
};

/// Cancels an execution: it stops what runs and winds down
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: sandkeep cancel order-2026-00417 --reason 'ordered twice'")]
pub(super) struct Args {
    /// The execution
    id: String,
    /// Why, for its history
    #[arg(long)]
    reason: Option<String>,
    #[command(flatten)]
    server: Server,
    #[command(flatten)]
    output: Output,
}

pub(super) async fn run(args: Args) -> Result<(), Error> {
    let client = args.server.client()?;
    let body =
        args.reason.map_or(Body::Empty, |reason| Body::Json(serde_json::json!({ "reason": reason }).to_string()));
    let answer = client.post(&To::path(&["executions", &args.id, "cancel"]), body, None).await?;
    args.output.value(&answer, || Ok(client.read::<State>(&answer)?.sentence()))
}
