//! `completions`: scripts by which shells complete arguments.

use clap::CommandFactory;
use clap_complete::Shell;

use super::{Cli, Error, output::print};

/// Prints the completions of a shell
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: sandkeep completions bash > /etc/bash_completion.d/sandkeep")]
pub(super) struct Args {
    /// The shell
    shell: Shell,
}

pub(super) fn run(args: Args) -> Result<(), Error> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "sandkeep", &mut script);
    print(&String::from_utf8_lossy(&script))
}
