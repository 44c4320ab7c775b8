//! Requests that go through the tape.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::{
    Response as HyperResponse,
    body::{Body, Frame, SizeHint},
};
use wasmtime_wasi_http::{Error, WasiBody};

use super::{
    Answered, Broken, End, Exchange, Part, Response, Tape, locked,
    recording::{headers_of, to_headers},
};

/// What an entry takes beside its texts, about.
const ENTRY_BYTES: usize = 64;

/// Where the answer to a request comes from.
pub(in super::super) enum Played {
    /// From the world.
    Live,
    /// From the world, and what comes is kept under this number, where there was room for it.
    Kept(Option<usize>),
    /// From the tape.
    Recorded(Option<Answered>),
    /// The tape has none, in words.
    Missing(String),
}

impl Tape {
    /// Takes the next answer to a request.
    pub(in super::super) fn request(&self, method: &str, url: &str) -> Played {
        let is_it = |exchange: &Exchange| exchange.method.eq_ignore_ascii_case(method) && same(&exchange.url, url);
        match self {
            Self::Live => Played::Live,
            Self::Kept(keeping) => {
                let mut keeping = locked(keeping);
                if !keeping.spend(ENTRY_BYTES + method.len() + url.len()) {
                    return Played::Kept(None);
                }
                let exchange = Exchange { method: method.to_owned(), url: url.to_owned(), answer: None };
                keeping.recording.http.push(exchange);
                Played::Kept(Some(keeping.recording.http.len() - 1))
            }
            Self::Replayed(playing) => {
                let mut playing = locked(playing);
                let recording = Arc::clone(&playing.recording);
                let mut exchanges = recording.http.iter().zip(&mut playing.given);
                match exchanges.find(|(exchange, given)| !**given && is_it(exchange)) {
                    Some((exchange, given)) => {
                        *given = true;
                        Played::Recorded(exchange.answer.clone())
                    }
                    None => {
                        playing.beyond(format!("an answer to `{method} {url}`"));
                        Played::Missing(playing.unrecorded.clone().unwrap_or_default())
                    }
                }
            }
            Self::Stubbed(stubs) => {
                let mut stubs = locked(stubs);
                match stubs.list.iter().find(|exchange| is_it(exchange)) {
                    Some(exchange) => Played::Recorded(exchange.answer.clone()),
                    None => {
                        let sentence = format!("no stub answers `{method} {url}`");
                        stubs.unrecorded.get_or_insert_with(|| sentence.clone());
                        Played::Missing(sentence)
                    }
                }
            }
        }
    }

    /// Has a kept exchange grow, where there is room for what it grows by.
    fn grow(&self, number: Option<usize>, bytes: usize, grow: impl FnOnce(&mut Exchange)) {
        let (Self::Kept(keeping), Some(number)) = (self, number) else { return };
        let mut keeping = locked(keeping);
        if keeping.spend(bytes) {
            grow(&mut keeping.recording.http[number]);
        }
    }

    fn grow_response(&self, number: Option<usize>, bytes: usize, grow: impl FnOnce(&mut Response)) {
        self.grow(number, bytes, |exchange| {
            if let Some(Answered::Response(response)) = &mut exchange.answer {
                grow(response);
            }
        });
    }
}

/// Whether two addresses are the same; one without a path has the path `/`.
fn same(one: &str, other: &str) -> bool {
    let parsed = |text: &str| text.parse::<hyper::Uri>().ok();
    one == other || parsed(one).is_some_and(|uri| parsed(other).is_some_and(|other| uri == other))
}

/// Keeps what came of a request.
pub(in super::super) fn keep(
    tape: &Tape,
    number: Option<usize>,
    sent: Result<HyperResponse<WasiBody>, Error>,
) -> Result<HyperResponse<WasiBody>, Error> {
    match sent {
        Ok(response) => {
            let headers = headers_of(response.headers());
            let kept = Response {
                status: response.status().as_u16(),
                body: Vec::new(),
                trailers: Vec::new(),
                end: End::Unread,
                headers,
            };
            let bytes = ENTRY_BYTES + size(&kept.headers);
            tape.grow(number, bytes, |exchange| exchange.answer = Some(Answered::Response(kept)));
            let tape = tape.clone();
            Ok(response.map(|body| Kept { body, tape, number }.boxed_unsync()))
        }
        Err(error) => {
            let broken = Broken::of(&error);
            let bytes = ENTRY_BYTES + broken.text.as_ref().map_or(0, String::len);
            tape.grow(number, bytes, |exchange| exchange.answer = Some(Answered::Error(broken)));
            Err(error)
        }
    }
}

