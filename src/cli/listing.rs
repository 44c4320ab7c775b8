//! What every list takes, and how its rows are shown.

use serde::de::DeserializeOwned;

use super::{
    Error,
    client::{Server, To},
    output::{Output, say},
};

/// The flags of a list.
#[derive(Debug, clap::Args)]
pub(super) struct Listing {
    /// At most this many
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    limit: u64,
    #[command(flatten)]
    server: Server,
    #[command(flatten)]
    output: Output,
}

impl Listing {
    /// Shows the rows that the answers of `to` have under `name`.
    pub(super) async fn show<T: DeserializeOwned>(
        &self,
        to: &To<'_>,
        name: &str,
        headings: &[&str],
        cells: impl Fn(&T) -> Vec<String>,
    ) -> Result<(), Error> {
        let client = self.server.client()?;
        let (rows, more) = client.rows(to, name, self.limit).await?;
        self.output.rows(&client, &rows, headings, cells)?;
        say_more(more, rows.len());
        Ok(())
    }
}

/// Says so where there are more rows than the `shown` ones.
pub(super) fn say_more(more: bool, shown: usize) {
    if more {
        say(&format!("there are more than these {shown}; --limit shows more"));
    }
}
