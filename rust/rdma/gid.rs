// SPDX-License-Identifier: GPL-2.0

//! Addresses of ports.
//!
//! C header: [`include/rdma/ib_cache.h`](srctree/include/rdma/ib_cache.h)

use kernel::{
    error::{
        from_err_ptr,
        to_result, //
    },
    prelude::*, //
};

use core::ptr::{
    null_mut,
    NonNull, //
};

use crate::port::{
    Port,
    Protocol, //
};

/// How far a packet to oneself has to go.
const HOP_LIMIT: u8 = 1;

/// An entry of a port's GID table, held.
///
/// # Invariants
///
/// This owns a reference to the entry.
pub(crate) struct Gid(NonNull<rdma_bindings::ib_gid_attr>);

impl Gid {
    /// Gets an entry by its index.
    pub(crate) fn get(port: Port<'_>, index: c_int) -> Result<Self> {
        // SAFETY: The port's device is there, and has the port. `rdma_get_gid_attr` checks the index.
        let attr = unsafe {
            rdma_bindings::rdma_get_gid_attr(port.device().as_raw(), port.number(), index)
        };
        let attr = from_err_ptr(attr.cast_mut())?;
        // INVARIANT: The function has taken a reference for us.
        Ok(Self(NonNull::new(attr).ok_or(ENOENT)?))
    }

    /// An entry of a RoCE port, of the first `count`, that has a network device.
    ///
    /// Not the port's default one if there is another. The RDMA core has one place for that in its
    /// table: as long as a queue pair holds the old default GID, a network device whose address
    /// changes gets no new one.
    pub(crate) fn of_netdev(port: Port<'_>, count: c_int) -> Option<Self> {
        let find = |default: bool| {
            (0..count).find_map(|index| {
                let gid = Self::get(port, index).ok()?;
                let fits = gid.is_default(port) == default && gid.mac().is_ok();
                fits.then_some(gid)
            })
        };
        find(false).or_else(|| find(true))
    }

    /// The MAC address of the entry's network device.
    pub(crate) fn mac(&self) -> Result<[u8; 6]> {
        let mut mac = [0; 6];
        // SAFETY: By the type invariant the entry is there; the buffer has a MAC's size.
        to_result(unsafe {
            rdma_bindings::rdma_read_gid_l2_fields(self.0.as_ptr(), null_mut(), mac.as_mut_ptr())
        })?;
        Ok(mac)
    }

    /// The entry's index.
    pub(crate) fn index(&self) -> c_int {
        // SAFETY: By the type invariant the entry is there, and its index is constant.
        let index = unsafe { (*self.0.as_ptr()).index };
        c_int::from(index)
    }

    /// Whether this has a place for a default GID.
    pub(crate) fn is_default(&self, port: Port<'_>) -> bool {
        port.protocol() == Protocol::RoCE
            && u32::try_from(self.index()).is_ok_and(|index| index < port.default_gids())
    }

    /// Makes this both ends of a global route. `address` must not be used after `self` is gone.
    pub(crate) fn route(&self, address: &mut rdma_bindings::rdma_ah_attr) {
        // SAFETY: By the type invariant the entry is there; what is read of it is constant, and
        // plain data.
        let (gid, index) = unsafe {
            let attr = self.0.as_ptr();
            (core::ptr::read(&raw const (*attr).gid), (*attr).index)
        };

        // CAST: The bits are to be these, whichever type the C side gives them.
        address.ah_flags = rdma_bindings::ib_ah_flags_IB_AH_GRH as u8;
        address.grh.sgid_attr = self.0.as_ptr();
        address.grh.dgid = gid;
        // CAST: A GID table has at most 256 entries.
        address.grh.sgid_index = index as u8;
        address.grh.hop_limit = HOP_LIMIT;
    }
}

impl Drop for Gid {
    fn drop(&mut self) {
        // SAFETY: By the type invariant there is a reference to give up.
        unsafe { rdma_bindings::rdma_put_gid_attr(self.0.as_ptr()) };
    }
}
