// SPDX-License-Identifier: GPL-2.0

//! Ways from a port to a peer.

use kernel::prelude::*;

use crate::{
    gid::Gid,
    port::{
        Port,
        Protocol, //
    }, //
};

/// The way from a port to a peer, which a queue pair is connected by.
pub struct Path {
    mtu: rdma_bindings::ib_mtu,
    address: rdma_bindings::rdma_ah_attr,
    // `address` points to it.
    gid: Option<Gid>,
}

impl Path {
    /// The way from a port to itself, by an entry of its GID table if one is given. Any context.
    pub(crate) fn to_self(
        port: Port<'_>,
        lid: u32,
        mtu: rdma_bindings::ib_mtu,
        gid: Option<Gid>,
    ) -> Result<Self> {
        let device = port.device().as_raw();
        let mut address = rdma_bindings::rdma_ah_attr {
            // SAFETY: `device` is there, and has the port.
            type_: unsafe { rdma_bindings::rdma_helper_ah_type(device, port.number()) },
            port_num: port.number(),
            ..Default::default()
        };
        if port.protocol() == Protocol::RoCE {
            let mac = gid.as_ref().ok_or(EINVAL)?.mac()?;
            // SAFETY: This is the member that goes with the port's type.
            unsafe { address.__bindgen_anon_1.roce.as_mut() }.dmac = mac;
        } else {
            // SAFETY: The type of `address` has been set, and is that of the port.
            unsafe { rdma_bindings::rdma_helper_set_dlid(&mut address, lid) };
        }
        if let Some(gid) = &gid {
            gid.route(&mut address);
        }
        Ok(Self { mtu, address, gid })
    }

    /// The largest packet.
    pub(crate) fn mtu(&self) -> rdma_bindings::ib_mtu {
        self.mtu
    }

    /// The address as the C side has it, and what must be there as long as it is used.
    pub(crate) fn into_address(self) -> (rdma_bindings::rdma_ah_attr, Option<Gid>) {
        (self.address, self.gid)
    }
}
