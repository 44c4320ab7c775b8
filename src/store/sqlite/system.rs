//! The server's own questions.

use std::collections::HashMap;

use async_trait::async_trait;

use super::{executions, keys, modules, ready, store::Store, tenants, timers, uploads};
use crate::{
    model::{
        Digest, TenantId, Timestamp,
        row::{ExecutionKey, PolicyRow, ReadyRow, SettingsRow, TenantRow, TimerRow, UploadRow},
    },
    store::{Error, InHand, ReadyClass, ReadyOrder, ReadyPage, Stats, SweepRow, System},
};

#[async_trait]
impl System for Store {
    fn epoch(&self) -> u64 {
        self.epoch
    }

    fn ended_uncleanly(&self) -> bool {
        self.ended_uncleanly
    }

    async fn mark_redelivery(&self) -> Result<(), Error> {
        self.writer.run(|writer| writer.transact(|connection, _| ready::mark_redelivery(connection))).await
    }

    async fn timers_until(&self, until: Timestamp, limit: usize) -> Result<Vec<TimerRow>, Error> {
        self.read(move |connection| timers::due(connection, until, limit)).await
    }

    async fn ready_counts(&self) -> Result<HashMap<ReadyClass, u64>, Error> {
        self.read(|connection| ready::counts(connection)).await
    }

    async fn ready_page(&self, class: &ReadyClass, order: ReadyOrder, limit: usize) -> Result<ReadyPage, Error> {
        let class = class.clone();
        self.read(move |connection| ready::page(connection, &class, order, limit)).await
    }

    async fn noted(&self) -> Result<ReadyPage, Error> {
        self.read(|connection| ready::noted(connection)).await
    }

    async fn queue_ends_until(&self, until: Timestamp, limit: usize) -> Result<Vec<ReadyRow>, Error> {
        self.read(move |connection| ready::queue_ends(connection, until, limit)).await
    }

    async fn next_queue_end(&self) -> Result<Option<Timestamp>, Error> {
        self.read(|connection| ready::next_queue_end(connection)).await
    }

    async fn sweep_page(&self, after: Option<&ExecutionKey>, limit: usize) -> Result<Vec<SweepRow>, Error> {
        let after = after.cloned();
        self.read(move |connection| executions::sweep_page(connection, after.as_ref(), limit)).await
    }

    async fn unfinished_turns(&self, limit: usize) -> Result<Vec<ExecutionKey>, Error> {
        self.read(move |connection| executions::unfinished_turns(connection, limit)).await
    }

    async fn winding_down(&self, after: Option<&ExecutionKey>, limit: usize) -> Result<Vec<ExecutionKey>, Error> {
        let after = after.cloned();
        self.read(move |connection| executions::winding_down(connection, after.as_ref(), limit)).await
    }

    async fn active_executions(&self) -> Result<u64, Error> {
        self.read(|connection| executions::count_active(connection)).await
    }

    async fn list_tenants(&self, after: Option<(Timestamp, TenantId)>, limit: usize) -> Result<Vec<TenantRow>, Error> {
        self.read(move |connection| tenants::list(connection, after.as_ref(), limit)).await
    }

    async fn policies(&self) -> Result<Vec<PolicyRow>, Error> {
        self.read(|connection| tenants::policies(connection)).await
    }

    async fn settings(&self) -> Result<Vec<SettingsRow>, Error> {
        self.read(|connection| tenants::settings(connection)).await
    }

    async fn tenants(&self) -> Result<Vec<TenantId>, Error> {
        self.read(|connection| modules::tenants(connection)).await
    }

    async fn compiling(&self) -> Result<Vec<(TenantId, UploadRow)>, Error> {
        self.read(|connection| uploads::compiling(connection)).await
    }

    async fn content(&self, digest: &Digest) -> Result<Vec<u8>, Error> {
        let digest = digest.clone();
        self.read(move |connection| modules::bytes_of(connection, &digest)).await
    }

    async fn sweep_chunks(&self) -> Result<usize, Error> {
        self.writer.run(move |writer| writer.transact(|connection, _| uploads::sweep(connection))).await
    }

    async fn prune_keys(&self, now: Timestamp, limit: usize) -> Result<usize, Error> {
        self.writer.run(move |writer| writer.transact(|connection, _| keys::prune(connection, now, limit))).await
    }

    fn note_in_hand(&self, slot: usize, unit: Option<&InHand>) -> Result<(), Error> {
        self.in_hand.note(slot, unit)
    }

    fn found_in_hand(&self) -> Vec<InHand> {
        self.found_in_hand.clone()
    }

    fn stats(&self) -> Stats {
        self.count()
    }

    async fn close(&self) -> Result<(), Error> {
        self.writer.run(|writer| writer.close()).await?;
        self.in_hand.clear()
    }
}
