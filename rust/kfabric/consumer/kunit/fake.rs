// SPDX-License-Identifier: GPL-2.0

//! A provider for the unit tests, and tests that a provider in safe Rust can't harm its consumers.
//!
//! The provider registers any memory, and records the calls.

use super::*;
use crate::{
    api::answer::Registration,
    object::{
        cq::CqObject,
        ext, //
    },
    provider::{
        self,
        cq::CqPlace,
        domain::{
            enable_new,
            Extension,
            ExtensionTable, //
        },
        fabric::{
            Ends,
            Extras,
            Offer, //
        },
        BatchEntry,
        Bindings,
        Dma,
        DomainRequest,
        Keys,
        MrBatch,
        Provider,
        ProviderMr,
        RawSgl, //
    },
    region::{
        cpu_memory::{
            CpuMemory,
            PeerBuffer, //
        },
        limits::MrLimits,
        request::MrRequest,
        segment_list::Source, //
    }, //
};
use core::any::Any;
use kernel::{
    dma::DataDirection,
    str::CString,
    sync::atomic::Full,
    time::{
        delay::fsleep,
        Delta, //
    }, //
};
use kfi_bindings::{
    kfi_dma_ops,
    kfi_raw_ops, //
};

/// Number of open domains and regions.
pub(super) static OPEN: Atomic<i32> = Atomic::new(0);
/// Number of mapped entries of scatterlists.
pub(super) static MAPPED: Atomic<i32> = Atomic::new(0);
/// A requested key: the region has two device regions, the first with 4 bytes.
pub(super) const IN_TWO: u64 = 99;
/// Makes enabling the next region fail.
pub(super) static UNABLE: Atomic<bool> = Atomic::new(false);
/// A requested key: enabling the region fails.
pub(super) const FAILS: u64 = 98;
/// A requested key: the provider keeps the memory in [`KEPT`].
pub(super) const KEEPS: u64 = 97;
/// A requested key: the provider keeps the memory in [`KEPT`], and the registration fails.
pub(super) const KEEPS_AND_FAILS: u64 = 96;
/// A requested key: enabling the region waits while [`HOLD`] is set.
pub(super) const HOLDS: u64 = 95;
/// Holds the regions with the key [`HOLDS`].
pub(super) static HOLD: Atomic<bool> = Atomic::new(false);
/// Number of regions in the last call that enabled many.
pub(super) static TOGETHER: Atomic<usize> = Atomic::new(0);
/// Memory of a region, which may be closed.
pub(super) static KEPT: Kept = Kept::new();
/// Makes the next mapping return more entries than the list has.
pub(super) static TOO_MANY: Atomic<bool> = Atomic::new(false);
/// Disables mapping of scatterlists.
pub(super) static NO_DMA: Atomic<bool> = Atomic::new(false);
/// Makes closing the next region fail.
pub(super) static STUCK: Atomic<bool> = Atomic::new(false);

/// Returns the rights that the tests use.
pub(super) fn access() -> Access {
    Access::REMOTE_READ | Access::REMOTE_WRITE
}

/// Returns hints that select the provider.
pub(super) fn hints() -> Result<Hints, Errno> {
    let hints = Hints::new()?.prov_name(Fake::NAME)?;
    Ok(hints.mr_mode(MrMode::VIRT_ADDR | MrMode::PROV_KEY))
}

/// Opens the fabric.
pub(super) fn fabric() -> Result<Arc<Fabric>, Errno> {
    Fabric::open(hints()?.getinfo()?.first())
}

/// Opens the first domain.
pub(super) fn domain() -> Result<Arc<Domain>, Errno> {
    Domain::open(&fabric()?, hints()?.getinfo()?.first())
}

/// Reserves an entry of a queue.
pub(super) fn place(queue: &CompletionQueue) -> Result<CqPlace> {
    // SAFETY: The queue is open, because it is borrowed.
    let object = unsafe { CqObject::from_fid(queue.as_raw().cast()) }?;
    object.queue.reserve().ok_or(EAGAIN)
}

/// A buffer of the given size, in bytes, in static memory. For tests that leak it.
pub(super) struct StaticBuffer(pub(super) usize);

static BYTES: [Atomic<u64>; 2] = [const { Atomic::new(0) }; 2];

// SAFETY: The bytes are static. Neither the tests nor the provider access them.
unsafe impl Buffer for StaticBuffer {
    fn start(&self) -> NonNull<u8> {
        NonNull::from(&BYTES).cast()
    }

    fn size(&self) -> usize {
        self.0.min(size_of_val(&BYTES))
    }
}

