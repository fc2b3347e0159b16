// SPDX-License-Identifier: GPL-2.0

//! kfabric in Rust: registers kernel memory for a remote peer, by all five calls.
//!
//! The steps of a consumer, in their order:
//!
//! - [`Hints::getinfo`]: find a provider and a device with the required features
//! - [`Fabric::open`] and [`Domain::open`]: open the fabric, and in it the device
//! - [`Domain::reg`] and the other registration calls: get a key and an address for the peer
//! - [`Mr::close`]: make the device refuse the key, and get the memory back
//!
//! The peer is not part of kfabric. Here it is the test peer, which reads and writes over RDMA. It
//! knows only an address and a key, like a remote machine.

#![forbid(unsafe_code)]

use kernel::{
    page::PAGE_SIZE,
    prelude::*,
    sync::Arc, //
};
use kfabric::consumer::{
    Access,
    Backing,
    Caps,
    Domain,
    Fabric,
    Hints,
    MappedList,
    Mr,
    MrMode,
    Pages,
    Part,
    Segments, //
};
use kfi_peer_rs::{
    Failure,
    Peer, //
};

module! {
    type: Module,
    name: "kfi_demo_rust",
    authors: ["kfabric developers"],
    description: "kfabric in Rust: registers memory in all five ways",
    license: "GPL",
}

struct Module;

impl kernel::Module for Module {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        run().map(|()| Module)
    }
}

/// An odd offset, so that the memory is unaligned and crosses a page boundary.
const OFFSET: usize = 100;
const LEN: usize = PAGE_SIZE + 1000;

/// A domain, and a peer that tries the keys of its regions.
struct Demo {
    domain: Arc<Domain>,
    peer: Peer,
}

/// Registers memory by one of the calls, and verifies the region under this name.
type Call = fn(&Demo, &str) -> Result;

fn run() -> Result {
    // Find a provider with remote memory access. It may choose addresses and keys.
    let offers = Hints::new()?
        .prov_name(c"verbs")?
        .caps(Caps::RMA | Caps::REMOTE_READ | Caps::REMOTE_WRITE)
        .mr_mode(MrMode::VIRT_ADDR | MrMode::PROV_KEY)
        .getinfo()
        .inspect_err(|errno| pr_err!("no provider: {errno}\n"))?;
    let info = offers.first();

    // Open its domain.
    let fabric = Fabric::open(info)?;
    let domain = Domain::open(&fabric, info)
        .inspect_err(|errno| pr_err!("the domain doesn't open: {errno}\n"))?;
    let peer = Peer::open(&domain)?;
    pr_info!("domain {} opened\n", info.domain_name().to_str()?);

    let demo = Demo { domain, peer };
    let calls: [(&str, Call); 5] = [
        ("kfi_mr_reg", Demo::reg),
        ("kfi_mr_regv", Demo::regv),
        ("kfi_mr_regbv", Demo::regbv),
        ("kfi_mr_regsgl", Demo::regsgl),
        ("kfi_mr_regattr", Demo::regattr),
    ];
    let mut verified = 0;
    for (name, call) in calls {
        match call(&demo, name) {
            Ok(()) => verified += 1,
            Err(error) => pr_err!("{name}: failed ({error:?})\n"),
        }
    }

    // Dropping both would close them, too, but reports no failure.
    let Demo { domain, peer } = demo;
    drop(peer);
    Domain::close(domain)?;
    Fabric::close(fabric)?;

    let all = calls.len();
    pr_info!("demo: {verified} of {all} registration calls verified by remote write and read\n");
    match verified == all {
        true => Ok(()),
        false => Err(EIO),
    }
}

/// Returns the rights of the peer.
fn access() -> Access {
    Access::REMOTE_READ | Access::REMOTE_WRITE
}

/// Returns bytes that differ from their neighbours, and from those of another `first`.
fn pattern(first: u8, len: usize) -> Result<KVVec<u8>> {
    let mut bytes = KVVec::from_elem(0, len, GFP_KERNEL)?;
    for (byte, value) in bytes.iter_mut().zip((first..=250).cycle()) {
        *byte = value;
    }
    Ok(bytes)
}

impl Demo {
    /// Registers one buffer, here a part of one.
    fn reg(&self, name: &str) -> Result {
        let buffer = KVec::from_elem(0, OFFSET + LEN, GFP_KERNEL)?;
        let mr = self.domain.reg(Part::new(buffer, OFFSET, LEN)?, access())?;
        self.verify(name, mr)
    }

    /// Registers a list of buffers. Each but the first begins at a page boundary, and each but the
    /// last ends at one.
    fn regv(&self, name: &str) -> Result {
        let page = || VVec::from_elem(0, PAGE_SIZE, GFP_KERNEL);
        let first = PAGE_SIZE - OFFSET;
        let segments = kernel::kvec![
            Part::new(page()?, OFFSET, first)?,
            Part::new(page()?, 0, LEN - first)?,
        ]?;
        let mr = self.domain.regv(Segments::new(segments), access())?;
        self.verify(name, mr)
    }

    /// Registers pages, for example those of the block layer.
    fn regbv(&self, name: &str) -> Result {
        let pages = Pages::zeroed_at(OFFSET, LEN)?;
        let mr = self.domain.regbv(pages, access())?;
        self.verify(name, mr)
    }

    /// Registers a scatterlist, mapped for the domain's device. Closing the region returns the
    /// list. Dropping the list unmaps it.
    fn regsgl(&self, name: &str) -> Result {
        let pages = Pages::zeroed_at(OFFSET, LEN)?;
        let list = MappedList::map(&self.domain, pages, access())?;
        let mr = self.domain.regsgl(list, access())?;
        self.verify(name, mr)
    }

    /// Registers memory of any kind, with an authorization key if the provider supports one.
    fn regattr(&self, name: &str) -> Result {
        let buffer = VVec::from_elem(0, LEN, GFP_KERNEL)?;
        let mr = self.domain.regattr(buffer, access(), None)?;
        self.verify(name, mr)
    }

    /// Prints a region, lets the peer use it, closes it, and checks that the device refuses its
    /// key.
    fn verify<B: Backing>(&self, name: &str, mut mr: Mr<B>) -> Result {
        let (key, base, len) = (mr.key(), mr.base(), mr.len());
        pr_info!("{name:<14} key {key:#x} base {base:#x} length {len}\n");

        // The peer writes. Local memory must have its bytes.
        let mut remote = pattern(1, len)?;
        self.peer.write(base, key, &remote)?;
        if let Some(at) = mr.compare(0, &remote)? {
            pr_err!("{name}: byte {at} is not what the peer wrote\n");
            return Err(EIO);
        }

        // The peer reads. It must get the local bytes.
        let ours = pattern(2, len)?;
        mr.write(0, &ours)?;
        self.peer.read(base, key, &mut remote)?;
        if remote[..] != ours[..] {
            pr_err!("{name}: the peer read something else\n");
            return Err(EIO);
        }

        // The memory is private again, and the device refuses the key.
        let memory = mr.close()?;
        match self.peer.write(base, key, &remote) {
            Err(Failure::Refused) => (),
            Err(Failure::Broken(error)) => return Err(error),
            Ok(()) => {
                pr_err!("{name}: the key is not refused after the close\n");
                return Err(EIO);
            }
        }
        match memory.compare(0, &ours)? {
            None => Ok(()),
            Some(_) => Err(EIO),
        }
    }
}
