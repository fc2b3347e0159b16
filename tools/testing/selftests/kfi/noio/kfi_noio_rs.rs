// SPDX-License-Identifier: GPL-2.0

//! A consumer in Rust on the way of freeing memory: none of its registrations, and none of its
//! closes, may wait for I/O.
//!
//! The module loads if that is so. C header:
//! [`kfi_noio.h`](srctree/tools/testing/selftests/kfi/noio/kfi_noio.h)

use kernel::{
    error::to_result,
    ffi::{
        c_int,
        c_uint, //
    },
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

mod c {
    use super::*;

    unsafe extern "C" {
        pub(crate) fn kfi_noio_begin() -> c_int;
        pub(crate) fn kfi_noio_end() -> c_uint;
    }
}

module! {
    type: Module,
    name: "kfi_noio_rs",
    authors: ["kfabric developers"],
    description: "A consumer in Rust on the way of freeing memory, for the kfabric selftests",
    license: "GPL",
}

struct Module;

impl kernel::Module for Module {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        run().map(|()| Module)
    }
}

/// Long enough for lists of several pages of their own.
const SEGMENTS: usize = 300;

fn access() -> Access {
    Access::REMOTE_READ | Access::REMOTE_WRITE
}

/// Registers and closes under watch; the memory is allocated before, and freed behind it.
fn watch<B: Backing>(
    name: &str,
    register: impl FnOnce() -> Result<Mr<B>>,
    use_it: impl FnOnce(&Mr<B>) -> Result,
) -> Result {
    // SAFETY: May be called in process context.
    to_result(unsafe { c::kfi_noio_begin() })?;
    let memory = register().and_then(|mr| {
        use_it(&mr)?;
        Ok(mr.close()?)
    });
    // SAFETY: Begun above, by this task.
    let found = unsafe { c::kfi_noio_end() };
    memory.inspect_err(|error| pr_err!("{name}: {error:?}\n"))?;
    match found {
        0 => Ok(()),
        found => {
            pr_err!("{name}: {found} allocations may wait for I/O\n");
            Err(EIO)
        }
    }
}

fn watch_all(domain: &Arc<Domain>) -> [Result; 6] {
    [
        buffer(domain),
        list(domain),
        pages(domain),
        scatterlist(domain),
        attributes(domain),
        raw_key(domain),
    ]
}

fn nothing<B: Backing>(_mr: &Mr<B>) -> Result {
    Ok(())
}

fn buffer(domain: &Arc<Domain>) -> Result {
    let buffer = Part::new(KVec::from_elem(0u8, PAGE_SIZE, GFP_KERNEL)?, 0, PAGE_SIZE)?;
    watch("reg", || Ok(domain.reg(buffer, access())?), nothing)
}

fn list(domain: &Arc<Domain>) -> Result {
    let mut segments = KVec::new();
    for _ in 0..SEGMENTS {
        let page = VVec::from_elem(0u8, PAGE_SIZE, GFP_KERNEL)?;
        segments.push(Part::new(page, 0, PAGE_SIZE)?, GFP_KERNEL)?;
    }
    let segments = Segments::new(segments);
    watch("regv", || Ok(domain.regv(segments, access())?), nothing)
}

fn pages(domain: &Arc<Domain>) -> Result {
    let pages = Pages::zeroed_at(100, SEGMENTS * PAGE_SIZE)?;
    watch("regbv", || Ok(domain.regbv(pages, access())?), nothing)
}

fn scatterlist(domain: &Arc<Domain>) -> Result {
    let pages = Pages::zeroed_at(100, SEGMENTS * PAGE_SIZE)?;
    let list = MappedList::map(domain, pages, access())?;
    watch("regsgl", || Ok(domain.regsgl(list, access())?), nothing)
}

fn attributes(domain: &Arc<Domain>) -> Result {
    let buffer = VVec::from_elem(0u8, SEGMENTS * PAGE_SIZE, GFP_KERNEL)?;
    watch(
        "regattr",
        || Ok(domain.regattr(buffer, access(), None)?),
        nothing,
    )
}

fn raw_key(domain: &Arc<Domain>) -> Result {
    let buffer = KVec::from_elem(0u8, PAGE_SIZE, GFP_KERNEL)?;
    watch(
        "raw_key",
        || Ok(domain.reg(buffer, access())?),
        |mr| Ok(mr.raw_key().map(drop)?),
    )
}

fn run() -> Result {
    let offers = Hints::new()?
        .prov_name(c"verbs")?
        .caps(Caps::RMA | Caps::REMOTE_READ | Caps::REMOTE_WRITE)
        .mr_mode(MrMode::VIRT_ADDR | MrMode::PROV_KEY)
        .getinfo()?;
    let info = offers.first();
    let fabric = Fabric::open(info)?;
    let domain = Domain::open(&fabric, info)?;
    // Each is told of, whatever the others gave.
    let all = watch_all(&domain);
    Domain::close(domain)?;
    Fabric::close(fabric)?;
    all.into_iter().collect()
}
