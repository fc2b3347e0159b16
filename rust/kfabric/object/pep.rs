// SPDX-License-Identifier: GPL-2.0

//! Passive endpoints, which listen for connection requests.
//!
//! C header: [`include/kfi_endpoint.h`](srctree/include/kfi_endpoint.h)

pub(crate) mod requests;

use super::{
    ep::private_data,
    eq::{
        EqBody,
        EqCore,
        Writer, //
    },
    fabric::{
        FabricBody,
        FabricObject, //
    },
    info::{
        bytes,
        info_ref,
        string,
        zeroed,
        InfoChain, //
    },
    prelude::*, //
};
use crate::{
    provider::cm::{
        ConnRequests,
        PepOps, //
    },
    support::sockaddr::{
        format_of,
        RawAddress, //
    }, //
};
use kfi_bindings::{
    kfi_ep_type_KFI_EP_MSG as EP_MSG,
    kfi_ep_type_KFI_EP_UNSPEC as EP_UNSPEC, //
};

/// The class of passive endpoints.
static PEP: Class = Class::new(
    c::KFI_CLASS_PEP,
    c"not a passive endpoint",
    c"a passive endpoint is open in it",
);

/// The backlog if the consumer sets none.
const BACKLOG_DEFAULT: u32 = 64;
/// The largest backlog.
const BACKLOG_MAX: u32 = 1024;

/// An open passive endpoint.
pub(crate) type PepObject = Obj<PepBody>;

/// The core's part of a passive endpoint.
#[pin_data]
pub(crate) struct PepBody {
    // Dropped first: no request arrives after that.
    imp: KBox<dyn PepOps>,
    incoming: SetOnce<Arc<ConnRequests>>,
    eq: SetOnce<Arc<EqCore>>,
    /// The address to listen at. A task that starts to listen holds the lock.
    #[pin]
    address: Mutex<SocketAddr>,
    backlog: Atomic<u32>,
    limits: MsgLimits,
    /// The template for infos of connection requests.
    info: Arc<InfoChain>,
    /// The object that events name.
    pep: *mut c::kfid_pep,
    context: *mut c_void,
}

// SAFETY: `pep` and `context` are never dereferenced here, and all other fields are `Send`.
unsafe impl Send for PepBody {}
// SAFETY: `pep` and `context` are never dereferenced here, and all other fields are `Sync`.
unsafe impl Sync for PepBody {}

impl PepBody {
    fn is_listening(&self) -> bool {
        self.incoming.as_ref().is_some()
    }

    /// Sets the maximum number of unanswered requests. May sleep.
    ///
    /// # Errors
    ///
    /// - `EOPBADSTATE`: the endpoint listens.
    /// - `EINVAL`: the backlog is out of range.
    fn set_backlog(&self, backlog: i32) -> Result<(), Refusal> {
        let _address = self.address.lock();
        if self.is_listening() {
            return Err(listening());
        }
        match u32::try_from(backlog) {
            Ok(backlog @ 1..=BACKLOG_MAX) => {
                self.backlog.store(backlog, Relaxed);
                Ok(())
            }
            _ => Err(Refusal::new(Errno::EINVAL, c"no backlog of that length")),
        }
    }

    /// Returns the address to listen at. May sleep.
    fn address(&self) -> SocketAddr {
        *self.address.lock()
    }

    /// Sets the address to listen at. May sleep.
    ///
    /// # Errors
    ///
    /// - `EOPBADSTATE`: the endpoint listens.
    fn set_address(&self, address: SocketAddr) -> Result<(), Refusal> {
        let mut here = self.address.lock();
        match self.is_listening() {
            true => Err(listening()),
            false => {
                *here = address;
                Ok(())
            }
        }
    }

