//! `module`: makes, builds, examines and runs modules without a server, and uploads them.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use clap::Subcommand;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{
    Error, author,
    client::{Body, Client, Server, To},
    each, input,
    listing::Listing,
    module_alias, module_local, module_run,
    output::Output,
    progress::Spinner,
    setting::Setting,
    units,
};

/// The largest component, in bytes.
pub(super) const MODULE_BYTES_MAX: usize = 1024 * 1024 * 1024;

/// How often a server that compiles is asked whether it is done.
const LOOK_AGAIN: Duration = Duration::from_millis(250);

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    New(author::New),
    Build(author::Build),
    Inspect(module_local::Inspect),
    Run(Box<module_run::Run>),
    Push(Push),
    List(List),
    Alias(module_alias::Alias),
    Rollback(module_alias::Rollback),
    Diff(module_alias::Diff),
    Rm(module_alias::Remove),
    Settings(Settings),
}

/// Uploads modules; each becomes the live one of its name
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: sandkeep module push guests/dist/orders.wasm")]
pub(super) struct Push {
    /// The components
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The name of the module; without it the file's, less `.wasm`
    #[arg(long)]
    name: Option<String>,
    #[command(flatten)]
    server: Server,
    #[command(flatten)]
    output: Output,
}

/// Shows the settings of a module, or sets them
///
/// `environment` is what its attempts are told, `limits` and `egress` are what they may use and reach of what the tenant
/// may, `record` lists the tasks whose attempts are recorded for `attempt pull`. What is not given is set to nothing. Executions that use the module already keep the settings that they have.
#[derive(Debug, clap::Args)]
#[command(after_help = r#"Example: sandkeep module settings orders --set '{"environment": {"REGION": "eu"}}'"#)]
pub(super) struct Settings {
    /// The module
    name: String,
    #[command(flatten)]
    setting: Setting,
}

/// Lists the modules with their tasks
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: sandkeep module list")]
pub(super) struct List {
    #[command(flatten)]
    listing: Listing,
}

/// A module, as far as it is shown.
#[derive(Deserialize)]
pub(super) struct Module {
    pub(super) name: String,
    pub(super) digest: String,
    size_bytes: u64,
    state: String,
    reason: Option<String>,
    pub(super) tasks: Vec<Task>,
    aliases: Vec<String>,
    #[serde(default)]
    warnings: Vec<module_alias::Warning>,
}

#[derive(Deserialize)]
pub(super) struct Task {
    name: String,
    version: String,
}

impl Module {
    fn cells(&self) -> Vec<String> {
        vec![
            self.name.clone(),
            units::short(&self.digest),
            self.size_bytes.to_string(),
            self.state.clone(),
            self.aliases.join(" "),
            self.offers(),
        ]
    }

    /// Returns its tasks in words.
    pub(super) fn offers(&self) -> String {
        self.tasks.iter().map(|task| format!("{}@{}", task.name, task.version)).collect::<Vec<_>>().join(" ")
    }
}

const HEADINGS: [&str; 6] = ["NAME", "DIGEST", "BYTES", "STATE", "ALIASES", "TASKS"];

pub(super) async fn run(command: Command) -> Result<(), Error> {
    match command {
        Command::New(args) => author::create(args),
        Command::Build(args) => author::build(args).await,
        Command::Inspect(args) => module_local::inspect(args).await,
        Command::Run(args) => module_run::run(*args).await,
        Command::Push(args) => push(args).await,
        Command::Alias(args) => module_alias::alias(args).await,
        Command::Settings(args) => settings(args).await,
        Command::Rollback(args) => module_alias::rollback(args).await,
        Command::Diff(args) => module_alias::diff(args).await,
        Command::Rm(args) => module_alias::remove(args).await,
        Command::List(List { listing }) => {
            listing.show(&To::path(&["modules"]), "modules", &HEADINGS, Module::cells).await
        }
    }
}

async fn settings(args: Settings) -> Result<(), Error> {
    args.setting.show_or_set(&To::path(&["modules", &args.name, "settings"])).await
}

async fn push(args: Push) -> Result<(), Error> {
    if args.name.is_some() && args.files.len() > 1 {
        return Err(Error::Usage("`--name` goes with one file".to_owned()));
    }
    let client = args.server.client()?;
    let sent = each::until_failure(&args.files, async |file| {
        let name = args.name.clone().map_or_else(|| name_of(file), Ok)?;
        upload(&client, &name, input::file(file, MODULE_BYTES_MAX)?).await
    })
    .await;
    sent.each(&client, |module: Module| module_alias::warn(&module.warnings))?;
    sent.show(&client, args.output, &HEADINGS, Module::cells)
}

/// Uploads one component.
pub(super) async fn upload(client: &Client, name: &str, bytes: Vec<u8>) -> Result<Box<RawValue>, Error> {
    let answer = client.post(&To::path(&["modules", name]), Body::Module(bytes), None).await?;
    wait_until_compiled(client, answer).await
}

/// Waits while an upload is being compiled; returns the module.
async fn wait_until_compiled(client: &Client, mut answer: Box<RawValue>) -> Result<Box<RawValue>, Error> {
    let mut spinner = None;
    loop {
        let module: Module = client.read(&answer)?;
        match module.state.as_str() {
            "compiling" => {}
            "rejected" => return Err(Error::Failed(rejection(&module))),
            _ => return Ok(answer),
        }
        spinner.get_or_insert_with(|| Spinner::start(format!("compiling `{}`", module.name)));
        tokio::time::sleep(LOOK_AGAIN).await;
        answer = client.get(&To::path(&["modules", &module.name, &module.digest])).await?;
    }
}

fn rejection(module: &Module) -> String {
    let reason = module.reason.as_deref().unwrap_or("the server does not say why");
    format!("module `{}` was rejected: {reason}", module.name)
}

/// Returns the module's name that a file's name says.
pub(super) fn name_of(file: &Path) -> Result<String, Error> {
    let name = file.file_stem().and_then(|stem| stem.to_str()).filter(|name| !name.is_empty());
    name.map(str::to_owned)
        .ok_or_else(|| Error::Usage(format!("`{}` says no name; give one with `--name`", file.display())))
}
