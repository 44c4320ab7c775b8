//! Cursors that nobody gave out: a page of another list, tenant or server is never begun by one.

use std::time::Duration;

use super::super::{PageRequest, cursor::Cursors};
use crate::{fuzz::Fuzz, model::TenantId};

#[test]
fn cursors_of_others_are_refused() {
    let tenant = TenantId::default_tenant();
    let own = Cursors::new(&[7; 32]);
    let foreign = Cursors::new(&[8; 32]);
    let request = PageRequest { limit: Some(1), ..PageRequest::default() };
    let sealed = |cursors: &Cursors, list: &str, tenant: &TenantId, row: [String; 2]| {
        let page = cursors.page(list, tenant, &request).cut(vec![row.clone(), row], |row| row.clone());
        page.next_cursor.expect("there is another page")
    };
    let row = ["17".to_owned(), "a name".to_owned()];
    let good = sealed(&own, "rows", &tenant, row.clone());
    let samples = [
        good.clone(),
        sealed(&own, "others", &tenant, row.clone()),
        sealed(&own, "rows", &TenantId::new("another").unwrap(), row.clone()),
        sealed(&foreign, "rows", &tenant, row.clone()),
    ];
    let samples = samples.map(String::into_bytes).into();
    let words = &["A", "-", "_", "=", "AAAA"];
    Fuzz { name: "cursors", time: Duration::from_secs(1), samples, words }.run(|bytes| {
        let text = String::from_utf8_lossy(bytes).into_owned();
        let request = PageRequest { cursor: Some(text.clone()), ..PageRequest::default() };
        match own.page("rows", &tenant, &request).after(|fields: [String; 2]| Ok(fields)) {
            Ok(fields) => assert_eq!((&text, fields), (&good, Some(row.clone())), "it was given out by nobody"),
            Err(error) => assert!(error.to_string().contains("cursor"), "{error}"),
        }
    });
}
