//! Uploads: from the bytes of a component to a live module, in the background where that takes long.
//!
//! A component that is examined and compiled within [`ANSWER_AFTER`] is kept in one go and answered as what it is. One that
//! takes longer is written down first, with its bytes, and then acknowledged: it goes on after the client is gone, and after
//! a restart. Several clients that bring the same bytes under one name wait for one piece of work.

use std::{
    collections::HashMap,
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use super::{
    App, Error, ErrorCode, Inner, ambiguity,
    view::{BrokenContract, ModuleView},
};
use crate::{
    model::{
        Alias, Digest, ModuleName, TenantId,
        row::{AliasRow, ModuleRow, UploadRow},
    },
    sandbox::{Inspected, Rejected},
    store::{Batch, CHUNK_BYTES, ChunkPut, ModulePut},
};

/// After how long an upload that is not done is answered with `compiling`.
const ANSWER_AFTER: Duration = Duration::from_secs(2);
/// How many uploads there are at a time; each may hold a component of the largest size in memory.
const ROOMS: usize = 8;
/// How many of them one tenant may have.
const ROOMS_OF_TENANT: usize = 4;
/// When an upload that found no room is worth another try.
const ROOM_AGAIN_MS: u64 = 1_000;
/// A component up to this size is written with its row in one commit; of larger ones as much in each.
const COMMIT_BYTES: usize = 4 * CHUNK_BYTES;
/// How many refused uploads of a tenant are remembered.
const REFUSED_MAX: usize = 100;
/// From this size on a digest is made on a thread for blocking work.
const LARGE_BYTES: usize = 1024 * 1024;

/// What became of an upload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Uploaded {
    /// The module is new under this name.
    Created,
    /// It was there.
    Present,
    /// It is being compiled.
    Compiling,
}

/// The uploads under way.
pub(super) struct Uploads {
    rooms: Arc<Semaphore>,
    tenants: Mutex<HashMap<TenantId, usize>>,
    jobs: Mutex<HashMap<Key, watch::Receiver<Stage>>>,
}

/// Room for one upload, from before its first byte until it is done.
pub struct UploadRoom {
    app: App,
    tenant: TenantId,
    _room: OwnedSemaphorePermit,
}

/// What is uploaded under which name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    tenant: TenantId,
    name: ModuleName,
    digest: Digest,
}

/// How far an upload is.
#[derive(Clone)]
enum Stage {
    /// It may be done soon.
    Begun,
    /// It takes long and is written down.
    Kept,
    /// It is a module, or why not.
    Ended(Result<Live, Error>),
}

/// A module that is live.
#[derive(Clone)]
struct Live {
    row: ModuleRow,
    /// Steps of registered workflows that it breaks.
    warnings: Vec<BrokenContract>,
}

impl Default for Uploads {
    fn default() -> Self {
        Self { rooms: Arc::new(Semaphore::new(ROOMS)), tenants: Mutex::default(), jobs: Mutex::default() }
    }
}

impl Uploads {
    fn tenants(&self) -> MutexGuard<'_, HashMap<TenantId, usize>> {
        self.tenants.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn jobs(&self) -> MutexGuard<'_, HashMap<Key, watch::Receiver<Stage>>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for UploadRoom {
    fn drop(&mut self) {
        let mut tenants = self.app.inner.uploads.tenants();
        if let Some(held) = tenants.get_mut(&self.tenant) {
            *held -= 1;
            if *held == 0 {
                tenants.remove(&self.tenant);
            }
        }
    }
}

impl App {
    /// Makes room for an upload, before its bytes are read.
    pub fn upload_room(&self, tenant: &TenantId) -> Result<UploadRoom, Error> {
        let full = |what: &str| {
            Error::new(ErrorCode::ResourceExhausted, format!("too many modules {what} are being uploaded"))
                .retry_after(ROOM_AGAIN_MS)
        };
        let uploads = &self.inner.uploads;
        let room = Arc::clone(&uploads.rooms).try_acquire_owned().map_err(|_| full("at the same time"))?;
        let mut tenants = uploads.tenants();
        let held = tenants.entry(tenant.clone()).or_default();
        if *held >= ROOMS_OF_TENANT {
            return Err(full("of this tenant"));
        }
        *held += 1;
        Ok(UploadRoom { app: self.clone(), tenant: tenant.clone(), _room: room })
    }