/// Calls `f` while `table` points to another table.
///
/// # Safety
///
/// `table` must be a field of an open object that nobody else uses.
pub(super) unsafe fn with_table<T, R>(
    table: *mut *mut T,
    other: &mut T,
    f: impl FnOnce() -> R,
) -> R {
    // SAFETY: `table` is valid by this function's contract. `other` lives until the own table is
    // restored.
    let own = unsafe { table.replace(other) };
    let done = f();
    // SAFETY: `table` is valid by this function's contract. `own` is the object's own table.
    unsafe { *table = own };
    done
}

/// Returns bytes with the values from `first`.
pub(super) fn bytes(first: u8, len: usize) -> Result<KVec<u8>> {
    let mut bytes = KVec::from_elem(0, len, GFP_KERNEL)?;
    for (byte, value) in bytes
        .iter_mut()
        .zip((0..=u8::MAX).cycle().skip(first.into()))
    {
        *byte = value;
    }
    Ok(bytes)
}

/// A count in [`OPEN`].
struct Counted;

impl Counted {
    fn new() -> Self {
        OPEN.fetch_add(1, Relaxed);
        Self
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        OPEN.fetch_sub(1, Relaxed);
    }
}

/// The provider.
pub(super) struct Fake;

impl Fake {
    /// Registers the provider for a test.
    pub(super) fn register() -> Result<Registered> {
        Ok(Registered(Some(Registration::new()?)))
    }

    /// Registers the provider for a test, and opens its first domain.
    pub(super) fn open() -> Result<(Registered, Arc<Domain>)> {
        Ok((Self::register()?, domain()?))
    }
}

/// The registered provider.
///
/// If a test left an object open, the provider stays registered, because unregistering it would
/// wait forever. The next test fails then, too.
pub(super) struct Registered(Option<Registration<Fake>>);

impl Drop for Registered {
    fn drop(&mut self) {
        if OPEN.load(Relaxed) != 0 {
            core::mem::forget(self.0.take());
        }
    }
}

impl Provider for Fake {
    const NAME: &'static CStr = c"kfabric_kunit";
    const VERSION: u32 = 1;

    fn offers(ends: &Ends) -> Result<KVec<Offer>, Errno> {
        let mut offers = KVec::new();
        if !ends.is_none() {
            return Ok(offers);
        }
        for domain in [c"first", c"second"] {
            let offer = Offer {
                fabric: CString::try_from(c"fabric")?,
                domain: CString::try_from(domain)?,
                caps: 0b110,
                mr_mode: 0b11000,
                mr_key_size: 8,
                mr_iov_limit: 4,
                mr_cnt: 100,
                extras: Extras::default(),
                msg: None,
            };
            offers.push(offer, GFP_KERNEL)?;
        }
        Ok(offers)
    }

    fn open_fabric(_name: &CStr) -> Result<KBox<dyn provider::FabricOps>, Refusal> {
        Ok(KBox::new(Fake, GFP_KERNEL)?)
    }
}

impl provider::FabricOps for Fake {
    fn open_domain(
        &self,
        _request: &DomainRequest<'_>,
    ) -> Result<KBox<dyn provider::DomainOps>, Refusal> {
        let limits = MrLimits {
            regions: 100,
            segments: 4,
            pages: 100,
            bytes: 1 << 20,
            gaps: true,
            flags: 0b1,
            auth_keys: true,
            leases: true,
            ..MrLimits::NONE
        };
        let open = Counted::new();
        Ok(KBox::new(
            FakeDomain {
                limits,
                _open: open,
            },
            GFP_KERNEL,
        )?)
    }
}

struct FakeDomain {
    limits: MrLimits,
    _open: Counted,
}

impl provider::DomainOps for FakeDomain {
    fn mr_limits(&self) -> &MrLimits {
        &self.limits
    }

    /// Returns the type of the list in the base, and other arguments in the descriptor.
    fn create_mr(&self, request: &MrRequest<'_>) -> Result<ProviderMr, Refusal> {
        match request.requested_key() {
            KEEPS => KEPT.put(CpuMemory::new(request)?)?,
            KEEPS_AND_FAILS => {
                KEPT.put(CpuMemory::new(request)?)?;
                return Err(Errno::ENOSPC.into());
            }
            _ => (),
        }
        let kind = match request.source() {
            Source::Kvec(_) => 1,
            Source::Bvec(_) => 2,
            Source::Sgl(_) => 3,
        };
        let shape = request.shape();
        let auth_key = request.auth_key().map_or(0, <[u8]>::len);
        let mr = FakeMr {
            key: request.requested_key(),
            base: kind << 32 | shape.bytes(),
            desc: shape.segments() << 16 | auth_key,
            len: shape.bytes(),
            _open: Counted::new(),
        };
        Ok(ProviderMr::boxed(KBox::new(mr, GFP_KERNEL)?))
    }

