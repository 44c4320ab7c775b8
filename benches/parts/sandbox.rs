//! One sandboxed call: a fresh instance with all limits on, thread hops included. `examples/raw_call.rs` puts it beside
//! bare wasmtime.

use sandkeep::{
    model::{
        ExecutionId, Millis, Payload, RunKey, TaskName, TenantId, UnitKey, WorkflowName, WorkflowVersion, id::UnitRef,
    },
    sandbox::{Attempt, Cancel, Config, Info, Progress, Sandbox},
};

use super::{Failure, harness::Harness};

const NAME: &str = "sandbox: call core.echo";
const INPUT: &str = r#"{"n":1}"#;

pub fn measure(harness: &Harness) -> Result<(), Failure> {
    if !harness.wants(NAME) {
        return Ok(());
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/guests/dist/builtin.wasm");
    let bytes = std::fs::read(path).map_err(|error| format!("{path}: {error}; run scripts/setup"))?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let sandbox = {
        let _entered = runtime.enter();
        Sandbox::new(Config::default())?
    };
    let module = runtime.block_on(sandbox.inspect(&TenantId::default_tenant(), bytes.into()))?.module;
    let info = info()?;
    let input = Payload::parse(INPUT.as_bytes())?;
    let attempt = || Attempt {
        info: info.clone(),
        input: input.clone(),
        limits: sandbox.limits(),
        wall: Millis(60_000),
        progress: Progress::default(),
        cancel: Cancel::new(),
    };
    harness.measure(NAME, attempt, |attempt| {
        let finished = runtime.block_on(sandbox.run(&module, attempt))?;
        match finished.outcome {
            Ok(output) if output.as_str() == INPUT => Ok(()),
            other => Err(format!("it did not echo: {other:?}").into()),
        }
    })?;
    sandbox.shutdown();
    Ok(())
}

fn info() -> Result<Info, Failure> {
    Ok(Info {
        unit: UnitRef {
            run: RunKey { tenant: TenantId::default_tenant(), execution: ExecutionId::new("e")?, run: 1 },
            unit: UnitKey::new("u")?,
        },
        workflow: WorkflowName::new("w")?,
        workflow_version: WorkflowVersion::new("1")?,
        task: TaskName::new("core.echo")?,
        attempt: 1,
        redelivery: false,
        deadline: None,
    })
}
