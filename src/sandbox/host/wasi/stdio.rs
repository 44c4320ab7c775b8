//! Standard output and standard error of a guest: lines of the attempt's log.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use tokio::io::{self, AsyncWrite};
use wasmtime_wasi::{
    WasiCtxBuilder, async_trait,
    cli::{IsTerminal, StdoutStream},
    p2::{OutputStream, Pollable, StreamError, StreamResult},
};

use super::super::super::journal::{Journal, Stream};

/// How much may be written at a time, in bytes.
const WRITE_BYTES_MAX: usize = 64 * 1024;

/// Has what the guest prints go into `journal`.
pub(super) fn capture(builder: &mut WasiCtxBuilder, journal: &Journal) {
    builder.stdout(Printed { journal: journal.clone(), stream: Stream::Out });
    builder.stderr(Printed { journal: journal.clone(), stream: Stream::Err });
}

/// One stream; always ready, since the journal keeps no more than it may.
#[derive(Clone)]
struct Printed {
    journal: Journal,
    stream: Stream,
}

impl IsTerminal for Printed {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for Printed {
    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        Box::new(self.clone())
    }

    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }
}

#[async_trait]
impl Pollable for Printed {
    async fn ready(&mut self) {}
}

impl OutputStream for Printed {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        if bytes.len() > WRITE_BYTES_MAX {
            return Err(StreamError::trap("more was written than `check-write` permits"));
        }
        self.journal.print(self.stream, &bytes);
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(WRITE_BYTES_MAX)
    }
}

impl AsyncWrite for Printed {
    fn poll_write(self: Pin<&mut Self>, _context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.journal.print(self.stream, bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
