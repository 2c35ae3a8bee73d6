//! Ends a connection whose client does not read what it asked for.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Sleep, sleep};

/// A connection on which no write may wait longer than a limit.
#[derive(Debug)]
pub(crate) struct WriteLimited {
    connection: TcpStream,
    limit: Duration,
    /// Runs while a write waits.
    waiting: Option<Pin<Box<Sleep>>>,
}

impl WriteLimited {
    pub(crate) fn new(connection: TcpStream, limit: Duration) -> Self {
        Self { connection, limit, waiting: None }
    }

    /// Returns the result of a write, or an error if it has waited too long.
    fn limited<T>(&mut self, written: Poll<io::Result<T>>, context: &mut Context<'_>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.waiting = None;
            return written;
        }
        let limit = self.limit;
        ready!(self.waiting.get_or_insert_with(|| Box::pin(sleep(limit))).as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for WriteLimited {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.connection).poll_read(context, into)
    }
}

impl AsyncWrite for WriteLimited {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.connection).poll_write(context, bytes);
        self.limited(written, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.connection).poll_write_vectored(context, bytes);
        self.limited(written, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.connection.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.connection).poll_flush(context);
        self.limited(flushed, context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let ended = Pin::new(&mut self.connection).poll_shutdown(context);
        self.limited(ended, context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    const BYTES: usize = 64 << 20;

    async fn connected(limit: Duration) -> io::Result<(WriteLimited, TcpStream)> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let client = TcpStream::connect(listener.local_addr()?).await?;
        Ok((WriteLimited::new(listener.accept().await?.0, limit), client))
    }

    #[tokio::test]
    async fn a_client_that_reads_nothing_is_left() -> io::Result<()> {
        let (mut server, _client) = connected(Duration::from_millis(100)).await?;
        let error = server.write_all(&vec![0; BYTES]).await.expect_err("nobody reads");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        Ok(())
    }

    #[tokio::test]
    async fn a_client_that_reads_gets_everything() -> io::Result<()> {
        let (mut server, mut client) = connected(Duration::from_secs(60)).await?;
        let reading = chorus_runtime::spawn(async move {
            let mut all = Vec::new();
            client.read_to_end(&mut all).await.map(|_| all.len())
        });
        server.write_all(&vec![0; BYTES]).await?;
        server.shutdown().await?;
        assert_eq!(reading.await.map_err(io::Error::other)??, BYTES);
        Ok(())
    }
}
