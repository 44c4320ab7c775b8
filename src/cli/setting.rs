//! What is shown, and with `--set` replaced: the JSON value behind one path.

use super::{
    Error,
    client::{Server, To},
    input,
    output::Output,
};

/// The arguments of such a command.
#[derive(Debug, clap::Args)]
pub(super) struct Setting {
    /// What to set: JSON, @FILE or @- for standard input
    #[arg(long, value_name = "JSON")]
    set: Option<String>,
    #[command(flatten)]
    server: Server,
    #[command(flatten)]
    output: Output,
}

impl Setting {
    /// Sets the value where one is given, and prints the one that holds.
    pub(super) async fn show_or_set(self, to: &To<'_>) -> Result<(), Error> {
        let client = self.server.client()?;
        let answer = match self.set {
            Some(set) => client.put(to, input::payload(&set)?.as_str().to_owned()).await?,
            None => client.get(to).await?,
        };
        self.output.json(&answer)
    }
}