    /// Takes in a component: examined, compiled, asked what it does, stored, and named `live`.
    pub async fn upload_module(
        &self,
        room: UploadRoom,
        name: &str,
        content: Bytes,
    ) -> Result<(ModuleView, Uploaded), Error> {
        let app = &self.inner;
        let (tenant, name) = (room.tenant.clone(), ModuleName::new(name)?);
        let key = Key { digest: digest_of(&content).await?, name, tenant };
        if let Some(row) = self.module_row(&key.tenant, &key.name, Some(&key.digest)).await? {
            let live = app.make_live(&key, row, Batch::default()).await?;
            return Ok((self.live_view(&key.tenant, live), Uploaded::Present));
        }
        app.has_quota(&key, content.len()).await?;
        let mut stage = app.join_or_begin(&key, &content, room);
        loop {
            let now = stage.borrow_and_update().clone();
            match now {
                Stage::Begun => {}
                Stage::Kept => {
                    let row = upload_row(&key, content.len(), app);
                    return Ok((ModuleView::of_upload(row), Uploaded::Compiling));
                }
                Stage::Ended(ended) => return Ok((self.live_view(&key.tenant, ended?), Uploaded::Created)),
            }
            // The work cannot go without saying how it ended, but for a fault.
            stage.changed().await.map_err(Error::internal)?;
        }
    }

    fn live_view(&self, tenant: &TenantId, Live { row, warnings }: Live) -> ModuleView {
        ModuleView { warnings, ..self.module_view(tenant, row) }
    }

    /// Returns the tenant's uploads that are compiling or were refused.
    pub async fn list_uploads(&self, tenant: &TenantId) -> Result<Vec<ModuleView>, Error> {
        let rows = self.inner.store.list_uploads(tenant).await?;
        Ok(rows.into_iter().map(ModuleView::of_upload).collect())
    }
}

impl Inner {
    /// Joins the work on an upload, or begins it.
    fn join_or_begin(self: &Arc<Self>, key: &Key, content: &Bytes, room: UploadRoom) -> watch::Receiver<Stage> {
        let mut jobs = self.uploads.jobs();
        if let Some(stage) = jobs.get(key) {
            return stage.clone();
        }
        let (tell, stage) = watch::channel(Stage::Begun);
        jobs.insert(key.clone(), stage.clone());
        tokio::spawn(self.clone().work(key.clone(), content.clone(), Some(room), tell));
        stage
    }

    /// The work on an upload, whether or not its client waits. Without a room it was kept by an earlier server.
    async fn work(self: Arc<Self>, key: Key, content: Bytes, room: Option<UploadRoom>, tell: watch::Sender<Stage>) {
        let ended = self.take_in(&key, content, room.is_none(), &tell).await;
        match &ended {
            Ok(_) => tracing::info!(module = %key.name, digest = %key.digest, "a module is ready"),
            Err(error) => tracing::info!(%error, module = %key.name, digest = %key.digest, "an upload failed"),
        }
        // Forgotten before it is told, so that who comes later finds the module.
        self.uploads.jobs().remove(&key);
        tell.send_replace(Stage::Ended(ended));
        drop(room);
    }

    async fn take_in(
        &self,
        key: &Key,
        content: Bytes,
        mut kept: bool,
        tell: &watch::Sender<Stage>,
    ) -> Result<Live, Error> {
        let mut inspecting = pin!(self.sandbox.inspect(&key.tenant, content.clone()));
        let inspected = match tokio::time::timeout(ANSWER_AFTER, &mut inspecting).await {
            Ok(inspected) => inspected,
            Err(_) => {
                if !kept {
                    self.keep_upload(key, &content).await?;
                    kept = true;
                }
                tell.send_replace(Stage::Kept);
                inspecting.await
            }
        };
        match inspected {
            Ok(inspected) => self.install(key, inspected, content, kept).await,
            Err(rejected) => {
                let over = !matches!(rejected, Rejected::Closed);
                let error = refused(rejected);
                // One that the end of the server cut off goes on with the next.
                if kept && over {
                    self.note_refusal(key, content.len(), &error).await?;
                }
                Err(error)
            }
        }
    }

