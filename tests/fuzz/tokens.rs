//! Delivery tokens: whatever is not made here is not taken.

use sandkeep::{
    app::Tokens,
    model::{
        Delivery, DeliveryId, ExecutionId, TenantId, Timestamp, UnitKey, WorkerId,
        id::{RunKey, UnitRef},
    },
};

use crate::{SHARE, driver::Fuzz};

fn delivery(number: u32) -> Delivery {
    let run = RunKey {
        tenant: TenantId::default_tenant(),
        execution: ExecutionId::new(format!("e-{number}")).unwrap(),
        run: number,
    };
    Delivery {
        unit: UnitRef { run, unit: UnitKey::new("lines[3].charge").unwrap() },
        attempt: number,
        id: DeliveryId(u128::from(number)),
        worker: number.is_multiple_of(2).then(|| WorkerId::new("till-1").unwrap()),
        handed_at: Timestamp(i64::from(number)),
        deadline: Timestamp(i64::MAX),
    }
}

#[test]
fn tokens_of_others_are_not_taken() {
    let tokens = Tokens::new(&[7; 32], 3);
    let foreign = [Tokens::new(&[8; 32], 3), Tokens::new(&[7; 32], 4)];
    let own: Vec<String> = (1..8).map(|number| tokens.seal(&delivery(number))).collect();
    let mut samples: Vec<Vec<u8>> = own.iter().map(|token| token.clone().into_bytes()).collect();
    samples.extend(foreign.iter().map(|foreign| foreign.seal(&delivery(1)).into_bytes()));
    Fuzz { name: "tokens", time: SHARE / 4, samples, words: &["A", "-", "_", "=", "AAAA"] }.run(|bytes| {
        let text = String::from_utf8_lossy(bytes);
        match tokens.open(&text) {
            Some(delivery) => assert_eq!(tokens.seal(&delivery), text, "it opens and was not made here"),
            None => assert!(!own.iter().any(|token| *token == text), "it was made here"),
        }
    });
}