    fn batch(&self, _count: usize) -> Option<KBox<dyn MrBatch + '_>> {
        let batch = FakeBatch {
            domain: self,
            mrs: KVec::new(),
        };
        Some(KBox::new(batch, GFP_KERNEL).ok()?)
    }

    fn enable_many(&self, mrs: &mut [BatchEntry<'_, Keys>]) {
        TOGETHER.store(mrs.len(), Relaxed);
        for enabling in mrs {
            *enabling.done = Some(enabling.mr.enable(enabling.bindings));
        }
    }

    fn dma(&self) -> Option<&dyn Dma> {
        match NO_DMA.load(Relaxed) {
            false => Some(self),
            true => None,
        }
    }

    fn extensions(&self) -> &[Extension] {
        &EXTENSIONS
    }

    fn endpoints(&self) -> bool {
        true
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Regions that are enabled together.
struct FakeBatch<'a> {
    domain: &'a FakeDomain,
    mrs: KVec<ProviderMr>,
}

impl MrBatch for FakeBatch<'_> {
    fn prepare(&mut self, request: &MrRequest<'_>) -> Result<(), Refusal> {
        let mr = provider::DomainOps::create_mr(self.domain, request)?;
        self.mrs.push(mr, GFP_KERNEL)?;
        Ok(())
    }

    fn register(&mut self, done: &mut dyn FnMut(provider::Registered)) {
        TOGETHER.store(self.mrs.len(), Relaxed);
        for mr in mem::replace(&mut self.mrs, KVec::new()) {
            done(enable_new(mr));
        }
    }
}

struct FakeMr {
    key: u64,
    base: u64,
    desc: usize,
    len: u64,
    _open: Counted,
}

impl provider::MrOps for FakeMr {
    fn enable(&mut self, _bindings: &Bindings) -> Result<Keys, Refusal> {
        while self.key == HOLDS && HOLD.load(Relaxed) {
            fsleep(Delta::from_millis(1));
        }
        if UNABLE.xchg(false, Relaxed) || self.key == FAILS {
            return Err(Errno::ENODEV.into());
        }
        Ok(Keys {
            key: self.key,
            base: self.base,
            desc: self.desc,
            whole: self.key != IN_TWO,
        })
    }

    fn pieces(&self) -> Result<KVec<RemotePiece>, Refusal> {
        let mut pieces = KVec::new();
        let whole = [(self.key, self.base, self.len)];
        let two = [(IN_TWO, 0x1000, 4), (IN_TWO + 1, 0x8000, self.len - 4)];
        let list = if self.key == IN_TWO { &two[..] } else { &whole };
        for &(key, base, len) in list {
            pieces.push(RemotePiece { key, base, len }, GFP_KERNEL)?;
        }
        Ok(pieces)
    }

    fn close(&mut self) -> Result<(), Refusal> {
        match STUCK.xchg(false, Relaxed) {
            true => Err(Errno::EIO.into()),
            false => Ok(()),
        }
    }

    fn as_any(&mut self) -> &mut dyn Any {
        self
    }
}

impl Dma for FakeDomain {
    /// Maps one entry.
    fn map(&self, list: RawSgl<'_>, _direction: DataDirection) -> Result<usize, Refusal> {
        // SAFETY: The provider owns the list for the call.
        let entry = unsafe { &mut *list.as_ptr() };
        entry.dma_address = 0x10000;
        #[cfg(CONFIG_NEED_SG_DMA_LENGTH)]
        {
            entry.dma_length = entry.length;
        }
        MAPPED.fetch_add(list.entries(), Relaxed);
        match TOO_MANY.xchg(false, Relaxed) {
            false => Ok(1),
            true => Ok(1000),
        }
    }

    fn unmap(&self, list: RawSgl<'_>, _direction: DataDirection) {
        MAPPED.fetch_sub(list.entries(), Relaxed);
    }

