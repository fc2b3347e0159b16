// SPDX-License-Identifier: GPL-2.0

//! A request for a connection that waits for an answer.

use crate::side::Side;
use core::{
    any::Any,
    net::SocketAddr, //
};
use kernel::{
    prelude::*,
    str::CStr,
    sync::Arc, //
};
use kfabric::{
    provider::cm::{
        ConnFailed,
        ConnRequest, //
    },
    Errno,
    Refusal, //
};

/// A request for a connection. Dropped without an answer, it is rejected.
pub(crate) struct Request {
    /// Who asks; nobody any more when it was answered.
    from: Option<Arc<Side>>,
    peer: SocketAddr,
    local: SocketAddr,
    data: KVec<u8>,
}

impl Request {
    /// A side asks for a connection from one address to another. May sleep.
    pub(crate) fn new(
        from: Arc<Side>,
        peer: SocketAddr,
        local: SocketAddr,
        data: &[u8],
    ) -> Result<Self, Refusal> {
        let mut copy = KVec::new();
        copy.extend_from_slice(data, GFP_KERNEL)?;
        Ok(Self {
            from: Some(from),
            peer,
            local,
            data: copy,
        })
    }

    /// Takes out who asks, who gets an answer by other means.
    pub(crate) fn take(&mut self) -> Option<Arc<Side>> {
        self.from.take()
    }

    /// Nobody hears of it any more.
    pub(crate) fn forget(mut self) {
        self.from = None;
    }

    /// Whose it is, and where it came to.
    pub(crate) fn ends(&self) -> (SocketAddr, SocketAddr) {
        (self.peer, self.local)
    }

    /// Rejects it; the peer gets `data`. May sleep, but not for long.
    pub(crate) fn reject(&mut self, data: &[u8]) {
        if let Some(from) = self.from.take() {
            let how = ConnFailed {
                errno: Errno::ECONNREFUSED,
                prov_errno: -Errno::ECONNREFUSED.to_c(),
            };
            from.events().failed(how, data);
        }
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        self.reject(&[]);
    }
}

impl ConnRequest for Request {
    fn peer(&self) -> SocketAddr {
        self.peer
    }

    fn local(&self) -> SocketAddr {
        self.local
    }

    fn data(&self) -> &[u8] {
        &self.data
    }

    fn domain(&self) -> Option<&CStr> {
        None
    }

    fn as_any(&mut self) -> &mut dyn Any {
        self
    }
}
