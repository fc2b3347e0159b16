// SPDX-License-Identifier: GPL-2.0

//! The regions by which the target accesses the data of requests.

use kernel::{
    bindings::bio_vec,
    prelude::*,
    sync::Arc, //
};
use kfabric::{
    consumer::{
        Access,
        BindsRegions,
        BioVecs,
        Domain,
        EmptyMr,
        Errno,
        FilledMr, //
    },
    irqlock::IrqLock,
    new_irq_lock,
    PushReserved, //
};
use nvme::{
    Command,
    Data, //
};

/// The data of a request, which a region or a capsule has.
pub(crate) struct RequestData(pub(crate) Data);

#[expect(unsafe_code, reason = "the trait is unsafe to implement")]
// SAFETY: `Data` keeps its pieces in place until it is dropped. If it is forgotten, the pages are
// leaked before the request ends. The owner of the memory expects either that it is read, after it
// was filled, or that it is written. The list doesn't change meanwhile.
unsafe impl BioVecs for RequestData {
    fn bio_vecs(&self) -> &[bio_vec] {
        self.0.as_slice()
    }

    fn is_readable(&self) -> bool {
        self.0.is_readable()
    }

    fn is_writable(&self) -> bool {
        self.0.is_writable()
    }
}

/// A region with the data of a request. Emptying it returns the data to the request.
pub(crate) type Region = FilledMr<RequestData>;

/// Sets the descriptor of a command to a region. Any context.
///
/// # Errors
///
/// - `E2BIG`: the data have 2^24 bytes or more.
/// - `EKEYREJECTED`: the key has more than 32 bits.
pub(crate) fn describe(region: &Region, command: &mut Command) -> Result<(), Errno> {
    let len = u32::try_from(region.len()).ok();
    let len = len.filter(|len| len >> 24 == 0).ok_or(Errno::E2BIG)?;
    let key = u32::try_from(region.key()).map_err(|_| Errno::EKEYREJECTED)?;
    command.set_keyed(region.base(), len, key, true);
    Ok(())
}

/// The empty regions of a queue: one for each of its requests, unless a device has kept one.
#[pin_data]
pub(crate) struct Regions {
    #[pin]
    empty: IrqLock<KVec<EmptyMr>>,
}

impl Regions {
    /// Opens `count` regions for up to `pages` pages each, bound to an endpoint. May sleep.
    ///
    /// # Errors
    ///
    /// The errors of [`EmptyMr::open`].
    pub(crate) fn new(
        domain: &Arc<Domain>,
        endpoint: &impl BindsRegions,
        count: usize,
        pages: usize,
    ) -> Result<Pin<KBox<Self>>> {
        let mut empty = KVec::with_capacity(count, GFP_KERNEL)?;
        for _ in 0..count {
            empty.push_reserved(EmptyMr::open(domain, endpoint, pages)?);
        }
        let regions = pin_init!(Self {
            empty <- new_irq_lock!(empty, c"kfi_nvme_regions"),
        });
        KBox::pin_init(regions, GFP_KERNEL)
    }

    /// Registers the data of a request. The target may use the key once it has received a capsule
    /// that is sent over the endpoint afterwards. The caller must send one at once. Any context.
    ///
    /// # Errors
    ///
    /// - `EAGAIN`: there is no empty region.
    /// - The errors of [`EmptyMr::fill`].
    pub(crate) fn fill(&self, data: RequestData) -> Result<Region, Errno> {
        let access = match data.is_writable() {
            true => Access::REMOTE_WRITE,
            false => Access::REMOTE_READ,
        };
        let mr = self.empty.with(|empty| empty.pop()).ok_or(Errno::EAGAIN)?;
        mr.fill(data, access).map_err(|refused| {
            let errno = refused.errno();
            let (mr, _data) = refused.into_inner();
            self.put(mr);
            errno
        })
    }

    /// Empties a region if the target has invalidated its key, and there is nothing else to wait
    /// for. Any context.
    ///
    /// # Errors
    ///
    /// Returns the region, which needs [`empty`](Self::empty).
    pub(crate) fn empty_now(&self, region: Region) -> Result<(), Region> {
        let (mr, _data) = region.empty_now().map_err(|refused| refused.into_inner())?;
        self.put(mr);
        Ok(())
    }

    /// Ends the key of a region, and empties it. If the device doesn't let go of the data, they
    /// stay lent, and the request leaks their pages. Sleeps.
    pub(crate) fn empty(&self, region: Region) {
        match region.empty() {
            Ok((mr, _data)) => self.put(mr),
            Err(errno) => pr_warn!("a device keeps the data of a request: {errno}\n"),
        }
    }

    /// Takes an empty region back.
    fn put(&self, mr: EmptyMr) {
        self.empty.with(|empty| empty.push_reserved(mr));
    }
}
