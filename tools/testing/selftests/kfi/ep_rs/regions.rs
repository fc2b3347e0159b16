// SPDX-License-Identifier: GPL-2.0

//! Regions by the calls of `kfi_batch_ext.h`: many at once, and closing without sleeping.

use crate::pair::{
    check,
    pattern,
    Place, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};
use kfabric::consumer::{
    Access,
    Domain,
    Errno,
    Fabric,
    Mr, //
    MrMode,
};

const MANY: usize = 8;
const LEN: usize = 5000;

/// Opens a domain whose provider chooses the keys.
fn domain(place: &Place) -> Result<Arc<Domain>> {
    let infos = place.source()?;
    let chooses = |mode: MrMode| mode.has(MrMode::PROV_KEY) && !mode.has(MrMode::ENDPOINT);
    let info = infos.iter().find(|info| chooses(info.mr_mode()));
    let info = info.ok_or(ENODEV)?;
    Ok(Domain::open(&Fabric::open(info)?, info)?)
}

/// Makes different bytes for each region.
fn buffers() -> Result<KVVec<KVec<u8>>> {
    let mut buffers = KVVec::new();
    for first in (0..).take(MANY) {
        buffers.push(pattern(first, LEN)?, GFP_KERNEL)?;
    }
    Ok(buffers)
}

/// Registers many buffers in one call, and closes them in one: each is a region of its own, and comes back.
pub(crate) fn many_at_once(place: &Place) -> Result {
    let domain = domain(place)?;
    let mrs = domain.reg_many(buffers()?, Access::REMOTE_READ)?;
    check("one region for each", mrs.len() == MANY)?;
    for (index, mr) in mrs.iter().enumerate() {
        let others = mrs.iter().skip(index + 1);
        check(
            "a key of its own",
            others.clone().all(|o| o.key() != mr.key()),
        )?;
    }
    let mut expected = buffers()?.into_iter();
    let mut same = 0;
    Mr::close_many(mrs, |closed| {
        same += usize::from(closed.ok() == expected.next());
    });
    check("all come back, in their order", same == MANY)?;

    // All or none.
    let mut some = buffers()?;
    some.push(KVec::new(), GFP_KERNEL)?;
    let refused = domain
        .reg_many(some, Access::REMOTE_READ)
        .err()
        .ok_or(EIO)?;
    check("an empty one", refused.errno() == Errno::EINVAL)?;
    check("its place", refused.index() == Some(MANY))?;
    check("all are given back", refused.into_inner().len() == MANY + 1)
}

/// Checks that `close_now()` refuses a region that no peer has invalidated, and that the region
/// stays open.
pub(crate) fn what_has_to_be_waited_for(place: &Place) -> Result {
    let domain = domain(place)?;
    let mr = domain.reg(pattern(1, LEN)?, Access::REMOTE_READ)?;
    let key = mr.key();
    let refused = mr.close_now().err().ok_or(EIO)?;
    check("not at once", refused.errno() == Errno::EAGAIN)?;
    let mr = refused.into_inner();
    check("it has its key", mr.key() == key)?;
    check("its bytes", mr.close()? == pattern(1, LEN)?)
}
