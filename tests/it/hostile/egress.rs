//! Requests to where they may not go, and to servers that mean harm.
//!
//! The other side listens at 127.0.0.2, which the tenant's policy opens; 127.0.0.1 is listed by every name and stays
//! closed, because its network is not. What needs a resolver that lies is tested in `src/sandbox/egress/tests.rs`.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};

use super::{Case, Harness};

/// How many bytes the compressed body stands for.
const BOMB_BYTES: usize = 16 << 20;

/// Where the two sides listen; by default nowhere, for the names of the cases alone.
#[derive(Clone, Copy, Default)]
pub(super) struct Ports {
    /// Of what may be reached.
    open: u16,
    /// Of what may not.
    closed: u16,
}

pub(super) fn cases(ports: Ports) -> Vec<Case> {
    let Ports { open, closed } = ports;
    let request = |name, input: Value, ends| Case::builtin(name, "http.request", input, ends);
    let get = |name, url: String, ends| request(name, json!({ "url": url }), ends);
    let closed_at =
        |name, host: &str| get(name, format!("http://{host}:{closed}/"), &["EGRESS_DENIED", "HTTP_INVALID"]);
    let from = |name, path: &str, ends| get(name, format!("http://127.0.0.2:{open}{path}"), ends);
    let headed = |name, headers: Value, ends| {
        request(name, json!({ "url": format!("http://127.0.0.2:{open}/"), "headers": headers }), ends)
    };
    let patient = |name, timeout_ms: u64, ends| {
        request(name, json!({ "url": format!("http://127.0.0.2:{open}/"), "timeout_ms": timeout_ms }), ends)
    };
    vec![
        closed_at("this machine by its address", "127.0.0.1"),
        closed_at("this machine by its name", "localhost"),
        closed_at("this machine by a name with a dot at its end", "localhost."),
        closed_at("this machine as one number", "2130706433"),
        closed_at("this machine in octal", "0177.0.0.1"),
        closed_at("this machine in hexadecimal", "0x7f000001"),
        closed_at("this machine shortened", "127.1"),
        closed_at("this machine in percent signs", "127.0.0.%31"),
        closed_at("this machine in wide digits", "１２７.0.0.1"),
        closed_at("this machine by IPv6", "[::1]"),
        closed_at("this machine mapped into IPv6", "[::ffff:127.0.0.1]"),
        closed_at("this machine behind NAT64", "[64:ff9b::7f00:1]"),
        closed_at("the address of nobody", "0.0.0.0"),
        get("metadata of a cloud", "http://169.254.169.254/latest/meta-data/".to_owned(), &["EGRESS_DENIED"]),
        get("metadata mapped into IPv6", "http://[::ffff:169.254.169.254]/".to_owned(), &["EGRESS_DENIED"]),
        get(
            "an allowed host as the user of another",
            format!("http://127.0.0.2:{open}@127.0.0.1:{closed}/"),
            &["EGRESS_DENIED", "HTTP_INVALID"],
        ),
        get(
            "an allowed host before a backslash",
            format!("http://127.0.0.2:{open}\\@127.0.0.1:{closed}/"),
            &["EGRESS_DENIED", "HTTP_INVALID"],
        ),
        from("another host in the path", &format!("/..//127.0.0.1:{closed}/%2e%2e/@127.0.0.1"), &["COMPLETED"]),
        from("a redirect to what is closed", "/moved", &["HTTP_STATUS"]),
        get("a file of the machine", "file:///etc/passwd".to_owned(), &["EGRESS_DENIED", "HTTP_INVALID"]),
        request(
            "a tunnel",
            json!({ "url": format!("http://127.0.0.2:{open}/"), "method": "CONNECT" }),
            &["EGRESS_DENIED", "HTTP_INVALID"],
        ),
        headed("a line end in a header", json!({ "x-a": "1\r\nx-smuggled: 2" }), &["HTTP_INVALID"]),
        headed("a line end in the name of a header", json!({ "x-a\r\nx-smuggled": "2" }), &["HTTP_INVALID"]),
        headed("another host in a header", json!({ "host": "smuggled.example" }), &["HTTP_INVALID"]),
        headed("a body of two lengths", json!({ "transfer-encoding": "chunked" }), &["HTTP_INVALID"]),
        from("a line end in the path", "/\r\nx-smuggled: 2", &["HTTP_INVALID"]),
        from("a body in drops", "/drops", &["TIMEOUT"]),
        from("a head in drops", "/slow-head", &["TIMEOUT"]),
        from("a body without end", "/endless", &["HTTP_TOO_LARGE"]),
        from("headers without end", "/headers", &["HTTP_RESPONSE", "HTTP_TOO_LARGE"]),
        from("a body of a GiB that never comes", "/promised", &["TIMEOUT", "HTTP_RESPONSE"]),
        from("a body that is cut", "/cut", &["HTTP_UNREACHABLE"]),
        from("an answer of two lengths", "/lengths", &["HTTP_RESPONSE", "HTTP_UNREACHABLE"]),
        from("an answer with another behind it", "/two", &["COMPLETED"]),
        from("an answer that is none", "/noise", &["HTTP_RESPONSE", "HTTP_UNREACHABLE"]),
        from("a compressed body of 16 MiB", "/bomb", &["COMPLETED"]),
        patient("a patience of nothing", 0, &["HTTP_TIMEOUT", "COMPLETED"]),
        patient("a patience without end", u64::MAX, &["COMPLETED"]),
        Case::task(
            "requests without end",
            "requests",
            json!({ "url": format!("http://127.0.0.2:{open}/") }),
            &["EGRESS_DENIED"],
        ),
    ]
}