    fn sync_for_cpu(&self, _list: RawSgl<'_>, _direction: DataDirection) {}

    fn sync_for_device(&self, _list: RawSgl<'_>, _direction: DataDirection) {}
}

/// The memory of a region, for a test to take.
///
/// # Invariants
///
/// The pointer is null, or came from a box that nobody else owns.
pub(super) struct Kept(Atomic<*mut CpuMemory>);

impl Kept {
    /// Creates an empty value.
    pub(super) const fn new() -> Self {
        Self(Atomic::new(ptr::null_mut()))
    }

    /// Stores memory. May sleep.
    pub(super) fn put(&self, extent: CpuMemory) -> Result<(), Errno> {
        let extent = KBox::new(extent, GFP_KERNEL)?;
        drop(self.exchange(KBox::into_raw(extent)));
        Ok(())
    }

    /// Removes and returns the memory.
    pub(super) fn take(&self) -> Option<KBox<CpuMemory>> {
        self.exchange(ptr::null_mut())
    }

    fn exchange(&self, new: *mut CpuMemory) -> Option<KBox<CpuMemory>> {
        let old = self.0.xchg(new, Full);
        // SAFETY: `old` came from a box by the invariant, and the exchange made this its only
        // owner.
        (!old.is_null()).then(|| unsafe { KBox::from_raw(old) })
    }
}

/// An extension with a name of the core.
#[repr(transparent)]
struct OwnDma(kfi_dma_ops);

// SAFETY: The table is never written.
unsafe impl Sync for OwnDma {}
// SAFETY: The table is a `kfi_dma_ops` without functions, as the name requires.
unsafe impl ExtensionTable for OwnDma {
    const NAME: &'static CStr = crate::object::ext::DMA_NAME;
}

/// A second extension with a name of the core.
#[repr(transparent)]
struct OwnRaw(kfi_raw_ops);

// SAFETY: The table is never written.
unsafe impl Sync for OwnRaw {}
// SAFETY: The table is a `kfi_raw_ops` without functions, as the name requires.
unsafe impl ExtensionTable for OwnRaw {
    const NAME: &'static CStr = crate::object::ext::RAW_NAME;
}

/// An extension of the provider.
pub(super) struct Own;

// SAFETY: Nobody uses a table of this name.
unsafe impl ExtensionTable for Own {
    const NAME: &'static CStr = c"kfabric_kunit_ops";
}

static OWN_DMA: OwnDma = OwnDma(pin_init::zeroed());
static OWN_RAW: OwnRaw = OwnRaw(pin_init::zeroed());
/// The table of [`Own`].
pub(super) static OWN: Own = Own;
/// All extensions.
pub(super) static EXTENSIONS: [Extension; 3] = [
    Extension::new(&OWN_DMA),
    Extension::new(&OWN_RAW),
    Extension::new(&OWN),
];

#[kernel::macros::kunit_tests(kfabric_consumer_provider)]
mod tests {
    use super::*;

    fn read(extent: &CpuMemory) -> Option<Errno> {
        let copied = extent.copy(0, PeerBuffer::read_slice(&mut [0]));
        copied.err().map(|refusal| refusal.errno())
    }

    #[test]
    fn memory_is_not_reached_after_the_close() -> Result {
        let (_provider, domain) = Fake::open()?;
        let options = Options::new(access());
        let mr = domain.reg(bytes(0, 10)?, options.requested_key(KEEPS))?;
        let kept = KEPT.take().ok_or(EINVAL)?;
        assert_eq!(read(&kept), None);
        mr.close()?;
        assert_eq!(read(&kept), Some(Errno::EACCES));

        let options = options.requested_key(KEEPS_AND_FAILS);
        let refused = domain.reg(bytes(0, 10)?, options).err().ok_or(EINVAL)?;
        assert_eq!(refused.errno(), Errno::ENOSPC);
        let kept = KEPT.take().ok_or(EINVAL)?;
        assert_eq!(read(&kept), Some(Errno::EACCES));
        Ok(())
    }

    #[test]
    fn names_of_the_core_are_the_core_s() -> Result {
        let (_provider, domain) = Fake::open()?;
        let own = domain.extension(c"kfabric_kunit_ops")?;
        assert!(ptr::eq(own.as_ptr().cast(), &raw const OWN));
        let is = |name, table| domain.extension(name).map(|found| found.as_ptr()) == Ok(table);
        assert!(is(ext::DMA_NAME, ext::DMA_OPS.as_ptr().cast()));
        assert!(is(ext::RAW_NAME, ext::RAW_OPS.as_ptr().cast()));
        NO_DMA.store(true, Relaxed);
        let found = domain.extension(ext::DMA_NAME).err();
        NO_DMA.store(false, Relaxed);
        assert_eq!(found, Some(Errno::ENOSYS));
        assert_eq!(domain.extension(c"none").err(), Some(Errno::ENOSYS));
        Ok(())
    }

    #[test]
    fn lists_are_not_longer_than_they_are() -> Result {
        let (_provider, domain) = Fake::open()?;
        TOO_MANY.store(true, Relaxed);
        let refused = MappedList::map(&domain, Pages::zeroed(10)?, access()).err();
        assert_eq!(refused.map(|error| error.errno()), Some(Errno::EIO));
        // Nobody knows how many entries are mapped, so nobody unmaps them.
        assert_eq!(MAPPED.xchg(0, Relaxed), 1);
        Ok(())
    }
}
