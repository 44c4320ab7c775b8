//! Operations on executions.

use std::{collections::BTreeMap, sync::Arc};

use super::{
    App, Error, ErrorCode, contracts, cursor,
    lane::First,
    present,
    view::{
        ExecutionFilter, ExecutionStarted, ExecutionSummary, ExecutionView, Page, PageRequest, SignalAccepted,
        StartRequest, UnitView,
    },
};
use crate::{
    engine::{self, Answer, Command, QueryError},
    model::{
        ExecutionId, Millis, Payload, SignalName, TenantId, Timestamp, UnitKey, WorkflowName, WorkflowVersion,
        execution::Status,
        id::{self, RunKey, UnitRef},
        row::{ExecutionKey, KeyRow, Projection},
    },
    store::{self, ExecutionQuery},
    workflow::Definition,
};

/// How long `wait` waits where it does not say, and at most, in milliseconds.
const WAIT_MS: u64 = 30_000;
const WAIT_MS_MAX: u64 = 300_000;
/// The most labels of an execution, and the longest key and value.
const LABELS_MAX: usize = 32;
const LABEL_BYTES_MAX: usize = 256;
/// The longest `Idempotency-Key`.
const KEY_BYTES_MAX: usize = 255;
/// The longest reason of a cancel.
const REASON_BYTES_MAX: usize = 1_024;

impl App {
    /// Starts an execution; a repeat of the same request is recognised by its id or key.
    pub async fn start_execution(
        &self,
        tenant: &TenantId,
        request: StartRequest,
        idempotency_key: Option<&str>,
    ) -> Result<ExecutionStarted, Error> {
        let app = &self.inner;
        idempotency_key.map(check_key).transpose()?;
        let name = WorkflowName::new(&request.workflow)?;
        let id = execution_id(tenant, &request, idempotency_key)?;
        check_labels(&request.labels)?;
        let request_hash = request_hash(&request);
        let version = request.version.as_deref().map(WorkflowVersion::new).transpose()?;
        let definition = self.definition_for_start(tenant, &name, version.as_ref()).await?;
        let input = checked_start_input(&definition, request.input)?;
        check_size("`input`", &input, app.settings.limits.payload_bytes)?;
        let delay = request.start_delay.as_deref().map(Millis::parse).transpose();
        let delay = delay.map_err(|error| Error::invalid(format!("`start_delay`: {error}")))?;
        let key = ExecutionKey { tenant: tenant.clone(), execution: id.clone() };
        app.lanes.has_room(&key)?;
        let command = Command::Start(engine::Start {
            workflow: name.clone(),
            version: definition.version.clone(),
            definition_hash: definition.hash.clone(),
            input,
            labels: request.labels,
            request_hash,
            start_at: delay.filter(|delay| delay.0 > 0).map(|delay| app.clock.now().after(delay)),
        });
        let new_id = request.execution_id.is_none() && idempotency_key.is_none();
        let first = First { definition: definition.clone(), new_id };
        let answer = app.ask(key, None, command, Some(first), Vec::new()).await;
        let created = match answer {
            Ok(Answer::Started { created }) => created,
            Ok(_) => return Err(Error::internal("a start was answered as something else")),
            Err(error) if error.code == ErrorCode::ExecutionConflict => {
                let message = format!("the execution `{id}` exists and was started with another request");
                return Err(Error::new(ErrorCode::ExecutionConflict, message));
            }
            Err(error) => return Err(error),
        };
        let mut version = definition.version.clone();
        let mut status = Status::Running;
        if !created && let Some(row) = app.store.find_execution(tenant, &id).await? {
            version = row.version;
            status = row.status;
        }
        Ok(ExecutionStarted {
            execution_id: id.to_string(),
            workflow: name.to_string(),
            version: version.to_string(),
            status: status.as_str().to_owned(),
            created,
        })
    }

    async fn definition_for_start(
        &self,
        tenant: &TenantId,
        name: &WorkflowName,
        version: Option<&WorkflowVersion>,
    ) -> Result<Arc<Definition>, Error> {
        if let Some(version) = version {
            return self.inner.definition(tenant, name, version).await;
        }
        let version = self.default_version(tenant, name).await?;
        self.inner.definition(tenant, name, &version).await
    }

    /// Lists executions, newest first.
    pub async fn list_executions(
        &self,
        tenant: &TenantId,
        filter: ExecutionFilter,
        page: PageRequest,
    ) -> Result<Page<ExecutionSummary>, Error> {
        let app = &self.inner;
        let pager = app.cursors.page("executions", tenant, &page);
        let after = pager.after(|[at, id]| Ok((Timestamp(cursor::number(&at)?), ExecutionId::new(id)?)))?;
        let query = execution_query(filter, after, pager.reads())?;
        let rows = app.store.list_executions(tenant, query).await?;
        let page = pager.cut(rows, |row| [row.created_at.0.to_string(), row.run.execution.to_string()]);
        Ok(page.map(|row| summary(&row)))
    }

