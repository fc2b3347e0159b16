// SPDX-License-Identifier: GPL-2.0

//! The guard of an open fabric, which pins the fabric's provider, and `kfi_fabric()`.
//!
//! The operations of a guarded fabric call those of the provider.
//!
//! Lock order: `HANDED_OUT` is a leaf; no provider is called under it.

use super::registry::{
    self,
    ProviderRef, //
};
use crate::{
    object::{
        instances,
        obj::{
            Class,
            ClassTable, //
        }, //
    },
    prelude::*,
    support::{
        c_ref::c_ref,
        hlist::{
            Head,
            Node, //
        },
        table::NO_SUCH_CALL, //
    }, //
};
use kernel::sync::{
    GlobalGuard,
    GlobalLockedBy, //
};
use kfi_bindings::kfi_fabric_attr;

kernel::sync::global_lock! {
    // SAFETY: Initialized by `init`, which the module calls first.
    //
    // Lists the guards whose fabrics a consumer has, or is closing. None of them is freed while the lock is held.
    unsafe(uninit) static HANDED_OUT: Mutex<Head> = Head::new();
}

/// Initializes the lock of all guards.
///
/// # Safety
///
/// Called once, before anything else of this file.
pub(crate) unsafe fn init() {
    // SAFETY: The caller promises that this is the only call, and the first use of the lock.
    unsafe { HANDED_OUT.init() };
}

/// The class of the tables of guards.
static GUARD: Class = Class::new(
    kfi_bindings::KFI_CLASS_UNSPEC,
    c"not an open fabric",
    c"a fabric is open",
);

/// Stands between its consumers and an open fabric, whichever language its provider is written in.
///
/// The fabric's fid points to `table` instead of the provider's table. So the code that runs last
/// when a fabric is closed is the core's, and the provider's module can be let go by it.
///
/// A provider may open one fabric several times, that is, give out the same fid again. It has one
/// guard then, which goes with the last of its consumers. When all of them are closing it, the fid
/// gets its own table back beforehand: it may be freed, or kept and given out anew.
///
/// # Invariants
///
/// `inner` is the table that the provider gave the fabric. While `HANDED_OUT` is locked, the fid
/// points to the guard if not all of its consumers are closing it.
#[repr(C)]
struct Guard {
    table: ClassTable<kfi_ops>,
    inner: *mut kfi_ops,
    fabric: *mut kfid,
    provider: ProviderRef,
    consumers: GlobalLockedBy<Consumers, HANDED_OUT>,
    node: Node,
}

/// How often a fabric is open.
struct Consumers {
    open: usize,
    /// How many of them are in a call that closes it.
    closing: usize,
}

impl Guard {
    /// Returns the guard of a fabric, if it has one. The caller holds `HANDED_OUT`, or
    /// `kfi_fabric()` has given out the fabric and it is open.
    ///
    /// # Safety
    ///
    /// `fid` is an open fabric, and has a table.
    unsafe fn find(fid: *const kfid) -> Option<NonNull<Self>> {
        // SAFETY: `fid` is an open fabric, as the caller promises.
        let ops = unsafe { (*fid).ops };
        // SAFETY: `ops` is the table of an open fabric, as the caller promises.
        let guarded = unsafe { ClassTable::is_of(ops, &GUARD) };
        // A table of this class is the first field of a guard.
        NonNull::new(ops.cast()).filter(|_| guarded)
    }

    /// Returns the guard of an open fabric that `kfi_fabric()` gave out.
    ///
    /// # Safety
    ///
    /// `fid` is an open fabric that `kfi_fabric()` gave out.
    unsafe fn of(fid: *mut kfid) -> *mut Self {
        // SAFETY: The table is the first field of the guard that `kfi_fabric()` put there.
        unsafe { (*fid).ops }.cast()
    }

    /// Makes one more consumer's fabric of one that the provider has opened again.
    fn add(&self, lock: &mut GlobalGuard<HANDED_OUT>) {
        self.consumers.as_mut(lock).open += 1;
    }

