//! `module alias`, `rollback`, `rm`, `diff`: the life of a module after its upload.

use serde::Deserialize;
use serde_json::{json, value::RawValue};

use super::{
    Error,
    client::{Body, Client, Server, To},
    output::{Output, Table, say},
    units,
};

/// The most digests of a module that a short digest is looked for among.
const DIGESTS_MAX: u64 = 10_000;

/// Moves an alias of a module to a digest; with several, divides executions among them
///
/// A digest may be cut as far as it stays the only one of its module. With `--split` each is given as DIGEST=PERCENT.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: sandkeep module alias orders beta sha256:9f86d081")]
pub(super) struct Alias {
    /// The module
    name: String,
    /// The alias
    alias: String,
    /// The digest
    #[arg(required_unless_present_any = ["split", "delete"], conflicts_with_all = ["split", "delete"])]
    digest: Option<String>,
    /// Divide executions: DIGEST=PERCENT, more than once; the percents make 100
    #[arg(long, value_name = "DIGEST=PERCENT", value_parser = share, conflicts_with = "delete")]
    split: Vec<(String, u8)>,
    /// Remove the alias
    #[arg(long)]
    delete: bool,
    #[command(flatten)]
    server: Server,
    #[command(flatten)]
    output: Output,
}

/// Moves an alias of a module to what it named before; again, further back
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: sandkeep module rollback orders --repin")]
pub(super) struct Rollback {
    /// The module
    name: String,
    /// The alias
    #[arg(long, default_value = "live")]
    alias: String,
    /// Move live executions that are pinned to what the alias leaves, too
    #[arg(long)]
    repin: bool,
    #[command(flatten)]
    server: Server,
    #[command(flatten)]
    output: Output,
}

/// Removes a digest of a module that no alias and no live execution needs
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: sandkeep module rm orders sha256:9f86d081")]
pub(super) struct Remove {
    /// The module
    name: String,
    /// The digest; it may be cut as far as it stays the only one
    digest: String,
    #[command(flatten)]
    server: Server,
    #[command(flatten)]
    output: Output,
}

/// Shows what differs between two digests of a module
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: sandkeep module diff orders live sha256:9f86d081")]
pub(super) struct Diff {
    /// The module
    name: String,
    /// The digest, or the alias of it, that is compared with
    from: String,
    /// The digest, or the alias of it, that is compared
    to: String,
    #[command(flatten)]
    server: Server,
    #[command(flatten)]
    output: Output,
}

pub(super) async fn alias(args: Alias) -> Result<(), Error> {
    let client = args.server.client()?;
    let to = To::path(&["modules", &args.name, "aliases", &args.alias]);
    if args.delete {
        client.delete(&to).await?;
        return args.output.value(&done(json!({ "deleted": true })), || {
            Ok(format!("the alias {} of {} is removed", args.alias, args.name))
        });
    }
    let body = match &args.digest {
        Some(digest) => json!({ "digest": whole(&client, &args.name, digest).await? }),
        None => {
            let mut split = Vec::new();
            for (digest, percent) in &args.split {
                split.push(json!({ "digest": whole(&client, &args.name, digest).await?, "percent": percent }));
            }
            json!({ "split": split })
        }
    };
    let answer = client.put(&to, body.to_string()).await?;
    show(&client, args.output, &answer)
}

pub(super) async fn rollback(args: Rollback) -> Result<(), Error> {
    let client = args.server.client()?;
    let body = json!({ "alias": args.alias, "repin": args.repin });
    let to = To::path(&["modules", &args.name, "rollback"]);
    let answer = client.post(&to, Body::Json(body.to_string()), None).await?;
    show(&client, args.output, &answer)
}

pub(super) async fn remove(args: Remove) -> Result<(), Error> {
    let client = args.server.client()?;
    let digest = whole(&client, &args.name, &args.digest).await?;
    client.delete(&To::path(&["modules", &args.name, &digest])).await?;
    args.output.value(&done(json!({ "deleted": true, "name": args.name, "digest": digest })), || {
        Ok(format!("{} {} is removed", args.name, units::short(&digest)))
    })
}

pub(super) async fn diff(args: Diff) -> Result<(), Error> {
    let client = args.server.client()?;
    let from = whole(&client, &args.name, &args.from).await?;
    let to = whole(&client, &args.name, &args.to).await?;
    let answer = client.get(&To::path(&["modules", &args.name, "diff"]).with("from", from).with("to", to)).await?;
    args.output.value(&answer, || Ok(client.read::<Difference>(&answer)?.lines()))
}

/// Reads `DIGEST=PERCENT`.
fn share(text: &str) -> Result<(String, u8), String> {
    let (digest, percent) = text.split_once('=').ok_or("it must be DIGEST=PERCENT")?;
    let percent = percent.trim_end_matches('%').parse().map_err(|_| "the percent must be a number from 1 to 100")?;
    Ok((digest.to_owned(), percent))
}

