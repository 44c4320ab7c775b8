//! The HTTP edge: translates requests into operations of `app` and what they answer into JSON. It decides nothing.
//!
//! - [`router`]: every route, one file per resource; the OpenAPI document is made from the same table
//! - [`serve`]: accepts connections until it is told to stop
//! - manner: what every answer carries and who may ask at all (`manner`, `browser`, `answer`)
//! - entrances: what a request must be to reach an operation (`body`, `envelope`, `query`, `caller`)
//!
//! Payloads pass through as the bytes that came. Absent on purpose: rules about workflows, limits of pages and waits
//! (the operations clamp those), credentials.

mod aliases;
mod answer;
mod body;
mod browser;
mod caller;
mod envelope;
mod executions;
mod handed;
mod health;
mod history;
mod interactions;
mod logs;
mod manner;
mod module_life;
mod module_settings;
mod modules;
mod nearest;
mod openapi;
mod query;
mod repin;
mod serve;
mod stream;
mod tasks;
mod tenants;
mod units;
mod unread;
mod workers;
mod workflows;

use std::net::SocketAddr;

use axum::{Router, extract::FromRef, middleware};
use bytes::Bytes;

use crate::app::{App, ErrorCode};

pub use openapi::document;
pub use serve::serve;

/// What every answer carries in `x-sandkeep-api-version`.
pub const API_VERSION: &str = "sandkeep-api/1";

/// What the edge must know of its listener.
#[derive(Clone, Debug)]
pub struct Options {
    /// The address that is listened on, as bound. On a loopback address only requests for a loopback host are served.
    pub listen: SocketAddr,
}

/// What handlers share.
#[derive(Clone)]
struct Edge {
    app: App,
    document: Bytes,
}

impl FromRef<Edge> for App {
    fn from_ref(edge: &Edge) -> Self {
        edge.app.clone()
    }
}

/// Returns the service of every route.
pub fn router(app: App, options: &Options) -> Router {
    let (routes, document) = openapi::routes().split_for_parts();
    let document = openapi::text(document);
    let edge = Edge { app, document };
    routes
        .fallback(|| async { answer::refuse(ErrorCode::NotFound, "there is no such route") })
        .method_not_allowed_fallback(|| async {
            answer::refuse(ErrorCode::MethodNotAllowed, "the route does not serve this method")
        })
        .with_state(edge)
        .layer(middleware::from_fn_with_state(browser::Guard::new(options.listen), manner::apply))
}
