//! `wasi:io/poll` through the tape, and with a bound on what can be waited for at once: a list may name one handle any
//! number of times.

use wasmtime::component::{HasData, Resource};
use wasmtime_wasi::{
    WasiView,
    p2::{
        DynPollable,
        bindings::io::poll::{Host, HostPollable},
    },
};

use super::{Exceeded, State};

/// What an attempt may wait for.
pub(super) struct Waits<'a>(pub(super) &'a mut State);

pub(super) struct HasWaits;

impl HasData for HasWaits {
    type Data<'a> = Waits<'a>;
}

impl Host for Waits<'_> {
    async fn poll(&mut self, pollables: Vec<Resource<DynPollable>>) -> wasmtime::Result<Vec<u32>> {
        let max = self.0.limits.host_handles;
        if pollables.len() > max {
            return Err(Exceeded::Poll { asked: pollables.len(), max }.into());
        }
        if let Some(ready) = self.0.tape.next_ready(pollables.len()) {
            for index in &ready {
                let pollable = Resource::new_borrow(pollables[*index as usize].rep());
                self.0.ctx().table.block(pollable).await?;
            }
            return Ok(ready);
        }
        let ready = self.0.ctx().table.poll(pollables).await?;
        self.0.tape.keep_ready(&ready);
        Ok(ready)
    }
}

impl HostPollable for Waits<'_> {
    async fn ready(&mut self, pollable: Resource<DynPollable>) -> wasmtime::Result<bool> {
        // As a wait for one handle that does not wait.
        if let Some(ready) = self.0.tape.next_ready(1) {
            let is_ready = !ready.is_empty();
            if is_ready {
                self.0.ctx().table.block(pollable).await?;
            }
            return Ok(is_ready);
        }
        let is_ready = self.0.ctx().table.ready(pollable).await?;
        self.0.tape.keep_ready(if is_ready { &[0] } else { &[] });
        Ok(is_ready)
    }

    async fn block(&mut self, pollable: Resource<DynPollable>) -> wasmtime::Result<()> {
        self.0.ctx().table.block(pollable).await
    }

    fn drop(&mut self, pollable: Resource<DynPollable>) -> wasmtime::Result<()> {
        HostPollable::drop(self.0.ctx().table, pollable)
    }
}