fn size(headers: &[(String, Part)]) -> usize {
    headers.iter().map(|(name, value)| name.len() + value.size() + 8).sum()
}

/// A body that is kept while it is read.
struct Kept {
    body: WasiBody,
    tape: Tape,
    number: Option<usize>,
}

impl Body for Kept {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let polled = std::task::ready!(Pin::new(&mut self.body).poll_frame(context));
        let Self { tape, number, .. } = &*self;
        match &polled {
            Some(Ok(frame)) => {
                if let Some(data) = frame.data_ref() {
                    let part = Part::of(data);
                    tape.grow_response(*number, part.size() + 3, |response| response.body.push(part));
                } else if let Some(trailers) = frame.trailers_ref() {
                    let trailers = headers_of(trailers);
                    tape.grow_response(*number, size(&trailers), |response| response.trailers = trailers);
                }
            }
            Some(Err(error)) => {
                let broken = Broken::of(error);
                tape.grow_response(*number, ENTRY_BYTES, |response| response.end = End::Error(broken));
            }
            None => self.note_whole(),
        }
        Poll::Ready(polled)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Kept {
    fn note_whole(&self) {
        self.tape.grow_response(self.number, 0, |response| {
            if response.end == End::Unread {
                response.end = End::Whole;
            }
        });
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        // Who knows a body's length does not read on to its end.
        if self.body.is_end_stream() {
            self.note_whole();
        }
    }
}

/// Gives back what came of a request: what never came, never comes. A body has at most `body_bytes_max` bytes.
pub(in super::super) async fn answer(
    answer: Option<Answered>,
    body_bytes_max: u64,
) -> Result<HyperResponse<WasiBody>, Error> {
    let response = match answer {
        Some(Answered::Response(response)) => response,
        Some(Answered::Error(broken)) => return Err(broken.to_error()),
        None => std::future::pending().await,
    };
    let wrong = |what: &str| Error::InternalError(Some(format!("the recorded answer has {what}")));
    let body: Option<Vec<Bytes>> = response.body.iter().map(Part::bytes).collect();
    let mut body = body.ok_or_else(|| wrong("a body that is not base64"))?;
    let mut end = response.end;
    if body.iter().map(|part| part.len() as u64).sum::<u64>() > body_bytes_max {
        // As over the network, what fits comes before the error.
        let mut left = body_bytes_max;
        body.retain(|part| {
            let fits = left.checked_sub(part.len() as u64);
            left = fits.unwrap_or(0);
            fits.is_some()
        });
        end = End::Error(Broken::of(&Error::HttpResponseBodySize(Some(body_bytes_max))));
    }
    let trailers = (!response.trailers.is_empty()).then(|| to_headers(&response.trailers));
    let body = Recorded { parts: body.into_iter(), trailers, end: Some(end) };
    let mut made = HyperResponse::new(body.boxed_unsync());
    *made.status_mut() = response.status.try_into().map_err(|_| wrong("a status that is none"))?;
    *made.headers_mut() = to_headers(&response.headers);
    Ok(made)
}

/// A body as it was kept.
struct Recorded {
    parts: std::vec::IntoIter<Bytes>,
    trailers: Option<hyper::HeaderMap>,
    end: Option<End>,
}

impl Body for Recorded {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(mut self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        if let Some(part) = self.parts.next() {
            return Poll::Ready(Some(Ok(Frame::data(part))));
        }
        match &self.end {
            // The attempt did not see the end, so neither does this one.
            Some(End::Unread) => return Poll::Pending,
            Some(End::Error(broken)) => {
                let error = broken.to_error();
                self.end = None;
                return Poll::Ready(Some(Err(error)));
            }
            Some(End::Whole) | None => {}
        }
        Poll::Ready(self.trailers.take().map(|trailers| Ok(Frame::trailers(trailers))))
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::{Answers, Recording, tests::kept_of},
        *,
    };