    /// Starts to listen. If several tasks call this, one succeeds. May sleep.
    ///
    /// # Errors
    ///
    /// - `EOPBADSTATE`: the endpoint listens.
    /// - `ENOEQ`: no event queue is bound.
    /// - The errors of the provider.
    fn listen(&self) -> Result<(), Refusal> {
        let eq = self.eq.as_ref().filter(|eq| eq.is_open());
        let eq = eq.ok_or(Refusal::new(Errno::ENOEQ, c"no event queue is bound"))?;
        let mut address = self.address.lock();
        if self.is_listening() {
            return Err(listening());
        }
        let backlog = self.backlog.load(Relaxed);
        let fid = self.pep.cast();
        let writer = eq.writer(fid, self.context);
        let asked = ConnRequestWriter {
            writer,
            pep: fid,
            info: self.info.clone(),
            backlog,
        };
        let asked = KBox::new(move |request| asked.asked(request), GFP_KERNEL)?;
        let incoming =
            Arc::pin_init(ConnRequests::new(asked), GFP_KERNEL).map_err(|_| Errno::ENOMEM)?;
        *address = self.imp.listen(*address, backlog, incoming.clone())?;
        // `incoming` is not set: the lock keeps other tasks from starting to listen.
        self.incoming.populate(incoming);
        Ok(())
    }
}

/// Returns the refusal of a call on an endpoint that listens.
const fn listening() -> Refusal {
    Refusal::new(Errno::EOPBADSTATE, c"the endpoint listens")
}

impl Child for PepBody {
    type Parent = FabricBody;
}

impl Binds for PepBody {
    fn bind(pep: &PepObject, other: Other<'_>) -> Result<(), Refusal> {
        let eq = other.object::<EqBody>()?;
        if pep.is_listening() {
            return Err(listening());
        }
        keep(&pep.eq, other.bind(pep.parent(), eq, 0)?)
    }
}

impl Close for PepBody {
    /// Closes the endpoint, and rejects unanswered requests. Sleeps.
    fn close(object: &Obj<Self>) -> Result<(), Refusal> {
        if let Some(incoming) = object.incoming.as_ref() {
            incoming.stop();
        }
        let fid = object.pep.cast();
        if let Some(eq) = object.eq.as_ref() {
            eq.forget_all(fid);
        }
        requests::drop_all(fid);
        Ok(())
    }
}

/// Creates a passive endpoint of a fabric, which is going to be at `pep`. May sleep.
///
/// # Safety
///
/// `info` is null, an error pointer, or valid for the call with all that it points to.
unsafe fn make(
    fabric: &FabricObject,
    info: *const kfi_info,
    pep: *mut c::kfid_pep,
    context: *mut c_void,
) -> Result<(c::kfid_pep, impl PinInit<PepBody>), Refusal> {
    // SAFETY: `info` is null, an error pointer, or valid for the call.
    let info = unsafe { info_ref(info) }?;
    // SAFETY: `ep_attr` is null or valid for the call.
    let kind = unsafe { info.ep_attr.as_ref() }.map_or(EP_UNSPEC, |attr| attr.type_);
    if !matches!(kind, EP_UNSPEC | EP_MSG) {
        let refusal = Refusal::new(Errno::ENODATA, c"no passive endpoints of that kind");
        return Err(refusal.value(u64::from(kind)));
    }
    // SAFETY: `src_addr` is null or has `src_addrlen` bytes.
    let source = unsafe { sockaddr::read_any(info.src_addr, info.src_addrlen) }?;
    let (imp, limits) = fabric.provider().open_pep()?;
    let none = Refusal::new(Errno::EINVAL, c"no src_addr to listen at");
    let address = source.ok_or(none)?;
    // SAFETY: Each pointer of `info` is null or valid for the call.
    let info = unsafe { InfoChain::duplicate(info) }?;
    let c = c::kfid_pep {
        fid: PepObject::fid(context),
        ops: EP.as_ptr(),
        cm: CM.as_ptr(),
    };
    let info = Arc::new(info, GFP_KERNEL)?;
    let body = pin_init!(PepBody {
        imp,
        incoming: SetOnce::new(),
        eq: SetOnce::new(),
        address <- new_mutex!(address),
        backlog: Atomic::new(BACKLOG_DEFAULT),
        limits,
        info,
        pep,
        context,
    });
    Ok((c, body))
}

