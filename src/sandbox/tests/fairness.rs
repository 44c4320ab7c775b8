//! A spinning guest stops nobody else.

use super::*;
use crate::model::code;

#[tokio::test]
async fn a_quick_neighbour_ends_beside_spinning_guests() {
    let sandbox = sandbox();
    let spinning = inspect(&sandbox, &Guest::spinning()).await;
    let echo = inspect(&sandbox, &Guest::echo()).await;
    let cancels = [Cancel::new(), Cancel::new()];
    let spins = cancels
        .iter()
        .map(|cancel| sandbox.run(&spinning, Attempt { cancel: cancel.clone(), wall: Millis(600_000), ..unhurried() }));
    let neighbour = async {
        for _ in 0..20 {
            let quick = Attempt { info: info("b"), ..attempt() };
            assert!(sandbox.run(&echo, quick).await.unwrap().outcome.is_ok(), "C056");
        }
        cancels.iter().for_each(Cancel::cancel);
    };
    let (spun, ()) = tokio::join!(futures_util::future::join_all(spins), neighbour);
    for finished in spun {
        assert_eq!(code_of(&finished.unwrap()), &code::CANCELLED);
    }
}

#[tokio::test]
async fn a_neighbours_time_is_not_charged() {
    let sandbox = sandbox();
    let module = inspect(&sandbox, &Guest::spinning()).await;
    let both = ["a", "b"].map(|owner| sandbox.run(&module, Attempt { info: info(owner), ..attempt() }));
    for finished in futures_util::future::join_all(both).await {
        let finished = finished.unwrap();
        assert_eq!(code_of(&finished), &code::CPU_LIMIT);
        assert!(finished.usage.cpu_ms >= 100);
        assert!(finished.usage.wall_ms >= finished.usage.cpu_ms);
    }
}
