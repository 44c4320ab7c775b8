//! Outside a module there is no host to send anything.

use super::url::Target;
use super::{Error, Request, Response};

pub fn exchange(_request: Request, _target: Target) -> Result<Response, Error> {
    Err(Error::Unavailable)
}
