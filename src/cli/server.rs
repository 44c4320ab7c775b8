//! `server`: serves until it is told to stop.

use std::net::SocketAddr;

use crate::{config::Config, telemetry};

use super::{
    Error,
    output::{print, say},
    settings::Settings,
};

/// Serves executions until it is told to stop
///
/// When it can take requests it prints one line on standard output, `ready http=http://127.0.0.1:PORT`, followed by
/// ` grpc=http://127.0.0.1:PORT` where gRPC is served. Logs go to standard error.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: sandkeep server --listen 127.0.0.1:7420 --database sqlite:/var/lib/sandkeep/data.db")]
pub(super) struct Args {
    #[command(flatten)]
    settings: Settings,
}

pub(super) async fn run(args: Args) -> Result<(), Error> {
    let loaded = args.settings.load()?;
    if args.settings.print_config {
        return print(&loaded.to_string());
    }
    telemetry::init(&loaded.config.log)?;
    serve(loaded.config, |_| {}).await
}

/// Serves until it is told to stop. Prints the line that it is ready, then calls `ready` with the address of HTTP.
pub(super) async fn serve(config: Config, ready: impl FnOnce(SocketAddr) + Send) -> Result<(), Error> {
    let announce = |http: SocketAddr, grpc: Option<SocketAddr>| {
        if let Err(error) = print(&ready_line(http, grpc)) {
            // Whoever started it is not listening; those who know the address are served all the same.
            say(&format!("the line `{}` could not be printed: {error}", ready_line(http, grpc)));
        }
        ready(http);
    };
    crate::server::run(config, announce).await.map_err(|error| Error::Server(error.into()))
}

fn ready_line(http: SocketAddr, grpc: Option<SocketAddr>) -> String {
    let grpc = grpc.map(|address| format!(" grpc=http://{address}")).unwrap_or_default();
    format!("ready http=http://{http}{grpc}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ready_line_names_what_listens() {
        let http = "127.0.0.1:80".parse().unwrap();
        assert_eq!(ready_line(http, None), "ready http=http://127.0.0.1:80");
        assert_eq!(ready_line(http, "[::1]:81".parse().ok()), "ready http=http://127.0.0.1:80 grpc=http://[::1]:81");
    }
}
