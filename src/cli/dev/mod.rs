//! `dev`: a server for one folder, whose modules and workflows are registered, and again when they change.
//!
//! - `tree`: what is in the folder, and which of it changed
//! - `sync`: brings it to the server; what is wrong with a file is said, and the rest goes on
//! - `watch`: says when to look again
//! - `version`: the version under which an edited document is registered

mod sync;
mod tree;
mod version;
mod watch;

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::{config::Config, telemetry};

use super::{Error, client, output::print, server, settings::Settings};

use self::{sync::Sync, watch::Watch};

/// The folder below that one that holds the data.
const DATA_FOLDER: &str = ".sandkeep";

/// Serves one folder for development
///
/// `DIR/modules/NAME.wasm` are uploaded and `DIR/workflows/*.json|yaml` registered, at the start and whenever they
/// change; an edited workflow is registered as `VERSION+dev.HASH`, which becomes its default version. Data is kept in
/// `DIR/.sandkeep`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: sandkeep dev examples/order --listen 127.0.0.1:0")]
pub(super) struct Args {
    /// The folder
    #[arg(default_value = ".")]
    dir: PathBuf,
    #[command(flatten)]
    settings: Settings,
}

pub(super) async fn run(args: Args) -> Result<(), Error> {
    let mut loaded = args.settings.load()?;
    if !loaded.origins.contains_key("database.url") {
        loaded.config.database.url = database(&args.dir)?;
    }
    if args.settings.print_config {
        return print(&loaded.to_string());
    }
    fs::create_dir_all(args.dir.join(DATA_FOLDER))
        .map_err(|source| Error::Read { path: args.dir.join(DATA_FOLDER), source })?;
    telemetry::init(&loaded.config.log)?;
    serve(loaded.config, args.dir).await
}

async fn serve(config: Config, dir: PathBuf) -> Result<(), Error> {
    let mut following = None;
    let served = server::serve(config, |http| {
        following = Some(tokio::spawn(async move {
            if let Err(error) = keep(&format!("http://{http}"), &dir).await {
                super::output::say(&error.story());
            }
        }));
    })
    .await;
    if let Some(following) = following {
        following.abort();
    }
    served
}

/// Brings the folder to the server, now and whenever it changed.
async fn keep(server: &str, dir: &Path) -> Result<(), Error> {
    let mut watch = Watch::start(dir);
    let mut sync = Sync::new(client::Server::at(server.to_owned()).client()?, dir);
    loop {
        sync.round().await;
        watch.changed().await;
    }
}

fn database(dir: &Path) -> Result<String, Error> {
    let path = dir.join(DATA_FOLDER).join("sandkeep.db");
    let path = path.to_str().ok_or_else(|| Error::Usage(format!("`{}` is not UTF-8", path.display())))?;
    Ok(format!("sqlite:{path}"))
}
