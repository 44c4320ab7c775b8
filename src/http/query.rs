//! The part of an address after `?`: known keys only, each once where it means one thing.

use axum::{
    extract::{FromRequestParts, Query as Pairs},
    http::request::Parts,
};
use utoipa::IntoParams;

use super::{answer::Refused, nearest};
use crate::app::{Error, PageRequest};

/// A query that a route reads.
pub(super) trait FromQuery: Sized {
    /// The keys that it knows.
    const KEYS: &'static [&'static str];
    /// What a family of keys begins with, where it knows one.
    const PREFIX: Option<&'static str> = None;

    /// Reads it.
    fn read(given: &Given) -> Result<Self, Error>;
}

/// The query of a request.
pub(super) struct Query<T>(pub(super) T);

impl<T: FromQuery, S: Sync> FromRequestParts<S> for Query<T> {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Refused> {
        let given = match parts.uri.query() {
            None | Some("") => Given(Vec::new()),
            Some(_) => match Pairs::try_from_uri(&parts.uri) {
                Ok(Pairs(pairs)) => Given(pairs),
                Err(_) => return Err(Error::invalid("the query cannot be read").into()),
            },
        };
        for (key, _) in &given.0 {
            let in_family = T::PREFIX.is_some_and(|prefix| key.len() > prefix.len() && key.starts_with(prefix));
            if !in_family && !T::KEYS.contains(&key.as_str()) {
                return Err(nearest::unknown("query key", key, T::KEYS).into());
            }
        }
        Ok(Self(T::read(&given)?))
    }
}

/// The pairs that were given, decoded.
pub(super) struct Given(Vec<(String, String)>);

impl Given {
    /// Returns every value of `key`.
    pub(super) fn all<'a, 'k>(&'a self, key: &'k str) -> impl Iterator<Item = &'a str> + use<'a, 'k> {
        self.0.iter().filter(move |(name, _)| name == key).map(|(_, value)| value.as_str())
    }

    /// Returns what follows `prefix` in each key of the family, with its value.
    pub(super) fn family<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.0.iter().filter_map(move |(name, value)| Some((name.strip_prefix(prefix)?, value.as_str())))
    }

    /// Returns the one value of `key`.
    pub(super) fn one<'a>(&'a self, key: &str) -> Result<Option<&'a str>, Error> {
        let mut values = self.all(key);
        match (values.next(), values.next()) {
            (value, None) => Ok(value),
            _ => Err(Error::invalid(format!("the query key `{key}` is there more than once"))),
        }
    }

    /// Returns the one value of `key` as text of its own.
    pub(super) fn text(&self, key: &str) -> Result<Option<String>, Error> {
        Ok(self.one(key)?.map(str::to_owned))
    }

    /// Returns a whole number. One that is too large for any use counts as the largest, because such are clamped.
    pub(super) fn number(&self, key: &str) -> Result<Option<u64>, Error> {
        let Some(value) = self.one(key)? else { return Ok(None) };
        if value.is_empty() || !value.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(Error::invalid(format!("the query key `{key}` must be a whole number")));
        }
        Ok(Some(value.parse().unwrap_or(u64::MAX)))
    }

    /// Returns a flag.
    pub(super) fn flag(&self, key: &str) -> Result<Option<bool>, Error> {
        match self.one(key)? {
            None => Ok(None),
            Some("true") => Ok(Some(true)),
            Some("false") => Ok(Some(false)),
            Some(_) => Err(Error::invalid(format!("the query key `{key}` must be `true` or `false`"))),
        }
    }

    /// Returns an instant: milliseconds since 1970, or a time such as `2031-05-01T12:00:00Z`.
    pub(super) fn instant(&self, key: &str) -> Result<Option<i64>, Error> {
        let Some(value) = self.one(key)? else { return Ok(None) };
        let millis = value.parse().or_else(|_| value.parse().map(|at: jiff::Timestamp| at.as_millisecond()));
        millis.map(Some).map_err(|_| {
            Error::invalid(format!(
                "the query key `{key}` must be milliseconds since 1970 or a time such as 2031-05-01T12:00:00Z"
            ))
        })
    }

    /// Returns the number of a run.
    pub(super) fn run(&self) -> Result<Option<u32>, Error> {
        let run = self.number("run")?;
        Ok(run.map(|run| u32::try_from(run).unwrap_or(u32::MAX)))
    }
}

impl FromQuery for () {
    const KEYS: &'static [&'static str] = &[];

    fn read(_given: &Given) -> Result<Self, Error> {
        Ok(())
    }
}

/// Which page of a list is wanted.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "describes the keys in the OpenAPI document; the request itself is a PageRequest")]
pub(super) struct PageQuery {
    /// How many rows: 50 where absent, at most 500.
    limit: Option<u64>,
    /// `next_cursor` of the page before.
    cursor: Option<String>,
}

impl FromQuery for PageRequest {
    const KEYS: &'static [&'static str] = &["limit", "cursor"];

    fn read(given: &Given) -> Result<Self, Error> {
        Ok(Self { limit: given.number("limit")?, cursor: given.text("cursor")? })
    }
}

#[cfg(test)]
mod tests {
    use axum::{body::Body, extract::Request};

    use super::*;

    async fn read<T: FromQuery>(query: &str) -> Result<T, String> {
        let request = Request::builder().uri(format!("/v1/x?{query}")).body(Body::empty()).unwrap();
        let answer = Query::<T>::from_request_parts(&mut request.into_parts().0, &()).await;
        answer.map(|Query(query)| query).map_err(|Refused(error)| error.message)
    }

    #[tokio::test]
    async fn pages_are_read() {
        for (query, limit, cursor) in [
            ("", None, None),
            ("limit=7&cursor=a%2Bb", Some(7), Some("a+b")),
            ("limit=0", Some(0), None),
            ("limit=99999999999999999999999999", Some(u64::MAX), None),
        ] {
            let page: PageRequest = read(query).await.unwrap();
            assert_eq!((page.limit, page.cursor.as_deref()), (limit, cursor), "{query}");
        }
    }

    #[tokio::test]
    async fn wrong_queries_are_refused() {
        for (query, message) in [
            ("limti=7", "unknown query key `limti`; did you mean `limit`?"),
            ("limit=-1", "the query key `limit` must be a whole number"),
            ("limit=", "the query key `limit` must be a whole number"),
            ("limit=1e3", "the query key `limit` must be a whole number"),
            ("limit=1&limit=2", "the query key `limit` is there more than once"),
        ] {
            assert_eq!(read::<PageRequest>(query).await.map(|_| ()), Err(message.to_owned()), "{query}");
        }
        assert_eq!(read::<()>("x=1").await, Err("unknown query key `x`; none is known here".to_owned()));
    }

    #[test]
    fn instants_are_read_both_ways() {
        for (text, wanted) in [
            ("1700000000000", Some(1_700_000_000_000)),
            ("1970-01-01T00:00:01.5Z", Some(1_500)),
            ("yesterday", None),
            ("", None),
        ] {
            let given = Given(vec![("at".to_owned(), text.to_owned())]);
            assert_eq!(given.instant("at").ok().flatten(), wanted, "{text}");
        }
    }
}
