//! What is handed over, and what comes back about who served it.

use serde::{Deserialize, Serialize};

use super::{
    id::{DeliveryId, Digest, SessionId, UnitRef, WorkerId},
    time::Timestamp,
};

/// One handing-over of an attempt. Its token on the wire is this, authenticated with the server's key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The unit handed over.
    pub unit: UnitRef,
    /// The attempt, from 1.
    pub attempt: u32,
    /// Which handing-over of the attempt this is; no two share one.
    pub id: DeliveryId,
    /// Whom it was handed to; the sandbox has none.
    pub worker: Option<WorkerId>,
    /// When it was handed over.
    pub handed_at: Timestamp,
    /// When `timeouts.attempt` ends it.
    pub deadline: Timestamp,
}

/// Who served an attempt, when, and what it cost. Recorded with the attempt's result.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Served {
    /// The native worker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker_id: Option<WorkerId>,
    /// Its session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker_session: Option<SessionId>,
    /// The module, where the sandbox served it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub module: Option<Digest>,
    /// When the attempt was handed over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dispatched_at_ms: Option<Timestamp>,
    /// When its result came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at_ms: Option<Timestamp>,
    /// What the sandbox measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
}

/// What one sandboxed attempt used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Processor time of the guest, in milliseconds, rounded up.
    pub cpu_ms: u64,
    /// From the start of the instance to its end, in milliseconds.
    pub wall_ms: u64,
    /// The most linear memory held at once, summed over memories, in bytes.
    pub memory_peak_bytes: u64,
    /// Size of the input in bytes.
    pub input_bytes: u64,
    /// Size of the output in bytes.
    pub output_bytes: u64,
    /// Outgoing requests that were made.
    #[serde(default)]
    pub egress_requests: u64,
    /// Bytes of their bodies.
    #[serde(default)]
    pub egress_sent_bytes: u64,
    /// Bytes of the bodies of their responses.
    #[serde(default)]
    pub egress_received_bytes: u64,
}
