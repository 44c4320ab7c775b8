//! Many timers that are due close together: how late each of them fires.

use std::{sync::Arc, time::Duration};

use serde::Serialize;
use serde_json::json;
use tokio::{
    sync::Semaphore,
    task::JoinSet,
    time::{Instant, sleep_until},
};

use super::{Failure, api::Api, drive::quantile};

/// How many start requests, and later history requests, are on their way at once.
const CONCURRENCY: usize = 256;

/// What was measured.
#[derive(Debug, Serialize)]
pub struct Line {
    scenario: &'static str,
    timers: usize,
    within_s: f64,
    late_p50_ms: Option<f64>,
    late_p99_ms: Option<f64>,
    late_max_ms: Option<f64>,
}

/// Starts `count` executions evenly over `within`, each of which sleeps for longer than that, and reads from their
/// histories how much later than due each timer fired.
pub async fn measure(api: &Api, count: usize, within: Duration) -> Result<Line, Failure> {
    let sleep = within + Duration::from_secs(5);
    api.register(&json!({
        "ir_version": "sandkeep-ir/1",
        "name": "timers",
        "version": "1",
        "steps": [{ "id": "nap", "sleep": format!("{}ms", sleep.as_millis()) }],
    }))
    .await?;
    let begin = Instant::now();
    let places = Arc::new(Semaphore::new(CONCURRENCY));
    let mut starts = JoinSet::new();
    for number in 0..count {
        sleep_until(begin + within.mul_f64(number as f64 / count as f64)).await;
        let (api, place) = (api.clone(), Arc::clone(&places).acquire_owned().await?);
        starts.spawn(async move {
            let id = api.start("timers").await;
            drop(place);
            id
        });
    }
    let ids: Vec<String> = starts.join_all().await.into_iter().collect::<Result<_, _>>()?;
    sleep_until(Instant::now() + sleep).await;

    let mut looks = JoinSet::new();
    for id in ids {
        let (api, places) = (api.clone(), Arc::clone(&places));
        looks.spawn(async move {
            let _place = places.acquire().await?;
            api.wait(&id).await?;
            api.lateness_ms(&id).await
        });
    }
    let late: Vec<f64> = looks.join_all().await.into_iter().collect::<Result<_, Failure>>()?;
    Ok(Line {
        scenario: "timers",
        timers: count,
        within_s: within.as_secs_f64(),
        late_p50_ms: quantile(&late, 0.5),
        late_p99_ms: quantile(&late, 0.99),
        late_max_ms: quantile(&late, 1.0),
    })
}
