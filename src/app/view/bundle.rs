//! A recorded attempt in one file: all that brings it about again.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{
    model::{
        Digest, ExecutionId, Failure, Millis, ModuleName, Payload, TaskName, TenantId, Timestamp, UnitKey,
        WorkflowName, WorkflowVersion,
    },
    sandbox::{Limits, Recording},
};

/// The form of bundles that this program writes and reads.
pub const BUNDLE_FORMAT: u32 = 1;

/// All that brings a recorded attempt about again.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Bundle {
    /// 1.
    pub format: u32,
    /// The module that served it.
    pub module: BundledModule,
    /// What it was told of itself.
    pub attempt: BundledAttempt,
    /// Its input.
    #[schema(value_type = Object)]
    pub input: Payload,
    /// What was reported before it began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub last_progress: Option<Payload>,
    /// The settings of the module.
    pub environment: BTreeMap<String, String>,
    /// What it could use.
    #[schema(value_type = Object)]
    pub limits: Limits,
    /// How long it could take on the wall, in milliseconds.
    #[schema(value_type = u64)]
    pub timeout_ms: Millis,
    /// How it ended.
    #[schema(value_type = Object)]
    pub end: BundledEnd,
    /// When it ended.
    #[schema(value_type = i64)]
    pub ended_at_ms: Timestamp,
    /// What the host answered.
    #[schema(value_type = Object)]
    pub recording: Recording,
}

/// The module of a bundle.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct BundledModule {
    /// Its name.
    #[schema(value_type = String)]
    pub name: ModuleName,
    /// Its digest.
    #[schema(value_type = String)]
    pub digest: Digest,
    /// Its bytes in base64. The server leaves them out; `sandkeep attempt pull` adds them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
}

/// What an attempt was told of itself.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct BundledAttempt {
    /// The owner.
    #[schema(value_type = String)]
    pub tenant: TenantId,
    /// The execution.
    #[schema(value_type = String)]
    pub execution_id: ExecutionId,
    /// Its run.
    pub run: u32,
    /// The workflow.
    #[schema(value_type = String)]
    pub workflow: WorkflowName,
    /// Its version.
    #[schema(value_type = String)]
    pub workflow_version: WorkflowVersion,
    /// The unit.
    #[schema(value_type = String)]
    pub unit: UnitKey,
    /// The task.
    #[schema(value_type = String)]
    pub task: TaskName,
    /// The attempt, from 1.
    pub attempt: u32,
    /// Whether an earlier delivery of it could not be ruled out.
    pub redelivery: bool,
    /// When it was to be cut off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<i64>)]
    pub deadline_ms: Option<Timestamp>,
}

/// How an attempt ended, before its output was checked against a contract.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BundledEnd {
    /// With this output.
    Output(Payload),
    /// With this failure.
    Error(Failure),
}

impl From<Result<Payload, Failure>> for BundledEnd {
    fn from(outcome: Result<Payload, Failure>) -> Self {
        outcome.map_or_else(Self::Error, Self::Output)
    }
}