/// Opens a passive endpoint: the `passive_ep` slot of a fabric. May sleep.
///
/// # Safety
///
/// - `fabric` is null or an open object.
/// - `info` is null, an error pointer, or valid for the call with all that it points to.
/// - `pep` is null or valid for writes.
pub(crate) unsafe extern "C" fn open(
    fabric: *mut kfid_fabric,
    info: *mut kfi_info,
    pep: *mut *mut c::kfid_pep,
    context: *mut c_void,
) -> c_int {
    // SAFETY: `fabric` is null or open, and begins with its fid. `pep` is null or valid for writes. `info` is null,
    // an error pointer, or valid for the call.
    unsafe {
        opening::open(fabric.cast(), c"passive_ep", pep, |fabric, pep| {
            make(fabric, info, pep, context)
        })
    }
}

impl Object for PepBody {
    type C = c::kfid_pep;
    type Place = Place<Self>;
    const CLASS: &'static Class = &PEP;
    const OPS: kfi_ops = kfi_ops {
        bind: Some(bind::<Self>),
        control: Some(control),
        ..slots::<Self>()
    };
}

/// The slots for options and contexts.
pub(super) static EP: Table<c::kfi_ops_ep> = unserved!(
    kfi_ops_ep of PepBody: cancel, getopt, setopt, tx_ctx, rx_ctx, rx_size_left, tx_size_left
);

/// Sets the backlog: `kfi_control()` with `KFI_BACKLOG`. May sleep.
///
/// # Safety
///
/// - `fid` is an open object.
/// - `arg` is null or valid for the call, as the argument of `command`.
unsafe extern "C" fn control(fid: *mut kfid, command: c_int, arg: *mut c_void) -> c_int {
    // SAFETY: `fid` is an open object. `arg` is null or the valid argument of the command.
    unsafe {
        PepObject::call(fid, c"control", |pep| match u32::try_from(command) {
            Ok(c::KFI_BACKLOG) => {
                pep.set_backlog(*arg.cast::<c_int>().as_ref().ok_or(Refusal::NULL)?)
            }
            _ => Err(Refusal::new(Errno::ENOSYS, c"unknown command")),
        })
    }
}

/// The slots for connections.
pub(super) static CM: Table<c::kfi_ops_cm> = Table(c::kfi_ops_cm {
    size: size_of::<c::kfi_ops_cm>(),
    setname: Some(setname),
    getname: Some(getname),
    getpeer: nosys!(PepBody, getpeer),
    connect: nosys!(PepBody, connect),
    listen: Some(listen),
    accept: nosys!(PepBody, accept),
    reject: Some(reject),
    shutdown: nosys!(PepBody, shutdown),
    join: nosys!(PepBody, join),
});

/// Sets the address to listen at: `kfi_setname()`. May sleep.
///
/// # Safety
///
/// - `fid` is an open object.
/// - `addr` is null or has `len` bytes.
unsafe extern "C" fn setname(fid: *mut kfid, addr: *mut c_void, len: usize) -> c_int {
    // SAFETY: `fid` is an open object. `addr` is null or has `len` bytes.
    unsafe {
        Obj::call(fid, c"setname", |pep: &PepObject| {
            let address = sockaddr::read(addr, Some(len))?;
            pep.set_address(address)
        })
    }
}

/// Returns the address that the endpoint listens at: `kfi_getname()`. May sleep.
///
/// # Safety
///
/// - `fid` is an open object.
/// - `len` is null or valid for reads and writes.
/// - `addr` is null or valid for writes of `*len` bytes.
unsafe extern "C" fn getname(fid: *mut kfid, addr: *mut c_void, len: *mut usize) -> c_int {
    // SAFETY: `fid` is an open object. `len` is null or valid, and `addr` null or valid for `*len` bytes.
    unsafe {
        Obj::call(fid, c"getname", |pep: &PepObject| {
            sockaddr::write(pep.address(), addr, len)
        })
    }
}

/// Starts to listen: `kfi_listen()`. May sleep.
///
/// # Safety
///
/// `pep` is an open object.
unsafe extern "C" fn listen(pep: *mut c::kfid_pep) -> c_int {
    // SAFETY: `pep` is an open object, and begins with its fid.
    unsafe { Obj::call(pep.cast(), c"listen", |pep: &PepObject| pep.listen()) }
}

