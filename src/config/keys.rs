//! Every key: its meaning, type, default, unit and bounds. `docs/configuration.md` is compared with this list by a test.

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
};

use super::{
    table::{Setting, first_range, sections},
    value::{Durability, LogFormat, Secret, Value},
};

/// The port that is served and asked unless something else is said.
pub const PORT: u16 = 7420;

const MIB: u64 = 1024 * 1024;

sections! {
    /// The listeners.
    server: Server {
        /// Where HTTP is served; port 0 takes a free one.
        listen: SocketAddr = SocketAddr::from((Ipv4Addr::LOCALHOST, PORT)), "address";
        /// Where gRPC is served; without it gRPC is not served.
        grpc_listen: Option<SocketAddr> = None, "address";
        /// How long running work may go on after the server was told to stop.
        drain_ms: u64 = 10_000, "ms", 0..=3_600_000;
    }

    /// The database.
    database: Database {
        /// Where everything is kept: `sqlite:PATH`.
        url: String = "sqlite:sandkeep.db".to_owned(), "URL";
        /// Whether a commit waits for the disk (`full`), or a crash of the machine may lose the last ones (`relaxed`).
        durability: Durability = Durability::Full, "`full` or `relaxed`";
        /// The largest size of the database file; without it the disk is the limit.
        max_bytes: Option<u64> = None, "bytes", 65_536..=281_474_976_710_656;
        /// How many connections read beside the one that writes.
        readers: usize = 4, "connections", 1..=64;
    }

    /// Native workers.
    worker: Worker {
        /// How often a worker is told to send a heartbeat.
        heartbeat_interval_ms: u64 = 5_000, "ms", 10..=3_600_000;
        /// After how much silence a worker's session is over and what it held is handed out again.
        session_timeout_ms: u64 = 30_000, "ms", 20..=86_400_000;
    }

    /// Deciding and waiting.
    engine: Engine {
        /// How many lanes decide side by side; without it as many as there are processors.
        lanes: Option<usize> = None, "lanes", 1..=256;
        /// How many commands may wait in the lanes' inboxes; past it starts and signals are refused for now.
        inbox: usize = 10_000, "commands", 16..=1_000_000;
        /// How much memory the states of executions may take; others are loaded when they are needed.
        cache_bytes: u64 = 128 * MIB, "bytes", 1_048_576..=1_099_511_627_776;
        /// How long a unit that was told to stop is waited for.
        cancel_grace_ms: u64 = 30_000, "ms", 0..=86_400_000;
        /// How long an execution may wind down in all.
        wind_down_timeout_ms: u64 = 86_400_000, "ms", 1..=2_592_000_000;
        /// How often executions are looked for that wait for nothing.
        sweep_ms: u64 = 60_000, "ms", 10..=86_400_000;
    }

    /// The sandbox.
    sandbox: Sandbox {
        /// How much memory all instances together may have; without it a quarter of the machine's.
        memory_bytes: Option<u64> = None, "bytes", 1_048_576..=17_592_186_044_416;
        /// How many instances there may be at a time; without it as many as `memory_bytes` allows, at most 1,000.
        max_concurrent: Option<usize> = None, "instances", 1..=10_000;
        /// How many threads run guests; without it as many as there are processors.
        threads: Option<usize> = None, "threads", 1..=1_024;
        /// How much processor time one attempt may take.
        cpu_ms: u64 = 10_000, "ms", 1..=3_600_000;
        /// How much linear memory one attempt may have.
        module_memory_bytes: u64 = 64 * MIB, "bytes", 65_536..=4_294_967_296;
        /// The largest component that may be uploaded.
        module_size_bytes: u64 = 64 * MIB, "bytes", 1_024..=1_073_741_824;
        /// How much of an attempt's log lines is kept.
        log_bytes: u64 = MIB / 4, "bytes", 0..=16_777_216;
        /// How many random bytes one attempt may ask for.
        random_bytes: u64 = 16 * MIB, "bytes", 0..=1_073_741_824;
        /// How many handles the server keeps for one attempt.
        host_handles: usize = 4_096, "handles", 16..=1_000_000;
        /// How many outgoing requests one attempt may send.
        egress_requests: u32 = 100, "requests", 0..=1_000_000;
        /// How many of them may be under way at a time.
        egress_concurrent: u32 = 10, "requests", 1..=1_000;
        /// The largest body of an outgoing request, and of its response.
        egress_body_bytes: u64 = 8 * MIB, "bytes", 0..=1_073_741_824;
        /// How long an outgoing request may take, its response included.
        egress_timeout_ms: u64 = 30_000, "ms", 1..=3_600_000;
        /// A PEM file of roots of trust beside those of the system.
        egress_ca_file: Option<PathBuf> = None, "path";
        /// Whether a tenant's policy may open loopback, link-local and metadata addresses.
        allow_private_egress: bool = false, "`true` or `false`";
        /// How much memory compiled modules may take.
        cache_bytes: u64 = 512 * MIB, "bytes", 1_048_576..=1_099_511_627_776;
        /// Where compiled modules are kept between starts, sealed with the server key; without it `PATH.artefacts` beside the database.
        artefact_dir: Option<PathBuf> = None, "path";
        /// How much disk compiled modules may take there; the least recently used go first.
        artefact_bytes: u64 = 4_096 * MIB, "bytes", 0..=1_099_511_627_776;
        /// How much processor time compiling one module may take, in whole seconds rounded up; past it, it is compiled once more without optimisation.
        compile_cpu_ms: u64 = 60_000, "ms", 1..=3_600_000;
        /// How long compiling one module may take on the wall.
        compile_wall_ms: u64 = 120_000, "ms", 1..=3_600_000;
        /// How much address space the process that compiles may have.
        compile_memory_bytes: u64 = 2_048 * MIB, "bytes", 268_435_456..=1_099_511_627_776;
        /// How many modules are compiled at a time, one of each tenant; without it half as many as there are processors.
        compile_at_once: Option<usize> = None, "compiles", 1..=1_024;
        /// How often a running guest looks up: the longest turn while others wait.
        tick_ms: u64 = 2, "ms", 1..=1_000;
    }

    /// The server key, by which tokens are authenticated.
    key: Key {
        /// The file that holds it; without it `PATH.key` beside the database, made at the first start.
        file: Option<PathBuf> = None, "path";
        /// The key itself, at least 32 characters, instead of a file. Best given as `SANDKEEP_SERVER_KEY`.
        secret: Option<Secret> = None, "secret";
    }

    /// What the server says on standard error.
    log: Log {
        /// Lines for people (`text`) or one JSON object each (`json`).
        format: LogFormat = LogFormat::Text, "`text` or `json`";
        /// What is told: levels, also by target, such as `info,sandkeep::sandbox=debug`.
        filter: String = "info".to_owned(), "filter";
    }
}
