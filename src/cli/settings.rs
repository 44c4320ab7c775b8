//! The flags of a server's settings.

use std::path::PathBuf;

use clap::Args;

use crate::config::{self, Layers, Loaded};

use super::Error;

/// What a server is told. Every key of `docs/configuration.md` can be set by `--set`, in the file, and in the environment
/// as `SANDKEEP_SECTION__KEY`.
#[derive(Debug, Args)]
pub(super) struct Settings {
    /// A TOML file of settings
    #[arg(long, value_name = "FILE", env = "SANDKEEP_CONFIG")]
    config: Option<PathBuf>,
    /// Where to serve HTTP; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<String>,
    /// Where to serve gRPC
    #[arg(long, value_name = "ADDRESS")]
    grpc_listen: Option<String>,
    /// Where everything is kept: sqlite:PATH
    #[arg(long, value_name = "URL")]
    database: Option<String>,
    /// `full` or `relaxed`
    #[arg(long)]
    durability: Option<String>,
    /// The file that holds the server key
    #[arg(long, value_name = "FILE")]
    key_file: Option<String>,
    /// `text` or `json`
    #[arg(long, value_name = "FORMAT")]
    log_format: Option<String>,
    /// What is told, such as `info` or `info,sandkeep::sandbox=debug`
    #[arg(long, value_name = "FILTER")]
    log_filter: Option<String>,
    /// Let policies of tenants open loopback, link-local and metadata addresses to their modules
    #[arg(long)]
    allow_private_egress: bool,
    /// Sets any key; may be given again
    #[arg(long = "set", value_name = "SECTION.KEY=VALUE", value_parser = set)]
    set: Vec<(String, String)>,
    /// Print the settings that result, secrets masked, and end
    #[arg(long)]
    pub(super) print_config: bool,
}

impl Settings {
    /// Joins the flags with the file and the environment.
    pub(super) fn load(&self) -> Result<Loaded, Error> {
        let allow_private_egress = self.allow_private_egress.then(|| "true".to_owned());
        let named = [
            ("--listen", "server.listen", &self.listen),
            ("--grpc-listen", "server.grpc_listen", &self.grpc_listen),
            ("--database", "database.url", &self.database),
            ("--durability", "database.durability", &self.durability),
            ("--key-file", "key.file", &self.key_file),
            ("--log-format", "log.format", &self.log_format),
            ("--log-filter", "log.filter", &self.log_filter),
            ("--allow-private-egress", "sandbox.allow_private_egress", &allow_private_egress),
        ];
        let named =
            named.into_iter().filter_map(|(flag, key, value)| Some((flag.to_owned(), key.to_owned(), value.clone()?)));
        let set = self.set.iter().map(|(key, value)| ("--set".to_owned(), key.clone(), value.clone()));
        let layers = Layers {
            file: self.config.clone(),
            variables: std::env::vars_os()
                .filter_map(|(name, value)| Some((name.into_string().ok()?, value.to_string_lossy().into_owned())))
                .collect(),
            flags: set.chain(named).collect(),
        };
        Ok(config::load(&layers)?)
    }
}

/// Reads `SECTION.KEY=VALUE`.
fn set(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if key.contains('.') => Ok((key.to_owned(), value.to_owned())),
        _ => Err("it reads SECTION.KEY=VALUE".to_owned()),
    }
}
