//! `module inspect`: a component in the sandbox of this process, without a server.

use std::path::{Path, PathBuf};

use bytes::Bytes;
use clap::Args;
use serde::Serialize;
use serde_json::value::to_raw_value;

use crate::{
    model::{TenantId, facts::TaskSpec},
    sandbox::{self, Inspected, Rejected, Sandbox},
};

use super::{
    Error,
    error::Refusal,
    input,
    module::MODULE_BYTES_MAX,
    output::{Output, Table},
};

/// Examines a component as an upload would, without a server
#[derive(Debug, Args)]
#[command(after_help = "Example: sandkeep module inspect guests/dist/orders.wasm")]
pub(super) struct Inspect {
    /// The component
    file: PathBuf,
    #[command(flatten)]
    output: Output,
}

/// What an upload would find.
#[derive(Serialize)]
struct Findings<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a Path>,
    digest: &'a str,
    size_bytes: usize,
    imports: &'a [String],
    tasks: &'a [TaskSpec],
}

pub(super) async fn inspect(args: Inspect) -> Result<(), Error> {
    show(Bytes::from(input::file(&args.file, MODULE_BYTES_MAX)?), None, args.output).await
}

/// Examines a component and prints what was found; `file`: where it was put.
pub(super) async fn show(bytes: Bytes, file: Option<&Path>, output: Output) -> Result<(), Error> {
    let size_bytes = bytes.len();
    let sandbox = sandbox(sandbox::Config::default())?;
    let Inspected { digest, imports, tasks, .. } = examine(&sandbox, bytes).await?;
    let findings = Findings { file, digest: digest.as_str(), size_bytes, imports: &imports, tasks: &tasks };
    let value = to_raw_value(&findings).map_err(|error| Error::Server(error.into()))?;
    output.value(&value, || Ok(describe(&findings)))
}

fn describe(findings: &Findings<'_>) -> String {
    let imports = if findings.imports.is_empty() { "nothing".to_owned() } else { findings.imports.join(" ") };
    let mut table = Table::new(&["TASK", "VERSION", "DESCRIPTION"]);
    for TaskSpec { name, version, description, .. } in findings.tasks {
        table.row(vec![name.to_string(), version.to_string(), description.clone().unwrap_or_default()]);
    }
    let Findings { file, digest, size_bytes, .. } = findings;
    let file = file.map(|file| format!("file     {}\n", file.display())).unwrap_or_default();
    format!("{file}digest   {digest}\nsize     {size_bytes} bytes\nimports  {imports}\n\n{}", table.to_text())
}

/// Makes a sandbox in this process.
pub(super) fn sandbox(config: sandbox::Config) -> Result<Sandbox, Error> {
    Sandbox::new(config).map_err(|error| Error::Server(error.into()))
}

/// Examines a component as an upload is.
pub(super) async fn examine(sandbox: &Sandbox, bytes: Bytes) -> Result<Inspected, Error> {
    let refused = |rejected: Rejected| {
        let message = rejected.to_string();
        Error::Refused(Refusal { code: "MODULE_REJECTED".to_owned(), message, details: None, request_id: None })
    };
    sandbox.inspect(&TenantId::default_tenant(), bytes).await.map_err(refused)
}
