//! One request from its check to the head of its response.

use std::{error::Error as _, net::IpAddr, sync::Arc, time::Duration};

use http_body_util::BodyExt;
use hyper::{Request, Response, Uri};
use tokio::time::{Instant, timeout, timeout_at};
use wasmtime_wasi_http::{Error, RequestOptions, WasiBody};

use super::{
    Egress, addresses, body,
    connect::connect,
    headers,
    outgoing::{Outgoing, Permit},
    pool::{Key, Loan, Sender},
    refusal::Refusal,
    target::Target,
};

/// Sends a request where the policy allows it, and returns the response with its body still to come. What denies it is
/// told to the attempt's log.
pub(super) async fn send(
    egress: &Egress,
    outgoing: &Arc<Outgoing>,
    request: Request<WasiBody>,
    options: RequestOptions,
) -> Result<Response<WasiBody>, Error> {
    let request = request.map(|body| body::Request::new(body, outgoing));
    let deadline = Instant::now() + Duration::from_millis(outgoing.limits().egress_time.0.min(MILLIS_MAX));
    let denied = |refusal: Refusal, target: Option<&Target>| {
        outgoing.tell(&refusal, target);
        refusal.to_error()
    };
    let permit = outgoing.permit().map_err(|refusal| denied(refusal, None))?;
    let target = Target::of(request.method(), request.uri()).map_err(|refusal| denied(refusal, None))?;
    if !outgoing.policy().allows(target.scheme, &target.host, target.port) {
        return Err(denied(Refusal::NotListed { entry: target.entry() }, Some(&target)));
    }
    let sending = async {
        let mut request = request;
        headers::prepare(request.headers_mut(), &target);
        *request.uri_mut() = origin_form(request.uri());
        exchange(egress, outgoing, &target, request, options).await
    };
    match timeout_at(deadline, sending).await {
        Ok(Ok((response, loan))) => Ok(received(response, outgoing, deadline, options, loan, permit)),
        Ok(Err(Failed::Refused(refusal))) => Err(denied(refusal, Some(&target))),
        Ok(Err(Failed::Broken(error))) => Err(error),
        Err(_) => Err(Error::HttpResponseTimeout),
    }
}

/// The longest that a request may take, whatever the settings: a year.
const MILLIS_MAX: u64 = 365 * 24 * 60 * 60 * 1000;

/// Why there is no response.
enum Failed {
    Refused(Refusal),
    Broken(Error),
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Self::Broken(error)
    }
}

/// Sends on a connection that waits, else on a new one.
async fn exchange(
    egress: &Egress,
    outgoing: &Arc<Outgoing>,
    target: &Target,
    mut request: Request<body::Request>,
    options: RequestOptions,
) -> Result<(Response<hyper::body::Incoming>, Loan), Failed> {
    let key = Key { tenant: outgoing.tenant.clone(), policy: outgoing.policy().clone(), target: target.clone() };
    outgoing.count_request();
    if let Some(mut sender) = egress.pool.take(&key) {
        match first_byte(options, sender.try_send_request(request)).await? {
            Ok(response) => return Ok((response, loan(egress, key, sender))),
            // The other side had closed it: nothing was sent.
            Err(mut unsent) => match unsent.take_message() {
                Some(again) => request = again,
                None => return Err(error_of(unsent.error()).into()),
            },
        }
    }
    let mut sender = connected(egress, outgoing, target, options).await?;
    match first_byte(options, sender.try_send_request(request)).await? {
        Ok(response) => Ok((response, loan(egress, key, sender))),
        Err(unsent) => Err(error_of(unsent.error()).into()),
    }
}

fn loan(egress: &Egress, key: Key, sender: Sender) -> Loan {
    Loan { key, sender, pool: Arc::clone(&egress.pool) }
}

async fn first_byte<T>(options: RequestOptions, sending: impl Future<Output = T>) -> Result<T, Error> {
    match options.first_byte_timeout {
        Some(patience) => timeout(patience, sending).await.map_err(|_| Error::HttpResponseTimeout),
        None => Ok(sending.await),
    }
}

async fn connected(
    egress: &Egress,
    outgoing: &Outgoing,
    target: &Target,
    options: RequestOptions,
) -> Result<Sender, Failed> {
    let connecting = async {
        let addresses = checked(egress, outgoing, target).await?;
        Ok(connect(&egress.tls, target, &addresses).await?)
    };
    match options.connect_timeout {
        Some(patience) => timeout(patience, connecting).await.map_err(|_| Error::ConnectionTimeout)?,
        None => connecting.await,
    }
}

/// Returns the addresses that the target is at and that the attempt may be connected to.
async fn checked(egress: &Egress, outgoing: &Outgoing, target: &Target) -> Result<Vec<IpAddr>, Failed> {
    let found = match target.address {
        Some(address) => vec![address],
        None => egress.resolver.resolve(&target.host).await?,
    };
    let blocked = |address: IpAddr| {
        let own = egress.is_own(address, target.port);
        addresses::blocked(address, own, outgoing.policy(), egress.allow_private)
    };
    let open: Vec<IpAddr> = found.iter().copied().filter(|address| blocked(*address).is_none()).collect();
    match found.iter().find_map(|address| blocked(*address).map(|blocked| (*address, blocked))) {
        Some((address, blocked)) if open.is_empty() => {
            Err(Failed::Refused(Refusal::Private { host: target.host.clone(), address, blocked }))
        }
        _ => Ok(open),
    }
}

fn received(
    response: Response<hyper::body::Incoming>,
    outgoing: &Arc<Outgoing>,
    deadline: Instant,
    options: RequestOptions,
    loan: Loan,
    permit: Permit,
) -> Response<WasiBody> {
    let patience = options.between_bytes_timeout;
    response.map(|body| body::Response::new(body, outgoing, deadline, patience, loan, permit).boxed_unsync())
}

fn origin_form(uri: &Uri) -> Uri {
    let path = uri.path_and_query().cloned();
    path.map_or_else(Uri::default, Uri::from)
}

/// Says what went wrong on a connection as `wasi:http` does.
pub(super) fn error_of(error: &hyper::Error) -> Error {
    let own = error.source().and_then(|source| source.downcast_ref::<Error>());
    match own {
        Some(Error::HttpRequestBodySize(size)) => Error::HttpRequestBodySize(*size),
        _ if error.is_timeout() => Error::HttpResponseTimeout,
        _ if error.is_parse_too_large() => Error::HttpResponseHeaderSectionSize(None),
        _ if error.is_parse() => Error::HttpProtocolError,
        _ if error.is_incomplete_message() => Error::HttpResponseIncomplete,
        _ => Error::ConnectionTerminated,
    }
}
