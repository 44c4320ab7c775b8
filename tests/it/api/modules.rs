//! Modules: uploads that are taken and uploads that are not.

use serde_json::json;

use super::keys;
use crate::support::{Answer, Client, Server, guest};

async fn upload(client: &Client, name: &str, bytes: impl Into<reqwest::Body>) -> Answer {
    let request = client.http().post(client.at(&format!("/v1/modules/{name}")));
    client.ask(request.header("content-type", "application/wasm").body(bytes)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_bytes_are_one_module() {
    let server = Server::start().await;
    let client = server.client();
    let bytes = guest("hello");
    let new = upload(&client, "hello", bytes.clone()).await;
    let module = new.json();
    assert_eq!(new.status, 201, "{module}");
    let fields = ["aliases", "created_at_ms", "digest", "imports", "name", "size_bytes", "state", "tasks"];
    assert_eq!(keys(&module), fields);
    assert_eq!(
        (&module["name"], &module["aliases"], &module["state"]),
        (&json!("hello"), &json!(["live"]), &json!("ready"))
    );
    assert_eq!(module["size_bytes"], json!(bytes.len()));
    let again = upload(&client, "hello", bytes.clone()).await;
    assert_eq!((again.status, again.json()), (200, module.clone()));
    let digest = module["digest"].as_str().unwrap();
    for path in ["/v1/modules/hello".to_owned(), format!("/v1/modules/hello/{digest}")] {
        assert_eq!(client.get(&path).await, (200, module.clone()));
    }
    let content = client.http().get(client.at(&format!("/v1/modules/hello/{digest}/content"))).send().await.unwrap();
    assert_eq!(content.headers()["content-type"], "application/wasm");
    assert!(content.bytes().await.unwrap() == bytes);
    let list = client.get("/v1/modules").await.1;
    assert_eq!(list, json!({ "modules": [module], "next_cursor": null }));
    // A second module that describes the same tasks is kept, but what is live stays.
    let second = upload(&client, "other", bytes).await;
    assert_eq!(second.verdict(), (409, "TASK_AMBIGUOUS".to_owned()));
    assert!(second.message().contains("hello"), "{}", second.text);
    let builtin = upload(&client, "shadow", guest("builtin")).await;
    assert_eq!(builtin.verdict(), (409, "TASK_AMBIGUOUS".to_owned()));
    assert!(builtin.message().contains("built in"), "{}", builtin.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_hosted_is_refused_with_its_remedy() {
    let server = Server::start().await;
    let client = server.client();
    let whole = guest("hello");
    let core = b"\0asm\x01\0\0\0".to_vec();
    let empty_component = b"\0asm\x0d\0\x01\0".to_vec();
    let elf = b"\x7fELF\x02\x01\x01\0".to_vec();
    for (what, bytes) in [
        ("text", b"(component)".to_vec()),
        ("nothing", Vec::new()),
        ("a cut file", whole[..whole.len() / 2].to_vec()),
        (
            "a changed file",
            whole.iter().enumerate().map(|(at, byte)| if at % 997 == 996 { !byte } else { *byte }).collect(),
        ),
        ("a core module", core),
        ("a component without exports", empty_component),
        ("a native program", elf),
    ] {
        let answer = upload(&client, "bad", bytes).await;
        assert_eq!(answer.verdict(), (422, "MODULE_REJECTED".to_owned()), "{what}: {}", answer.text);
        assert!(answer.message().len() > 40, "{what} says what helps: {}", answer.message());
    }
    assert_eq!(client.get("/v1/modules").await.1["modules"], json!([]), "nothing of it was kept");
    let json = client.http().post(client.at("/v1/modules/bad")).header("content-type", "application/json").body("{}");
    assert_eq!(client.ask(json).await.status, 415);
    assert_eq!(upload(&client, "Bad Name", whole.clone()).await.status, 400);
    let large = vec![0_u8; 64 * 1024 * 1024 + 1];
    let request = client.http().post(client.at("/v1/modules/large")).body(large);
    // The answer may be overtaken by the end of the connection: the body is not taken in.
    if let Ok(answer) = request.send().await {
        assert_eq!(answer.status(), 413);
    }
    assert_eq!(upload(&client, "hello", whole).await.status, 201);
}

#[tokio::test(flavor = "multi_thread")]
async fn modules_are_paged() {
    let server = Server::start().await;
    let client = server.client();
    for name in ["hello", "orders", "hostile"] {
        client.push(name).await;
    }
    let (_, first) = client.get("/v1/modules?limit=2").await;
    let cursor = first["next_cursor"].as_str().unwrap();
    let (_, second) = client.get(&format!("/v1/modules?limit=2&cursor={cursor}")).await;
    let names = [&first, &second].map(|page| {
        page["modules"].as_array().unwrap().iter().map(|module| module["name"].as_str().unwrap()).collect::<Vec<_>>()
    });
    assert_eq!(names, [vec!["hostile", "orders"], vec!["hello"]]);
    assert!(second["next_cursor"].is_null());
}
