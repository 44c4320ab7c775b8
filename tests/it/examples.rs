//! The examples as their users run them: pushed to a real server and called by a workflow, with real input.

use std::time::Duration;

use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use serde_json::{Value, json};

use crate::support::{Client, Server, guest, marked, workflow};

/// Engines of languages are large, and tests compile them beside each other.
const COMPILE_PATIENCE: Duration = Duration::from_secs(300);

/// Uploads an example and waits until it is ready.
async fn push(client: &Client, name: &str) {
    push_marked(client, name, "").await;
}

/// The same with a section that says `mark`, where there is one.
async fn push_marked(client: &Client, name: &str, mark: &str) {
    let bytes = if mark.is_empty() { guest(name) } else { marked(&guest(name), mark) };
    let path = format!("/v1/modules/{name}");
    let upload = client.http().post(client.at(&path)).header("content-type", "application/wasm").body(bytes);
    let (status, mut module) = client.send(upload).await.expect("the server answers");
    assert!(matches!(status, 200..=202), "{name}: {status} {module}");
    let end = tokio::time::Instant::now() + COMPILE_PATIENCE;
    while module["state"] != "ready" {
        assert_eq!(module["state"], "compiling", "{name}: {module}");
        assert!(tokio::time::Instant::now() < end, "{name} is not ready within {COMPILE_PATIENCE:?}");
        tokio::time::sleep(Duration::from_millis(100)).await;
        module = client.get(&path).await.1;
    }
}

/// Runs one task as the only step of a workflow; returns the state of the execution.
async fn call(client: &Client, id: &str, task: &str, input: Value) -> Value {
    let steps = json!([{ "id": "a", "task": task, "input": "${ input }", "retry": { "max_attempts": 1 } }]);
    let mut document = workflow(&task.replace('.', "-"), steps);
    document["result"] = "${ steps.a.output }".into();
    client.run(&document, id, input).await
}

/// Returns what a task answers.
async fn output(client: &Client, id: &str, task: &str, input: Value) -> Value {
    let state = call(client, id, task, input).await;
    assert_eq!(state["status"], "COMPLETED", "{task}: {state}");
    state["output"].clone()
}

/// Asserts the code by which a task refuses an input, and that it is the task's own.
async fn check_refused(client: &Client, id: &str, task: &str, input: Value, code: &str) {
    let state = call(client, id, task, input).await;
    assert_eq!((&state["status"], &state["error"]["code"]), (&json!("FAILED"), &json!(code)), "{task}: {state}");
    assert_eq!(state["error"]["origin"], "task", "{task}: {state}");
}

/// Writes a PNG: a gradient, eight bits a channel, its pixels stored as they are.
fn png(width: u32, height: u32) -> Vec<u8> {
    let mut pixels = Vec::new();
    for y in 0..height {
        // Each line begins with its filter: none.
        pixels.push(0);
        pixels.extend((0..width).flat_map(|x| [(x % 256) as u8, (y % 256) as u8, 128]));
    }
    let mut file = b"\x89PNG\r\n\x1a\n".to_vec();
    chunk(&mut file, b"IHDR", &[&width.to_be_bytes(), &height.to_be_bytes(), &[8, 2, 0, 0, 0][..]].concat());
    chunk(&mut file, b"IDAT", &stored(&pixels));
    chunk(&mut file, b"IEND", &[]);
    file
}

fn chunk(file: &mut Vec<u8>, kind: &[u8; 4], content: &[u8]) {
    let checked = [&kind[..], content].concat();
    file.extend(u32::try_from(content.len()).unwrap().to_be_bytes());
    file.extend(&checked);
    let step = |crc: u32, _| if crc & 1 == 1 { (crc >> 1) ^ 0xedb8_8320 } else { crc >> 1 };
    let crc = !checked.iter().fold(!0, |crc, &byte| (0..8).fold(crc ^ u32::from(byte), step));
    file.extend(crc.to_be_bytes());
}

/// Wraps bytes as zlib does, without compressing them.
fn stored(bytes: &[u8]) -> Vec<u8> {
    let mut stream = vec![0x78, 0x01];
    let mut blocks = bytes.chunks(0xffff).peekable();
    while let Some(block) = blocks.next() {
        let length = u16::try_from(block.len()).unwrap();
        stream.push(u8::from(blocks.peek().is_none()));
        stream.extend(length.to_le_bytes());
        stream.extend((!length).to_le_bytes());
        stream.extend(block);
    }
    let (a, b) = bytes.iter().fold((1, 0), |(a, b), &byte| {
        let a = (a + u32::from(byte)) % 65_521;
        (a, (b + a) % 65_521)
    });
    stream.extend(((b << 16) | a).to_be_bytes());
    stream
}