    /// Writes an upload down: its row, then its bytes, a little in each commit, so that others' changes fit between.
    async fn keep_upload(&self, key: &Key, content: &Bytes) -> Result<(), Error> {
        let row = upload_row(key, content.len(), self);
        self.writer.write(Batch { uploads: vec![(key.tenant.clone(), row)], ..Batch::default() }).await?;
        let chunks = ChunkPut::all(&key.digest, content);
        for chunks in chunks.chunks(COMMIT_BYTES / CHUNK_BYTES) {
            let written = self.writer.write(Batch { chunks: chunks.to_vec(), ..Batch::default() }).await;
            if let Err(error) = written {
                // If this fails, too, the next start finds the upload without its bytes and forgets it.
                let _ = self.writer.write(Batch { uploads_drop: vec![key.parts()], ..Batch::default() }).await;
                return Err(error.into());
            }
        }
        Ok(())
    }

    /// Keeps the module of an upload, and names it `live` where no other does its tasks.
    async fn install(&self, key: &Key, inspected: Inspected, content: Bytes, kept: bool) -> Result<Live, Error> {
        let row = ModuleRow {
            name: key.name.clone(),
            digest: key.digest.clone(),
            size_bytes: content.len() as u64,
            tasks: inspected.tasks,
            imports: inspected.imports,
            created_at: self.clock.now(),
        };
        let put = ModulePut { tenant: key.tenant.clone(), row: row.clone() };
        let mut batch = Batch { modules: vec![put], ..Batch::default() };
        if !kept && content.len() <= COMMIT_BYTES {
            batch.chunks = ChunkPut::all(&key.digest, &content);
        } else {
            if !kept {
                self.keep_upload(key, &content).await?;
            }
            batch.uploads_drop = vec![key.parts()];
        }
        self.make_live(key, row, batch).await
    }

    /// Writes a batch, moves `live` to a module, and says which steps of workflows that breaks.
    async fn make_live(&self, key: &Key, row: ModuleRow, batch: Batch) -> Result<Live, Error> {
        let guard = self.registering.lock().await;
        let facts = self.tenants.facts(&key.tenant);
        let before: Vec<_> = facts.all_named(&key.name, &Alias::live()).into_iter().cloned().collect();
        self.write_live(key, &row, &before, batch).await?;
        drop(guard);
        let moved = (&key.name, &Alias::live());
        let warnings = self.broken_contracts(&key.tenant, moved, &before, std::slice::from_ref(&key.digest)).await?;
        for BrokenContract { workflow, version, step, task, problem } in &warnings {
            tracing::warn!(module = %key.name, workflow, version, step, task, problem, "an upload breaks a workflow");
        }
        Ok(Live { row, warnings })
    }

    /// Writes a batch and moves `live` to a module. Where another does one of its tasks, the batch is written without that,
    /// and an error says so. The caller holds the lock of registering.
    async fn write_live(&self, key: &Key, row: &ModuleRow, before: &[Digest], mut batch: Batch) -> Result<(), Error> {
        let clash = ambiguity::clash(&self.tenants.facts(&key.tenant), &key.name, &row.tasks);
        if clash.is_none() && *before != [key.digest.clone()] {
            let (module, digest) = (key.name.clone(), key.digest.clone());
            let (split, moved_at) = (Vec::new(), self.clock.now());
            let alias = AliasRow { module, alias: Alias::live(), digest, split, moved_at };
            batch.aliases.push((key.tenant.clone(), alias));
        }
        if let Some(put) = batch.modules.first() {
            // Others may have used it up while this was compiled.
            self.has_quota(key, usize::try_from(put.row.size_bytes).unwrap_or(usize::MAX)).await?;
        }
        if !batch.is_empty() {
            self.writer.write(batch).await?;
            self.refresh_facts(&key.tenant).await?;
        }
        match clash {
            None => Ok(()),
            Some(clash) => {
                let digest = serde_json::json!({ "digest": key.digest });
                let message = format!("{clash}; the module was kept but is not live");
                Err(Error::new(ErrorCode::TaskAmbiguous, message).with_details(&digest))
            }
        }
    }

