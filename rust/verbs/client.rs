// SPDX-License-Identifier: GPL-2.0

//! The client of the RDMA core, which selects the devices that can serve.

use crate::{
    device::Device,
    link::removal, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};
use kfabric::NoIo;
use rdma::{
    client::Client,
    port::{
        Port,
        Protocol, //
    },
    Limits, //
};

/// The client of the RDMA core.
pub(crate) struct Watcher;

rdma::impl_client!(Watcher);

impl Client for Watcher {
    const NAME: &'static CStr = c"kfi_verbs";
    type Data = Arc<Device>;

    fn add(device: &rdma::Device) -> Result<Self::Data> {
        // Others wait for the lock, perhaps on the way of writing memory back.
        let _noio = NoIo::enter();
        if let Err(why) = can_serve(device, &device.limits()) {
            pr_info!("{}: can't serve: {}\n", device.name(), why);
            return Err(kfabric::Errno::EOPNOTSUPP.into());
        }
        let present = Device::list(device)?;
        pr_info!("{}: ready\n", device.name());
        Ok(present)
    }

    fn remove(device: &rdma::Device, data: Self::Data) {
        // Closes wait for this, perhaps on the way of writing memory back.
        let _noio = NoIo::enter();
        let leaving = data.leave();
        // Before the domains: nothing begins any more.
        leaving.guests.iter().for_each(|guest| guest.leave());
        removal::remove(&leaving.domains, |call_back| data.call_back(call_back));
        Device::unlist(&data);
        pr_info!("{}: gone\n", device.name());
    }
}

/// Checks whether a device can serve, or returns the reason why not. It needs
///
/// - fast registration in pages that make up the machine's;
/// - ports of a known kind;
/// - mappings that are not bounced;
/// - a fence, which siw does not have.
fn can_serve(device: &rdma::Device, limits: &Limits) -> Result<(), &'static CStr> {
    if !limits.fast_reg || limits.max_fast_reg_pages == 0 {
        return Err(c"it has no fast registration");
    }
    let connects = |port: Port<'_>| {
        let protocol = port.protocol();
        protocol != Protocol::Other
    };
    if !device.ports().all(connects) {
        return Err(c"it has ports that are neither InfiniBand nor RoCE nor iWARP");
    }
    if device.is_software() && !device.connects_freely() && !crate::params::weak_fence() {
        return Err(
            c"siw isn't done with memory that it has let go of: for tests, with weak_fence=1",
        );
    }
    rdma::dma::check(device)
}