    /// Notes that a consumer is about to close the fabric.
    ///
    /// # Safety
    ///
    /// `fid` is the guard's fabric, open.
    unsafe fn begin_close(&self, fid: *mut kfid) {
        let mut lock = HANDED_OUT.lock();
        let consumers = self.consumers.as_mut(&mut lock);
        consumers.closing += 1;
        if consumers.closing == consumers.open {
            // SAFETY: `fid` is the guard's open fabric, as the caller promises. All its consumers
            // are closing it.
            unsafe { (*fid).ops = self.inner };
        }
    }

    /// Notes that a consumer has closed the fabric. Returns `true` if the caller must free the
    /// guard, which nobody finds any more.
    fn end_close(&self) -> bool {
        let mut lock = HANDED_OUT.lock();
        let consumers = self.consumers.as_mut(&mut lock);
        consumers.closing -= 1;
        consumers.open -= 1;
        let gone = consumers.open == 0;
        if gone {
            // SAFETY: The guard is in the list until its last consumer has closed the fabric. The lock is held.
            unsafe { self.node.unlink() };
        }
        gone
    }

    /// Notes that a consumer could not close the fabric. Returns `true` if the caller must free the
    /// guard.
    ///
    /// # Safety
    ///
    /// `this` is the guard of `fid`, an open fabric.
    unsafe fn undo_close(this: *mut Self, fid: *mut kfid) -> bool {
        let mut lock = HANDED_OUT.lock();
        // SAFETY: `this` is a guard, which exists while the caller is one of its consumers. `fid`
        // is an open fabric.
        let (guard, found) = unsafe { (&*this, Self::find(fid)) };
        let consumers = guard.consumers.as_mut(&mut lock);
        consumers.closing -= 1;
        match found {
            None => {
                // SAFETY: `fid` is an open fabric, as the caller promises. Nobody has opened it
                // meanwhile, or it would have a guard.
                unsafe { (*fid).ops = this.cast() };
                false
            }
            Some(found) if found.as_ptr() == this => false,
            Some(newer) => {
                // Somebody has opened it meanwhile.
                consumers.open -= 1;
                let gone = consumers.open == 0;
                // SAFETY: A guard that a fid points to is there while the lock is held.
                unsafe { newer.as_ref() }.add(&mut lock);
                if gone {
                    // SAFETY: The guard is in the list until its last consumer has left it. The lock is held.
                    unsafe { guard.node.unlink() };
                }
                gone
            }
        }
    }
}

/// Returns whether this is an open fabric that was opened from this provider. The pointer may be anything: it
/// is only compared. May sleep.
pub(crate) fn is_of(fabric: *const kfid_fabric, provider: &ProviderRef) -> bool {
    let lock = HANDED_OUT.lock();
    // SAFETY: The lock is held.
    let mut here = unsafe { lock.first() };
    while let Some(node) = here {
        // SAFETY: The node is that of a guard, which is there while the lock is held.
        let (guard, next) = unsafe {
            let guard = &*kernel::container_of!(node.as_ptr(), Guard, node);
            (guard, guard.node.next())
        };
        let consumers = guard.consumers.as_ref(&lock);
        if ptr::addr_eq(guard.fabric, fabric) && consumers.closing < consumers.open {
            return guard.provider.is(provider);
        }
        here = next;
    }
    false
}