    /// Checks that the tenant may keep one more module of this size.
    async fn has_quota(&self, key: &Key, size_bytes: usize) -> Result<(), Error> {
        let policy = self.directory.policy_of(&key.tenant);
        let (count, bytes) = self.store.count_modules(&key.tenant).await?;
        let message = if count >= policy.modules() {
            format!("the tenant keeps {count} digests of modules, which is the most it may")
        } else if bytes.saturating_add(size_bytes as u64) > policy.module_bytes() {
            let most = policy.module_bytes();
            format!(
                "the tenant keeps {bytes} bytes of modules; with these {size_bytes} it would pass the {most} it may"
            )
        } else {
            return Ok(());
        };
        Err(Error::new(ErrorCode::ResourceExhausted, format!("{message}: remove some, or ask for a larger quota")))
    }

    /// Notes why an upload that was acknowledged is refused, and forgets the oldest such notes of the tenant.
    async fn note_refusal(&self, key: &Key, size_bytes: usize, error: &Error) -> Result<(), Error> {
        let row = UploadRow { reason: Some(error.message.clone()), ..upload_row(key, size_bytes, self) };
        let mut refused = self.store.list_uploads(&key.tenant).await?;
        refused.retain(|row| row.reason.is_some());
        refused.sort_by_key(|row| std::cmp::Reverse(row.created_at));
        let old = refused.into_iter().skip(REFUSED_MAX - 1);
        let uploads_drop = old.map(|row| (key.tenant.clone(), row.name, row.digest)).collect();
        let batch = Batch { uploads: vec![(key.tenant.clone(), row)], uploads_drop, ..Batch::default() };
        Ok(self.writer.write(batch).await?)
    }
}

/// Goes on with what was compiling when the last server ended, and forgets what it had not acknowledged.
pub(super) async fn resume(app: &Arc<Inner>) -> Result<(), Error> {
    for (tenant, row) in app.store.compiling().await? {
        let key = Key { tenant, name: row.name, digest: row.digest };
        let content = Bytes::from(app.store.content(&key.digest).await?);
        if content.len() as u64 != row.size_bytes {
            app.writer.write(Batch { uploads_drop: vec![key.parts()], ..Batch::default() }).await?;
            continue;
        }
        let (tell, stage) = watch::channel(Stage::Kept);
        app.uploads.jobs().insert(key.clone(), stage);
        tokio::spawn(app.clone().work(key, content, None, tell));
    }
    let swept = app.store.sweep_chunks().await?;
    if swept > 0 {
        tracing::info!(swept, "removed pieces of uploads that were never finished");
    }
    Ok(())
}

impl Key {
    fn parts(&self) -> (TenantId, ModuleName, Digest) {
        (self.tenant.clone(), self.name.clone(), self.digest.clone())
    }
}

fn upload_row(key: &Key, size_bytes: usize, app: &Inner) -> UploadRow {
    UploadRow {
        name: key.name.clone(),
        digest: key.digest.clone(),
        size_bytes: size_bytes as u64,
        reason: None,
        created_at: app.clock.now(),
    }
}

async fn digest_of(content: &Bytes) -> Result<Digest, Error> {
    if content.len() < LARGE_BYTES {
        return Ok(Digest::of(content));
    }
    let content = content.clone();
    tokio::task::spawn_blocking(move || Digest::of(&content)).await.map_err(Error::internal)
}

/// A component that is too large, or that could not be looked at now, is no bad component.
fn refused(rejected: Rejected) -> Error {
    match rejected {
        Rejected::TooLarge { .. } => Error::new(ErrorCode::PayloadTooLarge, rejected.to_string()),
        Rejected::Closed => Error::new(ErrorCode::Unavailable, "the server is stopping").retry_after(1_000),
        Rejected::Internal => Error::internal(rejected),
        _ => Error::new(ErrorCode::ModuleRejected, rejected.to_string()),
    }
}
