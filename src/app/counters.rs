//! What the server counts, and its text for Prometheus. No run, worker or user text is ever a label.

use std::{
    fmt::Write as _,
    sync::atomic::{AtomicU64, Ordering},
};

macro_rules! counters {
    ($($name:ident $metric:literal $help:literal;)*) => {
        /// Counters since the start of the process.
        #[derive(Default)]
        pub(super) struct Counters { $(pub(super) $name: AtomicU64,)* sizes: [AtomicU64; SIZES.len() + 1] }

        impl Counters {
            fn write(&self, text: &mut String) {
                $(write_metric(text, $metric, "counter", $help, self.$name.load(Ordering::Relaxed));)*
            }
        }
    };
}

counters! {
    batches "sandkeep_batches_total" "Batches of changes that were committed.";
    batch_changes "sandkeep_batch_changes_total" "Changes of executions in those batches.";
    commit_failures "sandkeep_commit_failures_total" "Commits that failed as a whole.";
    races "sandkeep_races_total" "Changes that lost a race and were decided again.";
    repairs "sandkeep_repairs_total" "Executions whose rows the sweep repaired.";
    stale_reports "sandkeep_stale_reports_total" "Reports that came too late to count.";
    losses "sandkeep_lost_deliveries_total" "Deliveries that were lost.";
    returns "sandkeep_returned_deliveries_total" "Deliveries that were given back without an attempt being spent.";
    handed_workers "sandkeep_deliveries_worker_total" "Deliveries to native workers.";
    handed_sandbox "sandkeep_deliveries_sandbox_total" "Deliveries to the sandbox.";
    timers_fired "sandkeep_timers_fired_total" "Timers that came due.";
    unreadable "sandkeep_unreadable_units_total" "Ready units that were set aside because they cannot be read.";
}

/// Upper bounds of the buckets of batch sizes.
const SIZES: [u64; 8] = [1, 2, 4, 8, 16, 64, 256, 1_024];

impl Counters {
    /// Counts a committed batch.
    pub(super) fn batch(&self, changes: usize) {
        let changes = u64::try_from(changes).unwrap_or(u64::MAX);
        self.batches.fetch_add(1, Ordering::Relaxed);
        self.batch_changes.fetch_add(changes, Ordering::Relaxed);
        let bucket = SIZES.iter().position(|bound| changes <= *bound).unwrap_or(SIZES.len());
        self.sizes[bucket].fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a commit that failed.
    pub(super) fn commit_failed(&self) {
        self.commit_failures.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a change that lost its race.
    pub(super) fn race(&self) {
        self.races.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns all counters as Prometheus text.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        self.write(&mut text);
        let metric = "sandkeep_batch_size";
        let _ = writeln!(text, "# HELP {metric} Changes in a batch.\n# TYPE {metric} histogram");
        let mut sum = 0;
        for (at, count) in self.sizes.iter().enumerate() {
            sum += count.load(Ordering::Relaxed);
            let bound = SIZES.get(at).map_or("+Inf".to_owned(), u64::to_string);
            let _ = writeln!(text, "{metric}_bucket{{le=\"{bound}\"}} {sum}");
        }
        let total = self.batch_changes.load(Ordering::Relaxed);
        let _ = writeln!(text, "{metric}_sum {total}\n{metric}_count {sum}");
        text
    }
}

/// Adds one metric without labels.
pub(super) fn write_metric(text: &mut String, metric: &str, kind: &str, help: &str, value: u64) {
    // Writing to a string does not fail.
    let _ = writeln!(text, "# HELP {metric} {help}\n# TYPE {metric} {kind}\n{metric} {value}");
}

/// Adds one to a counter.
pub(super) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}
