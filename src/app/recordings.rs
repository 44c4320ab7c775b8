//! Recorded attempts: kept when they end, given to whoever wants to run them again.

use super::{
    App, Error, ErrorCode, Inner,
    view::{BUNDLE_FORMAT, Bundle, BundledAttempt, BundledModule},
};
use crate::{
    model::{
        ExecutionId, Payload, TenantId, UnitKey,
        id::UnitRef,
        row::{ReadyRow, RecordingRow},
    },
    sandbox::{Attempt, Finished, Grant, Info, Limits},
    store::Batch,
};

/// What is kept of an attempt before it is served.
pub(super) struct Begun {
    info: Info,
    input: Payload,
    last_progress: Option<Payload>,
    limits: Limits,
    grant: std::sync::Arc<Grant>,
}

impl Begun {
    pub(super) fn of(attempt: &Attempt) -> Self {
        let Attempt { info, input, limits, grant, progress, .. } = attempt;
        Self {
            info: info.clone(),
            input: input.clone(),
            last_progress: progress.last(),
            limits: *limits,
            grant: grant.clone(),
        }
    }
}

impl Inner {
    /// Keeps a recorded attempt that ended. That it cannot be kept is no reason to lose its result.
    pub(super) async fn keep_recording(&self, row: &ReadyRow, begun: Begun, finished: &Finished) {
        let (Some(recording), Some(digest), Some(settings)) = (&finished.recording, &row.module, &row.settings) else {
            return;
        };
        let Begun { info, input, last_progress, limits, grant } = begun;
        let ended_at_ms = self.clock.now();
        let bundle = Bundle {
            format: BUNDLE_FORMAT,
            module: BundledModule { name: settings.module.clone(), digest: digest.clone(), content: None },
            attempt: BundledAttempt {
                tenant: info.unit.run.tenant,
                execution_id: info.unit.run.execution,
                run: info.unit.run.run,
                workflow: info.workflow,
                workflow_version: info.workflow_version,
                unit: info.unit.unit,
                task: info.task,
                attempt: info.attempt,
                redelivery: info.redelivery,
                deadline_ms: info.deadline,
            },
            input,
            last_progress,
            environment: grant.settings.clone(),
            limits,
            timeout_ms: row.timeouts.attempt_ms,
            end: finished.outcome.clone().into(),
            ended_at_ms,
            recording: recording.clone(),
        };
        let kept = RecordingRow {
            unit: row.unit.clone(),
            attempt: row.attempt,
            recorded_at: ended_at_ms,
            bundle: serde_json::to_vec(&bundle).expect("bundles hold nothing that JSON cannot"),
        };
        if let Err(error) = self.writer.write(Batch { recordings: vec![kept], ..Batch::default() }).await {
            let unit = &row.unit;
            tracing::warn!(%error, execution = %unit.run.execution, unit = %unit.unit, "a recording cannot be kept");
        }
    }
}

impl App {
    /// Returns what was kept of an attempt of the last run, as JSON: a [`Bundle`] without the bytes of its module.
    pub async fn find_bundle(&self, tenant: &TenantId, id: &str, unit: &str, attempt: &str) -> Result<Vec<u8>, Error> {
        let (id, unit) = (ExecutionId::new(id)?, UnitKey::new(unit)?);
        let attempt = attempt.parse().ok().filter(|attempt| *attempt > 0);
        let attempt: u32 = attempt.ok_or_else(|| Error::invalid("an attempt is a number from 1"))?;
        let store = &self.inner.store;
        let found = store.find_execution(tenant, &id).await?.ok_or_else(|| super::executions::not_found(&id))?;
        let unit = UnitRef { run: found.run, unit };
        let kept = store.find_recording(&unit, attempt).await?;
        kept.map(|row| row.bundle).ok_or_else(|| {
            let message = format!(
                "there is no recording of attempt {attempt} of unit `{}` of the execution `{id}`: an attempt is recorded \
                 when the settings of its module list its task in `record`, and the newest recordings are kept",
                unit.unit
            );
            Error::new(ErrorCode::NotFound, message)
        })
    }
}
