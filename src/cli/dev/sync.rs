//! Brings what changed in the folder to the server.

use std::path::{Path, PathBuf};

use serde_json::value::RawValue;

use crate::app::view::WorkflowRegistered;

use super::{
    super::{
        Error,
        client::Client,
        document, input,
        module::{self, MODULE_BYTES_MAX},
        output::say,
        state, units, workflow,
    },
    tree::{Kind, Tree},
    version,
};

/// Keeps a server up to date with a folder.
pub(super) struct Sync {
    client: Client,
    dir: PathBuf,
    tree: Tree,
    /// The last failure to list the folder, which is said once.
    unlisted: Option<String>,
}

impl Sync {
    /// Begins with nothing brought.
    pub(super) fn new(client: Client, dir: &Path) -> Self {
        Self { client, dir: dir.to_owned(), tree: Tree::new(dir), unlisted: None }
    }

    /// Brings what is new or changed, and says what became of it.
    pub(super) async fn round(&mut self) {
        let changed = match self.tree.changed() {
            Ok(changed) => changed,
            Err(error) => return self.cannot_list(&error.to_string()),
        };
        self.unlisted = None;
        for file in changed {
            let (kind, path) = &file;
            let brought = match kind {
                Kind::Module => self.push(path).await,
                Kind::Workflow => self.register(path).await,
            };
            let name = path.strip_prefix(&self.dir).unwrap_or(path).display();
            match brought {
                Ok(sentence) => say(&format!("{name}: {sentence}")),
                Err(error) => {
                    say(&format!("{name}: {}", error.story()));
                    if state::may_come_back(&error) {
                        self.tree.forget(&file);
                    }
                }
            }
        }
    }

    async fn push(&self, path: &Path) -> Result<String, Error> {
        let bytes = input::file(path, MODULE_BYTES_MAX)?;
        let answer = module::upload(&self.client, &module::name_of(path)?, bytes).await?;
        let module: module::Module = self.client.read(&answer)?;
        Ok(format!("module `{}` is {}, does {}", module.name, units::short(&module.digest), module.offers()))
    }

    /// Registers a document under its own version while that is free, then under one of its content.
    async fn register(&self, path: &Path) -> Result<String, Error> {
        let text = document::read(path)?;
        let answer = match workflow::register(&self.client, text.clone(), true).await {
            Err(Error::Refused(refusal)) if refusal.code == "WORKFLOW_CONFLICT" => match version::edited(&text) {
                Some(edited) => workflow::register(&self.client, edited, true).await?,
                None => return Err(Error::Refused(refusal)),
            },
            answer => answer?,
        };
        self.registered(&answer)
    }

    fn registered(&self, answer: &RawValue) -> Result<String, Error> {
        let WorkflowRegistered { name, version, created, .. } = self.client.read(answer)?;
        let what = if created { "registered" } else { "is registered" };
        Ok(format!("workflow `{name}` {what} as {version}"))
    }

    fn cannot_list(&mut self, problem: &str) {
        if self.unlisted.as_deref() != Some(problem) {
            say(&format!("{}: {problem}", self.dir.display()));
            self.unlisted = Some(problem.to_owned());
        }
    }
}
