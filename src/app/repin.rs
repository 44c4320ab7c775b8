//! Moves the pins of live executions: of one, or of all that an alias leaves behind.

use std::sync::Arc;

use futures_util::future::join_all;

use super::{
    App, Error, ErrorCode, Inner,
    view::{ExecutionView, RepinRequest},
};
use crate::{
    engine::{Answer, Command, Repin, RepinTo},
    model::{Alias, Digest, ExecutionId, ModuleName, TenantId, row::ExecutionKey},
};

/// How many executions are asked at once; the next page follows when all of them have answered.
const PAGE: usize = 100;

/// What became of the executions that an alias left behind.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Repinned {
    /// How many moved.
    pub(super) moved: u64,
    /// How many stay, because the new digest does not serve them.
    pub(super) unfit: u64,
}

impl App {
    /// Makes an execution use another digest of a module for what is scheduled or tried again from now on.
    pub async fn repin_execution(
        &self,
        tenant: &TenantId,
        id: &str,
        request: RepinRequest,
    ) -> Result<ExecutionView, Error> {
        let key = ExecutionKey { tenant: tenant.clone(), execution: ExecutionId::new(id)? };
        let module = ModuleName::new(&request.module)?;
        let to = match (request.digest, request.alias) {
            (Some(digest), None) => RepinTo::Digest(Digest::new(digest)?),
            (None, Some(alias)) => RepinTo::Alias(Alias::new(alias)?),
            _ => return Err(Error::invalid("the body must hold either `digest` or `alias`")),
        };
        self.inner.lanes.has_room(&key)?;
        let command = Command::Repin(Repin { module, to, leaving: None });
        self.inner
            .ask(key.clone(), None, command, None, Vec::new())
            .await
            .map_err(|error| super::executions::about(&key, error))?;
        self.find_execution(tenant, id).await
    }

    /// Moves all live executions of a tenant that an alias leaves behind at one of these digests. Goes on when whoever
    /// asked is gone.
    pub(super) async fn repin_all(
        &self,
        tenant: &TenantId,
        module: &ModuleName,
        alias: &Alias,
        leaving: Vec<Digest>,
    ) -> Result<Repinned, Error> {
        let repin = Repin {
            module: module.clone(),
            to: RepinTo::Alias(alias.clone()),
            leaving: Some((alias.clone(), leaving)),
        };
        let (app, tenant) = (self.inner.clone(), tenant.clone());
        tokio::spawn(async move { repin_pages(&app, &tenant, &repin).await }).await.map_err(Error::internal)?
    }
}

async fn repin_pages(app: &Arc<Inner>, tenant: &TenantId, repin: &Repin) -> Result<Repinned, Error> {
    let mut done = Repinned::default();
    let leaving = repin.leaving.iter().flat_map(|(_, digests)| digests);
    for digest in leaving {
        let mut after: Option<ExecutionId> = None;
        loop {
            let page = app.store.pinned_by(tenant, &repin.module, digest, after.as_ref(), PAGE).await?;
            let Some(last) = page.last() else { break };
            after = Some(last.clone());
            let answers = page.into_iter().map(|execution| {
                let key = ExecutionKey { tenant: tenant.clone(), execution };
                app.ask(key, None, Command::Repin(repin.clone()), None, Vec::new())
            });
            for answer in join_all(answers).await {
                count(&mut done, answer)?;
            }
        }
    }
    Ok(done)
}

fn count(done: &mut Repinned, answer: Result<Answer, Error>) -> Result<(), Error> {
    match answer {
        Ok(Answer::Repinned { moved }) => done.moved += u64::from(moved),
        Ok(_) => {}
        Err(error) => match error.code {
            // It ended meanwhile.
            ErrorCode::ExecutionClosed | ErrorCode::ExecutionNotFound => {}
            ErrorCode::Unavailable => return Err(error),
            _ => done.unfit += 1,
        },
    }
    Ok(())
}
