//! `history`: the events of an execution.

use super::{
    Error,
    client::{Client, Server, To},
    event::{self, Event},
    follow::{self, Feed},
    json,
    listing::say_more,
    output::{Format, Output, Table, print, printable},
};

/// Shows the events of an execution
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: sandkeep history order-2026-00417 --follow")]
pub(super) struct Args {
    /// The execution
    id: String,
    /// Go on until the execution has ended; prints each event as it happens
    #[arg(long, short, conflicts_with_all = ["reverse", "limit"])]
    follow: bool,
    /// Of this run; without it the last
    #[arg(long)]
    run: Option<u32>,
    /// Only events after this number, or before it with `--reverse`
    #[arg(long, value_name = "SEQ")]
    after: Option<u64>,
    /// Newest first
    #[arg(long)]
    reverse: bool,
    /// At most this many
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    limit: u64,
    #[command(flatten)]
    server: Server,
    #[command(flatten)]
    output: Output,
}

pub(super) async fn run(args: Args) -> Result<(), Error> {
    let client = args.server.client()?;
    if args.follow { follow(&client, &args).await } else { list(&client, &args).await }
}

fn route(args: &Args) -> To<'_> {
    To::path(&["executions", &args.id, "history"]).with_some("run", args.run)
}

async fn list(client: &Client, args: &Args) -> Result<(), Error> {
    let mut rows = Vec::new();
    let mut after = args.after;
    let more = loop {
        let left = args.limit - rows.len() as u64;
        let mut to = route(args).with("limit", left.min(1_000)).with_some("after_seq", after);
        if args.reverse {
            to = to.with("reverse", true);
        }
        let (events, next) = client.page(&to, "events").await?;
        let Some(last) = events.last() else { break false };
        after = Some(client.read::<Event>(last)?.seq);
        rows.extend(events);
        if next.is_none() || rows.len() as u64 >= args.limit {
            break next.is_some();
        }
    };
    if args.output.is_table() {
        let mut table = Table::new(&event::HEADINGS);
        for row in &rows {
            table.row(client.read::<Event>(row)?.cells(row.get()));
        }
        print(&table.to_text())?;
    } else {
        args.output.rows(client, &rows, &[], |_: &Event| Vec::new())?;
    }
    say_more(more, rows.len());
    Ok(())
}

async fn follow(client: &Client, args: &Args) -> Result<(), Error> {
    let feed = Feed { to: route(args), after_key: "after_seq", after: args.after.unwrap_or(0) };
    follow::follow(client, feed, |data| {
        let event: Event = client.read(data)?;
        match args.output.output {
            Format::Table => print(&printable(&event.line(data.get()))),
            Format::Json | Format::Jsonl => print(&json::compact(data.get())),
        }
    })
    .await
}
