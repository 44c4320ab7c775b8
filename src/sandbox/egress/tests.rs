//! Requests to real servers on this machine: what is sent, what is denied, and what ends what does not end.

use std::{
    io,
    net::Ipv4Addr,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::{Request, Response, body::Frame};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};
use wasmtime_wasi_http::{Error, RequestOptions, WasiBody};

use super::*;
use crate::{
    model::{EgressPolicy, Millis, TenantId, row::LogLine},
    sandbox::{Grant, Limits, journal::Journal, tests::info},
};

/// Answers from a list, one after the other; the last one stays.
struct Names(Mutex<Vec<Vec<IpAddr>>>, AtomicUsize);

#[async_trait]
impl Resolve for Names {
    async fn resolve(&self, _name: &str) -> io::Result<Vec<IpAddr>> {
        self.1.fetch_add(1, Ordering::Relaxed);
        let mut answers = self.0.lock().unwrap();
        Ok(if answers.len() > 1 { answers.remove(0) } else { answers[0].clone() })
    }
}

/// An attempt and what it sends through.
struct Bench {
    egress: Egress,
    outgoing: Arc<Outgoing>,
    journal: Journal,
    names: Arc<Names>,
}

impl Bench {
    /// One that may reach `allow`, where every name is at this machine and this machine may be reached.
    fn new(allow: &[&str]) -> Self {
        Self::with(allow, &["127.0.0.0/8"], true, &[&["127.0.0.1"]], Limits::default())
    }

    fn with(allow: &[&str], private: &[&str], allow_private: bool, answers: &[&[&str]], limits: Limits) -> Self {
        let answers = answers.iter().map(|addresses| addresses.iter().map(|text| text.parse().unwrap()).collect());
        let names = Arc::new(Names(Mutex::new(answers.collect()), AtomicUsize::new(0)));
        let resolver: Arc<dyn Resolve> = Arc::clone(&names) as _;
        let egress = Egress::new(&Config { allow_private, ca_file: None, resolver: Some(resolver) }).unwrap();
        let policy = EgressPolicy {
            allow: allow.iter().map(|text| text.parse().unwrap()).collect(),
            private: private.iter().map(|text| text.parse().unwrap()).collect(),
        };
        let grant = Arc::new(Grant { egress: policy, ..Grant::default() });
        let journal = Journal::new(Arc::new(|| crate::model::Timestamp(0)), &info("a"), 1 << 16);
        let outgoing = Outgoing::new(TenantId::new("a").unwrap(), limits, grant, Some(journal.clone()));
        Self { egress, outgoing, journal, names }
    }

    async fn send(&self, request: Request<WasiBody>) -> Result<Response<WasiBody>, Error> {
        send::send(&self.egress, &self.outgoing, request, RequestOptions::default()).await
    }

    async fn get(&self, uri: &str) -> Result<Response<WasiBody>, Error> {
        self.send(request(uri, Bytes::new())).await
    }

    fn logged(&self) -> Vec<LogLine> {
        self.journal.finish().0
    }
}

fn request(uri: &str, body: Bytes) -> Request<WasiBody> {
    let body = Full::new(body).map_err(|never| match never {}).boxed_unsync();
    Request::builder().method("POST").uri(uri).body(body).unwrap()
}

async fn text_of(response: Response<WasiBody>) -> Result<Vec<u8>, Error> {
    Ok(response.into_body().collect().await?.to_bytes().to_vec())
}

/// What a server does with each connection, by its number.
type Serve = fn(TcpStream, usize) -> futures_util::future::BoxFuture<'static, io::Result<()>>;

/// Starts a server; returns its port and how many connections it was made.
async fn server(serve: Serve) -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let accepted = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&accepted);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream, count.fetch_add(1, Ordering::SeqCst)));
        }
    });
    (port, accepted)
}

/// Reads a request and returns its head in lower case and its body.
async fn read(stream: &mut TcpStream) -> io::Result<(String, Vec<u8>)> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break end + 4;
        }
        if stream.read_buf(&mut bytes).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    };
    let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
    let mut body = bytes.split_off(end);
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).map_or(0, |n| n.parse().unwrap());
    while body.len() < length {
        if stream.read_buf(&mut body).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok((head, body))
}

/// Answers every request with its head and the size of its body.
fn echo(mut stream: TcpStream, _number: usize) -> futures_util::future::BoxFuture<'static, io::Result<()>> {
    Box::pin(async move {
        loop {
            let (head, body) = read(&mut stream).await?;
            let text = format!("{head}{}", body.len());
            let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{text}", text.len());
            stream.write_all(answer.as_bytes()).await?;
        }
    })
}

