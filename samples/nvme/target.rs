// SPDX-License-Identifier: GPL-2.0

//! The address of a target, and the device that leads there.

use core::net::SocketAddr;
use kernel::{
    new_mutex,
    prelude::*,
    sync::{
        Arc,
        Mutex, //
    }, //
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
    peer: SocketAddr,
    source: Option<SocketAddr>,
    /// The address and the provider, which stays the same over all connections.
    hints: Hints,
    /// The offers at the last connection of the admin queue.
    offers: Pin<KBox<Mutex<Option<Arc<InfoList>>>>>,
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
        let source = source.transpose()?;
        let mut hints = Hints::new()?
            .msg()
            .manual_progress()
            .mr_mode(MrMode::VIRT_ADDR | MrMode::PROV_KEY | MrMode::ENDPOINT)
            .peer(peer)?;
        if let Some(source) = source {
            hints = hints.source(source)?;
        }
        if let Some(tos) = options.tos() {
            // The other two bits are those of congestion notification.
            hints = hints.dscp(tos >> 2);
        }
        let offers = hints
            .getinfo()
            .map_err(|errno| no_way(peer, source, errno))?;
        let by_verbs = offers.iter().find(|info| info.prov_name() == VERBS);
        let provider = by_verbs.unwrap_or(offers.first()).prov_name();
        if by_verbs.is_none() {
            pr_info!("traddr={peer:?}: over {provider:?}, so the target must use kfabric, too\n");
        }
        Ok(Self {
            peer,
            source,
            hints: hints.prov_name(provider)?,
            offers: KBox::pin_init(new_mutex!(None, "kfi_nvme_offers"), GFP_KERNEL)?,
            tasks: Arc::new(OwnedQueue::new(c"kfi_nvme", 4)?, GFP_KERNEL)?,
        })
    }

    /// Returns the offers that lead to the target. [`usable`] picks one. The admin queue, which is
    /// connected first, finds them anew: a device that went and came back is another one. The I/O
    /// queues are on the same device. Sleeps, for some seconds if nobody has the address.
    ///
    /// # Errors
    ///
    /// - `EADDRNOTAVAIL`: no device has the local address, and leads to the target.
    /// - `ENODEV`: no device leads to the target.
    pub(crate) fn offers(&self, qid: u16) -> Result<Arc<InfoList>> {
        if qid == 0 {
            let offers = self.hints.getinfo();
            let offers = offers.map_err(|errno| no_way(self.peer, self.source, errno))?;
            *self.offers.lock() = Some(Arc::new(offers, GFP_KERNEL)?);
        }
        self.offers.lock().clone().ok_or(ENODEV)
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

/// Returns the error for an address without offers, and says in the log why.
fn no_way(peer: SocketAddr, source: Option<SocketAddr>, errno: Errno) -> Error {
    match (errno, source) {
        (Errno::ENODATA, Some(source)) => {
            pr_err!("host_traddr={source:?}: no RDMA device has it and leads to {peer:?}\n");
            Errno::EADDRNOTAVAIL.into()
        }
        (Errno::ENODATA, None) => {
            pr_err!("traddr={peer:?}: no RDMA device leads there\n");
            ENODEV
        }
        (errno, _) => errno.into(),
    }
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
