// SPDX-License-Identifier: GPL-2.0

//! A disk in memory, `/dev/kfi_mem0`, for tests of the crate `block`. Requests that touch certain sectors
//! go wrong.

#![forbid(unsafe_code)]

use block::{
    Busy,
    Disk,
    Driver,
    Limits,
    Op,
    Pieces,
    Request,
    Shape,
    Status,
    TagSet, //
};
use kernel::{
    impl_has_work,
    new_mutex,
    new_work,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc,
        ArcBorrow,
        Mutex, //
    },
    time::{
        delay::fsleep,
        Delta, //
    },
    workqueue::{
        Work,
        WorkItem, //
    }, //
};
use kfabric::workqueue::OwnedQueue;

module! {
    type: Module,
    name: "kfi_memdisk",
    authors: ["kfabric developers"],
    description: "kfabric selftest: a disk in memory",
    license: "GPL",
    params: {
        mib: u32 {
            default: 16,
            description: "its size in MiB",
        },
        later: u8 {
            default: 0,
            description: "1: requests are carried out by a workqueue",
        },
        bad: u64 {
            default: 0,
            description: "a sector that can't be read or written, but 0",
        },
        busy: u64 {
            default: 0,
            description: "a sector that can't be read or written at first, but 0",
        },
        lost: u64 {
            default: 0,
            description: "a sector whose requests take too long, but 0",
        },
        again: u64 {
            default: 0,
            description: "a sector whose requests are queued again once, but 0",
        },
        quiet: u8 {
            default: 0,
            description: "1: the disk is added while its tag set is quiesced",
        },
    },
}

const SECTOR: usize = 512;
/// In milliseconds.
const TIMEOUT: u32 = 1000;

struct MemDisk;

/// The memory of the disk.
#[pin_data]
struct Memory {
    params: Params,
    #[pin]
    bytes: Mutex<VVec<u8>>,
    /// While it is set, no request may be queued.
    quiet: Atomic<bool>,
    /// The requests that have yet to take their time.
    #[pin]
    lost: Mutex<KVec<Request>>,
    /// The accesses that have failed once.
    #[pin]
    tried: Mutex<Tried>,
    /// The requests that a workqueue carries out.
    #[pin]
    later: Mutex<KVec<Request>>,
    #[pin]
    work: Work<Memory>,
    tasks: OwnedQueue,
}

impl_has_work! {
    impl HasWork<Self> for Memory { self.work }
}

impl WorkItem for Memory {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        let requests = core::mem::take(&mut *this.later.lock());
        for request in requests {
            this.carry_out(request);
        }
    }
}

#[derive(Default)]
struct Tried {
    busy: bool,
    again: bool,
    flushes: usize,
}

impl Memory {
    fn new(params: Params) -> Result<Arc<Self>> {
        let size = usize::try_from(params.mib)? << 20;
        let bytes = VVec::from_elem(0u8, size, GFP_KERNEL)?;
        let memory = try_pin_init!(Self {
            params,
            quiet: Atomic::new(params.quiet),
            bytes <- new_mutex!(bytes),
            lost <- new_mutex!(KVec::new()),
            tried <- new_mutex!(Tried::default()),
            later <- new_mutex!(KVec::new()),
            work <- new_work!("kfi_memdisk"),
            tasks: OwnedQueue::new(c"kfi_memdisk", 1)?,
        }? Error);
        Arc::pin_init(memory, GFP_KERNEL)
    }

    /// Carries out a request.
    fn carry_out(&self, mut request: Request) {
        let status = match self.try_to(&mut request) {
            Ok(status) => status,
            Err(_) => Status::Invalid,
        };
        request.end(status);
    }

    fn try_to(&self, request: &mut Request) -> Result<Status> {
        if request.op() == Op::Flush {
            self.tried.lock().flushes += 1;
            return Ok(Status::Ok);
        }
        if touches(request, self.params.bad) {
            return Ok(Status::Medium);
        }
        let first = usize::try_from(request.sector())? * SECTOR;
        let end = first + usize::try_from(request.bytes())?;
        let mut bytes = self.bytes.lock();
        let bytes = bytes.get_mut(first..end).ok_or(EINVAL)?;
        match request.op() {
            Op::Read => {
                let mut list = Pieces::default();
                request.pieces(&mut list)?;
                let listed: u32 = list.as_slice().iter().map(|bv| bv.bv_len).sum();
                if listed != request.bytes() {
                    return Ok(Status::Target);
                }
                request.copy_in(bytes)?;
            }
            Op::Write => request.copy_out(bytes)?,
            // Discarded bytes differ from zeroed ones.
            Op::Discard => bytes.fill(0xdd),
            Op::WriteZeroes => bytes.fill(0),
            _ => return Ok(Status::NotSupported),
        }
        Ok(Status::Ok)
    }
}

/// Does a request touch a sector? Nothing is wrong with sector 0.
fn touches(request: &Request, sector: u64) -> bool {
    let first = request.sector();
    let end = first + u64::from(request.bytes()) / 512;
    sector != 0 && (first..end).contains(&sector)
}

