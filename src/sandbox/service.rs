//! The handle: uploads in, modules out; attempts in, outcomes out.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use bytes::Bytes;
use tokio::{
    runtime::Handle,
    sync::{OwnedSemaphorePermit, Semaphore, oneshot},
};
use wasmtime::{
    WasmFeatures,
    component::{Component, Linker},
};

use crate::model::{Digest, Failure, Millis, TenantId, code};

use super::{
    Attempt, Cancel, Config, Finished, Inspected, Limits, Module, Rejected,
    cache::Cache,
    call,
    compile::Compiler,
    control::Stop,
    egress::Egress,
    engine::{self, Built},
    host, outcome,
    state::{Env, State},
    ticker::Ticker,
    turns::Turns,
    upload,
};

/// How many attempts of a tenant wait for their first turn, for each guest thread: so many that it never looks for work.
const FRESH_PER_THREAD: usize = 4;
/// How long a ticker may take to show that it ticks, on a machine with much else to do.
const TICK_PATIENCE: Duration = Duration::from_secs(5);

/// Why there is no sandbox.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The engine refuses its settings.
    #[error("failed to make the engine: {0}")]
    Engine(String),
    /// No thread can be had.
    #[error("failed to start a thread of the sandbox")]
    Thread(#[source] io::Error),
    /// Outgoing requests cannot be made as they are set.
    #[error("outgoing requests: {0}")]
    Egress(String),
    /// There is no runtime to wait on for timers and connections.
    #[error("the sandbox is not made on an asynchronous runtime")]
    NoRuntime,
    /// The clock that stops guests stands still.
    #[error("the sandbox's ticker does not tick, so nothing would stop a module")]
    NoTick,
}

/// The sandbox is shut down: the attempt was not served, or not to its end, and is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the sandbox is shut down")]
pub struct Closed;

/// The sandbox. Cheap to clone; the last one dropped shuts it down.
#[derive(Clone)]
pub struct Sandbox(Arc<Inner>);

struct Inner {
    config: Config,
    features: WasmFeatures,
    linker: Linker<State>,
    env: Arc<Env>,
    ticker: Arc<Ticker>,
    cache: Cache,
    slots: Arc<Semaphore>,
    compiler: Compiler,
}

impl Sandbox {
    /// Makes the engine, starts the threads, and makes sure that the clock ticks. Timers and connections of modules are
    /// those of the runtime that this is called on.
    pub fn new(config: Config) -> Result<Self, Error> {
        Handle::try_current().map_err(|_| Error::NoRuntime)?;
        let Built { engine, features, layout } = engine::build(&config).map_err(in_words)?;
        let mut linker = Linker::new(&engine);
        host::add_to_linker(&mut linker).map_err(in_words)?;
        let egress = Arc::new(Egress::new(&config.egress).map_err(Error::Egress)?);
        let ticker = Ticker::start(engine.clone(), config.tick).map_err(Error::Thread)?;
        let turns = Turns::start(config.threads, Arc::clone(&ticker)).map_err(|error| {
            ticker.close();
            Error::Thread(error)
        })?;
        let env = Arc::new(Env {
            turns,
            clock: Arc::clone(&config.clock),
            counts: config.module,
            egress,
            count_instructions: config.count_instructions,
            #[cfg(debug_assertions)]
            abort_on_log: config.abort_on_log.clone(),
        });
        let sandbox = Self(Arc::new(Inner {
            cache: Cache::new(config.cache_bytes),
            slots: Arc::new(Semaphore::new(config.slots())),
            compiler: Compiler::new(&engine, layout, &config),
            config,
            features,
            linker,
            env,
            ticker,
        }));
        if sandbox.0.ticker.ticks_within(TICK_PATIENCE) { Ok(sandbox) } else { Err(Error::NoTick) }
    }

    /// Notes that this server listens at `address`, which its modules do not reach unless their policy lists it.
    pub fn serves(&self, address: SocketAddr) {
        self.0.env.egress.serves(address);
    }

    /// Returns how many attempts can be served at a time.
    pub fn slots(&self) -> usize {
        self.0.config.slots()
    }

    /// Returns how many components were compiled, and how many were found compiled, since the start.
    pub fn compiles(&self) -> (u64, u64) {
        self.0.compiler.counts()
    }

    /// Returns how many attempts could begin at once.
    pub fn slots_free(&self) -> usize {
        self.0.slots.available_permits()
    }

