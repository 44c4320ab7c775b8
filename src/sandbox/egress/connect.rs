//! Connections: to a checked address, with the name checked by its certificate.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    path::Path,
    sync::Arc,
    time::Duration,
};

use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::{
    AlertDescription, ClientConfig, RootCertStore,
    client::Resumption,
    pki_types::{CertificateDer, ServerName, pem::PemObject},
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    sync::OnceCell,
};
use tokio_rustls::TlsConnector;
use wasmtime_wasi_http::Error;

use crate::model::egress::Scheme;

use super::{pool::Sender, target::Target};

/// How long an address may take while there are others to try.
const ADDRESS_PATIENCE: Duration = Duration::from_secs(3);
/// How many addresses are tried.
const ADDRESSES_MAX: usize = 4;
/// The largest head of a response, in bytes.
const HEAD_BYTES_MAX: usize = 64 * 1024;
/// How many headers a response may have.
const HEADERS_MAX: usize = 128;

/// Roots of trust beside those of the system.
#[derive(Clone, Default)]
pub(super) struct Roots(Vec<CertificateDer<'static>>);

impl Roots {
    /// Reads a PEM file with at least one certificate.
    pub(super) fn read(path: &Path) -> Result<Self, String> {
        let unreadable = |error: &dyn std::fmt::Display| format!("cannot read `{}`: {error}", path.display());
        let read = CertificateDer::pem_file_iter(path).map_err(|error| unreadable(&error))?;
        let roots = read.collect::<Result<Vec<_>, _>>().map_err(|error| unreadable(&error))?;
        if roots.is_empty() { Err(unreadable(&"it holds no certificate")) } else { Ok(Self(roots)) }
    }
}

/// TLS to servers.
pub(super) struct Tls {
    roots: Roots,
    config: OnceCell<Arc<ClientConfig>>,
}

impl Tls {
    pub(super) fn new(roots: Roots) -> Self {
        Self { roots, config: OnceCell::new() }
    }

    async fn config(&self) -> Result<Arc<ClientConfig>, Error> {
        let make = || async {
            let Roots(own) = self.roots.clone();
            // Reads a few hundred files of the system.
            let made = tokio::task::spawn_blocking(move || config(own)).await;
            made.map_err(|error| error.to_string()).and_then(|config| config.map_err(|error| error.to_string()))
        };
        let config = self.config.get_or_try_init(make).await;
        config.cloned().map_err(|reason| Error::InternalError(Some(format!("the server has no TLS: {reason}"))))
    }
}

fn config(own: Vec<CertificateDer<'static>>) -> Result<Arc<ClientConfig>, rustls::Error> {
    let system = rustls_native_certs::load_native_certs();
    if system.certs.is_empty() && own.is_empty() {
        tracing::warn!(errors = ?system.errors, "no roots of trust: modules reach no https, see `sandbox.egress_ca_file`");
    }
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(system.certs.into_iter().chain(own));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    // A ticket would tell a server that two tenants are on one machine.
    config.resumption = Resumption::disabled();
    Ok(Arc::new(config))
}

/// Connects to the first of `addresses` that answers. The name is not looked up again.
pub(super) async fn connect(tls: &Tls, target: &Target, addresses: &[IpAddr]) -> Result<Sender, Error> {
    let stream = reach(target.port, addresses).await?;
    match target.scheme {
        Scheme::Http => handshake(stream).await,
        Scheme::Https => {
            let name = match target.address {
                Some(address) => ServerName::IpAddress(address.into()),
                None => ServerName::try_from(target.host.clone()).map_err(|_| Error::HttpRequestUriInvalid)?,
            };
            let connector = TlsConnector::from(tls.config().await?);
            handshake(connector.connect(name, stream).await.map_err(|error| error_of_tls(&error))?).await
        }
    }
}

async fn reach(port: u16, addresses: &[IpAddr]) -> Result<TcpStream, Error> {
    let addresses = &addresses[..addresses.len().min(ADDRESSES_MAX)];
    let mut last = Error::DestinationUnavailable;
    for (number, address) in addresses.iter().enumerate() {
        let connecting = TcpStream::connect(SocketAddr::new(*address, port));
        let connected = if number + 1 == addresses.len() {
            Ok(connecting.await)
        } else {
            tokio::time::timeout(ADDRESS_PATIENCE, connecting).await
        };
        match connected {
            Ok(Ok(stream)) => {
                // Without it a small request waits for the answer to its head. It may fail on a stream that is gone.
                let _ = stream.set_nodelay(true);
                return Ok(stream);
            }
            Ok(Err(error)) => last = error_of_connect(&error),
            Err(_) => last = Error::ConnectionTimeout,
        }
    }
    Err(last)
}

async fn handshake<S: AsyncRead + AsyncWrite + Send + Unpin + 'static>(stream: S) -> Result<Sender, Error> {
    let mut builder = http1::Builder::new();
    builder.max_buf_size(HEAD_BYTES_MAX).max_headers(HEADERS_MAX);
    let (sender, connection) = builder.handshake(TokioIo::new(stream)).await.map_err(|_| Error::HttpProtocolError)?;
    // It ends when its sender is dropped and nothing is under way on it; what went wrong, the request is told.
    tokio::spawn(async move { drop(connection.await) });
    Ok(sender)
}

fn error_of_connect(error: &io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => Error::ConnectionRefused,
        io::ErrorKind::TimedOut => Error::ConnectionTimeout,
        io::ErrorKind::NetworkUnreachable | io::ErrorKind::HostUnreachable => Error::DestinationUnavailable,
        _ => Error::ConnectionTerminated,
    }
}

fn error_of_tls(error: &io::Error) -> Error {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
        Some(rustls::Error::InvalidCertificate(_) | rustls::Error::NoCertificatesPresented) => {
            Error::TlsCertificateError
        }
        Some(rustls::Error::AlertReceived(alert)) => {
            let alert: AlertDescription = *alert;
            Error::TlsAlertReceived { alert_id: Some(u8::from(alert)), alert_message: Some(format!("{alert:?}")) }
        }
        Some(_) => Error::TlsProtocolError,
        None => Error::ConnectionTerminated,
    }
}
