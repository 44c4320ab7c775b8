//! Drives a server with the loads that `docs/benchmarks.md` quotes and prints one JSON line for each.
//!
//!     cargo run --release --example load -- --binary target/release/sandkeep
//!
//! - `drive`: closed loops of executions, counted while a window is open
//! - `timers`: many timers due close together, and how late they fire
//! - `sleepers`: executions that sleep, and the server's memory and start with them
//! - `neighbour`: a tenant's small executions alone, and beside a tenant that takes all it can
//! - `process`: a server of its own, and what the kernel says of one
//! - `flush`: how long this disk takes to flush, beside which every figure must be read
//!
//! With `--binary` each load gets a fresh server and database. With `--server` the server is somebody else's; its memory
//! and processor time are then known only with `--pid`.

mod api;
mod drive;
mod flush;
mod neighbour;
mod process;
mod sleepers;
mod timers;

use std::{
    io::{self, Write},
    path::PathBuf,
    process::ExitCode,
    time::Duration,
};

use clap::{Parser, ValueEnum};

use api::Api;
use process::{Process, Server};

/// What stops a measurement.
type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Drives a Sandkeep server and prints one JSON line for each load.
#[derive(Debug, Parser)]
struct Arguments {
    /// A server that runs
    #[arg(long, value_name = "URL", required_unless_present_any = ["binary", "flush"])]
    server: Option<String>,
    /// The process id of that server, for its memory and processor time
    #[arg(long, requires = "server")]
    pid: Option<u32>,
    /// A server program to start for each load
    #[arg(long, value_name = "PATH", conflicts_with = "server")]
    binary: Option<PathBuf>,
    /// Given to the program as it is, for instance `--set engine.lanes=2`; may be given again
    #[arg(long = "arg", requires = "binary", allow_hyphen_values = true)]
    arguments: Vec<String>,
    /// Where databases are put and flushes measured; without it a folder below `target`, else below the system's
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// A load; may be given again; without it all
    #[arg(long = "scenario", value_enum)]
    scenarios: Vec<Scenario>,
    /// How many steps a chain has
    #[arg(long, default_value_t = 10)]
    steps: usize,
    /// How many executions there are at once; without it 64 chains, 256 single steps, 4 fans
    #[arg(long)]
    concurrency: Option<usize>,
    /// How long is measured
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// How long the load runs before it is measured
    #[arg(long, default_value_t = 2)]
    warm: u64,
    /// How many timers are due within five seconds
    #[arg(long, default_value_t = 10_000)]
    timers: usize,
    /// How many executions sleep
    #[arg(long, default_value_t = 100_000)]
    sleepers: usize,
    /// How many small executions run in each situation beside a greedy tenant
    #[arg(long, default_value_t = 2_000)]
    neighbours: usize,
    /// Measure how long the disk takes to flush
    #[arg(long)]
    flush: bool,
}

/// A load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Scenario {
    /// Steps one after the other
    Chain,
    /// One step
    Single,
    /// A hundred steps side by side
    Fan,
    /// Timers that are due close together
    Timers,
    /// Executions that sleep
    Sleep,
    /// Small executions beside a greedy tenant
    Neighbour,
}

/// How many steps a fan has.
const FAN_STEPS: usize = 100;

/// Within which all timers are due.
const TIMERS_WITHIN: Duration = Duration::from_secs(5);

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let done = runtime.map_err(Failure::from).and_then(|runtime| runtime.block_on(Box::pin(run(arguments))));
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            // There is nobody left to tell where this cannot be written.
            let _ = writeln!(io::stderr(), "load: {failure}");
            ExitCode::FAILURE
        }
    }
}

async fn run(arguments: Arguments) -> Result<(), Failure> {
    let parent = match &arguments.dir {
        Some(dir) => dir.clone(),
        None if std::path::Path::new("target").is_dir() => "target".into(),
        None => std::env::temp_dir(),
    };
    if arguments.flush {
        let dir = tempfile::tempdir_in(&parent)?;
        print(&serde_json::to_string(&flush::measure(dir.path())?)?)?;
    }
    if arguments.server.is_none() && arguments.binary.is_none() {
        return Ok(());
    }
    let all =
        [Scenario::Chain, Scenario::Single, Scenario::Fan, Scenario::Timers, Scenario::Sleep, Scenario::Neighbour];
    let chosen = if arguments.scenarios.is_empty() { &all[..] } else { &arguments.scenarios };
    for scenario in chosen {
        let dir = tempfile::tempdir_in(&parent)?;
        let mut server = match (&arguments.binary, &arguments.server) {
            (Some(binary), _) => Server::start(binary, &arguments.arguments, dir.path()).await?,
            (None, Some(url)) => Server::of_others(url, arguments.pid.map(Process)),
            (None, None) => return Ok(()),
        };
        let line = measure(&arguments, *scenario, &mut server).await;
        server.stop().await;
        print(&line?)?;
    }
    Ok(())
}

async fn measure(arguments: &Arguments, scenario: Scenario, server: &mut Server) -> Result<String, Failure> {
    let (name, steps, concurrency) = match scenario {
        Scenario::Chain => ("chain", arguments.steps, 64),
        Scenario::Single => ("single", 1, 256),
        Scenario::Fan => ("fan", FAN_STEPS, 4),
        Scenario::Timers => {
            let line = timers::measure(&Api::new(server.url())?, arguments.timers, TIMERS_WITHIN).await?;
            return Ok(serde_json::to_string(&line)?);
        }
        Scenario::Neighbour => {
            let module = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/guests/dist/hostile.wasm"));
            let line = neighbour::measure(server.url(), arguments.neighbours, module).await?;
            return Ok(serde_json::to_string(&line)?);
        }
        Scenario::Sleep => return Ok(serde_json::to_string(&sleepers::measure(server, arguments.sleepers).await?)?),
    };
    let load = drive::Load {
        name,
        steps,
        chained: scenario != Scenario::Fan,
        concurrency: arguments.concurrency.unwrap_or(concurrency),
        warm: Duration::from_secs(arguments.warm),
        window: Duration::from_secs(arguments.seconds.max(1)),
    };
    Ok(serde_json::to_string(&drive::measure(&Api::new(server.url())?, server.process(), load).await?)?)
}

fn print(line: &str) -> Result<(), Failure> {
    writeln!(io::stdout(), "{line}")?;
    Ok(())
}
