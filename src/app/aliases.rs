//! Operations on aliases of modules: move, split, roll back, remove.

use std::collections::BTreeSet;

use super::{
    App, Error, ErrorCode, ambiguity,
    view::{AliasRequest, AliasView, NamedBefore, RollbackRequest, ShareView},
};
use crate::{
    model::{
        Alias, Digest, Facts, ModuleName, TenantId,
        facts::{Share, TaskSpec},
        row::AliasRow,
    },
    store::{AliasBack, Batch},
};

/// The most aliases of a module.
const ALIASES_MAX: usize = 100;
/// The most digests among which an alias divides executions.
const SHARES_MAX: usize = 10;

impl App {
    /// Lists the aliases of a module by name.
    pub async fn list_aliases(&self, tenant: &TenantId, name: &str) -> Result<Vec<AliasView>, Error> {
        let name = ModuleName::new(name)?;
        if self.module_row(tenant, &name, None).await?.is_none() {
            return Err(super::modules::not_found(&name, None));
        }
        let rows = self.inner.store.list_aliases(tenant).await?;
        Ok(rows.iter().filter(|row| row.module == name).map(view).collect())
    }

    /// Returns an alias with what it named before.
    pub async fn find_alias(&self, tenant: &TenantId, name: &str, alias: &str) -> Result<AliasView, Error> {
        let (name, alias) = (ModuleName::new(name)?, Alias::new(alias)?);
        let row = self.alias_row(tenant, &name, &alias).await?.ok_or_else(|| unknown(&name, &alias))?;
        self.whole_view(tenant, &row).await
    }

    /// Moves an alias, made where it is not there.
    pub async fn set_alias(
        &self,
        tenant: &TenantId,
        name: &str,
        alias: &str,
        request: AliasRequest,
    ) -> Result<AliasView, Error> {
        let app = &self.inner;
        let (name, alias) = (ModuleName::new(name)?, Alias::new(alias)?);
        let split = split_of(request)?;
        let _guard = app.registering.lock().await;
        let row = AliasRow {
            module: name.clone(),
            alias: alias.clone(),
            digest: split.first().ok_or_else(exactly_one)?.digest.clone(),
            split: if split.len() > 1 { split } else { Vec::new() },
            moved_at: app.clock.now(),
        };
        self.must_fit(tenant, &row)?;
        let before = self.alias_row(tenant, &name, &alias).await?;
        if before.is_none() && app.tenants.facts(tenant).modules.get(&name).map_or(0, |all| all.len()) >= ALIASES_MAX {
            let message = format!("the module `{name}` has {ALIASES_MAX} aliases, which is the most it may have");
            return Err(Error::new(ErrorCode::ResourceExhausted, message));
        }
        if let Some(before) = before.as_ref().filter(|before| before.names_as(&row)) {
            return self.whole_view(tenant, before).await;
        }
        app.writer.write(Batch { aliases: vec![(tenant.clone(), row.clone())], ..Batch::default() }).await?;
        app.refresh_facts(tenant).await?;
        tracing::info!(module = %name, %alias, digest = %row.digest, shares = row.split.len(), "an alias moved");
        self.moved_view(tenant, before.as_ref(), &row).await
    }

    /// Moves an alias to what it named before, and with it, where asked, the live executions pinned to what it leaves.
    pub async fn rollback_module(
        &self,
        tenant: &TenantId,
        name: &str,
        request: RollbackRequest,
    ) -> Result<AliasView, Error> {
        let app = &self.inner;
        let name = ModuleName::new(name)?;
        let alias = request.alias.map_or_else(|| Ok(Alias::live()), Alias::new)?;
        let guard = app.registering.lock().await;
        let now = self.alias_row(tenant, &name, &alias).await?.ok_or_else(|| unknown(&name, &alias))?;
        let moves = app.store.alias_moves(tenant, &name, &alias).await?;
        let (number, before) = moves.into_iter().find(|(_, row)| !row.names_as(&now)).ok_or_else(|| {
            let message = format!("the alias `{alias}` of the module `{name}` named nothing else before");
            Error::new(ErrorCode::ModuleNotFound, message)
        })?;
        let row = AliasRow { moved_at: app.clock.now(), ..before };
        self.must_fit(tenant, &row)?;
        let back = AliasBack { tenant: tenant.clone(), row: row.clone(), number };
        app.writer.write(Batch { aliases_back: vec![back], ..Batch::default() }).await?;
        app.refresh_facts(tenant).await?;
        drop(guard);
        tracing::info!(module = %name, %alias, digest = %row.digest, "an alias moved back");
        let mut view = self.moved_view(tenant, Some(&now), &row).await?;
        if request.repin {
            let kept = row.digests();
            let leaving = now.digests().into_iter().filter(|digest| !kept.contains(digest)).cloned().collect();
            let done = self.repin_all(tenant, &name, &alias, leaving).await?;
            view.repinned = Some(done.moved);
            view.not_repinned = Some(done.unfit).filter(|unfit| *unfit > 0);
        }
        Ok(view)
    }