/// Opens a fabric of the provider that the attributes name, and puts a guard in front.
fn open(attr: &kfi_fabric_attr, context: *mut c_void) -> Result<*mut kfid_fabric, Refusal> {
    if attr.prov_name.is_null() || attr.name.is_null() {
        return Err(Refusal::new(Errno::EINVAL, c"no provider or fabric name"));
    }
    if attr.api_version > crate::support::strings::API_VERSION {
        let refusal = Refusal::new(Errno::ENOSYS, c"version newer than this one");
        return Err(refusal.value(u64::from(attr.api_version)));
    }
    // SAFETY: Not null, so a string, as the C API demands.
    let name = unsafe { CStr::from_char_ptr(attr.prov_name) };
    let provider =
        registry::find(name).ok_or(Refusal::new(Errno::ENODEV, c"no provider of that name"))?;
    if attr.prov_version > provider.version() {
        let refusal = Refusal::new(Errno::ENODATA, c"the provider is older than prov_version");
        return Err(refusal.value(u64::from(provider.version())));
    }
    let kfabric = provider.kfabric().ok_or(Errno::ENOSYS)?;
    let guard = KBox::<Guard>::new_uninit(GFP_KERNEL)?;

    let mut fabric: *mut kfid_fabric = ptr::null_mut();
    // SAFETY: The provider is held, the attributes are valid for the call. Providers take them
    // without const, but do not change them.
    let ret = unsafe { kfabric(ptr::from_ref(attr).cast_mut(), &mut fabric, context) };
    if ret != 0 {
        return Err(Refusal::new(
            Errno::from_c(ret),
            c"the provider refused the fabric",
        ));
    }
    let Some(opened) = ptr::NonNull::new(fabric) else {
        return Err(Refusal::new(Errno::EIO, c"the provider gave no fabric"));
    };
    let fid = opened.as_ptr().cast::<kfid>();
    let mut lock = HANDED_OUT.lock();
    // SAFETY: A provider gives a valid fabric when it succeeds.
    let inner = unsafe { (*fid).ops };
    if inner.is_null() {
        return Err(Refusal::new(
            Errno::EIO,
            c"the provider's fabric has no operations",
        ));
    }
    // SAFETY: `fid` is the fabric that the provider has just opened, and has a table.
    match unsafe { Guard::find(fid) } {
        None => {
            // INVARIANT: This is what the provider gave, and the guard is put there below.
            let guard = KBox::write(
                guard,
                Guard {
                    table: table(),
                    inner,
                    fabric: fid,
                    provider,
                    consumers: GlobalLockedBy::new(Consumers {
                        open: 1,
                        closing: 0,
                    }),
                    node: Node::new(),
                },
            );
            let guard = KBox::into_raw(guard);
            // SAFETY: The guard was just made, and is freed after it was unlinked; the head is a static, and the
            // lock is held. `fid` is the fabric that the provider has just opened; nobody else has it, or it would
            // have a guard.
            unsafe {
                (*guard).node.link(&lock);
                (*fid).ops = guard.cast();
            }
        }
        Some(guard) => {
            // SAFETY: A guard that a fid points to is there while the lock is held.
            let guard = unsafe { guard.as_ref() };
            if !guard.provider.is(&provider) {
                return Err(Refusal::new(
                    Errno::EIO,
                    c"the provider gave another provider's fabric",
                ));
            }
            guard.add(&mut lock);
        }
    }
    drop(lock);
    // SAFETY: `fid` is the fabric, which is open, and nobody can close it before this returns.
    unsafe { instances::show(fid) };
    Ok(opened.as_ptr())
}

/// Implements `kfi_fabric()`. May sleep.
///
/// # Safety
///
/// Each pointer is null or valid.
#[no_mangle]
pub(crate) unsafe extern "C" fn kfi_fabric(
    attr: *mut kfi_fabric_attr,
    fabric: *mut *mut kfid_fabric,
    context: *mut c_void,
) -> c_int {
    let _noio = NoIo::enter();
    if fabric.is_null() {
        return Refusal::new(Errno::EINVAL, c"output pointer is NULL").report(c"kfi_fabric");
    }
    // SAFETY: `fabric` is not null, so valid. `attr` is null, an error pointer, or valid, as the C API demands.
    let attr = unsafe {
        *fabric = ptr::null_mut();
        c_ref(attr)
    };
    match attr
        .ok_or(Refusal::new(
            Errno::EINVAL,
            c"attr is NULL or an error pointer",
        ))
        .and_then(|attr| open(attr, context))
    {
        Ok(opened) => {
            // SAFETY: `fabric` isn't null, and valid for writing as the C API demands.
            unsafe { *fabric = opened };
            0
        }
        Err(refusal) => refusal.report(c"kfi_fabric"),
    }
}

