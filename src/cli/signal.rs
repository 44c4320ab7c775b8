//! `signal`: sends a signal.

use crate::app::view::SignalAccepted;

use super::{
    Error,
    client::{Body, Server, To},
    input,
    output::Output,
};

/// Sends a signal to an execution
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: sandkeep signal order-2026-00417 approve --input '{\"by\": \"kim\"}'")]
pub(super) struct Args {
    /// The execution
    id: String,
    /// The signal
    name: String,
    /// Its payload: JSON, `@FILE`, or `@-` for standard input; without it `{}`
    #[arg(long, short, value_name = "JSON|@FILE")]
    input: Option<String>,
    /// Makes a repeated signal recognisable
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
    #[command(flatten)]
    server: Server,
    #[command(flatten)]
    output: Output,
}

pub(super) async fn run(args: Args) -> Result<(), Error> {
    let client = args.server.client()?;
    let payload = args.input.as_deref().map(input::payload).transpose()?;
    let body = payload.map_or(Body::Empty, |payload| Body::Json(payload.as_str().to_owned()));
    let to = To::path(&["executions", &args.id, "signals", &args.name]);
    let answer = client.post(&to, body, args.idempotency_key.as_deref()).await?;
    args.output.value(&answer, || {
        let accepted: SignalAccepted = client.read(&answer)?;
        Ok(format!("signal `{}` accepted as event {}", accepted.signal, accepted.seq))
    })
}
