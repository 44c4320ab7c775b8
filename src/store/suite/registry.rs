//! Registered documents, modules, aliases.

use super::*;
use crate::{
    model::{
        Alias, Digest, TenantId, Timestamp, WorkflowName, WorkflowVersion,
        facts::{Share, TaskSpec},
        id::sha256_hex,
        row::{AliasRow, ModuleRow, UploadRow, WorkflowRow},
    },
    store::{AliasBack, Batch, ChunkPut, MOVES_MAX, ModulePut, System, WorkflowPut},
};

fn document(name: &str, version: &str, document: &str, created_at: i64) -> WorkflowPut {
    let row = WorkflowRow {
        name: id(name),
        version: id(version),
        definition_hash: id(&sha256_hex(document.as_bytes())),
        document: document.into(),
        created_at: Timestamp(created_at),
    };
    WorkflowPut { tenant: tenant(), row }
}

fn documents(puts: impl Into<Vec<WorkflowPut>>) -> Batch {
    Batch { workflows: puts.into(), ..Batch::default() }
}

fn version(name: &str, version: &str) -> (TenantId, WorkflowName, WorkflowVersion) {
    (tenant(), id(name), id(version))
}

pub(super) async fn the_first_document_of_a_version_stays(store: &dyn System) {
    let first = document("orders", "1", "{\"a\":\"\\u0000\"}", 1);
    store.commit(documents([first.clone()])).await.unwrap();
    store.commit(documents([document("orders", "1", "{}", 2)])).await.unwrap();
    let found = store.find_workflow(&tenant(), &id("orders"), Some(&id("1"))).await.unwrap();
    assert_eq!(found, Some(first.row));
    assert_eq!(store.find_workflow(&id("other"), &id("orders"), Some(&id("1"))).await.unwrap(), None);
}

pub(super) async fn a_dropped_default_is_no_default(store: &dyn System) {
    let (one, two) = (document("orders", "1", "{}", 1), document("orders", "2", "{}", 2));
    let mut batch = documents([one.clone(), two.clone()]);
    let default = async || store.find_workflow(&tenant(), &id("orders"), None).await.unwrap();
    batch.defaults = vec![version("orders", "1")];
    store.commit(batch).await.unwrap();
    assert_eq!(default().await, Some(one.row.clone()));
    store.commit(Batch { defaults: vec![version("orders", "2")], ..Batch::default() }).await.unwrap();
    assert_eq!(default().await, Some(two.row));
    store.commit(Batch { workflows_drop: vec![version("orders", "2")], ..Batch::default() }).await.unwrap();
    assert_eq!(default().await, None);
    store.commit(Batch { defaults: vec![version("orders", "9")], ..Batch::default() }).await.unwrap();
    assert_eq!(default().await, None, "a default that is not there");
    let dropped = Batch {
        workflows_drop: vec![version("orders", "9")],
        defaults: vec![version("orders", "1")],
        ..Batch::default()
    };
    store.commit(dropped).await.unwrap();
    assert_eq!(default().await, Some(one.row));
}

pub(super) async fn documents_are_listed_newest_first(store: &dyn System) {
    let puts = [("a", "1", 5), ("b", "1", 5), ("b", "2", 5), ("c", "1", 4), ("d", "1", 6)];
    store.commit(documents(puts.map(|(name, version, at)| document(name, version, "{}", at)))).await.unwrap();
    let mut seen = Vec::new();
    let mut after = None;
    loop {
        let page = store.list_workflows(&tenant(), after.take(), 2).await.unwrap();
        let Some(last) = page.last() else { break };
        after = Some((last.created_at, last.name.clone(), last.version.clone()));
        seen.extend(page.iter().map(|row| format!("{}@{}", row.name, row.version)));
    }
    assert_eq!(seen, ["d@1", "b@2", "b@1", "a@1", "c@1"], "C098");
    assert!(store.list_workflows(&id("other"), None, 10).await.unwrap().is_empty());
}

pub(super) async fn a_version_is_in_use_until_its_runs_end(store: &dyn System) {
    let (first, second) = (start(&run("e-1")), start(&run("e-2")));
    let in_use = async |version: &str| store.workflow_in_use(&tenant(), &id("orders"), &id(version)).await.unwrap();
    assert!(!in_use("1").await);
    write(store, [first.clone(), second.clone()]).await;
    assert!(in_use("1").await);
    assert!(!in_use("2").await);
    write(store, [complete(&first)]).await;
    assert!(in_use("1").await);
    write(store, [complete(&second)]).await;
    assert!(!in_use("1").await);
}

/// A module with its bytes.
#[derive(Clone)]
struct Uploaded {
    tenant: TenantId,
    row: ModuleRow,
    content: bytes::Bytes,
}