    /// Returns the state of an execution.
    pub async fn find_execution(&self, tenant: &TenantId, id: &str) -> Result<ExecutionView, Error> {
        let id = ExecutionId::new(id)?;
        let view =
            self.inner.read(tenant, &id, |execution, definition| present::execution(execution, definition)).await?;
        let mut view = view.ok_or_else(|| not_found(&id))?;
        let run = RunKey { tenant: tenant.clone(), execution: id, run: view.run };
        for (key, unit) in &mut view.units.0 {
            if unit.status == "SCHEDULED" {
                let unit_ref = UnitRef { run: run.clone(), unit: UnitKey::new(&*key)? };
                present::fill_held(unit, self.inner.dispatch.held(&unit_ref));
            }
        }
        Ok(view)
    }

    /// Lists the units of an execution whole, in document order.
    pub async fn list_units(
        &self,
        tenant: &TenantId,
        id: &str,
        page: PageRequest,
    ) -> Result<Page<(String, UnitView)>, Error> {
        let app = &self.inner;
        let id = ExecutionId::new(id)?;
        let list = format!("units {id}");
        let pager = app.cursors.page(&list, tenant, &page);
        let first = pager.after(|[at]| cursor::number::<usize>(&at))?.unwrap_or(0);
        let reads = pager.reads();
        let read = move |execution: &crate::model::Execution, definition: &Arc<Definition>| {
            let indexes = definition.plan.indexes().enumerate().skip(first).take(reads);
            let units = indexes.map(|(at, index)| {
                (at, present::unit_ref(execution, definition, index), present::unit(execution, definition, index))
            });
            units.collect::<Vec<_>>()
        };
        let units = app.read(tenant, &id, read).await?.ok_or_else(|| not_found(&id))?;
        let page = pager.cut(units, |(at, ..)| [(at + 1).to_string()]);
        Ok(page.map(|(_, unit_ref, mut view)| {
            present::fill_held(&mut view, app.dispatch.held(&unit_ref));
            (unit_ref.unit.to_string(), view)
        }))
    }

    /// Returns one unit whole.
    pub async fn find_unit(&self, tenant: &TenantId, id: &str, unit: &str) -> Result<UnitView, Error> {
        let id = ExecutionId::new(id)?;
        let key = UnitKey::new(unit)?;
        let wanted = key.clone();
        let read = move |execution: &crate::model::Execution, definition: &Arc<Definition>| {
            let index = definition.plan.step_of(&wanted)?;
            Some((present::unit_ref(execution, definition, index), present::unit(execution, definition, index)))
        };
        let found = self.inner.read(tenant, &id, read).await?.ok_or_else(|| not_found(&id))?;
        let (unit_ref, mut view) = found
            .ok_or_else(|| Error::new(ErrorCode::UnitNotFound, format!("the execution `{id}` has no unit `{key}`")))?;
        present::fill_held(&mut view, self.inner.dispatch.held(&unit_ref));
        Ok(view)
    }

    /// Returns the result of a completed execution.
    pub async fn find_result(&self, tenant: &TenantId, id: &str) -> Result<Payload, Error> {
        let id = ExecutionId::new(id)?;
        let read = self.inner.read(tenant, &id, |execution, _| (execution.output.clone(), execution.status)).await?;
        let (output, status) = read.ok_or_else(|| not_found(&id))?;
        output.ok_or_else(|| {
            Error::new(ErrorCode::NotFinished, format!("the execution `{id}` is {} and has no result", status.as_str()))
        })
    }

    /// Ends an execution.
    pub async fn cancel_execution(
        &self,
        tenant: &TenantId,
        id: &str,
        reason: Option<String>,
    ) -> Result<ExecutionView, Error> {
        let key = self.execution_key(tenant, id)?;
        let reason = reason.unwrap_or_else(|| "requested via API".to_owned());
        if reason.len() > REASON_BYTES_MAX {
            return Err(Error::invalid(format!("`reason` may have at most {REASON_BYTES_MAX} bytes")));
        }
        let answer = self.inner.ask(key.clone(), None, Command::Cancel { reason }, None, Vec::new()).await;
        answer.map_err(|error| about(&key, error))?;
        self.find_execution(tenant, id).await
    }

