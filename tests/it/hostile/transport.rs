//! Uploads that break the manners of HTTP: slow, cut, longer than declared, too many, under wrong names.

use std::time::Duration;

use futures_util::future::join_all;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use super::{
    Case, Harness,
    harness::{real, upload},
};
use crate::support::{Client, Server};

/// The cases, in the order in which the test acts them out.
pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::own("upload of one byte at a time, then silence", "others are served; nothing is kept"),
        Case::own("body longer than declared", "refused"),
        Case::own("body shorter than declared", "nothing is kept"),
        Case::own("declared length past the limit", "refused"),
        Case::own("length that is no number", "refused"),
        Case::own("100 uploads at once", "taken, or refused for now"),
        Case::own("names with slash, dots and NUL", "refused"),
    ]
}

async fn connect(server: &Server) -> TcpStream {
    let address = server.url().strip_prefix("http://").unwrap();
    TcpStream::connect(address).await.unwrap()
}

fn head(name: &str, length: &str) -> String {
    format!(
        "POST /v1/modules/{name} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/wasm\r\n\
         content-length: {length}\r\n\r\n"
    )
}

/// Sends bytes as they are, and returns the status of the answer; none: there was none.
async fn send(server: &Server, bytes: &[u8]) -> Option<u16> {
    let mut stream = connect(server).await;
    // The server may have heard enough before all is sent.
    let _ = stream.write_all(bytes).await;
    let mut answer = Vec::new();
    let read = stream.read_to_end(&mut answer);
    let _ = tokio::time::timeout(Duration::from_secs(20), read).await.expect("an answer or the end comes in time");
    let text = String::from_utf8_lossy(&answer);
    text.split(' ').nth(1)?.parse().ok()
}

async fn is_unknown(client: &Client, name: &str) -> bool {
    client.get(&format!("/v1/modules/{name}")).await.0 == 404
}

#[tokio::test(flavor = "multi_thread")]
async fn uploads_without_manners_harm_nobody() {
    let mut harness = Harness::start("transport", &[]).await;
    let client = harness.client.clone();
    let mut cases = cases().into_iter();
    let mut next = || cases.next().expect("there is one for each act");

    harness
        .own(next(), async |server| {
            let mut slow = Vec::new();
            for _ in 0..3 {
                let mut stream = connect(server).await;
                stream.write_all(head("slow", "100000").as_bytes()).await.unwrap();
                slow.push(stream);
            }
            for byte in &real("hello")[..20] {
                for stream in &mut slow {
                    stream.write_all(&[*byte]).await.unwrap();
                    stream.flush().await.unwrap();
                }
                assert_eq!(client.get("/v1/health").await.0, 200);
            }
            drop(slow);
            assert!(is_unknown(&client, "slow").await);
            "nothing is kept".to_owned()
        })
        .await;
    harness
        .own(next(), async |server| {
            let whole = real("hello");
            let status = send(server, &[head("longer", "100").as_bytes(), &whole].concat()).await;
            assert!(matches!(status, Some(400 | 422)), "{status:?}");
            assert!(is_unknown(&client, "longer").await);
            "refused".to_owned()
        })
        .await;
    harness
        .own(next(), async |server| {
            let mut stream = connect(server).await;
            let whole = real("hello");
            let length = (whole.len() + 1).to_string();
            stream.write_all(&[head("shorter", &length).as_bytes(), &whole].concat()).await.unwrap();
            stream.shutdown().await.unwrap();
            let mut answer = Vec::new();
            let _ = stream.read_to_end(&mut answer).await;
            assert!(!answer.starts_with(b"HTTP/1.1 2"), "{}", String::from_utf8_lossy(&answer));
            assert!(is_unknown(&client, "shorter").await);
            "nothing is kept".to_owned()
        })
        .await;
    harness
        .own(next(), async |server| {
            for length in ["67108865", "18446744073709551615"] {
                let status = send(server, head("declared", length).as_bytes()).await;
                // Which of them says so is up to the HTTP below: 431 is its answer to a length past all bounds.
                assert!(matches!(status, None | Some(400 | 413 | 431)), "{length}: {status:?}");
            }
            "refused".to_owned()
        })
        .await;
    harness
        .own(next(), async |server| {
            for length in ["-1", "1e3", "18446744073709551616", "10, 11"] {
                let status = send(server, head("number", length).as_bytes()).await;
                assert!(matches!(status, Some(400)), "{length}: {status:?}");
            }
            "refused".to_owned()
        })
        .await;
    harness.own(next(), async |server| parallel(&server.client()).await).await;
    harness
        .own(next(), async |server| {
            for name in ["a%2Fb", "%2e%2e", "..", "a%00b", "../../etc/passwd", "%ff", "A", "a%0d%0ab", "-", "%"] {
                let status = send(server, head(name, "0").as_bytes()).await;
                assert!(status.is_some_and(|status| (400..500).contains(&status)), "{name}: {status:?}");
            }
            "refused".to_owned()
        })
        .await;
    assert!(cases.next().is_none(), "every case was acted out");
}

/// Each of many uploads at once is taken, or told to come again. `client` is not used again, so that its connections go.
async fn parallel(client: &Client) -> String {
    let bytes = real("orders");
    let answers = join_all((0..100).map(|_| upload(client, "orders", bytes.clone()))).await;
    let mut taken = 0;
    for answer in &answers {
        match answer.status {
            200..=202 => taken += 1,
            429 => assert_eq!(answer.code, "RESOURCE_EXHAUSTED", "{answer:?}"),
            _ => panic!("{answer:?}"),
        }
    }
    assert!(taken > 0, "some are taken");
    assert_eq!(upload(client, "orders", bytes).await.status, 200, "and then there is room again");
    "taken, or refused for now".to_owned()
}
