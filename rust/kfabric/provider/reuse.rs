// SPDX-License-Identifier: GPL-2.0

//! Regions of a provider that are filled with memory in any context, without an allocation.

use crate::{
    prelude::*,
    provider::mr::Keys,
    region::request::MrRequest, //
};

/// A region that is bound to an endpoint, and filled and emptied again and again.
///
/// The core makes these calls one at a time. It fills only an empty region, and empties only a
/// filled one. It may drop an empty one at any time, which may sleep.
pub trait ReusableMrOps: Send {
    /// Registers memory on the endpoint, behind the requests that were posted there. If there is `more`, the
    /// registration may wait for the next request. The peer may use the keys once it has received a later
    /// message. Any context; must not allocate.
    ///
    /// After an error, the region is empty, and nothing was posted.
    ///
    /// # Errors
    ///
    /// - `E2BIG`: the memory has more pages than the region was opened for.
    /// - `EAGAIN`: the caller may try again.
    /// - `ENOTCONN`: the endpoint is not connected.
    fn fill(&mut self, request: &MrRequest<'_>, more: bool) -> Result<Keys, Refusal>;

    /// Empties a filled region if that needs no wait, and returns whether it did. Any context; must not allocate.
    fn empty_now(&mut self) -> bool;

    /// Empties a filled region. On success, no peer can reach the memory. Sleeps.
    ///
    /// # Errors
    ///
    /// Any error says that the device keeps the memory. Before the core drops the region, it then
    /// calls [`end`](Self::end) or nothing.
    fn empty(&mut self) -> Result<(), Refusal>;

    /// Empties the region and gives up all that it has on the device, which is removed. The core
    /// makes no further call before it drops the region. Sleeps.
    ///
    /// # Errors
    ///
    /// The device keeps the memory.
    fn end(&mut self) -> Result<(), Refusal>;
}
