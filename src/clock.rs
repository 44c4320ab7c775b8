//! Clocks: the real one, and one that tests move by hand. Times in documents and histories are always of such a clock.

use std::{
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use tokio::sync::watch;

use crate::model::{Millis, Timestamp};

/// A clock. Cheap to clone; clones show the same time.
#[derive(Clone, Debug)]
pub struct Clock(Kind);

#[derive(Clone, Debug)]
enum Kind {
    System,
    Manual(Arc<watch::Sender<Timestamp>>),
}

/// A wait is looked at again after this long, whatever was computed, so that a step of the wall clock is noticed.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

impl Clock {
    /// Returns the machine's wall clock.
    pub fn system() -> Self {
        Self(Kind::System)
    }

    /// Returns a clock that stands still until it is moved.
    pub fn manual(start: Timestamp) -> Self {
        Self(Kind::Manual(Arc::new(watch::Sender::new(start))))
    }

    /// Returns the time.
    pub fn now(&self) -> Timestamp {
        match &self.0 {
            Kind::System => {
                let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
            }
            Kind::Manual(time) => *time.borrow(),
        }
    }

    /// Waits until the clock shows `until` or later.
    pub async fn sleep_until(&self, until: Timestamp) {
        match &self.0 {
            Kind::System => loop {
                let left = until.since(self.now());
                if left == Millis(0) {
                    return;
                }
                tokio::time::sleep(Duration::from(left).min(LOOK_AGAIN)).await;
            },
            Kind::Manual(time) => {
                let mut time = time.subscribe();
                // The sender is held by `self`, so that it cannot have gone.
                let _ = time.wait_for(|now| *now >= until).await;
            }
        }
    }

    /// Moves a manual clock forward; the real one is left alone.
    pub fn advance(&self, span: Millis) {
        if let Kind::Manual(time) = &self.0 {
            time.send_modify(|now| *now = now.after(span));
        }
    }
}
