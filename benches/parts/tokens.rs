//! Sealing and opening the token of a delivery.

use sandkeep::{
    app::Tokens,
    model::{
        Delivery, DeliveryId, ExecutionId, TenantId, Timestamp, UnitKey, WorkerId,
        id::{RunKey, UnitRef},
    },
};

use super::{Failure, harness::Harness};

pub fn measure(harness: &Harness) -> Result<(), Failure> {
    let execution = ExecutionId::new("01995f0e-77f1-7cc3-9d6e-2f1a4a1f2b3c")?;
    let delivery = Delivery {
        unit: UnitRef {
            run: RunKey { tenant: TenantId::default_tenant(), execution, run: 1 },
            unit: UnitKey::new("charge")?,
        },
        attempt: 1,
        id: DeliveryId(0x0123_4567_89ab_cdef_0123_4567_89ab_cdef),
        worker: Some(WorkerId::new("payments-1")?),
        handed_at: Timestamp(1_700_000_000_000),
        deadline: Timestamp(1_700_000_030_000),
    };
    let tokens = Tokens::new(&[7; 32], 42);
    harness.measure("token: seal", || (), |()| Ok(tokens.seal(&delivery)))?;
    let token = tokens.seal(&delivery);
    harness.measure("token: open", || (), |()| tokens.open(&token).ok_or_else(|| "it does not open".into()))
}