fn denial(result: Result<Response<WasiBody>, Error>) -> String {
    match result {
        Err(Error::InternalError(Some(text))) if text.starts_with("EGRESS_DENIED: ") => text,
        other => panic!("C066 it was not denied: {other:?}"),
    }
}

#[tokio::test]
async fn a_listed_host_is_reached_under_its_name() {
    let (port, _) = server(echo).await;
    let bench = Bench::new(&[&format!("http://api.example.test:{port}")]);
    let mut request = request(&format!("http://API.example.test.:{port}/a?b=c"), Bytes::from_static(b"four"));
    request.headers_mut().insert("host", "evil.test".parse().unwrap());
    request.headers_mut().insert("te", "trailers".parse().unwrap());
    request.headers_mut().insert("accept-encoding", "br".parse().unwrap());
    let text = String::from_utf8(text_of(bench.send(request).await.unwrap()).await.unwrap()).unwrap();
    assert!(text.starts_with("post /a?b=c http/1.1\r\n"), "{text}");
    assert!(text.contains(&format!("\r\nhost: api.example.test:{port}\r\n")), "{text}");
    assert!(text.contains("accept-encoding: br") && !text.contains("te:") && text.ends_with('4'), "{text}");
    let counts = bench.outgoing.end();
    assert_eq!((counts.requests, counts.sent_bytes, counts.received_bytes), (1, 4, text.len() as u64));
}

#[tokio::test]
async fn what_is_not_listed_is_denied_with_the_entry_that_would_allow_it() {
    let (port, accepted) = server(echo).await;
    let bench = Bench::new(&["https://api.example.test"]);
    for (uri, part) in [
        (format!("http://api.example.test:{port}/"), format!("`http://api.example.test:{port}`")),
        ("http://api.example.test/".to_owned(), "`http://api.example.test:80`".to_owned()),
        (format!("http://127.0.0.1:{port}/"), format!("`http://127.0.0.1:{port}`")),
        ("https://api.example.test.evil.test/".to_owned(), "evil.test:443".to_owned()),
        ("https://api.example.test@evil.test/".to_owned(), "user".to_owned()),
        ("http://2130706433/".to_owned(), "looks like an address".to_owned()),
    ] {
        let text = denial(bench.get(&uri).await);
        assert!(text.contains(&part), "C066 {text}");
    }
    assert_eq!(accepted.load(Ordering::SeqCst), 0, "C066 nothing was connected to");
    assert_eq!(bench.names.1.load(Ordering::Relaxed), 0, "C066 nothing was looked up");
    let logged = bench.logged();
    assert_eq!(logged.len(), 6, "C066 each is in the log");
    assert!(logged[0].fields.as_ref().unwrap().as_str().contains(&format!("\"http://api.example.test:{port}\"")));
    assert_eq!(bench.outgoing.end().requests, 0);
}

#[tokio::test]
async fn a_listed_name_at_a_private_address_is_denied() {
    let (port, accepted) = server(echo).await;
    let entry = format!("http://*.example.test:{port}");
    let uri = format!("http://x.example.test:{port}/");
    for (private, allow_private, address) in [
        (&[][..], true, "127.0.0.1"),
        (&["127.0.0.0/8"], false, "127.0.0.1"),
        (&["10.0.0.0/8"], true, "169.254.169.254"),
        (&["0.0.0.0/0"], false, "169.254.169.254"),
        (&["127.0.0.0/8"], true, "::ffff:127.0.0.1"),
        (&["127.0.0.0/8"], true, "64:ff9b::7f00:1"),
        (&["127.0.0.0/8"], true, "::1"),
    ] {
        let bench = Bench::with(&[&entry], private, allow_private, &[&[address]], Limits::default());
        let text = denial(bench.get(&uri).await);
        assert!(text.contains(address) && text.contains("private network"), "C066 {text}");
        assert_eq!(bench.logged().len(), 1, "C066");
    }
    let literal = format!("http://127.0.0.1:{port}");
    let bench = Bench::with(&[&literal], &[], true, &[&["1.1.1.1"]], Limits::default());
    denial(bench.get(&literal).await);
    assert_eq!(accepted.load(Ordering::SeqCst), 0, "C066");
}