impl Driver for MemDisk {
    const MAY_SLEEP: bool = true;
    type Disk = Memory;

    fn queue(disk: ArcBorrow<'_, Memory>, request: Request, _last: bool) -> Result<(), Busy> {
        let params = &disk.params;
        if disk.quiet.load(Relaxed) {
            pr_err!("a request of a quiesced disk\n");
        }
        if touches(&request, params.busy) && !core::mem::replace(&mut disk.tried.lock().busy, true)
        {
            return Err(Busy(request));
        }
        if touches(&request, params.again)
            && !core::mem::replace(&mut disk.tried.lock().again, true)
        {
            request.requeue();
            return Ok(());
        }
        if touches(&request, params.lost) {
            let mut lost = disk.lost.lock();
            // Without memory it fails, since it is dropped.
            let _ = lost.push(request, GFP_KERNEL);
            return Ok(());
        }
        if params.later {
            // Without memory it fails, since it is dropped.
            let _ = disk.later.lock().push(request, GFP_KERNEL);
            // Or the work is queued already, and has yet to take it.
            let _ = disk.tasks.enqueue(Arc::from(disk));
        } else {
            disk.carry_out(request);
        }
        Ok(())
    }

    fn timed_out(disk: ArcBorrow<'_, Memory>, queue: u32, tag: u32) {
        let mut lost = disk.lost.lock();
        let found = lost
            .iter()
            .position(|request| (request.queue(), request.tag()) == (queue, tag));
        if let Some(request) = found.and_then(|index| lost.remove(index).ok()) {
            pr_info!("took too long: tag {tag}\n");
            request.end(Status::Timeout);
        }
    }
}

struct Module {
    disk: Option<Disk<MemDisk>>,
    memory: Arc<Memory>,
}

impl kernel::Module for Module {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        let params = params();
        let memory = Memory::new(params)?;
        let tags = TagSet::new(Shape {
            queues: 2,
            depth: 16,
            timeout: TIMEOUT,
        })?;
        let limits = Limits {
            max_sectors: 512,
            max_segments: 32,
            virt_boundary: Some(4096),
            max_discard_sectors: 1 << 14,
            discard_granularity: 512,
            max_write_zeroes_sectors: 1 << 14,
            write_cache: true,
            fua: true,
            ..Limits::default()
        };
        if params.quiet {
            tags.quiesce();
            Noise::follows(&memory, &tags)?;
        }
        let sectors = u64::from(params.mib) << 11;
        let disk = Disk::add(&tags, c"kfi_mem0", &limits, sectors, memory.clone())?;
        Ok(Self {
            disk: Some(disk),
            memory,
        })
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        drop(self.disk.take());
        // So that no task is the last to have the memory, and runs when this module is gone.
        self.memory.tasks.flush();
        let flushes = self.memory.tried.lock().flushes;
        pr_info!("{flushes} flushes\n");
    }
}

#[derive(Clone, Copy)]
struct Params {
    mib: u32,
    later: bool,
    bad: u64,
    busy: u64,
    lost: u64,
    again: u64,
    quiet: bool,
}

// The kernel's parameters changed with 7.3.
#[cfg(kernel_7_3)]
fn params() -> Params {
    Params {
        mib: module_parameters::mib.value(),
        later: module_parameters::later.value() != 0,
        bad: module_parameters::bad.value(),
        busy: module_parameters::busy.value(),
        lost: module_parameters::lost.value(),
        again: module_parameters::again.value(),
        quiet: module_parameters::quiet.value() != 0,
    }
}

#[cfg(not(kernel_7_3))]
fn params() -> Params {
    Params {
        mib: *module_parameters::mib.value(),
        later: *module_parameters::later.value() != 0,
        bad: *module_parameters::bad.value(),
        busy: *module_parameters::busy.value(),
        lost: *module_parameters::lost.value(),
        again: *module_parameters::again.value(),
        quiet: *module_parameters::quiet.value() != 0,
    }
}

/// Ends the quiet after a while.
#[pin_data]
struct Noise {
    memory: Arc<Memory>,
    tags: Arc<TagSet<MemDisk>>,
    #[pin]
    work: Work<Noise>,
}

impl_has_work! {
    impl HasWork<Self> for Noise { self.work }
}

impl Noise {
    /// Has it end, by a task of the disk's.
    fn follows(memory: &Arc<Memory>, tags: &Arc<TagSet<MemDisk>>) -> Result {
        let (own, set) = (memory.clone(), tags.clone());
        let noise = pin_init!(Self {
            memory: own,
            tags: set,
            work <- new_work!("kfi_memdisk_noise"),
        });
        // It isn't queued yet.
        let _ = memory.tasks.enqueue(Arc::pin_init(noise, GFP_KERNEL)?);
        Ok(())
    }
}

impl WorkItem for Noise {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        // Long enough for the disk to be made, mostly; if not, nothing was tried.
        fsleep(Delta::from_millis(300));
        this.memory.quiet.store(false, Relaxed);
        this.tags.unquiesce();
        pr_info!("not quiet any more\n");
    }
}
