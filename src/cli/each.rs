//! Several things sent one after the other.

use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::{Error, client::Client, output::Output};

/// What was answered before one failed, and how it ended.
pub(super) struct Sent {
    answers: Vec<Box<RawValue>>,
    ended: Result<(), Error>,
}

/// Sends `items` in order until one fails.
pub(super) async fn until_failure<T>(
    items: impl IntoIterator<Item = T>,
    mut send: impl AsyncFnMut(T) -> Result<Box<RawValue>, Error>,
) -> Sent {
    let mut answers = Vec::new();
    for item in items {
        match send(item).await {
            Ok(answer) => answers.push(answer),
            Err(error) => return Sent { answers, ended: Err(error) },
        }
    }
    Sent { answers, ended: Ok(()) }
}

impl Sent {
    /// Reads each answer.
    pub(super) fn each<T: DeserializeOwned>(&self, client: &Client, read: impl Fn(T)) -> Result<(), Error> {
        self.answers.iter().try_for_each(|answer| client.read(answer).map(&read))
    }

    /// Prints the answers as rows, also those before a failure, as they have had their effect. Returns how it ended.
    pub(super) fn show<T: DeserializeOwned>(
        self,
        client: &Client,
        output: Output,
        headings: &[&str],
        cells: impl Fn(&T) -> Vec<String>,
    ) -> Result<(), Error> {
        if self.ended.is_ok() || !self.answers.is_empty() {
            output.rows(client, &self.answers, headings, cells)?;
        }
        self.ended
    }
}

#[cfg(test)]
mod tests {
    use serde_json::value::to_raw_value;

    use super::*;

    #[tokio::test]
    async fn what_was_sent_before_a_failure_is_told() {
        for (items, answered, good) in [(&[1, 2, 3][..], 3, true), (&[1, 0, 3], 1, false), (&[], 0, true)] {
            let sent = until_failure(items, async |item| match item {
                0 => Err(Error::Usage("no such file".to_owned())),
                item => Ok(to_raw_value(item).unwrap()),
            })
            .await;
            assert_eq!((sent.answers.len(), sent.ended.is_ok()), (answered, good), "{items:?}");
        }
    }
}
