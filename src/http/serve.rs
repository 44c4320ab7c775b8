//! Connections: accepted up to a limit, given time to say something, and ended when the server stops.

use std::{
    io,
    pin::{Pin, pin},
    task::{Context, Poll},
    time::Duration,
};

use axum::Router;
use hyper::{Request, body::Incoming, service::Service};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto,
    service::TowerToHyperService,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinSet,
};

use super::handed::Ledger;

/// How many connections are open at once; more wait in the kernel.
const CONNECTIONS_MAX: usize = 16_384;
/// How long a connection may be open without a whole request head: before the first one and between two.
const HEAD_TIMEOUT: Duration = Duration::from_secs(75);
/// How often an HTTP/2 connection is asked whether it lives, and how long it has to answer.
const PING_EVERY: Duration = Duration::from_secs(20);
/// How long accepting rests when the process has no room for another connection.
const ACCEPT_REST: Duration = Duration::from_millis(100);

/// Serves `router` on `listener` until `shutdown` resolves; then takes no new connection, lets requests finish for at most
/// `drain`, and cuts the rest.
pub async fn serve(listener: TcpListener, router: Router, shutdown: impl Future<Output = ()>, drain: Duration) {
    let (stop, stopped) = watch::channel(false);
    let mut connections = JoinSet::new();
    let mut shutdown = pin!(shutdown);
    loop {
        let accepted = tokio::select! {
            () = &mut shutdown => break,
            Some(_) = connections.join_next() => continue,
            accepted = listener.accept(), if connections.len() < CONNECTIONS_MAX => accepted,
        };
        match accepted {
            Ok((stream, _)) => {
                connections.spawn(connection(stream, router.clone(), stopped.clone()));
            }
            Err(error) if is_of_one_connection(&error) => {}
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(ACCEPT_REST).await;
            }
        }
    }
    drop(listener);
    stop.send_replace(true);
    let finished = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(drain, finished).await.is_err() {
        tracing::warn!(connections = connections.len(), "connections were cut because they did not end in time");
        connections.shutdown().await;
    }
}

fn is_of_one_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionRefused | io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset
    )
}

async fn connection(stream: TcpStream, router: Router, mut stopped: watch::Receiver<bool>) {
    // An answer is written in one piece; there is nothing to wait for.
    if stream.set_nodelay(true).is_err() {
        return;
    }
    // Which HTTP a client speaks is told by its first bytes, and nothing bounds how long they are waited for but this.
    let mut byte = [0];
    let first = tokio::time::timeout(HEAD_TIMEOUT, stream.peek(&mut byte));
    tokio::select! {
        spoken = first => if !matches!(spoken, Ok(Ok(1))) { return },
        _ = stopped.wait_for(|stopped| *stopped) => return,
    }
    let ledger = Ledger::default();
    let io = TokioIo::new(Told { stream, ledger: ledger.clone() });
    let service = WithLedger { router: TowerToHyperService::new(router), ledger };
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT);
    builder.http2().timer(TokioTimer::new()).keep_alive_interval(PING_EVERY).keep_alive_timeout(PING_EVERY);
    let mut serving = pin!(builder.serve_connection(io, service));
    tokio::select! {
        // How a connection ends is the business of its client.
        _ = serving.as_mut() => return,
        _ = stopped.wait_for(|stopped| *stopped) => {}
    }
    serving.as_mut().graceful_shutdown();
    let _ = serving.await;
}

/// The router, told by which connection a request came.
struct WithLedger {
    router: TowerToHyperService<Router>,
    ledger: Ledger,
}

impl Service<Request<Incoming>> for WithLedger {
    type Response = <TowerToHyperService<Router> as Service<Request<Incoming>>>::Response;
    type Error = <TowerToHyperService<Router> as Service<Request<Incoming>>>::Error;
    type Future = <TowerToHyperService<Router> as Service<Request<Incoming>>>::Future;

    fn call(&self, mut request: Request<Incoming>) -> Self::Future {
        request.extensions_mut().insert(self.ledger.clone());
        self.router.call(request)
    }
}

/// A stream that tells its ledger when all that was written has left.
struct Told {
    stream: TcpStream,
    ledger: Ledger,
}

impl AsyncRead for Told {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Told {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        if let Poll::Ready(Ok(())) = flushed {
            self.ledger.flushed();
        }
        flushed
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
