//! Log lines, on standard error: for people or as JSON. Standard output belongs to data.

use std::io::{self, IsTerminal};

use tracing_subscriber::{EnvFilter, Layer, Registry, layer::SubscriberExt, util::SubscriberInitExt};

use crate::config::{Log, LogFormat};

/// Why logging cannot begin.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The filter is not one.
    #[error("`log.filter` is not a filter")]
    Filter(#[from] tracing_subscriber::filter::ParseError),
    /// Somebody else logs already.
    #[error("logging has begun already")]
    Twice(#[from] tracing_subscriber::util::TryInitError),
}

/// Begins to log, for the whole process.
pub fn init(log: &Log) -> Result<(), Error> {
    let filter = EnvFilter::try_new(&log.filter)?;
    let lines: Box<dyn Layer<Registry> + Send + Sync> = match log.format {
        LogFormat::Text => {
            let colours = io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
            Box::new(tracing_subscriber::fmt::layer().with_writer(io::stderr).with_ansi(colours))
        }
        LogFormat::Json => {
            Box::new(tracing_subscriber::fmt::layer().json().flatten_event(true).with_writer(io::stderr))
        }
    };
    tracing_subscriber::registry().with(lines.with_filter(filter)).try_init()?;
    Ok(())
}