    /// Removes an alias other than `live`. Executions that are pinned by it go on.
    pub async fn delete_alias(&self, tenant: &TenantId, name: &str, alias: &str) -> Result<(), Error> {
        let app = &self.inner;
        let (name, alias) = (ModuleName::new(name)?, Alias::new(alias)?);
        if alias == Alias::live() {
            return Err(Error::invalid("the alias `live` cannot be removed; move it to another digest instead"));
        }
        let _guard = app.registering.lock().await;
        self.alias_row(tenant, &name, &alias).await?.ok_or_else(|| unknown(&name, &alias))?;
        app.writer.write(Batch { aliases_drop: vec![(tenant.clone(), name, alias)], ..Batch::default() }).await?;
        app.refresh_facts(tenant).await?;
        Ok(())
    }

    async fn alias_row(&self, tenant: &TenantId, name: &ModuleName, alias: &Alias) -> Result<Option<AliasRow>, Error> {
        let rows = self.inner.store.list_aliases(tenant).await?;
        Ok(rows.into_iter().find(|row| row.module == *name && row.alias == *alias))
    }

    /// Checks that every digest is ready, that shares describe the same tasks, and that no task becomes ambiguous.
    fn must_fit(&self, tenant: &TenantId, row: &AliasRow) -> Result<(), Error> {
        let facts = self.inner.tenants.facts(tenant);
        let first = tasks_of(&facts, &row.module, &row.digest)?;
        for digest in row.digests() {
            let tasks = tasks_of(&facts, &row.module, digest)?;
            if names(tasks) != names(first) {
                let message =
                    format!("`{digest}` describes other tasks than `{}`; shares must describe the same", row.digest);
                return Err(Error::invalid(message));
            }
        }
        match ambiguity::clash(&facts, &row.module, first).filter(|_| row.alias == Alias::live()) {
            Some(clash) => Err(Error::new(ErrorCode::TaskAmbiguous, format!("{clash}; the alias was not moved"))),
            None => Ok(()),
        }
    }

    async fn whole_view(&self, tenant: &TenantId, row: &AliasRow) -> Result<AliasView, Error> {
        let moves = self.inner.store.alias_moves(tenant, &row.module, &row.alias).await?;
        let previous = moves.iter().map(|(_, row)| NamedBefore {
            digest: digest_view(row),
            split: split_view(row),
            moved_at_ms: row.moved_at.0,
        });
        Ok(AliasView { previous: previous.collect(), ..view(row) })
    }

    async fn moved_view(
        &self,
        tenant: &TenantId,
        before: Option<&AliasRow>,
        row: &AliasRow,
    ) -> Result<AliasView, Error> {
        let from: Vec<Digest> = before.map(|row| row.digests().into_iter().cloned().collect()).unwrap_or_default();
        let to: Vec<Digest> = row.digests().into_iter().cloned().collect();
        let warnings = self.inner.broken_contracts(tenant, (&row.module, &row.alias), &from, &to).await?;
        Ok(AliasView { warnings, ..self.whole_view(tenant, row).await? })
    }
}

fn tasks_of<'a>(facts: &'a Facts, name: &ModuleName, digest: &Digest) -> Result<&'a [TaskSpec], Error> {
    let tasks = facts.described.get(&(name.clone(), digest.clone()));
    tasks.map(|tasks| &**tasks).ok_or_else(|| super::modules::not_found(name, Some(digest)))
}

fn names(tasks: &[TaskSpec]) -> BTreeSet<&str> {
    tasks.iter().map(|task| task.name.as_str()).collect()
}

/// Reads what an alias shall name: one share of all, or several.
fn split_of(request: AliasRequest) -> Result<Vec<Share>, Error> {
    let shares = match (request.digest, request.split) {
        (Some(digest), None) => return Ok(vec![Share { digest: Digest::new(digest)?, percent: 100 }]),
        (None, Some(shares)) => shares,
        _ => return Err(exactly_one()),
    };
    if shares.is_empty() || shares.len() > SHARES_MAX {
        return Err(Error::invalid(format!("`split` must have 1 to {SHARES_MAX} shares")));
    }
    let mut split: Vec<Share> = Vec::with_capacity(shares.len());
    for ShareView { digest, percent } in shares {
        let digest = Digest::new(digest)?;
        if percent == 0 || split.iter().any(|share| share.digest == digest) {
            return Err(Error::invalid("`split` must give each digest once and at least 1 percent"));
        }
        split.push(Share { digest, percent });
    }
    let sum: u32 = split.iter().map(|share| u32::from(share.percent)).sum();
    if sum != 100 {
        return Err(Error::invalid(format!("the shares of `split` make {sum} percent; they must make 100")));
    }
    Ok(split)
}

fn exactly_one() -> Error {
    Error::invalid("the body must hold either `digest` or `split`")
}

fn unknown(name: &ModuleName, alias: &Alias) -> Error {
    Error::new(ErrorCode::ModuleNotFound, format!("there is no module `{name}` with the alias `{alias}`"))
}

fn view(row: &AliasRow) -> AliasView {
    AliasView {
        module: row.module.to_string(),
        alias: row.alias.to_string(),
        digest: digest_view(row),
        split: split_view(row),
        moved_at_ms: row.moved_at.0,
        previous: Vec::new(),
        warnings: Vec::new(),
        repinned: None,
        not_repinned: None,
    }
}

fn digest_view(row: &AliasRow) -> Option<String> {
    row.split.is_empty().then(|| row.digest.to_string())
}

fn split_view(row: &AliasRow) -> Vec<ShareView> {
    row.split.iter().map(|share| ShareView { digest: share.digest.to_string(), percent: share.percent }).collect()
}