crate::support::table::declared_in_c!(kfi_fabric);

/// Returns the table of a guard.
fn table() -> ClassTable<kfi_ops> {
    ClassTable::new(
        &GUARD,
        kfi_ops {
            size: ClassTable::<kfi_ops>::SIZE,
            close: Some(close),
            bind: Some(bind),
            control: Some(control),
            ops_open: Some(ops_open),
        },
    )
}

/// Forwards a slot of a fabric's fid to the provider's table.
macro_rules! forward {
    ($guard:expr, $slot:ident($($arg:expr),*)) => {{
        // SAFETY: The guard is valid, and so is the provider's table, while the fabric is open.
        // The arguments are passed on as they came.
        unsafe {
            match (*(*$guard).inner).$slot {
                Some(op) => op($($arg),*),
                None => NO_SUCH_CALL.report(kernel::c_str!(stringify!($slot))),
            }
        }
    }};
}

/// Implements the slot `close` of a fabric. May sleep.
///
/// # Safety
///
/// `fid` is an open fabric that `kfi_fabric()` gave out.
unsafe extern "C" fn close(fid: *mut kfid) -> c_int {
    // SAFETY: `kfi_fabric()` gave out `fid`, which is open, as the caller promises.
    let guard = unsafe { Guard::of(fid) };
    // SAFETY: The guard has this consumer, so it is there until it goes below.
    unsafe { (*guard).begin_close(fid) };
    let ret = forward!(guard, close(fid));
    // SAFETY: The guard is there as long as it has this consumer. Closed, the fabric may not even
    // be memory any more; otherwise it is open.
    let gone = unsafe {
        match ret {
            0 => (*guard).end_close(),
            _ => Guard::undo_close(guard, fid),
        }
    };
    if gone {
        // Nothing of the provider runs any more on behalf of this fabric.
        // SAFETY: `kfi_fabric()` made the guard as a box, and no fid points to it any more.
        drop(unsafe { KBox::from_raw(guard) });
    }
    ret
}

/// Implements the slot `bind` of a fabric. May sleep, if the provider does.
///
/// # Safety
///
/// `fid` is an open fabric that `kfi_fabric()` gave out. `other` is null or an open object.
unsafe extern "C" fn bind(fid: *mut kfid, other: *mut kfid, flags: u64) -> c_int {
    // SAFETY: `kfi_fabric()` gave out `fid`, which is open, as the caller promises.
    let guard = unsafe { Guard::of(fid) };
    forward!(guard, bind(fid, other, flags))
}

/// Implements the slot `control` of a fabric. May sleep, if the provider does.
///
/// # Safety
///
/// `fid` is an open fabric that `kfi_fabric()` gave out. `arg` is as `command` demands.
unsafe extern "C" fn control(fid: *mut kfid, command: c_int, arg: *mut c_void) -> c_int {
    // SAFETY: `kfi_fabric()` gave out `fid`, which is open, as the caller promises.
    let guard = unsafe { Guard::of(fid) };
    forward!(guard, control(fid, command, arg))
}

/// Implements the slot `ops_open` of a fabric. May sleep, if the provider does.
///
/// # Safety
///
/// `fid` is an open fabric that `kfi_fabric()` gave out. Every other pointer is null or valid for
/// the call.
unsafe extern "C" fn ops_open(
    fid: *mut kfid,
    name: *const c_char,
    flags: u64,
    ops: *mut *mut c_void,
    context: *mut c_void,
) -> c_int {
    // SAFETY: `kfi_fabric()` gave out `fid`, which is open, as the caller promises.
    let guard = unsafe { Guard::of(fid) };
    forward!(guard, ops_open(fid, name, flags, ops, context))
}