    fn exchange(method: &str, url: &str, text: &str) -> Exchange {
        let answer = Answered::Response(Response {
            status: 200,
            headers: vec![("x".to_owned(), Part::Text("1".to_owned()))],
            body: vec![Part::Text(text.to_owned())],
            trailers: Vec::new(),
            end: End::Whole,
        });
        Exchange { method: method.to_owned(), url: url.to_owned(), answer: Some(answer) }
    }

    async fn text_of(played: Played, max: u64) -> Result<String, Error> {
        let Played::Recorded(recorded) = played else { panic!("it is not recorded") };
        let body = answer(recorded, max).await?.into_body().collect().await?;
        Ok(String::from_utf8(body.to_bytes().to_vec()).unwrap())
    }

    #[tokio::test]
    async fn answers_come_in_order_by_method_and_address() {
        let http = vec![
            exchange("GET", "https://a.example", "one"),
            exchange("POST", "https://a.example/", "two"),
            exchange("GET", "https://a.example/", "three"),
        ];
        let recording = Recording { complete: true, http, ..Recording::default() };
        let tape = Tape::new(Answers::Replayed(Arc::new(recording)));
        for (method, expected) in [("GET", "one"), ("GET", "three"), ("POST", "two")] {
            assert_eq!(text_of(tape.request(method, "https://a.example/"), 100).await.unwrap(), expected);
        }
        assert!(matches!(tape.request("GET", "https://a.example/"), Played::Missing(_)));
        assert_eq!(tape.end().1.unwrap(), "an answer to `GET https://a.example/` is not in the recording");
    }

    #[tokio::test]
    async fn stubs_answer_as_often_as_they_are_asked() {
        let tape = Tape::new(Answers::Stubbed(vec![exchange("GET", "https://a.example/x?y=1", "one")].into()));
        for _ in 0..2 {
            assert_eq!(text_of(tape.request("get", "https://a.example/x?y=1"), 3).await.unwrap(), "one");
        }
        let too_large = text_of(tape.request("GET", "https://a.example/x?y=1"), 2).await.unwrap_err();
        assert!(matches!(too_large, Error::HttpResponseBodySize(Some(2))));
        let Played::Missing(sentence) = tape.request("GET", "https://a.example/x") else { panic!("it is not there") };
        assert_eq!(sentence, "no stub answers `GET https://a.example/x`");
    }

    #[tokio::test]
    async fn what_was_kept_is_what_came() {
        let tape = Tape::new(Answers::Kept);
        for (url, sent) in [
            ("https://a.example/", answer(exchange("GET", "", "{\"a\":1}").answer, 100).await),
            ("https://b.example/", Err(Error::ConnectionRefused)),
        ] {
            let Played::Kept(number) = tape.request("GET", url) else { panic!("it is kept") };
            if let Ok(response) = keep(&tape, number, sent) {
                assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "{\"a\":1}");
            }
        }
        let Played::Kept(unanswered) = tape.request("GET", "https://c.example/") else { panic!("it is kept") };
        assert_eq!(unanswered, Some(2));
        let kept = kept_of(tape);
        let mut first = exchange("GET", "https://a.example/", "{\"a\":1}");
        assert_eq!(kept.http[0], first);
        first.answer = Some(Answered::Error(Broken::named("connection-refused").unwrap()));
        assert_eq!((&kept.http[1].answer, &kept.http[2].answer), (&first.answer, &None));
    }

    #[tokio::test]
    async fn a_body_past_the_limit_ends_the_recording() {
        let tape = Tape::new(Answers::Kept);
        let Played::Kept(number) = tape.request("GET", "https://a.example/") else { panic!("it is kept") };
        let long = "x".repeat(super::super::RECORDING_BYTES_MAX);
        let response = keep(&tape, number, answer(exchange("GET", "", &long).answer, u64::MAX).await).unwrap();
        assert_eq!(response.into_body().collect().await.unwrap().to_bytes().len(), long.len());
        let kept = kept_of(tape);
        let Some(Answered::Response(response)) = &kept.http[0].answer else { panic!("it is kept") };
        assert!(!kept.complete && response.body.is_empty() && response.end == End::Unread);
    }
}