    /// Returns whether a tenant with so many attempts `in_hand` has enough of them that wait for their first turn: more
    /// would wait in line, where nothing keeps them from being in the way of others. Who is told so may wait for
    /// [`Sandbox::room_to_begin`].
    pub fn has_enough(&self, tenant: &TenantId, in_hand: usize) -> bool {
        let turns = &self.0.env.turns;
        let enough = in_hand.saturating_sub(turns.begun(tenant)) >= self.0.config.threads.max(1) * FRESH_PER_THREAD;
        if enough {
            turns.want_to_know();
        }
        enough
    }

    /// Waits until an attempt has its first turn, after a tenant had enough.
    pub async fn room_to_begin(&self) {
        self.0.env.turns.began().await;
    }

    /// Returns what an attempt may use at most.
    pub fn limits(&self) -> Limits {
        self.0.config.limits
    }

    /// Examines an upload from its first byte to the tasks that it describes, and keeps it when it is good. `tenant`
    /// is whose turn the module's own code has.
    pub async fn inspect(&self, tenant: &TenantId, bytes: Bytes) -> Result<Inspected, Rejected> {
        let (imports, digest) = self.examine(bytes.clone()).await?;
        let module = self.make(tenant, &digest, bytes).await?;
        let described = self.describe(tenant, &module).await?;
        let tasks = upload::tasks(described, self.0.config.module.tasks)?;
        self.0.cache.insert(module.clone());
        Ok(Inspected { digest: module.digest().clone(), imports, tasks, module })
    }

    /// Examines the component that the server itself brings along: no limit of compiling is tighter for it than usual.
    pub async fn inspect_own(&self, tenant: &TenantId, bytes: Bytes) -> Result<Inspected, Rejected> {
        self.0.compiler.trust(Digest::of(&bytes));
        self.inspect(tenant, bytes).await
    }

    /// Returns a module that is in memory.
    pub fn cached(&self, digest: &Digest) -> Option<Module> {
        self.0.cache.get(digest)
    }

    /// Returns a module that was accepted before: from memory, from the artefacts that are kept, or compiled from what
    /// `bytes` gives. Callers at a time share one load.
    pub async fn load<E: From<Rejected>>(
        &self,
        tenant: &TenantId,
        digest: &Digest,
        bytes: impl Future<Output = Result<Bytes, E>>,
    ) -> Result<Module, E> {
        let load = || async {
            if let Some(module) = self.find(digest).await? {
                return Ok(module);
            }
            let bytes = bytes.await?;
            let (_, found) = self.examine(bytes.clone()).await?;
            if found != *digest {
                return Err(Rejected::Corrupt { digest: digest.clone() }.into());
            }
            Ok(self.link(self.0.compiler.compile(tenant, digest, bytes).await?, digest.clone())?)
        };
        self.0.cache.get_or_make(digest, load).await
    }

    /// Serves one attempt in a fresh instance. Waits for a slot; never panics, never hangs: it ends by the attempt's
    /// wall limit. Dropping the future cancels the attempt.
    pub async fn run(&self, module: &Module, attempt: Attempt) -> Result<Finished, Closed> {
        let limits = attempt.limits.least(self.0.config.limits);
        let input_bytes = attempt.input.size_bytes();
        if input_bytes > limits.input_bytes {
            return Ok(Finished::early(outcome::of_large_input(input_bytes, limits.input_bytes), input_bytes));
        }
        let tenant = attempt.info.unit.run.tenant.clone();
        let (wall, cancel) = (attempt.wall, attempt.cancel.clone());
        let call = call::run(Arc::clone(&self.0.env), module.clone(), attempt, limits);
        match self.serve(tenant, wall, &cancel, call).await? {
            Some(finished) if cancel.control().stopped() == Some(Stop::Closed) && finished.outcome.is_err() => {
                Err(Closed)
            }
            Some(finished) => Ok(finished),
            None => {
                let failure = Failure::sandbox(code::INTERNAL, "the server failed at serving the attempt");
                Ok(Finished::early(failure, input_bytes))
            }
        }
    }

    /// Returns how many instances and memories the pool has out.
    #[cfg(test)]
    pub(super) fn in_use(&self) -> (u64, usize) {
        let metrics = self.0.linker.engine().pooling_allocator_metrics().expect("tests have a pool");
        (metrics.component_instances(), metrics.memories())
    }

