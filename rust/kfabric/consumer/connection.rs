// SPDX-License-Identifier: GPL-2.0

//! Handlers of what becomes of a connection.

use super::conn::{
    Hears,
    News, //
};
use crate::support::errno::Errno;
use kernel::prelude::*;

/// What becomes of an endpoint's connection.
#[derive(Debug)]
pub enum ConnectionEvent {
    /// There is one, so that [`established`](super::MsgEndpoint::established) is good now. The peer has
    /// sent this with its answer.
    Connected(KVec<u8>),
    /// There won't be one. A peer that has rejected has sent this with it.
    Failed(Errno, KVec<u8>),
    /// It has ended.
    Shutdown,
}

/// What an endpoint's owner wants to be told.
pub trait ConnectionHandler: Send + Sync + 'static {
    /// Something has become of the connection. Process context; may sleep, but not drop or close the
    /// endpoint. Allocations in it don't wait for I/O.
    fn connection(&self, event: ConnectionEvent);
}

/// A handler, as one who hears of a connection.
pub(super) struct Told<H>(pub(super) KBox<H>);

impl<H: ConnectionHandler> Hears for Told<H> {
    fn hear(&self, news: News, failure: impl FnOnce() -> (Errno, KVec<u8>)) {
        self.0.connection(match news {
            News::Connected(data) => ConnectionEvent::Connected(data),
            News::Shutdown => ConnectionEvent::Shutdown,
            News::Failed => {
                let (errno, data) = failure();
                ConnectionEvent::Failed(errno, data)
            }
            // No endpoint has those.
            News::Request(..) => return,
        });
    }
}
