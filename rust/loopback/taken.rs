// SPDX-License-Identifier: GPL-2.0

//! Taking what is posted.

use kfabric::{
    provider::{
        kept::Kept,
        msg_ep::{
            Post,
            Refused, //
        }, //
    },
    Errno,
    Refusal, //
};

/// Takes a transfer, which is to be done by the processor. Any context.
///
/// # Errors
///
/// - `EINVAL`: its memory goes by a region's descriptor.
pub(crate) fn taken(post: Post<'_>) -> Result<Kept, Refused> {
    post.keep().map_err(|post| {
        let region = Refusal::new(Errno::EINVAL, c"memory by a descriptor");
        post.refuse(region)
    })
}
