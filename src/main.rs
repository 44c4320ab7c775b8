//! The program: reads the arguments, carries them out, and tells by its exit code how that went.

use std::{
    io::{self, Write},
    process::ExitCode,
    time::Duration,
};

use clap::Parser;
use sandkeep::{
    cli::{Cli, Error},
    sandbox::{COMPILE_ARGUMENT, compile_process},
};

/// How long work that blocks may go on after the command has ended.
const BLOCKING_MAX: Duration = Duration::from_secs(2);

fn main() -> ExitCode {
    if std::env::args_os().nth(1).is_some_and(|argument| argument == COMPILE_ARGUMENT) {
        return compile_process();
    }
    // What this process was given open is not for the processes that it starts.
    close_fds::set_fds_cloexec(3, &[]);
    let cli = Cli::parse();
    let done = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => {
            let done = runtime.block_on(Box::pin(cli.run()));
            runtime.shutdown_timeout(BLOCKING_MAX);
            done
        }
        Err(error) => Err(Error::Server(error.into())),
    };
    let Err(error) = done else { return ExitCode::SUCCESS };
    let story = error.story();
    if !story.is_empty() {
        // There is nobody left to tell where this cannot be written.
        let _ = writeln!(io::stderr(), "{story}");
    }
    ExitCode::from(error.exit_code())
}
