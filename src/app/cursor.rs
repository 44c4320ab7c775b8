//! Pages of lists and their cursors: opaque, and good only for the list and the tenant they were made for.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use super::{
    Error,
    view::{Page, PageRequest},
};
use crate::model::TenantId;

/// Rows of a page where the request does not say.
const LIMIT: u64 = 50;
/// The most rows of a page.
const LIMIT_MAX: u64 = 500;
const MAC_BYTES: usize = 8;
const CURSOR_BYTES_MAX: usize = 4_096;

/// Makes and reads cursors.
pub(super) struct Cursors(Hmac<Sha256>);

impl Cursors {
    pub(super) fn new(key: &[u8; 32]) -> Self {
        Self(Hmac::new_from_slice(key).expect("an HMAC takes a key of any length"))
    }

    fn mac(&self, list: &str, tenant: &TenantId, body: &[u8]) -> Hmac<Sha256> {
        self.0
            .clone()
            .chain_update(list)
            .chain_update([0])
            .chain_update(tenant.as_str())
            .chain_update([0])
            .chain_update(body)
    }

    /// Begins the page of a list that was asked for.
    pub(super) fn page<'a>(&'a self, list: &'a str, tenant: &'a TenantId, request: &'a PageRequest) -> Pager<'a> {
        Pager { cursors: self, list, tenant, request }
    }

    /// Returns the cursor that begins after the row with these fields.
    fn seal(&self, list: &str, tenant: &TenantId, fields: &[String]) -> String {
        let mut body = serde_json::to_vec(fields).expect("strings are JSON");
        let tag = self.mac(list, tenant, &body).finalize().into_bytes();
        body.extend(&tag[..MAC_BYTES]);
        URL_SAFE_NO_PAD.encode(body)
    }

    /// Reads a cursor of this list and tenant.
    fn open<const N: usize>(&self, list: &str, tenant: &TenantId, cursor: &str) -> Result<[String; N], Error> {
        let read = || {
            let bytes = URL_SAFE_NO_PAD.decode(cursor.get(..cursor.len().min(CURSOR_BYTES_MAX))?).ok()?;
            let (body, tag) = bytes.split_at_checked(bytes.len().checked_sub(MAC_BYTES)?)?;
            self.mac(list, tenant, body).verify_truncated_left(tag).ok()?;
            let fields: Vec<String> = serde_json::from_slice(body).ok()?;
            <[String; N]>::try_from(fields).ok()
        };
        read().ok_or_else(foreign)
    }
}

/// One page of a list: where it begins, how much of it is read, and where the next one begins.
pub(super) struct Pager<'a> {
    cursors: &'a Cursors,
    list: &'a str,
    tenant: &'a TenantId,
    request: &'a PageRequest,
}

impl Pager<'_> {
    /// Returns the place after which the page begins, as `read` makes it of a cursor's fields; none: the list's beginning.
    pub(super) fn after<const N: usize, T>(
        &self,
        read: impl FnOnce([String; N]) -> Result<T, Error>,
    ) -> Result<Option<T>, Error> {
        let Some(cursor) = &self.request.cursor else { return Ok(None) };
        self.cursors.open(self.list, self.tenant, cursor).and_then(read).map(Some)
    }

    /// Returns how many rows to read: one more than is shown, which tells whether another page follows.
    pub(super) fn reads(&self) -> usize {
        limit(self.request) + 1
    }

    /// Makes the page of the rows that were read; `fields` are what a cursor says of a row.
    pub(super) fn cut<T, const N: usize>(&self, mut rows: Vec<T>, fields: impl FnOnce(&T) -> [String; N]) -> Page<T> {
        let shown = limit(self.request);
        let more = rows.len() > shown;
        rows.truncate(shown);
        let last = rows.last().filter(|_| more);
        let next_cursor = last.map(|row| self.cursors.seal(self.list, self.tenant, &fields(row)));
        Page { items: rows, next_cursor }
    }
}

/// Reads a number among the fields of a cursor.
pub(super) fn number<T: std::str::FromStr>(field: &str) -> Result<T, Error> {
    field.parse().map_err(|_| foreign())
}

fn foreign() -> Error {
    Error::invalid("`cursor` is not one that this list gave")
}

/// Returns how many rows a page has.
pub(super) fn limit(page: &PageRequest) -> usize {
    usize::try_from(page.limit.unwrap_or(LIMIT).clamp(1, LIMIT_MAX)).expect("at most 500")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_fits_only_its_list_and_tenant() {
        let cursors = Cursors::new(&[1; 32]);
        let tenant = TenantId::default_tenant();
        let cursor = cursors.seal("a", &tenant, &["1".into(), "x".into()]);
        assert_eq!(cursors.open::<2>("a", &tenant, &cursor).unwrap(), ["1", "x"]);
        let other = TenantId::new("other").unwrap();
        assert!(cursors.open::<2>("a", &other, &cursor).is_err(), "C098");
        assert!(cursors.open::<2>("b", &tenant, &cursor).is_err());
        assert!(cursors.open::<3>("a", &tenant, &cursor).is_err());
        for bad in ["", "x", "é", &cursor[1..], &"A".repeat(10_000)] {
            assert!(cursors.open::<2>("a", &tenant, bad).is_err());
        }
    }

    #[test]
    fn pages_follow_each_other_to_the_end() {
        let cursors = Cursors::new(&[1; 32]);
        let tenant = TenantId::default_tenant();
        for (rows, shown) in [(0, vec![0]), (1, vec![1]), (3, vec![3]), (4, vec![3, 1]), (7, vec![3, 3, 1])] {
            let mut request = PageRequest { limit: Some(3), cursor: None };
            for (page, count) in shown.iter().enumerate() {
                let pager = cursors.page("numbers", &tenant, &request);
                let first = pager.after(|[at]| number::<usize>(&at)).unwrap().unwrap_or(0);
                assert_eq!(first, page * 3);
                let read: Vec<usize> = (first..rows).take(pager.reads()).collect();
                let Page { items, next_cursor } = pager.cut(read, |row| [(row + 1).to_string()]);
                assert_eq!((items.len(), next_cursor.is_some()), (*count, page + 1 < shown.len()), "{rows} rows");
                request.cursor = next_cursor;
            }
        }
    }

    #[test]
    fn limits_are_clamped() {
        for (asked, given) in [(None, 50), (Some(0), 1), (Some(7), 7), (Some(1_000_000_000), 500)] {
            assert_eq!(limit(&PageRequest { limit: asked, cursor: None }), given);
        }
    }
}
