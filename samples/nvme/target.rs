// SPDX-License-Identifier: GPL-2.0

//! The address of a target, and the device that leads there.

use core::net::SocketAddr;
use kernel::{
    prelude::*,
    str::CString,
    sync::Arc, //
};
use kfabric::{
    consumer::{
        parse_address,
        Errno,
        Hints,
        Info,
        InfoList,
        MrMode, //
    },
    workqueue::OwnedQueue, //
};
use nvme::Options;

/// The provider that reaches NVMe/RDMA targets of any make.
const VERBS: &CStr = c"verbs";

/// The address of a target.
pub(crate) struct Target {
    route: Route,
    /// The provider, which stays the same over all connections.
    provider: CString,
    /// Runs work items that end keys.
    pub(crate) tasks: Arc<OwnedQueue>,
}

impl Target {
    /// Finds the provider that leads to the target of the options. May sleep.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: an address is malformed.
    /// - `ENOMEM`.
    /// - The errors of [`offers`](Self::offers).
    pub(crate) fn find(options: &Options<'_>) -> Result<Self> {
        let peer = parse("traddr", options.traddr(), Some(options.trsvcid()))?;
        let source = options.host_traddr();
        let source = source.map(|text| parse("host_traddr", text, None));
        let route = Route {
            peer,
            source: source.transpose()?,
            // The other two bits are those of congestion notification.
            dscp: options.tos().map(|tos| tos >> 2),
        };
        let offers = route.hints()?.getinfo();
        let offers = offers.map_err(|errno| route.offer_error(errno, None))?;
        let by_verbs = offers.iter().find(|info| info.prov_name() == VERBS);
        let provider = by_verbs.unwrap_or(offers.first()).prov_name();
        if by_verbs.is_none() {
            pr_info!("traddr={peer:?}: over {provider:?}, so the target must use kfabric, too\n");
        }
        Ok(Self {
            provider: provider.try_into()?,
            route,
            tasks: Arc::new(OwnedQueue::new(c"kfi_nvme", 4)?, GFP_KERNEL)?,
        })
    }

    /// Returns the offers that lead to the target, for queues with these maximum numbers of transfers
    /// and of receives. [`usable`] picks one. Sleeps, for some seconds if nobody has the address.
    ///
    /// # Errors
    ///
    /// - `EADDRNOTAVAIL`: no device has the local address, leads to the target, and has queues of these
    ///   sizes.
    /// - `ENODEV`: no device leads to the target, or no device there has queues of these sizes.
    pub(crate) fn offers(&self, transmit: usize, receive: usize) -> Result<InfoList> {
        let hints = self.route.hints()?.prov_name(&self.provider)?;
        let offers = hints.queue_sizes(transmit, receive).getinfo();
        offers.map_err(|errno| self.route.offer_error(errno, Some((transmit, receive))))
    }
}

/// The addresses of a target and of this host, and the DSCP of packets to the target.
struct Route {
    peer: SocketAddr,
    source: Option<SocketAddr>,
    dscp: Option<u8>,
}

impl Route {
    /// Returns hints for a connection. May sleep.
    fn hints(&self) -> Result<Hints, Errno> {
        let mut hints = Hints::new()?
            .msg()
            .manual_progress()
            .mr_mode(MrMode::VIRT_ADDR | MrMode::PROV_KEY | MrMode::ENDPOINT)
            .peer(self.peer)?;
        if let Some(source) = self.source {
            hints = hints.source(source)?;
        }
        Ok(match self.dscp {
            Some(dscp) => hints.dscp(dscp),
            None => hints,
        })
    }

    /// Returns the error for addresses without offers, and logs the cause. `sizes` are those of the queues
    /// that were asked for: requests to be sent, and receives.
    fn offer_error(&self, errno: Errno, sizes: Option<(usize, usize)>) -> Error {
        let peer = self.peer;
        if errno != Errno::ENODATA {
            return errno.into();
        }
        let error = match self.source {
            Some(source) => {
                pr_err!("host_traddr={source:?}: no RDMA device that fits has it and leads to {peer:?}\n");
                Errno::EADDRNOTAVAIL.into()
            }
            None => {
                pr_err!("traddr={peer:?}: no RDMA device that fits leads there\n");
                ENODEV
            }
        };
        if let Some((transmit, receive)) = sizes {
            pr_err!("queues need space for {transmit} requests and {receive} receives: a smaller queue_size may fit\n");
        }
        error
    }
}

/// Returns the address with this text.
fn parse(option: &str, text: &CStr, port: Option<&CStr>) -> Result<SocketAddr> {
    parse_address(text, port).map_err(|errno| {
        match port {
            Some(port) => {
                pr_err!("{option}={text:?}, port {port:?}: not an IP address and a port\n")
            }
            None => pr_err!("{option}={text:?}: not an IP address\n"),
        }
        errno.into()
    })
}

/// Returns the first offer whose regions are bound to connections.
///
/// # Errors
///
/// - `EOPNOTSUPP`: there is none.
pub(crate) fn usable(offers: &InfoList) -> Result<&Info> {
    let mut infos = offers.iter();
    let info = infos.find(|info| info.mr_mode().has(MrMode::ENDPOINT));
    info.ok_or_else(|| {
        let provider = offers.first().prov_name();
        pr_err!("provider {provider:?} can't bind regions to connections\n");
        Errno::EOPNOTSUPP.into()
    })
}
