//! `worker list`: the sessions of native workers.

use clap::Subcommand;

use crate::{app::view::WorkerView, model::Timestamp};

use super::{
    Error,
    client::{Server, To},
    output::Output,
};

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    List(List),
}

/// Lists the workers that are there, with what they do and hold
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: sandkeep worker list --output jsonl")]
pub(super) struct List {
    #[command(flatten)]
    server: Server,
    #[command(flatten)]
    output: Output,
}

pub(super) async fn run(command: Command) -> Result<(), Error> {
    let Command::List(List { server, output }) = command;
    let client = server.client()?;
    let (workers, _) = client.page(&To::path(&["workers"]), "workers").await?;
    output.rows(
        &client,
        &workers,
        &["WORKER", "RUNTIME", "QUEUES", "HOLDS", "LAST SEEN", "TASKS"],
        |worker: &WorkerView| {
            let capacity = if worker.capacity == 0 { "as polled".to_owned() } else { worker.capacity.to_string() };
            vec![
                worker.worker_id.clone(),
                worker.runtime.clone(),
                worker.queues.join(" "),
                format!("{} of {capacity}", worker.holds.len()),
                Timestamp(worker.last_seen_at_ms).to_string(),
                worker.tasks.join(" "),
            ]
        },
    )
}
