//! `workflow`: registers, checks and shows documents.

use std::path::PathBuf;

use clap::Subcommand;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use crate::{
    app::view::WorkflowRegistered,
    model::StepIndex,
    workflow::{self, Problem},
};

use super::{
    Error,
    client::{Body, Client, Server, To},
    document, each,
    error::Refusal,
    listing::Listing,
    output::{Output, array},
};

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    Apply(Apply),
    Check(Check),
    List(List),
    Show(Show),
}

/// Registers documents, JSON or YAML
///
/// A document that is registered already, with the same content, is no error; one with other content under the same
/// name and version is refused.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: sandkeep workflow apply workflows/order.yaml")]
pub(super) struct Apply {
    /// The documents; `-` is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Leave the version as it is that a start without version uses
    #[arg(long)]
    keep_default: bool,
    #[command(flatten)]
    server: Server,
    #[command(flatten)]
    output: Output,
}

/// Checks a document without a server and prints the graph of its steps
///
/// All problems are listed at once, each with its place, its code and a sentence; the exit code is then 3, as if the
/// server had refused it.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: sandkeep workflow check workflows/order.yaml")]
pub(super) struct Check {
    /// The document; `-` is standard input
    file: PathBuf,
    #[command(flatten)]
    output: Output,
}

/// Lists the registered documents
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: sandkeep workflow list")]
pub(super) struct List {
    #[command(flatten)]
    listing: Listing,
}

/// Prints a registered document
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: sandkeep workflow show order 1.2.0")]
pub(super) struct Show {
    /// The workflow
    name: String,
    /// Its version; without it the default one
    version: Option<String>,
    #[command(flatten)]
    server: Server,
    #[command(flatten)]
    output: Output,
}

pub(super) async fn run(command: Command) -> Result<(), Error> {
    match command {
        Command::Apply(args) => apply(args).await,
        Command::Check(args) => check(&args),
        Command::List(List { listing }) => list(&listing).await,
        Command::Show(Show { name, version, server, output }) => {
            let mut path = vec!["workflows", name.as_str()];
            path.extend(version.as_deref());
            output.json(&server.client()?.get(&To::path(&path)).await?)
        }
    }
}

async fn apply(args: Apply) -> Result<(), Error> {
    let client = args.server.client()?;
    // All are read before the first is sent.
    let texts = args.files.iter().map(|file| document::read(file)).collect::<Result<Vec<_>, _>>()?;
    let sent = each::until_failure(texts, async |text| register(&client, text, !args.keep_default).await).await;
    sent.show(&client, args.output, &["NAME", "VERSION", "NEW", "HASH"], |row: &WorkflowRegistered| {
        let new = if row.created { "yes" } else { "no" };
        vec![row.name.clone(), row.version.clone(), new.to_owned(), row.definition_hash.clone()]
    })
}

/// Registers one document.
pub(super) async fn register(client: &Client, text: String, make_default: bool) -> Result<Box<RawValue>, Error> {
    let mut to = To::path(&["workflows"]);
    if !make_default {
        to = to.with("default", false);
    }
    client.post(&to, Body::Json(text), None).await
}

async fn list(listing: &Listing) -> Result<(), Error> {
    #[derive(Deserialize)]
    struct Row {
        name: String,
        version: String,
        steps: Vec<String>,
        tasks: Vec<String>,
        description: Option<String>,
    }
    let headings = ["NAME", "VERSION", "STEPS", "TASKS", "DESCRIPTION"];
    let cells = |row: &Row| {
        let description = row.description.clone().unwrap_or_default();
        vec![row.name.clone(), row.version.clone(), row.steps.len().to_string(), row.tasks.join(" "), description]
    };
    listing.show(&To::path(&["workflows"]), "workflows", &headings, cells).await
}

/// What a good document comes to.
#[derive(Serialize)]
struct Graph<'a> {
    name: &'a str,
    version: &'a str,
    definition_hash: &'a str,
    steps: Vec<Node<'a>>,
}

#[derive(Serialize)]
struct Node<'a> {
    step: &'a str,
    after: Vec<&'a str>,
}

fn check(args: &Check) -> Result<(), Error> {
    let text = document::read(&args.file)?;
    let definition = match workflow::parse(text.as_bytes()) {
        Ok(parsed) => parsed.definition,
        Err(problems) => return Err(refuse(args, &problems)?),
    };
    let plan = &definition.plan;
    let id = |on: &StepIndex| plan.step(*on).id.as_str();
    let graph = Graph {
        name: definition.name.as_str(),
        version: definition.version.as_str(),
        definition_hash: definition.hash.as_str(),
        steps: plan
            .steps()
            .iter()
            .map(|step| Node { step: step.id.as_str(), after: step.depends_on.iter().map(id).collect() })
            .collect(),
    };
    let value = to_raw_value(&graph).map_err(|error| Error::Server(error.into()))?;
    args.output.value(&value, || Ok(workflow::graph(&definition)))
}

/// Tells the problems, for people as a refusal, for programs on standard output too.
fn refuse(args: &Check, problems: &[Problem]) -> Result<Error, Error> {
    let rows = problems.iter().map(to_raw_value).collect::<Result<Vec<_>, _>>();
    let rows = rows.map_err(|error| Error::Server(error.into()))?;
    let details = RawValue::from_string(format!("{{\"problems\":{}}}", array(&rows)));
    let details = details.map_err(|error| Error::Server(error.into()))?;
    if !args.output.is_table() {
        args.output.json(&details)?;
    }
    let count = problems.len();
    let message = format!("`{}` has {count} problem{}", args.file.display(), if count == 1 { "" } else { "s" });
    Ok(Error::Refused(Refusal { code: "INVALID_IR".to_owned(), message, details: Some(details), request_id: None }))
}
