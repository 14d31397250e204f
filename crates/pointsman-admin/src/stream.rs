//! What the admin listener talks through: TCP, or TLS over it.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use pointsman_net::{PooledBuffer, Tcp, poll_read_into, write_all};
use pointsman_tls::{ClientChain, TlsStream};
use tokio::io::AsyncWrite;

/// A connection of a client.
pub(crate) enum Stream {
    Plain(Tcp),
    Tls(Box<TlsStream<Tcp>>),
}

impl Stream {
    /// What is underneath.
    pub(crate) fn tcp(&self) -> &Tcp {
        match self {
            Stream::Plain(tcp) => tcp,
            Stream::Tls(tls) => tls.get_ref(),
        }
    }

    /// Who its certificate says that the client is: its subject, or where that is empty another name, or its
    /// fingerprint. It comes from the authorities that the configuration names.
    pub(crate) fn holder(&self) -> Option<String> {
        const FINGERPRINT_DIGITS: usize = 8;
        let Stream::Tls(tls) = self else { return None };
        let client = tls.facts().client?;
        if !client.subject.is_empty() {
            return Some(client.subject.clone());
        }
        let fingerprint = || format!("sha256:{}", &client.fingerprint[..FINGERPRINT_DIGITS]);
        Some(client.sans.first().cloned().unwrap_or_else(fingerprint))
    }

    /// The certificates that the client has shown.
    pub(crate) fn chain(&self) -> Option<ClientChain> {
        match self {
            Stream::Plain(_) => None,
            Stream::Tls(tls) => tls.client_chain(),
        }
    }

    /// As of [`Tcp::poll_read_into`].
    pub(crate) fn poll_read_into(
        &mut self,
        context: &mut Context<'_>,
        buffer: &mut PooledBuffer,
    ) -> Poll<io::Result<usize>> {
        match self {
            Stream::Plain(tcp) => tcp.poll_read_into(context, buffer),
            Stream::Tls(tls) => poll_read_into(&mut **tls, context, buffer),
        }
    }

    /// Writes all of an answer; TLS keeps none of it back, and says that it is the end.
    pub(crate) async fn write_last(&mut self, answer: &[u8]) -> io::Result<()> {
        write_all(self, answer, &mut 0).await?;
        match self {
            Stream::Plain(_) => Ok(()),
            Stream::Tls(_) => self.shut_down().await,
        }
    }

    /// Says that nothing more follows.
    pub(crate) async fn shut_down(&mut self) -> io::Result<()> {
        std::future::poll_fn(|context| Pin::new(&mut *self).poll_shutdown(context)).await
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Stream::Plain(tcp) => Pin::new(tcp).poll_write(context, bytes),
            Stream::Tls(tls) => Pin::new(&mut **tls).poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(tcp) => Pin::new(tcp).poll_flush(context),
            Stream::Tls(tls) => Pin::new(&mut **tls).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(tcp) => Pin::new(tcp).poll_shutdown(context),
            Stream::Tls(tls) => Pin::new(&mut **tls).poll_shutdown(context),
        }
    }
}