/// Returns a JSON value of our own.
fn done(value: serde_json::Value) -> Box<RawValue> {
    serde_json::value::to_raw_value(&value).expect("a value is JSON")
}

/// Returns the digest that a cut one stands for; anything else as it is.
async fn whole(client: &Client, name: &str, text: &str) -> Result<String, Error> {
    #[derive(Deserialize)]
    struct Row {
        name: String,
        digest: String,
    }
    let digits = text.strip_prefix("sha256:").unwrap_or_default();
    if digits.is_empty() || digits.len() >= 64 || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Ok(text.to_owned());
    }
    let (rows, _) = client.rows(&To::path(&["modules"]), "modules", DIGESTS_MAX).await?;
    let mut found = Vec::new();
    for row in &rows {
        let row: Row = client.read(row)?;
        if row.name == name && row.digest.starts_with(text) {
            found.push(row.digest);
        }
    }
    match found.as_slice() {
        [digest] => Ok(digest.clone()),
        [] => Err(Error::Usage(format!("no digest of the module `{name}` begins with `{text}`"))),
        _ => Err(Error::Usage(format!("{} digests of the module `{name}` begin with `{text}`", found.len()))),
    }
}

/// A step that a move breaks.
#[derive(Deserialize)]
pub(super) struct Warning {
    workflow: String,
    version: String,
    step: String,
    task: String,
    problem: String,
}

/// Tells people of steps that a new version breaks.
pub(super) fn warn(warnings: &[Warning]) {
    for Warning { workflow, version, step, task, problem } in warnings {
        say(&format!("warning: {workflow} {version}, step {step}, task {task}: {problem}"));
    }
}

/// An alias, as far as it is shown.
#[derive(Deserialize)]
struct Moved {
    module: String,
    alias: String,
    digest: Option<String>,
    #[serde(default)]
    split: Vec<Share>,
    #[serde(default)]
    warnings: Vec<Warning>,
    repinned: Option<u64>,
    not_repinned: Option<u64>,
}

#[derive(Deserialize)]
struct Share {
    digest: String,
    percent: u8,
}

fn show(client: &Client, output: Output, answer: &RawValue) -> Result<(), Error> {
    let moved: Moved = client.read(answer)?;
    output.value(answer, || Ok(moved.sentence()))?;
    warn(&moved.warnings);
    if let Some(count) = moved.not_repinned {
        say(&format!("{count} executions stay, because the digest does not serve them"));
    }
    Ok(())
}

impl Moved {
    fn sentence(&self) -> String {
        let names = match &self.digest {
            Some(digest) => units::short(digest),
            None => {
                let shares =
                    self.split.iter().map(|share| format!("{} {}%", units::short(&share.digest), share.percent));
                shares.collect::<Vec<_>>().join(", ")
            }
        };
        let repinned = self.repinned.map(|count| format!("; {count} executions moved along")).unwrap_or_default();
        format!("{}@{} is {names}{repinned}", self.module, self.alias)
    }
}

/// What differs between two digests.
#[derive(Deserialize)]
struct Difference {
    from_size_bytes: u64,
    to_size_bytes: u64,
    tasks_added: Vec<String>,
    tasks_removed: Vec<String>,
    tasks_changed: Vec<Changed>,
    imports_added: Vec<String>,
    imports_removed: Vec<String>,
}

#[derive(Deserialize)]
struct Changed {
    task: String,
    from_version: String,
    to_version: String,
    input_schema_changed: bool,
    output_schema_changed: bool,
    newly_required: Vec<String>,
}

impl Difference {
    fn lines(&self) -> String {
        let mut table = Table::new(&["WHAT", "CHANGE"]);
        let mut row = |what: &str, change: String| table.row(vec![what.to_owned(), change]);
        row("bytes", format!("{} -> {}", self.from_size_bytes, self.to_size_bytes));
        for (what, texts) in [
            ("task added", &self.tasks_added),
            ("task removed", &self.tasks_removed),
            ("import added", &self.imports_added),
            ("import removed", &self.imports_removed),
        ] {
            texts.iter().for_each(|text| row(what, text.clone()));
        }
        self.tasks_changed.iter().for_each(|changed| row("task changed", changed.sentence()));
        table.to_text()
    }
}

impl Changed {
    fn sentence(&self) -> String {
        let mut parts = Vec::new();
        if self.from_version != self.to_version {
            parts.push(format!("version {} -> {}", self.from_version, self.to_version));
        }
        if self.input_schema_changed {
            parts.push("input schema".to_owned());
        }
        if self.output_schema_changed {
            parts.push("output schema".to_owned());
        }
        if !self.newly_required.is_empty() {
            parts.push(format!("input must have {} now", self.newly_required.join(", ")));
        }
        format!("{}: {}", self.task, parts.join("; "))
    }
}
