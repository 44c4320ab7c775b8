//! The command line: one file per command, each a translation to the HTTP API or, where it says so, to a room of the
//! library.
//!
//! - [`Cli`]: the arguments; [`run`](Cli::run) carries them out
//! - [`Error`]: why a command did not do what it was asked, with its exit code
//! - `client`: HTTP; `output`: what is printed; `document`, `input`: what is read; `progress`: what moves on a terminal
//!
//! Standard output carries data and nothing else; whatever is said to people goes to standard error. With
//! `--output json` standard output is one JSON value or empty, also after a failure.

mod advice;
mod attempt;
mod author;
mod cancel;
mod client;
mod completions;
mod dev;
mod document;
mod each;
mod error;
mod event;
mod follow;
mod history;
mod input;
mod json;
mod list;
mod listing;
mod logs;
mod module;
mod module_alias;
mod module_local;
mod module_run;
mod output;
mod progress;
mod query;
mod result;
mod server;
mod setting;
mod settings;
mod show;
mod signal;
mod sse;
mod start;
mod state;
mod stubs;
mod tenant;
mod units;
mod wait;
mod why;
mod worker;
mod workflow;

use clap::{Parser, Subcommand};

pub use error::Error;

/// Durable workflows whose tasks are uploaded WASM components or native workers.
#[derive(Debug, Parser)]
#[command(name = "sandkeep", version, after_help = EXIT_CODES)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXIT_CODES: &str = "Exit codes: 0 done, 1 the execution failed, 2 wrong usage, 3 refused by the server, \
                          4 the server cannot be reached.\n\nExample: sandkeep start order --input @order.json --wait";

#[derive(Debug, Subcommand)]
enum Command {
    Server(Box<server::Args>),
    Dev(Box<dev::Args>),
    /// Registers, checks and shows workflow documents
    #[command(subcommand)]
    Workflow(workflow::Command),
    /// Makes, builds, uploads, examines and runs modules
    #[command(subcommand)]
    Module(module::Command),
    Start(start::Args),
    List(list::Args),
    Show(show::Args),
    History(history::Args),
    Logs(logs::Args),
    Wait(wait::Args),
    Why(why::Args),
    Result(result::Args),
    Signal(signal::Args),
    Query(query::Args),
    Cancel(cancel::Args),
    /// Brings recorded attempts, to run them again
    #[command(subcommand)]
    Attempt(attempt::Command),
    /// Makes and shows tenants and what they may use
    #[command(subcommand)]
    Tenant(tenant::Command),
    /// Looks at native workers
    #[command(subcommand)]
    Worker(worker::Command),
    Completions(completions::Args),
}

impl Cli {
    /// Carries the command out.
    pub async fn run(self) -> Result<(), Error> {
        match self.command {
            Command::Server(args) => Box::pin(server::run(*args)).await,
            Command::Dev(args) => Box::pin(dev::run(*args)).await,
            Command::Workflow(command) => workflow::run(command).await,
            Command::Module(command) => Box::pin(module::run(command)).await,
            Command::Start(args) => start::run(args).await,
            Command::List(args) => list::run(args).await,
            Command::Show(args) => show::run(args).await,
            Command::History(args) => history::run(args).await,
            Command::Logs(args) => logs::run(args).await,
            Command::Wait(args) => wait::run(args).await,
            Command::Why(args) => why::run(args).await,
            Command::Result(args) => result::run(args).await,
            Command::Signal(args) => signal::run(args).await,
            Command::Query(args) => query::run(args).await,
            Command::Cancel(args) => cancel::run(args).await,
            Command::Attempt(command) => attempt::run(command).await,
            Command::Tenant(command) => tenant::run(command).await,
            Command::Worker(command) => worker::run(command).await,
            Command::Completions(args) => completions::run(args),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_arguments_are_consistent() {
        Cli::command().debug_assert();
    }

    /// C112: what a script reads of a command it does not know.
    #[test]
    fn wrong_usage_has_its_exit_code() {
        for arguments in
            [&["sandkeep"][..], &["sandkeep", "strat"], &["sandkeep", "start"], &["sandkeep", "list", "--limit", "x"]]
        {
            let error = Cli::try_parse_from(arguments).unwrap_err();
            assert_eq!(error.exit_code(), 2, "{arguments:?}");
        }
    }

    #[test]
    fn every_command_has_help_with_an_example() {
        fn check(command: &clap::Command, path: &str) {
            let children: Vec<_> = command.get_subcommands().collect();
            assert!(command.get_about().is_some(), "{path} says what it does");
            if children.is_empty() {
                let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
                assert!(help.contains("Example: sandkeep "), "{path} has an example");
            }
            for child in children {
                check(child, &format!("{path} {}", child.get_name()));
            }
        }
        check(&Cli::command(), "sandkeep");
    }
}