/// What the other sides saw.
#[derive(Clone, Default)]
struct Seen {
    heads: Arc<Mutex<Vec<String>>>,
    /// Connections to what is closed.
    trespasses: Arc<AtomicUsize>,
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_do_no_harm_and_servers_do_none_to_the_host() {
    let seen = Seen::default();
    let open = TcpListener::bind("127.0.0.2:0").await.unwrap();
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = |listener: &TcpListener| listener.local_addr().unwrap().port();
    let ports = Ports { open: port(&open), closed: port(&closed) };
    let (heads, trespasses) = (Arc::clone(&seen.heads), Arc::clone(&seen.trespasses));
    tokio::spawn(async move {
        while let Ok((stream, _)) = open.accept().await {
            tokio::spawn(serve(stream, Arc::clone(&heads), ports));
        }
    });
    tokio::spawn(async move {
        while closed.accept().await.is_ok() {
            trespasses.fetch_add(1, Ordering::SeqCst);
        }
    });

    let mut harness = Harness::start("egress", &[("SANDBOX__ALLOW_PRIVATE_EGRESS", "true")]).await;
    let closed = ["127.0.0.1", "localhost", "[::1]", "0.0.0.0"].map(|host| format!("http://{host}:{}", ports.closed));
    let mut egress = closed.to_vec();
    egress.extend([format!("http://127.0.0.2:{}", ports.open), "http://169.254.169.254:80".to_owned()]);
    let policy = json!({ "granted": { "egress": egress, "private": ["127.0.0.2/32"] } });
    let client = &harness.client;
    let request = client.http().put(client.at("/v1/tenants/default/policy")).header("content-type", "application/json");
    let (status, value) = client.send(request.body(policy.to_string())).await.unwrap();
    assert_eq!(status, 200, "{value}");
    for case in cases(ports) {
        harness.run(case).await;
    }
    assert_eq!(seen.trespasses.load(Ordering::SeqCst), 0, "C066 what is closed was reached");
    let heads = seen.heads.lock().unwrap();
    let host = format!("\r\nhost: 127.0.0.2:{}\r\n", ports.open);
    for head in heads.iter() {
        let lower = head.to_lowercase();
        assert!(lower.contains(&host) && lower.matches("\r\nhost:").count() == 1, "{head}");
        assert!(!lower.contains("smuggled") && !lower.contains("transfer-encoding"), "{head}");
        assert!(head.starts_with("GET /"), "{head}");
    }
    let requests = heads.iter().filter(|head| head.starts_with("GET / ")).count();
    assert!((100..110).contains(&requests), "an attempt sends 100 requests at most: {requests}");
}

/// Serves one connection as badly as its path says. That the guest goes away is the end of it.
async fn serve(mut stream: TcpStream, heads: Arc<Mutex<Vec<String>>>, ports: Ports) {
    while let Some(head) = read_head(&mut stream).await {
        let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
        heads.lock().unwrap().push(head);
        if answer(&mut stream, &path, ports).await.is_err() {
            return;
        }
    }
}

async fn read_head(stream: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    String::from_utf8(head).ok()
}

async fn answer(stream: &mut TcpStream, path: &str, ports: Ports) -> std::io::Result<()> {
    let whole = |status: &str, headers: &str, body: &str| {
        format!("HTTP/1.1 {status}\r\n{headers}content-length: {}\r\n\r\n{body}", body.len())
    };
    let endless = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
    match path {
        "/moved" => {
            let location = format!("location: http://127.0.0.1:{}/\r\n", ports.closed);
            stream.write_all(whole("302 Found", &location, "").as_bytes()).await
        }
        "/drops" => {
            stream.write_all(endless.as_bytes()).await?;
            drip(stream, b"1\r\nx\r\n").await
        }
        "/slow-head" => {
            stream.write_all(b"HTTP/1.1 200 OK\r\nx-slow: ").await?;
            drip(stream, b"x").await
        }
        "/endless" => {
            stream.write_all(endless.as_bytes()).await?;
            let chunk = [b"10000\r\n", &[b'x'; 0x10000][..], b"\r\n"].concat();
            loop {
                stream.write_all(&chunk).await?;
            }
        }
        "/headers" => {
            stream.write_all(b"HTTP/1.1 200 OK\r\n").await?;
            loop {
                stream.write_all(b"x-more: of the same\r\n").await?;
            }
        }
        "/promised" => {
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 1073741824\r\n\r\nx").await?;
            // Until the other side has had enough.
            stream.read_u8().await.map(drop)
        }
        "/cut" => {
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\nshort").await?;
            stream.shutdown().await?;
            Err(std::io::ErrorKind::ConnectionAborted.into())
        }
        "/lengths" => {
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 50\r\n\r\nplain").await
        }
        "/two" => stream.write_all(whole("200 OK", "", "plain").repeat(2).as_bytes()).await,
        "/noise" => stream.write_all(&[0; 4096]).await,
        "/bomb" => {
            let body = bomb();
            let head =
                format!("HTTP/1.1 200 OK\r\ncontent-encoding: deflate\r\ncontent-length: {}\r\n\r\n", body.len());
            stream.write_all(&[head.as_bytes(), &body].concat()).await
        }
        _ => stream.write_all(whole("200 OK", "", "plain").as_bytes()).await,
    }
}

/// Writes a little at a time for as long as the other side takes it.
async fn drip(stream: &mut TcpStream, drop: &[u8]) -> std::io::Result<()> {
    let mut pause = tokio::time::interval(std::time::Duration::from_millis(20));
    loop {
        pause.tick().await;
        stream.write_all(drop).await?;
    }
}

/// Makes a deflate stream (RFC 1951, fixed codes) of zeros: one, and then as often as it takes "258 of the byte before".
fn bomb() -> Vec<u8> {
    let mut bits = vec![true, true, false];
    let mut code = |value: u32, length: u32| bits.extend((0..length).rev().map(|at| value >> at & 1 == 1));
    code(0b0011_0000, 8);
    for _ in 0..BOMB_BYTES / 258 {
        code(0b1100_0101, 8);
        code(0, 5);
    }
    code(0, 7);
    bits.chunks(8).map(|byte| byte.iter().rev().fold(0, |byte, bit| byte << 1 | u8::from(*bit))).collect()
}