#[tokio::test(flavor = "multi_thread")]
async fn thumbnail_scales_a_picture() {
    let server = Server::start().await;
    let client = server.client();
    push(&client, "thumbnail").await;
    let original = png(320, 240);
    let input = json!({ "image_base64": BASE64.encode(&original), "edge_max": 64 });
    let small = output(&client, "small", "image.thumbnail", input).await;
    assert_eq!(
        (&small["media_type"], &small["width"], &small["height"]),
        (&json!("image/png"), &json!(64), &json!(48))
    );
    assert_eq!((&small["original_width"], &small["original_height"]), (&json!(320), &json!(240)));
    let file = BASE64.decode(small["image_base64"].as_str().unwrap()).unwrap();
    assert!(file.starts_with(b"\x89PNG") && file.len() < original.len());
    assert_eq!(file[16..24], [64_u32.to_be_bytes(), 48_u32.to_be_bytes()].concat(), "the file itself is as small");
    let cut = json!({ "image_base64": BASE64.encode(&original[..1_000]) });
    check_refused(&client, "cut", "image.thumbnail", cut, "INVALID_IMAGE").await;
    let text = json!({ "image_base64": BASE64.encode("hello") });
    check_refused(&client, "text", "image.thumbnail", text, "UNSUPPORTED_FORMAT").await;
}

/// Guests that bring the engine of their language are large: here three of each, of six tenants, at one server's default
/// settings.
#[tokio::test(flavor = "multi_thread")]
async fn javascript_and_python_of_many_tenants_stay_compiled_beside_each_other() {
    let server = Server::start().await;
    let mut tenants = Vec::new();
    for number in 0..3 {
        for (name, module) in [("js", "markdown"), ("py", "csv-stats")] {
            let client = server.client().for_tenant(&format!("{name}-{number}")).await;
            // One of each is built; the others differ by a section that no engine reads.
            let mark = if number == 0 { String::new() } else { number.to_string() };
            push_marked(&client, module, &mark).await;
            tenants.push((client, module));
        }
    }
    markdown_is_rendered(&tenants[0].0).await;
    tables_are_summarised(&tenants[1].0).await;
    for round in 0..2 {
        for (client, module) in &tenants {
            let (task, input) = match *module {
                "markdown" => ("markdown.render", json!({ "markdown": "# A" })),
                _ => ("csv.stats", json!({ "csv": "a\n1\n" })),
            };
            output(client, &format!("round-{round}"), task, input).await;
        }
    }
    let client = server.client();
    // The server's own module is the seventh.
    assert_eq!(client.metric("sandkeep_modules_compiled_total").await, 7);
    assert_eq!(client.metric("sandkeep_artefacts_used_total").await, 0, "what was compiled stays in memory");
}

async fn markdown_is_rendered(client: &Client) {
    let text = "# Über *uns*\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n<script>alert(1)</script>\n";
    let rendered = output(client, "page", "markdown.render", json!({ "markdown": text })).await;
    assert_eq!(rendered["headings"], json!([{ "level": 1, "text": "Über uns", "id": "über-uns" }]));
    let html = rendered["html"].as_str().unwrap();
    assert!(html.contains("<h1 id=\"über-uns\">Über <em>uns</em></h1>") && html.contains("<td>2</td>"), "{html}");
    assert!(!html.contains("<script"), "{html}");
    check_refused(client, "empty", "markdown.render", json!({ "markdown": " " }), "EMPTY_TEXT").await;
    check_refused(client, "none", "markdown.render", json!({}), "INVALID_INPUT").await;
}

async fn tables_are_summarised(client: &Client) {
    let csv = "city,people\nOslo,700000\nBergen,290000\nVoss,\n";
    let table = output(client, "table", "csv.stats", json!({ "csv": csv })).await;
    assert_eq!(table["rows"], 3);
    let people = &table["columns"][1];
    assert_eq!((&people["kind"], &people["count"], &people["missing"]), (&json!("number"), &json!(2), &json!(1)));
    assert_eq!(people["mean"].as_f64(), Some(495_000.0), "{people}");
    check_refused(client, "empty", "csv.stats", json!({ "csv": "" }), "EMPTY_TABLE").await;
    check_refused(client, "uneven", "csv.stats", json!({ "csv": "a,b\n1,2,3" }), "UNEVEN_ROWS").await;
}