/// Rejects a connection request: `kfi_reject()`. May sleep.
///
/// # Safety
///
/// - `pep` is an open object.
/// - `param` is null or has `paramlen` bytes.
unsafe extern "C" fn reject(
    pep: *mut c::kfid_pep,
    handle: *mut kfid,
    param: *const c_void,
    paramlen: usize,
) -> c_int {
    // SAFETY: `pep` is an open object, and begins with its fid. `param` is null or has `paramlen` bytes.
    unsafe {
        Obj::call(pep.cast(), c"reject", |object: &PepObject| {
            let data = private_data(param, paramlen)?;
            let [_, _, most] = object.limits.cm_data_size;
            if data.len() > most {
                let why = c"more private data than there is room for";
                return Err(Refusal::new(Errno::EINVAL, why).value(widen(data.len())));
            }
            let request = requests::take_of(pep.cast(), handle)?;
            object.imp.reject(request, data)
        })
    }
}

/// Reports the connection requests of a passive endpoint to its event queue.
pub(super) struct ConnRequestWriter {
    writer: Writer,
    pep: *mut kfid,
    /// The template for infos.
    info: Arc<InfoChain>,
    backlog: u32,
}

// SAFETY: `pep` is never dereferenced here, and all other fields are `Send`.
unsafe impl Send for ConnRequestWriter {}
// SAFETY: `pep` is never dereferenced here, and all other fields are `Sync`.
unsafe impl Sync for ConnRequestWriter {}

impl ConnRequestWriter {
    /// Creates the info for the endpoint that accepts a request. May sleep.
    fn info_of(&self, request: &ConnRequest) -> Result<InfoChain, Errno> {
        // SAFETY: `self.info` is constant, and null or valid.
        let from = unsafe { self.info.as_ptr().as_ref() }.ok_or(Errno::EINVAL)?;
        // SAFETY: An `InfoChain` is valid with all that it points to.
        let mut info = unsafe { InfoChain::duplicate(from) }?;
        let fields = info.fields_mut().ok_or(Errno::ENOMEM)?;
        fields.addr_format = format_of(&request.peer);
        set_address(&mut fields.src_addr, &mut fields.src_addrlen, request.local)?;
        set_address(
            &mut fields.dest_addr,
            &mut fields.dest_addrlen,
            request.peer,
        )?;
        if let Some(name) = &request.domain {
            set_domain(fields, name)?;
        }
        Ok(info)
    }
}

/// Replaces an address of an info. May sleep.
fn set_address(to: &mut *mut c_void, len: &mut usize, address: SocketAddr) -> Result<(), Errno> {
    let (raw, new) = RawAddress::new(address);
    // SAFETY: `raw` has `new` bytes. The old address is kmalloc memory of the info, or null.
    unsafe {
        let copy = bytes((&raw const raw).cast(), new)?;
        crate::object::info::free(core::mem::replace(to, copy));
    }
    *len = new;
    Ok(())
}

/// Sets the name of the domain for the endpoint that accepts a request. May sleep.
fn set_domain(fields: &mut kfi_info, name: &CStr) -> Result<(), Errno> {
    if fields.domain_attr.is_null() {
        fields.domain_attr = zeroed()?;
    }
    // SAFETY: `domain_attr` isn't null, and belongs to the info. Its name is kmalloc memory of the info, or null.
    unsafe {
        let domain = &mut *fields.domain_attr;
        let name = string(name.as_char_ptr())?;
        crate::object::info::free(core::mem::replace(&mut domain.name, name));
        domain.domain = core::ptr::null_mut();
    }
    Ok(())
}

impl ConnRequestWriter {
    /// Reports a request. Returns it if there are too many, or if there is no memory. May sleep.
    fn asked(&self, mut request: ConnRequest) -> Option<ConnRequest> {
        let Ok(mut info) = self.info_of(&request) else {
            return Some(request);
        };
        let data = mem::take(&mut request.data);
        let mut asked = Some(request);
        let Some(handle) = requests::add(self.pep, self.backlog, &mut asked) else {
            return asked;
        };
        if let Some(fields) = info.fields_mut() {
            fields.handle = handle;
        }
        match self.writer.try_connection(c::KFI_CONNREQ, info, &data) {
            true => None,
            // The event queue is full, so no consumer can answer the request.
            false => requests::forget(handle),
        }
    }
}