    /// Sends a signal.
    pub async fn signal_execution(
        &self,
        tenant: &TenantId,
        id: &str,
        name: &str,
        payload: Payload,
        idempotency_key: Option<&str>,
    ) -> Result<SignalAccepted, Error> {
        let app = &self.inner;
        idempotency_key.map(check_key).transpose()?;
        let key = self.execution_key(tenant, id)?;
        check_size("the payload", &payload, app.settings.limits.payload_bytes)?;
        let unknown =
            |name: &str| Error::new(ErrorCode::SignalNotFound, format!("the workflow declares no signal `{name}`"));
        let name = SignalName::new(name).map_err(|_| unknown(&name.chars().take(80).collect::<String>()))?;
        let definition = app.read(tenant, &key.execution, |_, definition| definition.clone()).await?;
        let definition = definition.ok_or_else(|| not_found(&key.execution))?;
        let schema = definition.signals.get(&name).ok_or_else(|| unknown(name.as_str()))?;
        contracts::check_request(schema.as_ref(), &payload.to_value(), "the payload of the signal")?;
        app.lanes.has_room(&key)?;
        let kept = idempotency_key.map(|text| signal_key(app.clock.now(), &key, &name, &payload, text));
        let signal = engine::Signal {
            name: name.clone(),
            payload,
            command_id: idempotency_key.map(ToOwned::to_owned),
            key: kept,
        };
        let answer = app.ask(key.clone(), None, Command::Signal(signal), None, Vec::new()).await;
        match answer.map_err(|error| about(&key, error))? {
            Answer::Signalled { seq } => Ok(SignalAccepted {
                execution_id: key.execution.to_string(),
                signal: name.to_string(),
                accepted: true,
                seq,
            }),
            _ => Err(Error::internal("a signal was answered as something else")),
        }
    }

    /// Answers a declared query.
    pub async fn query_execution(&self, tenant: &TenantId, id: &str, name: &str) -> Result<Payload, Error> {
        let key = self.execution_key(tenant, id)?;
        let unknown = || Error::new(ErrorCode::QueryNotFound, "the workflow declares no such query");
        let name = SignalName::new(name).map_err(|_| unknown())?;
        let now = self.inner.clock.now();
        let read = move |execution: &crate::model::Execution, definition: &Arc<Definition>| {
            engine::query(execution, definition, &name, now)
        };
        let answer = self.inner.read(tenant, &key.execution, read).await?.ok_or_else(|| not_found(&key.execution))?;
        answer.map_err(|error| match error {
            QueryError::Unknown(_) => Error::new(ErrorCode::QueryNotFound, error.to_string()),
            QueryError::Expression { pointer, message } => {
                Error::new(ErrorCode::ExpressionError, message).with_details(&serde_json::json!({ "pointer": pointer }))
            }
        })
    }

    /// Waits until the execution is terminal, or the time is over; returns its state either way.
    pub async fn wait_execution(
        &self,
        tenant: &TenantId,
        id: &str,
        timeout_ms: Option<u64>,
    ) -> Result<ExecutionView, Error> {
        let key = self.execution_key(tenant, id)?;
        let timeout = timeout_ms.unwrap_or(WAIT_MS).min(WAIT_MS_MAX);
        let end = tokio::time::Instant::now() + std::time::Duration::from_millis(timeout);
        let mut stopping = self.inner.stopping.subscribe();
        loop {
            let mut watch = self.inner.waiters.watch(&key);
            let status = self.inner.read(tenant, &key.execution, |execution, _| execution.status).await?;
            let status = status.ok_or_else(|| not_found(&key.execution))?;
            if status.is_terminal() || tokio::time::Instant::now() >= end || *stopping.borrow() {
                return self.find_execution(tenant, id).await;
            }
            tokio::select! {
                _ = wait_terminal(&mut watch) => {}
                () = tokio::time::sleep_until(end) => {}
                _ = stopping.wait_for(|stopping| *stopping) => {}
            }
        }
    }

    pub(super) async fn row(&self, tenant: &TenantId, id: &ExecutionId) -> Result<Projection, Error> {
        self.inner.store.find_execution(tenant, id).await?.ok_or_else(|| not_found(id))
    }

    fn execution_key(&self, tenant: &TenantId, id: &str) -> Result<ExecutionKey, Error> {
        Ok(ExecutionKey { tenant: tenant.clone(), execution: ExecutionId::new(id)? })
    }
}

/// The sender goes with the terminal event: only that ends this wait, so that a change in between costs nothing.
async fn wait_terminal(watch: &mut tokio::sync::watch::Receiver<u64>) {
    while watch.changed().await.is_ok() {}
}

pub(super) fn not_found(id: &ExecutionId) -> Error {
    Error::new(ErrorCode::ExecutionNotFound, format!("there is no execution `{id}`"))
}

/// Names the execution in what a lane refused.
pub(super) fn about(key: &ExecutionKey, error: Error) -> Error {
    match error.code {
        ErrorCode::ExecutionNotFound => not_found(&key.execution),
        ErrorCode::ExecutionClosed => Error {
            message: error.message.replace("the execution", &format!("the execution `{}`", key.execution)),
            ..error
        },
        _ => error,
    }
}

