//! One server: opens the database, the sandbox and the listeners, ties them to the operations, and ends them in order.

use std::{net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use bytes::Bytes;
use tokio::{
    net::TcpListener,
    signal::unix::{Signal, SignalKind, signal},
    sync::watch,
};

use crate::{
    app::{self, App, KeyError, ServerKey, Settings},
    clock::Clock,
    config::{Config, Durability},
    grpc, http,
    model::Millis,
    sandbox::{self, Sandbox},
    store::{self, System, sqlite},
};

/// The built-in component, compiled from `guests/builtin`; `build.rs` says what to do when it is missing.
static BUILTIN: &[u8] = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/guests/dist/builtin.wasm"));

/// The log is brought into the database at this size, in bytes.
const LOG_BYTES: u64 = 16 * 1024 * 1024;

/// Why a server could not start or go on.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A setting cannot be used.
    #[error(transparent)]
    Config(#[from] crate::config::Error),
    /// An address beyond the machine is asked for, and nobody would be asked who they are.
    #[error("`{key}` is `{address}`, but without credentials the server listens on loopback addresses only")]
    NotLoopback {
        /// The key.
        key: &'static str,
        /// Its value.
        address: SocketAddr,
    },
    /// The store could not be opened.
    #[error("failed to open the database")]
    Store(#[from] store::Error),
    /// The sandbox could not be made.
    #[error("failed to make the sandbox")]
    Sandbox(#[from] sandbox::Error),
    /// There is no server key.
    #[error("failed to get the server key")]
    Key(#[from] KeyError),
    /// The program does not know where it is, so it cannot start its compiler.
    #[error("failed to find this program, which compiles modules in a process of its own")]
    Program(#[source] std::io::Error),
    /// The operations could not start.
    #[error("failed to start")]
    Start(#[source] app::Error),
    /// An address could not be listened on.
    #[error("failed to listen on `{address}` (`{key}`)")]
    Listen {
        /// The key.
        key: &'static str,
        /// Its value.
        address: SocketAddr,
        /// The reason.
        #[source]
        source: std::io::Error,
    },
    /// gRPC could not be served.
    #[error("failed to serve gRPC")]
    Grpc(#[from] grpc::Error),
    /// A part of the server ended by a fault.
    #[error("a part of the server failed")]
    Part(#[from] tokio::task::JoinError),
    /// Signals cannot be received.
    #[error("failed to listen for signals")]
    Signals(#[source] std::io::Error),
}

/// Runs a server until SIGINT or SIGTERM; `ready` is told the addresses when requests can be taken. A second signal ends it
/// at once.
pub async fn run(config: Config, ready: impl FnOnce(SocketAddr, Option<SocketAddr>)) -> Result<(), Error> {
    let interrupt = signal(SignalKind::interrupt()).map_err(Error::Signals)?;
    let terminate = signal(SignalKind::terminate()).map_err(Error::Signals)?;
    // Both are taken before anything is answered, so that two servers on one address fail early.
    let http_listener = listen("server.listen", config.server.listen).await?;
    let grpc_listener = match config.server.grpc_listen {
        Some(address) => Some(listen("server.grpc_listen", address).await?),
        None => None,
    };
    let address = |listener: &TcpListener, key, asked| {
        listener.local_addr().map_err(|source| Error::Listen { key, address: asked, source })
    };
    let http_address = address(&http_listener, "server.listen", config.server.listen)?;
    let grpc_address = match (&grpc_listener, config.server.grpc_listen) {
        (Some(listener), Some(asked)) => Some(address(listener, "server.grpc_listen", asked)?),
        _ => None,
    };
    let app = open(&config, [Some(http_address), grpc_address].into_iter().flatten()).await?;

    let stop = watch::Sender::new(false);
    let drain = Duration::from_millis(config.server.drain_ms);
    let router = http::router(app.clone(), &http::Options { listen: http_address });
    let http = tokio::spawn(http::serve(http_listener, router, stopped(&stop), drain));
    let grpc = grpc_listener.map(|listener| tokio::spawn(grpc::serve(listener, stopped(&stop))));
    ready(http_address, grpc_address);

    first_of(interrupt, terminate).await;
    tracing::info!("stopping: running work has {} to end", Millis(config.server.drain_ms));
    stop.send_replace(true);
    app.shutdown().await;
    tokio::time::timeout(Duration::from_secs(1), http).await.ok().transpose()?;
    if let Some(grpc) = grpc
        && let Ok(ended) = tokio::time::timeout(Duration::from_secs(1), grpc).await
    {
        ended??;
    }
    Ok(())
}

/// Waits for a signal; the next one of either kind ends the process.
async fn first_of(mut interrupt: Signal, mut terminate: Signal) {
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    tokio::spawn(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        tracing::warn!("told to stop a second time: ending at once");
        std::process::exit(1);
    });
}

fn stopped(stop: &watch::Sender<bool>) -> impl Future<Output = ()> + Send + 'static {
    let mut stop = stop.subscribe();
    async move {
        // An error means that the sender is gone, which is the end, too.
        let _ = stop.wait_for(|stop| *stop).await;
    }
}

async fn listen(key: &'static str, address: SocketAddr) -> Result<TcpListener, Error> {
    if !address.ip().is_loopback() {
        return Err(Error::NotLoopback { key, address });
    }
    TcpListener::bind(address).await.map_err(|source| Error::Listen { key, address, source })
}

/// Opens the database and the sandbox, and starts the operations on them. `own` is where this server listens.
async fn open(config: &Config, own: impl Iterator<Item = SocketAddr>) -> Result<App, Error> {
    let path = config.database.sqlite_path()?.to_path_buf();
    let options = sqlite::Options {
        path: path.clone(),
        durability: match config.database.durability {
            Durability::Full => sqlite::Durability::Full,
            Durability::Relaxed => {
                tracing::warn!("`database.durability` is `relaxed`: a crash of the machine may lose the last commits");
                sqlite::Durability::Relaxed
            }
        },
        max_bytes: config.database.max_bytes,
        readers: config.database.readers,
        log_bytes: LOG_BYTES,
    };
    let store = tokio::task::spawn_blocking(move || sqlite::Store::open(options)).await??;
    let key = match (&config.key.secret, &config.key.file) {
        (Some(secret), _) => ServerKey::from_secret(secret.reveal())?,
        (None, Some(file)) => ServerKey::from_file(file)?,
        (None, None) => ServerKey::from_file(&beside(&path, "key"))?,
    };
    let sandbox = Sandbox::new(sandbox_config(config, &path, &key)?)?;
    own.for_each(|address| sandbox.serves(address));
    let store: Arc<dyn System> = Arc::new(store);
    App::start(store, sandbox, Clock::system(), &key, settings(config)).await.map_err(Error::Start)
}

fn settings(config: &Config) -> Settings {
    Settings {
        lanes: config.lanes(),
        inbox: config.engine.inbox,
        cache_bytes: usize::try_from(config.engine.cache_bytes).unwrap_or(usize::MAX),
        heartbeat_interval: Millis(config.worker.heartbeat_interval_ms),
        session_timeout: Millis(config.worker.session_timeout_ms),
        sweep: Millis(config.engine.sweep_ms),
        drain: Millis(config.server.drain_ms),
        limits: config.limits(),
        builtin: Bytes::from_static(BUILTIN),
    }
}

/// How modules are compiled: by this very program, in a process of its own; what comes of it is kept.
fn sandbox_config(config: &Config, database: &std::path::Path, key: &ServerKey) -> Result<sandbox::Config, Error> {
    let mut settings = observed(config.sandbox.settings());
    settings.compile.program = Some(std::env::current_exe().map_err(Error::Program)?);
    settings.compile.shelf = Some(sandbox::ShelfConfig {
        folder: config.sandbox.artefact_dir.clone().unwrap_or_else(|| beside(database, "artefacts")),
        bytes_max: config.sandbox.artefact_bytes,
        key: key.derive(app::Purpose::Artefacts),
    });
    Ok(settings)
}

/// In builds with debug assertions a test can name a log message at which the process aborts, as a module that takes the
/// server down would. Release builds have no such thing.
fn observed(settings: sandbox::Config) -> sandbox::Config {
    #[cfg(debug_assertions)]
    let settings = sandbox::Config { abort_on_log: std::env::var("SANDKEEP_TEST_ABORT_ON_LOG").ok(), ..settings };
    settings
}

fn beside(path: &std::path::Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    PathBuf::from(name)
}
