// SPDX-License-Identifier: GPL-2.0

//! The address of a target, and the device that leads there.

use core::net::SocketAddr;
use kernel::{
    new_mutex,
    prelude::*,
    str::CString,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc,
        Mutex, //
    }, //
};
use kfabric::{
    consumer::{
        parse_address,
        Domain,
        Errno,
        Fabric,
        Hints,
        Info,
        InfoList,
        MrMode, //
    },
    workqueue::OwnedQueue, //
};
use nvme::{
    Limits,
    Options, //
};

/// The provider that reaches NVMe/RDMA targets of any make.
const VERBS: &CStr = c"verbs";

/// Maximum number of pages of a request: 1 MiB.
const MAX_PAGES: u32 = 256;

/// The address of a target.
pub(crate) struct Target {
    peer: SocketAddr,
    source: Option<SocketAddr>,
    /// The code point of the packets.
    dscp: Option<u8>,
    /// The provider, which stays the same over all connections.
    provider: CString,
    /// The offers at the last connection of the admin queue.
    offers: Pin<KBox<Mutex<Option<Arc<InfoList>>>>>,
    /// Maximum number of pages of a request on that device.
    pages: Atomic<u32>,
    /// Runs work items that end keys.
    tasks: Arc<OwnedQueue>,
}

/// The device that leads to a target, opened for one queue.
pub(crate) struct Path {
    offers: Arc<InfoList>,
    /// A domain for one queue. No one else has keys in it. So if the target invalidates a key, the
    /// key has ended on devices in software, too.
    pub(crate) domain: Arc<Domain>,
}

impl Target {
    /// Finds the device that leads to the target of the options. May sleep.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: an address is malformed.
    /// - `ENOMEM`.
    /// - The errors of [`path`](Self::path).
    pub(crate) fn find(options: &Options<'_>) -> Result<Self> {
        let peer = parse("traddr", options.traddr(), Some(options.trsvcid()))?;
        let source = options.host_traddr();
        let source = source.map(|text| parse("host_traddr", text, None));
        let source = source.transpose()?;
        // The other two bits are those of congestion notification.
        let dscp = options.tos().map(|tos| tos >> 2);
        let offers = match offers(peer, source, dscp, Some(VERBS)) {
            Err(Errno::ENODATA) => offers(peer, source, dscp, None),
            offers => offers,
        };
        let offers = offers.map_err(|errno| no_way(peer, source, errno))?;
        let provider = offers.first().prov_name();
        if provider != VERBS {
            pr_info!("traddr={peer:?}: over {provider:?}, so the target must use kfabric, too\n");
        }
        if usable(&offers).is_none() {
            pr_err!("traddr={peer:?}: provider {provider:?} can't bind regions to connections\n");
            return Err(Errno::EOPNOTSUPP.into());
        }
        Ok(Self {
            peer,
            source,
            dscp,
            provider: CString::try_from(provider)?,
            offers: KBox::pin_init(new_mutex!(None, "kfi_nvme_offers"), GFP_KERNEL)?,
            pages: Atomic::new(1),
            tasks: Arc::new(OwnedQueue::new(c"kfi_nvme", 4)?, GFP_KERNEL)?,
        })
    }

    /// Returns the device that leads to the target. The admin queue, which is connected first, finds it
    /// anew: a device that went and came back is another one. The I/O queues are on the same device.
    /// Sleeps, for some seconds if nobody has the address.
    ///
    /// # Errors
    ///
    /// - `EADDRNOTAVAIL`: no device has the local address, and leads to the target.
    /// - `ENODEV`: no device leads to the target.
    /// - `EOPNOTSUPP`: the provider can't bind regions to connections.
    pub(crate) fn path(&self, qid: u16) -> Result<Path> {
        let (peer, source) = (self.peer, self.source);
        if qid == 0 {
            let offers = offers(peer, source, self.dscp, Some(&self.provider));
            let offers = offers.map_err(|errno| no_way(peer, source, errno))?;
            *self.offers.lock() = Some(Arc::new(offers, GFP_KERNEL)?);
        }
        let offers = self.offers.lock().clone().ok_or(ENODEV)?;
        let info = usable(&offers).ok_or(Errno::EOPNOTSUPP)?;
        let pages = u32::try_from(info.mr_iov_limit()).unwrap_or(u32::MAX);
        // Data that start within a page have one page more.
        let pages = pages.saturating_sub(1).clamp(1, MAX_PAGES);
        self.pages.store(pages, Relaxed);
        Ok(Path {
            domain: Domain::open(&Fabric::open(info)?, info)?,
            offers,
        })
    }

    /// Returns the workqueue for work items that end keys.
    pub(crate) fn tasks(&self) -> &Arc<OwnedQueue> {
        &self.tasks
    }

    /// Returns the limits of a request on the device that was found last.
    pub(crate) fn limits(&self) -> Limits {
        Limits {
            max_segments: self.pages.load(Relaxed),
            numa_node: None,
        }
    }
}

impl Path {
    /// Returns the offer that leads to the target.
    pub(crate) fn info(&self) -> Result<&Info> {
        usable(&self.offers).ok_or(ENODEV)
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

/// Returns the offers of a provider, or of any, that lead to an address.
fn offers(
    peer: SocketAddr,
    source: Option<SocketAddr>,
    dscp: Option<u8>,
    provider: Option<&CStr>,
) -> Result<InfoList, Errno> {
    let mut hints = Hints::new()?
        .msg()
        .manual_progress()
        .mr_mode(MrMode::VIRT_ADDR | MrMode::PROV_KEY | MrMode::ENDPOINT)
        .peer(peer)?;
    if let Some(source) = source {
        hints = hints.source(source)?;
    }
    if let Some(dscp) = dscp {
        hints = hints.dscp(dscp);
    }
    if let Some(provider) = provider {
        hints = hints.prov_name(provider)?;
    }
    hints.getinfo()
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
fn usable(offers: &InfoList) -> Option<&Info> {
    let mut infos = offers.iter();
    infos.find(|info| info.mr_mode().has(MrMode::ENDPOINT))
}