/// The id of a start: the client's, else one of tenant and key, so that both meet in one lane, else a new one.
fn execution_id(tenant: &TenantId, request: &StartRequest, key: Option<&str>) -> Result<ExecutionId, Error> {
    match (&request.execution_id, key) {
        (Some(id), _) => Ok(ExecutionId::from_client(id)?),
        (None, Some(key)) => {
            let digest = id::sha256_hex(format!("{tenant}\n{key}").as_bytes());
            Ok(ExecutionId::new(format!("key-{}", &digest["sha256:".len()..][..40]))?)
        }
        (None, None) => Ok(ExecutionId::new(uuid::Uuid::now_v7().to_string())?),
    }
}

fn check_key(key: &str) -> Result<(), Error> {
    if key.is_empty() || key.len() > KEY_BYTES_MAX || !key.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ') {
        return Err(Error::invalid(format!(
            "`Idempotency-Key` must be 1 to {KEY_BYTES_MAX} printable ASCII characters"
        )));
    }
    Ok(())
}

fn signal_key(now: Timestamp, key: &ExecutionKey, name: &SignalName, payload: &Payload, text: &str) -> KeyRow {
    KeyRow {
        tenant: key.tenant.clone(),
        scope: format!("signal {} {name} {text}", key.execution),
        request_hash: id::sha256_hex(payload.as_str().as_bytes()),
        seq: 0,
        expires_at: store::key_expires(now),
    }
}

fn check_size(what: &str, payload: &Payload, bytes_max: usize) -> Result<(), Error> {
    let bytes = payload.size_bytes();
    if bytes <= bytes_max {
        return Ok(());
    }
    Err(Error::new(ErrorCode::PayloadTooLarge, format!("{what} has {bytes} bytes; at most {bytes_max} are allowed")))
}

fn check_labels(labels: &BTreeMap<String, String>) -> Result<(), Error> {
    let good = |text: &str| text.len() <= LABEL_BYTES_MAX && !text.chars().any(char::is_control);
    if labels.len() <= LABELS_MAX && labels.iter().all(|(key, value)| !key.is_empty() && good(key) && good(value)) {
        return Ok(());
    }
    let message = format!(
        "`labels` may be at most {LABELS_MAX}, each key and value at most {LABEL_BYTES_MAX} bytes without control characters"
    );
    Err(Error::invalid(message))
}

/// The digest of a start as it was sent, by which a repeat is recognised. The id is not part of it: it is what is compared.
fn request_hash(request: &StartRequest) -> String {
    let text = serde_json::to_string(&StartRequest { execution_id: None, ..request.clone() });
    id::sha256_hex(text.expect("a request is JSON").as_bytes())
}

fn checked_start_input(definition: &Definition, input: Option<Payload>) -> Result<Payload, Error> {
    let input = input.unwrap_or_else(|| Payload::trusted("{}"));
    let Some(schema) = &definition.input else { return Ok(input) };
    let mut value = input.to_value();
    let filled = schema.fill_defaults(&mut value);
    contracts::check_request(Some(schema), &value, "the input")?;
    Ok(if filled { Payload::from_value(&value) } else { input })
}

fn summary(row: &Projection) -> ExecutionSummary {
    ExecutionSummary {
        execution_id: row.run.execution.to_string(),
        workflow: row.workflow.to_string(),
        version: row.version.to_string(),
        status: row.status.as_str().to_owned(),
        created_at_ms: row.created_at.0,
        updated_at_ms: row.updated_at.0,
    }
}

fn execution_query(
    filter: ExecutionFilter,
    after: Option<(Timestamp, ExecutionId)>,
    limit: usize,
) -> Result<ExecutionQuery, Error> {
    let status = |text: &String| {
        let known = || Status::ALL.iter().map(|(_, name)| *name).collect::<Vec<_>>().join(", ");
        Status::from_text(text).ok_or_else(|| Error::invalid(format!("`status` must be one of {}", known())))
    };
    Ok(ExecutionQuery {
        statuses: filter.statuses.iter().map(status).collect::<Result<_, _>>()?,
        workflow: filter.workflow.as_deref().map(WorkflowName::new).transpose()?,
        version: filter.version.as_deref().map(WorkflowVersion::new).transpose()?,
        labels: filter.labels,
        created_after: filter.created_after.map(Timestamp),
        created_before: filter.created_before.map(Timestamp),
        after,
        limit,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_short_and_can_be_read() {
        let long = "k".repeat(256);
        for (key, good) in [
            ("order-7", true),
            ("a b", true),
            (&long[1..], true),
            (&long, false),
            ("", false),
            ("a\nb", false),
            ("\u{e9}", false),
        ] {
            assert_eq!(check_key(key).is_ok(), good, "{key:?}");
        }
    }
}
