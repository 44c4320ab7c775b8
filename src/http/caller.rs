//! What a request says beside its body: for which tenant, on what, under which key, and from where it goes on.

use axum::{
    extract::{FromRequestParts, Path},
    http::{HeaderMap, StatusCode, request::Parts},
};
use serde::de::DeserializeOwned;

use super::{Edge, answer::Refused};
use crate::{
    app::{App, Error},
    model::TenantId,
};

/// For whom the request is: `x-sandkeep-tenant`, which must be there, else the default tenant, which always is.
pub(super) struct Tenant(pub(super) TenantId);

impl FromRequestParts<Edge> for Tenant {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, edge: &Edge) -> Result<Self, Refused> {
        let name = header(&parts.headers, "x-sandkeep-tenant")?;
        Ok(Self(match name {
            Some(name) => edge.app.tenant(name)?,
            None => TenantId::default_tenant(),
        }))
    }
}

/// `Idempotency-Key`: under it a repeated request is recognised.
pub(super) struct IdempotencyKey(pub(super) Option<String>);

impl<S: Sync> FromRequestParts<S> for IdempotencyKey {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Refused> {
        Ok(Self(header(&parts.headers, "idempotency-key")?.map(str::to_owned)))
    }
}

/// `Last-Event-ID`: the event after which a broken stream goes on.
pub(super) struct LastEventId(pub(super) Option<u64>);

impl<S: Sync> FromRequestParts<S> for LastEventId {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Refused> {
        let id = header(&parts.headers, "last-event-id")?.filter(|id| !id.is_empty());
        let number = id.map(|id| id.parse().map_err(|_| Error::invalid("the header `last-event-id` must be a number")));
        Ok(Self(number.transpose()?))
    }
}

/// Returns the header `name`, which may be there once and in visible ASCII.
fn header<'a>(headers: &'a HeaderMap, name: &'static str) -> Result<Option<&'a str>, Error> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => match value.to_str() {
            Ok(text) => Ok(Some(text.trim())),
            Err(_) => Err(Error::invalid(format!("the header `{name}` must be visible ASCII"))),
        },
        (Some(_), Some(_)) => Err(Error::invalid(format!("the header `{name}` is there more than once"))),
    }
}

/// The parameters of the path, decoded.
pub(super) struct Segments<T>(pub(super) T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Segments<T> {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refused> {
        match Path::<T>::from_request_parts(parts, state).await {
            Ok(Path(segments)) => Ok(Self(segments)),
            Err(rejection) if rejection.status() == StatusCode::BAD_REQUEST => {
                Err(Error::invalid("the path is not percent-encoded UTF-8").into())
            }
            Err(rejection) => Err(Error::internal(rejection).into()),
        }
    }
}

/// The execution that a request is about, with the operations and for whom it is.
pub(super) struct Subject {
    pub(super) app: App,
    pub(super) tenant: TenantId,
    pub(super) id: String,
}

impl FromRequestParts<Edge> for Subject {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, edge: &Edge) -> Result<Self, Refused> {
        let Tenant(tenant) = Tenant::from_request_parts(parts, edge).await?;
        let Segments(id) = Segments::from_request_parts(parts, edge).await?;
        Ok(Self { app: edge.app.clone(), tenant, id })
    }
}

#[cfg(test)]
mod tests {
    use axum::{body::Body, extract::Request};

    use super::*;
    use crate::app::ErrorCode;

    async fn read<T: FromRequestParts<(), Rejection = Refused>>(headers: &[(&str, &str)]) -> Result<T, ErrorCode> {
        let mut request = Request::builder();
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (mut parts, _) = request.body(Body::empty()).unwrap().into_parts();
        T::from_request_parts(&mut parts, &()).await.map_err(|Refused(error)| error.code)
    }

    #[tokio::test]
    async fn keys_are_read_as_they_are() {
        let key = "idempotency-key";
        for (headers, wanted) in [
            (&[][..], Ok(None)),
            (&[(key, " order-7 ")], Ok(Some("order-7"))),
            (&[(key, "")], Ok(Some(""))),
            (&[(key, "\u{e9}")], Err(ErrorCode::InvalidRequest)),
            (&[(key, "a"), (key, "a")], Err(ErrorCode::InvalidRequest)),
        ] {
            let answer = read::<IdempotencyKey>(headers).await.map(|IdempotencyKey(key)| key);
            assert_eq!(answer.as_ref().map(Option::as_deref).map_err(|code| *code), wanted, "{headers:?}");
        }
    }

    #[tokio::test]
    async fn streams_resume_at_numbers() {
        for (id, wanted) in [
            ("7", Ok(Some(7))),
            ("", Ok(None)),
            ("x", Err(ErrorCode::InvalidRequest)),
            ("-1", Err(ErrorCode::InvalidRequest)),
        ] {
            let answer = read::<LastEventId>(&[("last-event-id", id)]).await.map(|LastEventId(id)| id);
            assert_eq!(answer, wanted, "{id:?}");
        }
    }
}
