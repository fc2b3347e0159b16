// SPDX-License-Identifier: GPL-2.0

//! The connections that share receives. The completion queue of a receive identifies its connection.
//!
//! Lock order: the lock is a leaf.

use super::conn::Conn;
use crate::prelude::*;
use rdma::wc::CqId;

/// The connections of endpoints that share receives, each with its completion queue.
#[pin_data]
pub(super) struct Sharers {
    #[pin]
    all: IrqLock<KVec<(CqId, Arc<Conn>)>>,
}

impl Sharers {
    /// Creates an empty list. May sleep.
    pub(super) fn new() -> Result<Arc<Self>> {
        let sharers = pin_init!(Self {
            all <- new_irq_lock!(KVec::new(), c"kfi_verbs_sharers"),
        });
        Arc::pin_init(sharers, GFP_KERNEL)
    }

    /// Adds a connection. Any context.
    pub(super) fn add(&self, at: CqId, conn: Arc<Conn>) -> Result {
        self.all.with(|all| all.push((at, conn), GFP_ATOMIC))?;
        Ok(())
    }

    /// Removes the connection with this completion queue. Must be called before the queue is
    /// destroyed. Any context.
    pub(super) fn remove(&self, at: CqId) {
        self.all.with(|all| all.retain(|(id, _)| *id != at));
    }

    /// Returns the connection with this completion queue. Any context.
    pub(super) fn find(&self, at: CqId) -> Option<Arc<Conn>> {
        self.all.with(|all| {
            let found = all.iter().find(|(id, _)| *id == at);
            found.map(|(_, conn)| conn.clone())
        })
    }
}
