//! `list`: executions, newest first.

use crate::{app::view::ExecutionSummary, model::Timestamp};

use super::{Error, client::To, listing::Listing, start};

/// Lists executions, newest first
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: sandkeep list --status running --workflow order --limit 20")]
pub(super) struct Args {
    /// Only with this status; may be given again
    #[arg(long = "status")]
    statuses: Vec<String>,
    /// Only of this workflow
    #[arg(long)]
    workflow: Option<String>,
    /// Only of this version
    #[arg(long)]
    version: Option<String>,
    /// Only with this label; may be given again
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = start::label)]
    labels: Vec<(String, String)>,
    /// Only those created after: milliseconds since 1970, or a time such as 2031-05-01T12:00:00Z
    #[arg(long, value_name = "TIME")]
    created_after: Option<String>,
    /// Only those created before
    #[arg(long, value_name = "TIME")]
    created_before: Option<String>,
    #[command(flatten)]
    listing: Listing,
}

pub(super) async fn run(args: Args) -> Result<(), Error> {
    let mut to = To::path(&["executions"])
        .with_some("workflow", args.workflow)
        .with_some("version", args.version)
        .with_some("created_after", args.created_after)
        .with_some("created_before", args.created_before);
    for status in args.statuses {
        to = to.with("status", status);
    }
    for (key, value) in args.labels {
        to = to.with(format!("label.{key}"), value);
    }
    let headings = ["ID", "WORKFLOW", "STATUS", "CREATED", "CHANGED"];
    args.listing.show(&to, "executions", &headings, cells).await
}

fn cells(row: &ExecutionSummary) -> Vec<String> {
    vec![
        row.execution_id.clone(),
        format!("{} {}", row.workflow, row.version),
        row.status.clone(),
        Timestamp(row.created_at_ms).to_string(),
        Timestamp(row.updated_at_ms).to_string(),
    ]
}