fn module(owner: &str, name: &str, content: &[u8], created_at: i64) -> Uploaded {
    let task = TaskSpec {
        name: id("orders.price"),
        version: id("1.2"),
        description: Some("prices \0".into()),
        input_schema: Some(serde_json::json!({"type": "object", "maxProperties": 18_446_744_073_709_551_615_u64})),
        output_schema: None,
    };
    let row = ModuleRow {
        name: id(name),
        digest: Digest::of(content),
        size_bytes: content.len() as u64,
        tasks: vec![task],
        imports: vec!["sandkeep:task/log@0.1.0".into()],
        created_at: Timestamp(created_at),
    };
    Uploaded { tenant: id(owner), row, content: content.to_vec().into() }
}

fn modules(puts: impl Into<Vec<Uploaded>>) -> Batch {
    let puts = puts.into();
    Batch {
        chunks: puts.iter().flat_map(|put| ChunkPut::all(&put.row.digest, &put.content)).collect(),
        modules: puts.into_iter().map(|Uploaded { tenant, row, .. }| ModulePut { tenant, row }).collect(),
        ..Batch::default()
    }
}

fn without(put: &Uploaded) -> Batch {
    let row = &put.row;
    Batch { modules_drop: vec![(put.tenant.clone(), row.name.clone(), row.digest.clone())], ..Batch::default() }
}

pub(super) async fn module_bytes_are_shared_and_go_with_the_last(store: &dyn System) {
    let bytes: Vec<u8> = (0..700_000_u32).map(|at| (at % 251) as u8).collect();
    let (first, second) = (module("default", "orders", &bytes, 1), module("other", "prices", &bytes, 2));
    let content =
        async |put: &Uploaded| store.module_content(&put.tenant, &put.row.name, &put.row.digest).await.unwrap();
    store.commit(modules([first.clone()])).await.unwrap();
    assert_eq!(content(&second).await, None, "knowing a digest gives no access");
    store.commit(modules([second.clone(), module("default", "empty", b"", 3)])).await.unwrap();
    assert_eq!(store.tenants().await.unwrap(), [id("default"), id("other")]);
    store.commit(without(&first)).await.unwrap();
    assert_eq!(content(&first).await, None);
    assert!(content(&second).await.as_ref() == Some(&bytes));
    store.commit(without(&second)).await.unwrap();
    assert_eq!(content(&second).await, None);
    assert_eq!(content(&module("default", "empty", b"", 3)).await, Some(Vec::new()));

    // Only what is stored anew is found: the old bytes are gone.
    let other = Uploaded { content: vec![7; bytes.len()].into(), ..first.clone() };
    store.commit(modules([other.clone()])).await.unwrap();
    assert!(content(&first).await == Some(other.content.to_vec()));
}

/// An upload of `content` under a name, and its pieces.
fn upload(owner: &str, name: &str, content: &[u8], reason: Option<&str>) -> Batch {
    let row = UploadRow {
        name: id(name),
        digest: Digest::of(content),
        size_bytes: content.len() as u64,
        reason: reason.map(str::to_owned),
        created_at: Timestamp(7),
    };
    let chunks = ChunkPut::all(&row.digest, &content.to_vec().into());
    Batch { uploads: vec![(id(owner), row)], chunks, ..Batch::default() }
}

pub(super) async fn uploads_keep_their_bytes_until_they_are_modules_or_refused(store: &dyn System) {
    let content = vec![7; 300_000];
    let digest = Digest::of(&content);
    let stored = async || store.content(&digest).await.unwrap().len();
    let all = |tenant: &str, name: &str| vec![(id(tenant), id(name), digest.clone())];
    store.commit(upload("default", "a", &content, None)).await.unwrap();
    store.commit(upload("other", "b", &content, None)).await.unwrap();
    let row = upload("default", "a", &content, None).uploads.remove(0).1;
    assert_eq!(store.list_uploads(&tenant()).await.unwrap(), [row]);
    assert_eq!(store.compiling().await.unwrap().len(), 2);
    assert!(store.content(&digest).await.unwrap() == content);

    // One becomes a module, the other is refused: the module keeps the bytes.
    let put = module("other", "b", &content, 1);
    let kept = Batch {
        modules: vec![ModulePut { tenant: put.tenant, row: put.row }],
        uploads_drop: all("other", "b"),
        ..Batch::default()
    };
    store.commit(kept).await.unwrap();
    let refused = Batch { chunks: Vec::new(), ..upload("default", "a", &content, Some("too \0 large")) };
    store.commit(refused).await.unwrap();
    assert_eq!(store.list_uploads(&tenant()).await.unwrap()[0].reason.as_deref(), Some("too \0 large"));
    assert_eq!(store.list_uploads(&id("other")).await.unwrap(), []);
    assert_eq!((store.compiling().await.unwrap().len(), stored().await), (0, content.len()));
    store.commit(Batch { modules_drop: all("other", "b"), ..Batch::default() }).await.unwrap();
    assert_eq!(stored().await, 0);
    store.commit(Batch { uploads_drop: all("default", "a"), ..Batch::default() }).await.unwrap();
    assert_eq!(store.list_uploads(&tenant()).await.unwrap(), []);
}