#[tokio::test]
async fn the_server_itself_is_denied() {
    let (port, accepted) = server(echo).await;
    let entry = format!("http://x.example.test:{port}");
    let bench = Bench::with(&[&entry], &[], true, &[&["127.0.0.1"]], Limits::default());
    bench.egress.serves(SocketAddr::from((Ipv4Addr::UNSPECIFIED, port)));
    assert!(bench.egress.is_own("127.0.0.1".parse().unwrap(), port));
    assert!(!bench.egress.is_own("192.0.2.1".parse().unwrap(), port));
    denial(bench.get(&entry).await);
    assert_eq!(accepted.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_name_is_looked_up_once_and_a_changed_one_again() {
    let (port, accepted) = server(|mut stream, _| {
        Box::pin(async move {
            read(&mut stream).await?;
            stream.write_all(b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n").await
        })
    })
    .await;
    let entry = format!("http://x.example.test:{port}");
    // The second look-up leads to where it may not.
    let answers: &[&[&str]] = &[&["127.0.0.1"], &["127.0.0.2", "169.254.169.254"], &["169.254.169.254"]];
    let bench = Bench::with(&[&entry], &["127.0.0.1/32"], true, answers, Limits::default());
    text_of(bench.get(&entry).await.unwrap()).await.unwrap();
    assert_eq!(bench.names.1.load(Ordering::Relaxed), 1, "C066");
    denial(bench.get(&entry).await);
    denial(bench.get(&entry).await);
    assert_eq!(accepted.load(Ordering::SeqCst), 1, "C066");
}

#[tokio::test]
async fn a_redirect_goes_back_to_the_guest() {
    let (port, accepted) = server(|mut stream, _| {
        Box::pin(async move {
            read(&mut stream).await?;
            let answer = "HTTP/1.1 302 Found\r\nlocation: http://169.254.169.254/\r\ncontent-length: 0\r\n\r\n";
            stream.write_all(answer.as_bytes()).await
        })
    })
    .await;
    let entry = format!("http://x.example.test:{port}");
    let bench = Bench::new(&[&entry]);
    let response = bench.get(&entry).await.unwrap();
    assert_eq!(
        (response.status().as_u16(), response.headers()["location"].to_str().unwrap()),
        (302, "http://169.254.169.254/")
    );
    denial(bench.get("http://169.254.169.254/").await);
    assert_eq!(accepted.load(Ordering::SeqCst), 1, "C066");
}

#[tokio::test]
async fn connections_are_used_again_by_their_tenant_alone() {
    let (port, accepted) = server(echo).await;
    let entry = format!("http://x.example.test:{port}");
    let bench = Bench::new(&[&entry]);
    let waits = async |number| {
        while bench.egress.pool.number() != number {
            tokio::task::yield_now().await;
        }
    };
    for _ in 0..3 {
        text_of(bench.get(&entry).await.unwrap()).await.unwrap();
        waits(1).await;
    }
    assert_eq!(accepted.load(Ordering::SeqCst), 1);
    assert_eq!(bench.names.1.load(Ordering::Relaxed), 1);
    let grant = Arc::new(Grant { egress: bench.outgoing.policy().clone(), ..Grant::default() });
    let other = Outgoing::new(TenantId::new("b").unwrap(), Limits::default(), grant, None);
    let sent = send::send(&bench.egress, &other, request(&entry, Bytes::new()), RequestOptions::default()).await;
    text_of(sent.unwrap()).await.unwrap();
    waits(2).await;
    assert_eq!(accepted.load(Ordering::SeqCst), 2, "another tenant has a connection of its own");
}

#[tokio::test]
async fn a_connection_closed_while_it_waited_is_no_failure() {
    let (port, accepted) = server(|mut stream, _| {
        Box::pin(async move {
            read(&mut stream).await?;
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await
        })
    })
    .await;
    let entry = format!("http://x.example.test:{port}");
    let bench = Bench::new(&[&entry]);
    for _ in 0..10 {
        text_of(bench.get(&entry).await.unwrap()).await.unwrap();
    }
    assert!(accepted.load(Ordering::SeqCst) > 1);
}

fn hurried(millis: u64) -> Limits {
    Limits { egress_time: Millis(millis), egress_body_bytes: 100_000, ..Limits::default() }
}

#[tokio::test]
async fn what_does_not_end_is_ended() {
    let silent: Serve = |mut stream, _| {
        Box::pin(async move {
            read(&mut stream).await?;
            std::future::pending().await
        })
    };
    let drip: Serve = |mut stream, _| {
        Box::pin(async move {
            read(&mut stream).await?;
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n").await?;
            loop {
                stream.write_all(b"x").await?;
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        })
    };
    let slow_head: Serve = |mut stream, _| {
        Box::pin(async move {
            read(&mut stream).await?;
            stream.write_all(b"HTTP/1.1 200 OK\r\nx: ").await?;
            loop {
                stream.write_all(b"x").await?;
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        })
    };
    for serve in [silent, drip, slow_head] {
        let (port, _) = server(serve).await;
        let entry = format!("http://x.example.test:{port}");
        let bench = Bench::with(&[&entry], &["127.0.0.0/8"], true, &[&["127.0.0.1"]], hurried(60));
        let result = match bench.get(&entry).await {
            Ok(response) => text_of(response).await.map(|_| ()),
            Err(error) => Err(error),
        };
        assert!(matches!(result, Err(Error::HttpResponseTimeout)), "C057 {result:?}");
    }
}

#[tokio::test]
async fn what_is_too_large_is_ended() {
    let endless: Serve = |mut stream, _| {
        Box::pin(async move {
            read(&mut stream).await?;
            stream.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").await?;
            loop {
                stream.write_all(b"4\r\nabcd\r\n").await?;
            }
        })
    };
    let heads: Serve = |mut stream, _| {
        Box::pin(async move {
            read(&mut stream).await?;
            stream.write_all(b"HTTP/1.1 200 OK\r\n").await?;
            for number in 0.. {
                stream.write_all(format!("x-{number}: abcdefgh\r\n").as_bytes()).await?;
            }
            Ok(())
        })
    };
    let (endless, _) = server(endless).await;
    let (heads, _) = server(heads).await;
    let allow = [endless, heads].map(|port| format!("http://x.example.test:{port}"));
    let allow = [&*allow[0], &*allow[1]];
    let bench = Bench::with(&allow, &["127.0.0.0/8"], true, &[&["127.0.0.1"]], hurried(60_000));
    let result = text_of(bench.get(allow[0]).await.unwrap()).await;
    assert!(matches!(result, Err(Error::HttpResponseBodySize(Some(100_000)))), "C063 {result:?}");
    assert!(bench.get(allow[1]).await.is_err(), "C063");
    let much = request(allow[0], Bytes::from(vec![0; 100_001]));
    let result = bench.send(much).await;
    assert!(matches!(result, Err(Error::HttpRequestBodySize(Some(100_000)))), "C062 {result:?}");
}

#[tokio::test]
async fn requests_are_limited_in_all_and_at_once() {
    let (port, _) = server(echo).await;
    let entry = format!("http://x.example.test:{port}");
    let limits = Limits { egress_requests: 5, egress_concurrent: 2, ..Limits::default() };
    let bench = Bench::with(&[&entry], &["127.0.0.0/8"], true, &[&["127.0.0.1"]], limits);
    let held = (bench.get(&entry).await.unwrap(), bench.get(&entry).await.unwrap());
    assert!(denial(bench.get(&entry).await).contains("2 requests"), "C063");
    drop(held);
    for _ in 0..3 {
        text_of(bench.get(&entry).await.unwrap()).await.unwrap();
    }
    assert!(denial(bench.get(&entry).await).contains("5 requests"), "C063");
}

#[tokio::test]
async fn a_body_that_its_guest_left_is_not_whole() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let entry = format!("http://x.example.test:{port}");
    let bench = Bench::new(&[&entry]);
    let outgoing = Arc::clone(&bench.outgoing);
    let frames = futures_util::stream::once(async move {
        outgoing.end();
        Ok::<_, Error>(Frame::data(Bytes::from_static(b"begun")))
    });
    let request = Request::builder().method("POST").uri(&entry).body(StreamBody::new(frames).boxed_unsync()).unwrap();
    let reading = async {
        let mut bytes = Vec::new();
        // A connection that is cut may end as an error, too.
        let _ = listener.accept().await.unwrap().0.read_to_end(&mut bytes).await;
        bytes
    };
    let (sent, bytes) = tokio::join!(bench.send(request), reading);
    assert!(sent.is_err());
    assert!(!bytes.ends_with(b"0\r\n\r\n"), "C062 {}", String::from_utf8_lossy(&bytes));
}

#[tokio::test]
async fn a_server_without_a_trusted_certificate_is_not_spoken_to() {
    let (port, _) = server(|mut stream, _| {
        Box::pin(async move {
            let mut bytes = [0; 4096];
            let _ = stream.read(&mut bytes).await?;
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await
        })
    })
    .await;
    let entry = format!("https://x.example.test:{port}");
    let result = Bench::new(&[&entry]).get(&entry).await;
    assert!(matches!(result, Err(Error::TlsProtocolError)), "{result:?}");
    let config = Config { ca_file: Some("/nowhere/roots.pem".into()), ..Config::default() };
    assert!(Egress::new(&config).is_err_and(|error| error.contains("/nowhere/roots.pem")));
}