    /// Stops everything: running guests within a tick, what waits at once. Their callers are told [`Closed`].
    pub fn shutdown(&self) {
        self.0.shutdown();
    }

    /// Runs `call` on the guest threads, with a slot, under a wall limit. Returns nothing when the host panicked.
    async fn serve<T: Send + 'static>(
        &self,
        tenant: TenantId,
        wall: Millis,
        cancel: &Cancel,
        call: impl Future<Output = T> + Send + 'static,
    ) -> Result<Option<T>, Closed> {
        let slot = Arc::clone(&self.0.slots).acquire_owned().await.map_err(|_| Closed)?;
        let control = cancel.control();
        let watched = self.0.ticker.watch(control, wall);
        let mut abandoned = CancelOnDrop(Some(cancel));
        let (tell, told) = oneshot::channel();
        self.0.env.turns.spawn(tenant, async move {
            let ended = call.await;
            drop(watched);
            give_back(slot);
            // Nobody may listen any more; then nobody wants it.
            let _ = tell.send(ended);
        });
        let ended = told.await;
        abandoned.0 = None;
        match ended {
            Ok(ended) => Ok(Some(ended)),
            Err(_) if control.stopped() == Some(Stop::Closed) || self.0.slots.is_closed() => Err(Closed),
            Err(_) => Ok(None),
        }
    }

    /// Examines an upload, off the threads that serve the API.
    async fn examine(&self, bytes: Bytes) -> Result<(Vec<String>, Digest), Rejected> {
        let inner = Arc::clone(&self.0);
        let examined = tokio::task::spawn_blocking(move || {
            let imports = upload::examine(&bytes, inner.features, &inner.config)?;
            Ok((imports, Digest::of(&bytes)))
        });
        examined.await.unwrap_or_else(|error| {
            tracing::error!(%error, "examining a component failed");
            Err(Rejected::Internal)
        })
    }

    /// Returns the module of a component that was examined, compiled where that was not done before.
    async fn make(&self, tenant: &TenantId, digest: &Digest, bytes: Bytes) -> Result<Module, Rejected> {
        if let Some(module) = self.cached(digest) {
            return Ok(module);
        }
        match self.find(digest).await? {
            Some(module) => Ok(module),
            None => self.link(self.0.compiler.compile(tenant, digest, bytes).await?, digest.clone()),
        }
    }

    /// Returns a module whose artefact is kept.
    async fn find(&self, digest: &Digest) -> Result<Option<Module>, Rejected> {
        let found = self.0.compiler.find(digest).await;
        found.map(|component| self.link(component, digest.clone())).transpose()
    }

    fn link(&self, component: Component, digest: Digest) -> Result<Module, Rejected> {
        Module::link(&self.0.linker, &component, digest)
    }

    async fn describe(
        &self,
        tenant: &TenantId,
        module: &Module,
    ) -> Result<Vec<super::bindings::types::TaskSpec>, Rejected> {
        let Config { limits, module: counts, .. } = &self.0.config;
        let limits = limits.least(Limits { cpu: counts.describe_cpu, ..*limits });
        let cancel = Cancel::new();
        let call = call::describe(Arc::clone(&self.0.env), Arc::clone(cancel.control()), module.clone(), limits);
        let described = self.serve(tenant.clone(), counts.describe_wall, &cancel, call).await;
        match described.map_err(|Closed| Rejected::Closed)? {
            Some(Ok(tasks)) => Ok(tasks),
            Some(Err(failure)) => Err(Rejected::Describe { failure }),
            None => Err(Rejected::Internal),
        }
    }
}

impl Inner {
    fn shutdown(&self) {
        self.slots.close();
        self.compiler.close();
        self.ticker.close();
        self.env.turns.close();
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.shutdown();
    }
}

/// Cancels an attempt whose caller goes away before it has ended.
struct CancelOnDrop<'a>(Option<&'a Cancel>);

impl Drop for CancelOnDrop<'_> {
    fn drop(&mut self) {
        if let Some(cancel) = self.0 {
            cancel.cancel();
        }
    }
}

/// Gives a slot back. The store is gone by now, so its place in the pools is free for whoever comes next.
fn give_back(slot: OwnedSemaphorePermit) {
    drop(slot);
}

fn in_words(error: wasmtime::Error) -> Error {
    Error::Engine(format!("{error:#}"))
}