pub(super) async fn pieces_that_nobody_needs_are_swept(store: &dyn System) {
    store.commit(upload("default", "a", &[1; 300_000], None)).await.unwrap();
    store.commit(modules([module("default", "b", &[2; 300_000], 1)])).await.unwrap();
    let left = Batch { uploads: Vec::new(), ..upload("default", "c", &[3; 600_000], None) };
    store.commit(left).await.unwrap();
    assert_eq!(store.sweep_chunks().await.unwrap(), 3);
    assert_eq!(store.sweep_chunks().await.unwrap(), 0);
    for (content, bytes) in [([1; 300_000], 300_000), ([2; 300_000], 300_000)] {
        assert_eq!(store.content(&Digest::of(&content)).await.unwrap().len(), bytes);
    }
    assert_eq!(store.content(&Digest::of(&[3; 600_000])).await.unwrap(), [0_u8; 0]);
}

pub(super) async fn modules_and_aliases_are_listed(store: &dyn System) {
    let puts = [("a", "one", 5), ("a", "two", 5), ("b", "one", 5), ("c", "one", 9)];
    let puts = puts.map(|(name, content, at)| module("default", name, content.as_bytes(), at));
    store.commit(modules(puts.clone())).await.unwrap();
    store
        .commit(modules([Uploaded {
            row: ModuleRow { created_at: Timestamp(99), ..puts[0].row.clone() },
            ..puts[0].clone()
        }]))
        .await
        .unwrap();
    let page = async |name: Option<&str>| {
        let name = name.map(id);
        let (mut seen, mut after) = (Vec::new(), None);
        loop {
            let page = store.list_modules(&tenant(), name.as_ref(), after.take(), 2).await.unwrap();
            let Some(last) = page.last() else { break seen };
            after = Some((last.created_at, last.name.clone(), last.digest.clone()));
            seen.extend(page);
        }
    };
    let mut expected: Vec<_> = puts.iter().map(|put| put.row.clone()).collect();
    expected.sort_by_key(|row| std::cmp::Reverse((row.created_at, row.name.clone(), row.digest.clone())));
    assert_eq!(page(None).await, expected);
    expected.retain(|row| row.name.as_str() == "a");
    assert_eq!(page(Some("a")).await, expected);
    assert_eq!(page(Some("none")).await, []);

    let alias = |module: &str, alias: &str, digest: &Digest, at| (tenant(), named(module, alias, digest, at));
    let (one, two) = (&puts[0].row.digest, &puts[1].row.digest);
    let aliases = vec![alias("b", "live", one, 1), alias("a", "live", one, 1), alias("a", "beta", one, 1)];
    store.commit(Batch { aliases, ..Batch::default() }).await.unwrap();
    let moved = Batch {
        aliases: vec![alias("a", "live", two, 2)],
        aliases_drop: vec![(tenant(), id("b"), id("live"))],
        ..Batch::default()
    };
    store.commit(moved).await.unwrap();
    let expected = [alias("a", "beta", one, 1).1, alias("a", "live", two, 2).1];
    assert_eq!(store.list_aliases(&tenant()).await.unwrap(), expected);
    assert_eq!(store.list_aliases(&id("other")).await.unwrap(), []);
}

/// Returns the row of an alias that names one digest.
fn named(module: &str, alias: &str, digest: &Digest, at: i64) -> AliasRow {
    AliasRow {
        module: id(module),
        alias: id(alias),
        digest: digest.clone(),
        split: Vec::new(),
        moved_at: Timestamp(at),
    }
}

async fn move_to(store: &dyn System, row: AliasRow) {
    store.commit(Batch { aliases: vec![(tenant(), row)], ..Batch::default() }).await.unwrap();
}

