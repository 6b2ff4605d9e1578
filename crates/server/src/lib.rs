//! The front doors of Tiller: HTTP, WebSocket, server-sent events.

pub mod events {
    pub mod wire;
}
