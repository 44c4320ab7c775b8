//! The gRPC edge. For now it serves health alone: `grpc.health.v1.Health`, of the server as a whole.

use tokio::net::TcpListener;
use tonic::transport::{Server, server::TcpIncoming};
use tonic_health::ServingStatus;

/// The name under which the server as a whole is asked for.
const WHOLE: &str = "";

/// Why gRPC could not be served.
#[derive(Debug, thiserror::Error)]
#[error("failed to serve gRPC")]
pub struct Error(#[from] tonic::transport::Error);

/// Serves health on `listener` until `shutdown` resolves. Those who watch are told before their streams end.
pub async fn serve(listener: TcpListener, shutdown: impl Future<Output = ()>) -> Result<(), Error> {
    let (mut reporter, health) = tonic_health::server::health_reporter();
    let stop = async move {
        shutdown.await;
        reporter.set_service_status(WHOLE, ServingStatus::NotServing).await;
        // A watched status that is gone ends the streams of its watchers, which would keep the server up.
        reporter.clear_service_status(WHOLE).await;
    };
    let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
    Ok(Server::builder().add_service(health).serve_with_incoming_shutdown(incoming, stop).await?)
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;
    use tonic::transport::Endpoint;
    use tonic_health::pb::{HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient};

    use super::*;

    #[tokio::test]
    async fn watchers_are_told_and_let_go() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = tokio::spawn(serve(listener, async {
            let _ = stopped.await;
        }));
        let channel = Endpoint::from_shared(address).unwrap().connect().await.unwrap();
        let mut client = HealthClient::new(channel);
        let whole = HealthCheckRequest { service: String::new() };
        let status = client.check(whole.clone()).await.unwrap().into_inner().status();
        assert_eq!(status, ServingStatus::Serving);
        let missing = client.check(HealthCheckRequest { service: "x".to_owned() }).await.unwrap_err();
        assert_eq!(missing.code(), tonic::Code::NotFound);

        let mut watch = client.watch(whole).await.unwrap().into_inner();
        assert_eq!(watch.message().await.unwrap().unwrap().status(), ServingStatus::Serving);
        stop.send(()).unwrap();
        assert_eq!(watch.message().await.unwrap().unwrap().status(), ServingStatus::NotServing);
        assert!(watch.message().await.unwrap().is_none());
        drop((watch, client));
        serving.await.unwrap().unwrap();
    }
}
