//! Pages of executions. The index that a page is read by follows from its filters: executions that ended well are most of
//! a table, so those that did not, and those that run, have indexes of their own.
//!
//! Each index but those of what runs holds rows in the order of the list, so that a page costs what it shows. What runs is
//! sorted: an index in that order would have to be written with each end.

use rusqlite::{Connection, params_from_iter, types::Value};

use super::{
    columns::{read_rows, signed_limit},
    executions,
};
use crate::{
    model::{Status, TenantId, row::Projection},
    store::{Error, ExecutionQuery},
};

/// Returns a page of executions, newest first.
pub(super) fn list_executions(
    connection: &Connection,
    tenant: &TenantId,
    query: &ExecutionQuery,
) -> Result<Vec<Projection>, Error> {
    let mut found = Vec::new();
    let selects = selects(tenant, query);
    let joined = selects.len() > 1;
    for Select { sql, values } in selects {
        found.extend(read_rows(connection, &sql, params_from_iter(values), query.limit, executions::read)?);
    }
    if joined {
        found.sort_by(|a, b| (b.created_at, &b.run.execution).cmp(&(a.created_at, &a.run.execution)));
        found.truncate(query.limit);
    }
    Ok(found)
}

/// Returns the statements that a page is read with; the rows of all of them together have it.
pub(super) fn selects(tenant: &TenantId, query: &ExecutionQuery) -> Vec<Select> {
    Source::of(query).iter().map(|source| source.select(tenant, query)).collect()
}

/// A statement with the values of its marks.
pub(super) struct Select {
    pub(super) sql: String,
    pub(super) values: Vec<Value>,
}

/// One index to read a page, or a part of one, by.
struct Source {
    /// Tables and index.
    from: &'static str,
    /// What the index holds, word for word.
    holds: Option<&'static str>,
    /// The statuses wanted of it; empty: all.
    statuses: Vec<Status>,
}

const LISTED: &str = "executions e INDEXED BY executions_listed";
const OF_WORKFLOW: &str = "executions e INDEXED BY executions_of_workflow";
const OF_VERSION: &str = "executions e INDEXED BY executions_of_version";
const OF_WORKFLOW_VERSION: &str = "executions e INDEXED BY executions_of_workflow_version";
const ACTIVE: &str = "executions e INDEXED BY executions_active";
const ACTIVE_OF_WORKFLOW: &str = "executions e INDEXED BY executions_in_use";
const UNSUCCESSFUL: &str = "executions e INDEXED BY executions_unsuccessful";
const UNSUCCESSFUL_OF_WORKFLOW: &str = "executions e INDEXED BY executions_unsuccessful_of_workflow";
const LABELLED: &str = "labels l CROSS JOIN executions e ON e.tenant = l.tenant AND e.id = l.id AND e.run = l.run";

impl Source {
    fn of(query: &ExecutionQuery) -> Vec<Self> {
        let statuses = query.statuses.clone();
        if !query.labels.is_empty() {
            return vec![Self { from: LABELLED, holds: None, statuses }];
        }
        if statuses.is_empty() || statuses.contains(&Status::Completed) {
            let from = match (&query.workflow, &query.version) {
                (None, None) => LISTED,
                (Some(_), None) => OF_WORKFLOW,
                (None, Some(_)) => OF_VERSION,
                (Some(_), Some(_)) => OF_WORKFLOW_VERSION,
            };
            return vec![Self { from, holds: None, statuses }];
        }
        let of_workflow = query.workflow.is_some();
        let (ended, active): (Vec<_>, Vec<_>) = statuses.into_iter().partition(|status| status.is_terminal());
        let mut sources = Vec::new();
        if !active.is_empty() {
            let from = if of_workflow { ACTIVE_OF_WORKFLOW } else { ACTIVE };
            sources.push(Self { from, holds: Some(executions::ACTIVE), statuses: active });
        }
        if !ended.is_empty() {
            let from = if of_workflow { UNSUCCESSFUL_OF_WORKFLOW } else { UNSUCCESSFUL };
            let holds = Some("(status = 'FAILED' OR status = 'CANCELLED' OR status = 'TIMED_OUT')");
            sources.push(Self { from, holds, statuses: ended });
        }
        sources
    }

    fn select(&self, tenant: &TenantId, query: &ExecutionQuery) -> Select {
        let mut filter = Filter { conditions: String::new(), values: Vec::new() };
        let mut labels = query.labels.iter();
        let (owner, created_at, id) = if self.from == LABELLED {
            let (key, value) = labels.next().expect("this source is read for labels");
            filter.and("l.key = ? AND l.value = ?", [text(key), text(value)]);
            ("l.tenant", "l.created_at", "l.id")
        } else {
            ("e.tenant", "e.created_at", "e.id")
        };
        filter.and(&format!("{owner} = ?"), [text(tenant.as_str())]);
        for (key, value) in labels {
            let other = "EXISTS (SELECT 1 FROM labels o WHERE o.tenant = e.tenant AND o.key = ? AND o.value = ? \
                         AND o.created_at = e.created_at AND o.id = e.id AND o.run = e.run)";
            filter.and(other, [text(key), text(value)]);
        }
        if let Some(holds) = self.holds {
            filter.and(holds, []);
        }
        if !self.statuses.is_empty() {
            let marks = vec!["?"; self.statuses.len()].join(", ");
            let statuses = self.statuses.iter().map(|status| text(status.as_str()));
            filter.and(&format!("e.status IN ({marks})"), statuses);
        }
        if let Some(workflow) = &query.workflow {
            filter.and("e.workflow = ?", [text(workflow.as_str())]);
        }
        if let Some(version) = &query.version {
            filter.and("e.version = ?", [text(version.as_str())]);
        }
        if let Some(after) = query.created_after {
            filter.and(&format!("{created_at} > ?"), [after.0.into()]);
        }
        if let Some(before) = query.created_before {
            filter.and(&format!("{created_at} < ?"), [before.0.into()]);
        }
        if let Some((at, after)) = &query.after {
            filter.and(&format!("({created_at}, {id}) < (?, ?)"), [at.0.into(), text(after.as_str())]);
        }
        let sql = format!(
            "SELECT {} FROM {} WHERE {} ORDER BY {created_at} DESC, {id} DESC LIMIT ?",
            executions::COLUMNS,
            self.from,
            filter.conditions,
        );
        filter.values.push(signed_limit(query.limit).into());
        Select { sql, values: filter.values }
    }
}

/// Conditions with the values of their marks.
struct Filter {
    conditions: String,
    values: Vec<Value>,
}

impl Filter {
    fn and(&mut self, condition: &str, values: impl IntoIterator<Item = Value>) {
        if !self.conditions.is_empty() {
            self.conditions += " AND ";
        }
        self.conditions += condition;
        self.values.extend(values);
    }
}

fn text(text: &str) -> Value {
    Value::Text(text.to_owned())
}