pub(super) async fn an_alias_remembers_what_it_named(store: &dyn System) {
    let moves = async || store.alias_moves(&tenant(), &id("a"), &Alias::live()).await.unwrap();
    let row = |n: u8, at| named("a", "live", &Digest::of(&[n]), at);
    let share = |n: u8| Share { digest: Digest::of(&[n]), percent: 50 };
    let split = AliasRow { split: vec![share(1), share(2)], ..row(1, 3) };
    for row in [row(1, 1), row(2, 2), row(2, 9), split.clone(), row(3, 4)] {
        move_to(store, row).await;
    }
    move_to(store, named("b", "live", &Digest::of(&[7]), 1)).await;
    assert_eq!(moves().await, [(3, split.clone()), (2, row(2, 9)), (1, row(1, 1))]);
    assert_eq!(store.list_aliases(&tenant()).await.unwrap()[0], row(3, 4));
    let back = AliasBack { tenant: tenant(), row: split.clone(), number: 3 };
    store.commit(Batch { aliases_back: vec![back], ..Batch::default() }).await.unwrap();
    assert_eq!(store.list_aliases(&tenant()).await.unwrap()[0], split);
    assert_eq!(moves().await, [(2, row(2, 9)), (1, row(1, 1))], "a way back is taken once");
    for at in 0..150 {
        move_to(store, row(u8::try_from(at % 2).unwrap(), at)).await;
    }
    assert_eq!(moves().await.len(), MOVES_MAX);
    assert_eq!(moves().await[0].1, row(0, 148));
    let dropped = Batch { aliases_drop: vec![(tenant(), id("a"), Alias::live())], ..Batch::default() };
    store.commit(dropped).await.unwrap();
    assert_eq!(moves().await, []);
}

pub(super) async fn what_is_needed_is_not_removed(store: &dyn System) {
    let puts = [b"one", b"two", b"six"].map(|content| module("default", "a", content, 1));
    let [one, two, six] = puts.each_ref().map(|put| put.row.digest.clone());
    store.commit(modules(puts.clone())).await.unwrap();
    let left = async || {
        for put in &puts {
            store.commit(without(put)).await.unwrap();
        }
        let rows = store.list_modules(&tenant(), None, None, 10).await.unwrap();
        let mut left: Vec<_> = rows.into_iter().map(|row| row.digest).collect();
        left.sort_by_key(|digest| [&one, &two, &six].iter().position(|other| *other == digest));
        left
    };
    let share = |digest: &Digest| Share { digest: digest.clone(), percent: 50 };
    move_to(store, named("a", "old", &six, 1)).await;
    move_to(store, AliasRow { split: vec![share(&one), share(&two)], ..named("a", "live", &one, 1) }).await;
    move_to(store, named("a", "old", &one, 2)).await;
    assert_eq!(left().await, [one.clone(), two.clone()], "an alias names them");
    assert_eq!(
        store.alias_moves(&tenant(), &id("a"), &id("old")).await.unwrap(),
        [],
        "there is no way back to what is gone"
    );
    let mut run = start(&run("e-1"));
    run.pins_put = vec![(id("a"), two.clone())];
    write(store, [run.clone()]).await;
    move_to(store, named("a", "live", &one, 3)).await;
    assert_eq!(left().await, [one.clone(), two.clone()], "C074 a live run needs it");
    assert!(store.module_content(&tenant(), &id("a"), &puts[1].row.digest).await.unwrap().is_some());
    write(store, [complete(&run)]).await;
    assert_eq!(left().await, [one]);
    assert_eq!(store.module_content(&tenant(), &id("a"), &puts[1].row.digest).await.unwrap(), None);
}

pub(super) async fn a_live_run_pins_its_digests(store: &dyn System) {
    let (first, second) = (start(&run("e-1")), start(&run("e-2")));
    let (one, two) = (Digest::of(b"one"), Digest::of(b"two"));
    let pinned = |change: &crate::store::Change, digests: &[&Digest]| {
        let mut change = change.clone();
        change.pins_put = digests.iter().map(|digest| (id("a"), (*digest).clone())).collect();
        change
    };
    write(store, [pinned(&first, &[&one, &two]), pinned(&second, &[&one])]).await;
    let by = async |digest: &Digest, after: Option<&str>, limit| {
        let after = after.map(id);
        let found = store.pinned_by(&tenant(), &id("a"), digest, after.as_ref(), limit).await.unwrap();
        found.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(by(&one, None, 10).await, ["e-1", "e-2"]);
    assert_eq!(by(&one, None, 1).await, ["e-1"]);
    assert_eq!(by(&one, Some("e-1"), 10).await, ["e-2"]);
    assert_eq!(by(&two, None, 10).await, ["e-1"]);
    assert!(store.pinned_by(&id("other"), &id("a"), &one, None, 10).await.unwrap().is_empty());
    assert!(store.pinned_by(&tenant(), &id("b"), &one, None, 10).await.unwrap().is_empty());
    let mut moved = follow(&first, vec![crate::model::event::WorkflowStarted {}.into()]);
    moved.pins_drop = vec![(id("a"), one.clone())];
    moved.pins_put = vec![(id("a"), two.clone())];
    write(store, [moved]).await;
    assert_eq!(by(&one, None, 10).await, ["e-2"]);
    assert_eq!(by(&two, None, 10).await, ["e-1"], "a pin that is there already is no error");
    write(store, [complete(&second)]).await;
    assert!(by(&one, None, 10).await.is_empty());
}
