//! What one attempt sends: permits, counts, and the bytes that wait to be sent.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
};

use tokio::sync::Notify;

use crate::model::{EgressPolicy, TenantId, row::LogLevel};

use super::{
    super::{Grant, Limits, journal::Journal},
    refusal::Refusal,
    target::Target,
};

/// What one attempt sends. Shared by its guest and the requests under way.
pub(in super::super) struct Outgoing {
    pub(super) tenant: TenantId,
    limits: Limits,
    grant: Arc<Grant>,
    journal: Option<Journal>,
    /// Permits given in all, and those that are out.
    permits: AtomicU32,
    under_way: AtomicU32,
    requests: AtomicU32,
    sent_bytes: AtomicU64,
    received_bytes: AtomicU64,
    /// Bytes of bodies that the guest has written and no connection has taken, and bodies that are being sent.
    waiting_bytes: AtomicU64,
    sending: AtomicU32,
    moved: Notify,
    over: AtomicBool,
}

/// What an attempt sent and received, in all.
#[derive(Clone, Copy, Debug, Default)]
pub(in super::super) struct Counts {
    pub(in super::super) requests: u64,
    pub(in super::super) sent_bytes: u64,
    pub(in super::super) received_bytes: u64,
}

impl Outgoing {
    /// Begins the count of an attempt. Outside an attempt there is no tenant, and a grant that lists nothing.
    pub(in super::super) fn new(
        tenant: TenantId,
        limits: Limits,
        grant: Arc<Grant>,
        journal: Option<Journal>,
    ) -> Arc<Self> {
        Arc::new(Self {
            tenant,
            limits,
            grant,
            journal,
            permits: AtomicU32::new(0),
            under_way: AtomicU32::new(0),
            requests: AtomicU32::new(0),
            sent_bytes: AtomicU64::new(0),
            received_bytes: AtomicU64::new(0),
            waiting_bytes: AtomicU64::new(0),
            sending: AtomicU32::new(0),
            moved: Notify::new(),
            over: AtomicBool::new(false),
        })
    }

    pub(in super::super) fn limits(&self) -> &Limits {
        &self.limits
    }

    pub(super) fn policy(&self) -> &EgressPolicy {
        &self.grant.egress
    }

    /// Gives a permit for one more request, where the attempt may have it.
    pub(super) fn permit(self: &Arc<Self>) -> Result<Permit, Refusal> {
        let Limits { egress_requests, egress_concurrent, .. } = self.limits;
        let take = |counter: &AtomicU32, max: u32| {
            let next = |number: u32| number.checked_add(1).filter(|number| *number <= max);
            counter.try_update(Ordering::Relaxed, Ordering::Relaxed, next).is_ok()
        };
        if !take(&self.under_way, egress_concurrent) {
            return Err(Refusal::TooManyAtOnce { max: egress_concurrent });
        }
        let permit = Permit(Arc::clone(self));
        if take(&self.permits, egress_requests) { Ok(permit) } else { Err(Refusal::TooMany { max: egress_requests }) }
    }

    /// Tells the author why a request was not sent.
    pub(super) fn tell(&self, refusal: &Refusal, target: Option<&Target>) {
        if let Some(journal) = &self.journal {
            journal.line(LogLevel::Warn, refusal.sentence(), Some(refusal.fields(target)));
        }
        tracing::debug!(tenant = %self.tenant, refusal = %refusal, "an outgoing request was denied");
    }

    pub(super) fn count_request(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn count_received(&self, bytes: usize) {
        self.received_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Notes that `bytes` wait to be sent.
    pub(in super::super) fn wrote(&self, bytes: usize) {
        self.waiting_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Notes that `bytes` wait no longer, because they were `sent` or their body is gone.
    pub(super) fn took(&self, bytes: usize, sent: bool) {
        let less = |waiting: u64| Some(waiting.saturating_sub(bytes as u64));
        // The closure always has an answer.
        let _ = self.waiting_bytes.try_update(Ordering::Relaxed, Ordering::Relaxed, less);
        if sent {
            self.sent_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        }
        self.moved.notify_waiters();
    }

    /// Returns how many more bytes may wait to be sent.
    pub(in super::super) fn room(&self) -> u64 {
        self.limits.egress_body_bytes.saturating_sub(self.waiting_bytes.load(Ordering::Relaxed))
    }

    /// Returns whether any body is being sent, so that waiting for room makes sense.
    pub(in super::super) fn is_sending(&self) -> bool {
        self.sending.load(Ordering::Acquire) > 0
    }

    pub(super) fn begin_sending(&self) {
        self.sending.fetch_add(1, Ordering::AcqRel);
    }

    pub(super) fn end_sending(&self) {
        self.sending.fetch_sub(1, Ordering::AcqRel);
        self.moved.notify_waiters();
    }

    /// Is notified when bytes were taken or a body is no longer sent.
    pub(in super::super) fn moved(&self) -> &Notify {
        &self.moved
    }

    /// Ends it: a body that is not finished by now never will be, and must not look as if it were.
    pub(in super::super) fn end(&self) -> Counts {
        self.over.store(true, Ordering::Release);
        Counts {
            requests: self.requests.load(Ordering::Relaxed).into(),
            sent_bytes: self.sent_bytes.load(Ordering::Relaxed),
            received_bytes: self.received_bytes.load(Ordering::Relaxed),
        }
    }

    pub(super) fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }
}

/// The right to have one request under way; given back when it is dropped.
pub(super) struct Permit(Arc<Outgoing>);

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.under_way.fetch_sub(1, Ordering::Relaxed);
    }
}
