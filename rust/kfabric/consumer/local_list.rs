// SPDX-License-Identifier: GPL-2.0

//! Memory in several places, for transfers.

use super::{
    Local,
    Pieces,
    Run, //
};
use crate::support::errno::Errno;
use kernel::prelude::*;

/// Several pieces of memory, which are transferred as if they followed each other: a
/// [`Request`](super::Request) that has one is posted by `kfi_sendmsg()`, `kfi_recvmsg()` and the like, with as
/// many kvecs.
///
/// # Examples
///
/// ```
/// use kernel::{prelude::*, sync::Arc};
/// use kfabric::consumer::{Connected, LocalList, Mr, MrPart, MsgEndpoint, Request};
///
/// type Part = MrPart<KVec<u8>>;
///
/// /// Sends what is in two places of a region as one message.
/// fn send(
///     endpoint: &MsgEndpoint<Connected, LocalList<Part>>,
///     region: &Arc<Mr<KVec<u8>>>,
/// ) -> Result {
///     let mut pieces = KVec::new();
///     for offset in [0, 4096] {
///         pieces.push(MrPart::new(region.clone(), offset, 64)?, GFP_KERNEL)?;
///     }
///     Ok(endpoint.send(Request::new(LocalList::new(pieces), ())?)?)
/// }
/// ```
pub struct LocalList<L>(KVec<L>);

impl<L: Local> LocalList<L> {
    /// Takes the pieces in the order in which they are transferred. No more than the offer's `iov_limit`, nor than
    /// 16, can be.
    pub fn new(pieces: KVec<L>) -> Self {
        Self(pieces)
    }

    /// The pieces.
    pub fn pieces(&self) -> &[L] {
        &self.0
    }

    /// The pieces.
    pub fn pieces_mut(&mut self) -> &mut [L] {
        &mut self.0
    }

    /// Gives the pieces back.
    pub fn into_inner(self) -> KVec<L> {
        self.0
    }
}

// SAFETY: By the promises of each piece. A piece that is moved within the list stays where it is, and so do they
// all as long as nobody has the list exclusively.
unsafe impl<L: Local> Local for LocalList<L> {
    fn bytes(&self) -> usize {
        let bytes = self.0.iter().map(Local::bytes);
        // More than there can be is more than anybody transfers.
        bytes.fold(0, usize::saturating_add)
    }

    fn run(&self) -> Option<Run> {
        None
    }

    fn add_to(&self, list: &mut Pieces) -> Result<(), Errno> {
        self.0.iter().try_for_each(|piece| piece.add_to(list))
    }

    fn may_be_read(&self) -> bool {
        self.0.iter().all(Local::may_be_read)
    }

    fn may_be_written(&self) -> bool {
        self.0.iter().all(Local::may_be_written)
    }
}
