//! Recorded attempts.

use super::*;
use crate::{
    model::{
        Timestamp,
        id::{RunKey, UnitRef},
        row::RecordingRow,
    },
    store::{Batch, RECORDINGS_MAX, System},
};

fn recording(owner: &str, unit: &str, attempt: u32, bundle: &str) -> RecordingRow {
    let run = RunKey { tenant: id(owner), execution: id("e"), run: 1 };
    let unit = UnitRef { run, unit: id(unit) };
    RecordingRow { unit, attempt, recorded_at: Timestamp(7), bundle: bundle.as_bytes().to_vec() }
}

async fn keep(store: &dyn System, rows: Vec<RecordingRow>) {
    store.commit(Batch { recordings: rows, ..Batch::default() }).await.unwrap();
}

pub(super) async fn an_attempt_that_is_recorded_again_replaces_the_one_before(store: &dyn System) {
    let (first, second) = (recording("default", "a", 1, "{\"n\":1}"), recording("default", "a", 2, "{}"));
    keep(store, vec![first.clone(), second.clone()]).await;
    let again = recording("default", "a", 1, "{\"n\":2}");
    keep(store, vec![again.clone()]).await;
    for (unit, attempt, found) in
        [(&first.unit, 1, Some(again)), (&first.unit, 2, Some(second)), (&first.unit, 3, None)]
    {
        assert_eq!(store.find_recording(unit, attempt).await.unwrap(), found);
    }
    let others = recording("other", "a", 1, "{}").unit;
    assert_eq!(store.find_recording(&others, 1).await.unwrap(), None);
}

pub(super) async fn the_newest_recordings_of_a_tenant_are_kept(store: &dyn System) {
    let others = recording("other", "a", 1, "{}");
    keep(store, vec![others.clone()]).await;
    let many = (0..RECORDINGS_MAX as u32).map(|attempt| recording("default", "a", attempt + 1, "{}"));
    keep(store, many.collect()).await;
    // Kept again it is the newest, so that the second goes for the next one.
    keep(store, vec![recording("default", "a", 1, "{}"), recording("default", "b", 1, "{}")]).await;
    let unit = others.unit.clone();
    assert_eq!(store.find_recording(&unit, 1).await.unwrap(), Some(others));
    for (name, attempt, is_there) in
        [("a", 1, true), ("a", 2, false), ("a", 3, true), ("a", RECORDINGS_MAX as u32, true), ("b", 1, true)]
    {
        let unit = recording("default", name, 1, "").unit;
        assert_eq!(store.find_recording(&unit, attempt).await.unwrap().is_some(), is_there, "{name} {attempt}");
    }
}
