// SPDX-License-Identifier: GPL-2.0

//! How what happens on a connection comes to its queue.

use super::IoQueue;
use crate::transport::Tag;
use kernel::{
    prelude::*,
    sync::Arc, //
};
use kfabric::{
    consumer::{
        RequestReader,
        Requests, //
    },
    gate::{
        Gate,
        Shared, //
    }, //
};

/// The way from a connection to the queue that takes what happens there: none at first, nor at last.
///
/// The two refer to each other until it is shut.
#[pin_data]
pub(crate) struct QueueGate {
    #[pin]
    queue: Gate<Arc<IoQueue>, Shared>,
}

impl QueueGate {
    /// Makes a gate that leads nowhere yet. May sleep.
    pub(crate) fn new() -> impl PinInit<Self, Error> {
        try_pin_init!(Self { queue <- Gate::empty() }? Error)
    }

    /// Leads to a queue, which takes what there is already. May sleep.
    pub(super) fn open(&self, queue: &Arc<IoQueue>) {
        self.queue.open(queue.clone());
        // Of what came when there was nobody to read it, nobody is told again before it has been read.
        if let Some(inside) = self.queue.enter() {
            let queue = inside.get();
            while let Some(event) = queue.transport.read() {
                queue.take(event);
            }
        }
    }

    /// Leads nowhere any more: when this returns nothing is taken. Sleeps.
    pub(super) fn shut(&self) {
        if let Some(shut) = self.queue.shut() {
            shut.drain().take_away();
        }
    }
}

/// Reads what happens on a connection, if there is a queue to take it.
pub(crate) struct Reader(pub(crate) Arc<QueueGate>);

impl RequestReader<KVec<u8>, Tag> for Reader {
    fn came(&self, requests: Requests<'_, KVec<u8>, Tag>) {
        let Some(inside) = self.0.queue.enter() else {
            return;
        };
        let queue = inside.get();
        while let Ok(Some(ended)) = requests.read() {
            queue.take(queue.transport.event(ended));
        }
    }
}
