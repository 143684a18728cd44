//! Drops notifications that come before the session begins. The library would end the server at such a notification, so later
//! requests would get no answer.

use rmcp::model::{ClientRequest, GetMeta, JsonRpcMessage, ProtocolVersion};
use rmcp::service::{RoleServer, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;

/// A transport without the notifications that come before the session begins.
pub(super) struct OpeningTransport<T> {
    inner: T,
    has_begun: bool,
}

impl<T> OpeningTransport<T> {
    pub(super) fn new(inner: T) -> Self {
        Self { inner, has_begun: false }
    }
}

/// Whether the library begins a session with this message. In the newer protocol, a session needs no `initialize`.
fn begins(message: &RxJsonRpcMessage<RoleServer>) -> bool {
    let JsonRpcMessage::Request(message) = message else { return false };
    match &message.request {
        ClientRequest::InitializeRequest(_) => true,
        ClientRequest::PingRequest(_) | ClientRequest::DiscoverRequest(_) => false,
        request => {
            let meta = request.get_meta();
            meta.missing_required_keys(&ProtocolVersion::V_2026_07_28).is_empty()
                && meta.protocol_version().is_some_and(|it| ProtocolVersion::KNOWN_VERSIONS.contains(&it))
        }
    }
}

impl<T: Transport<RoleServer>> Transport<RoleServer> for OpeningTransport<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.inner.send(message)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            let message = self.inner.receive().await?;
            self.has_begun |= begins(&message);
            if self.has_begun || !matches!(message, JsonRpcMessage::Notification(_)) {
                return Some(message);
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.inner.close().await
    }
}
