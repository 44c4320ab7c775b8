//! `logs`: what sandboxed attempts of an execution wrote.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::model::row::LogLine;

use super::{
    Error,
    client::{Client, Server, To},
    follow::{self, Feed},
    json,
    output::{Format, Output, array, print, printable},
};

/// How many lines are asked for at a time.
const PAGE_LINES: u64 = 500;

/// Shows what sandboxed attempts wrote to their log
///
/// Lines appear when their attempt has ended.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: sandkeep logs order-2026-00417 --follow")]
pub(super) struct Args {
    /// The execution
    id: String,
    /// Go on until the execution has ended; prints each line as it comes
    #[arg(long, short)]
    follow: bool,
    /// Of this run; without it of all
    #[arg(long)]
    run: Option<u32>,
    #[command(flatten)]
    server: Server,
    #[command(flatten)]
    output: Output,
}

#[derive(Deserialize)]
struct Line {
    #[serde(flatten)]
    line: LogLine,
}

impl Line {
    fn text(&self) -> String {
        let LogLine { at_ms, unit, attempt, level, message, fields } = &self.line;
        let level = format!("{level:?}").to_uppercase();
        let fields = fields.as_ref().map(|fields| format!(" {}", fields.as_str())).unwrap_or_default();
        format!("{at_ms} {level:<5} {unit}#{attempt} {message}{fields}")
    }
}

pub(super) async fn run(args: Args) -> Result<(), Error> {
    let client = args.server.client()?;
    let to = To::path(&["executions", &args.id, "logs"]).with_some("run", args.run);
    if args.follow {
        let feed = Feed { to, after_key: "after", after: 0 };
        return follow::follow(&client, feed, |data| print_line(&client, args.output.output, data)).await;
    }
    let mut lines: Vec<Box<RawValue>> = Vec::new();
    let mut after: Option<String> = None;
    loop {
        let (found, next) =
            client.page(&to.clone().with("limit", PAGE_LINES).with_some("after", after), "lines").await?;
        if args.output.output == Format::Json {
            lines.extend(found);
        } else {
            found.iter().try_for_each(|line| print_line(&client, args.output.output, line))?;
        }
        if next.is_none() {
            break;
        }
        after = next;
    }
    if args.output.output == Format::Json { print(&json::pretty(&array(&lines))) } else { Ok(()) }
}

fn print_line(client: &Client, format: Format, data: &RawValue) -> Result<(), Error> {
    match format {
        Format::Table => print(&printable(&client.read::<Line>(data)?.text())),
        Format::Json | Format::Jsonl => print(&json::compact(data.get())),
    }
}
