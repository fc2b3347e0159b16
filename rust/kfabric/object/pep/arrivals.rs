// SPDX-License-Identifier: GPL-2.0

//! Requests that come to a passive endpoint, on their way to its event queue.

use super::requests;
use crate::{
    object::{
        eq::Writer,
        info::{
            memory::{
                bytes,
                string,
                zeroed, //
            },
            Info, //
        }, //
    },
    provider::cm::{
        Asked,
        ConnRequest, //
    },
    support::{
        errno::Errno,
        sockaddr::{
            format_of,
            RawAddress, //
        }, //
    }, //
};
use core::net::SocketAddr;
use kernel::{
    ffi::c_void,
    prelude::*,
    sync::Arc, //
};
use kfi_bindings::{
    kfi_info,
    kfid,
    KFI_CONNREQ, //
};

/// Puts requests into an event queue.
pub(super) struct Arrivals {
    writer: Writer,
    pep: *mut kfid,
    info: Arc<Info>,
    backlog: u32,
}

// SAFETY: The pointer is only compared.
unsafe impl Send for Arrivals {}
// SAFETY: As for sending; all else can be shared.
unsafe impl Sync for Arrivals {}

impl Arrivals {
    /// For a passive endpoint, at which `backlog` requests may wait; `info` is what it was opened with.
    pub(super) fn new(writer: Writer, pep: *mut kfid, info: Arc<Info>, backlog: u32) -> Self {
        Self {
            writer,
            pep,
            info,
            backlog,
        }
    }

    /// What the endpoint that answers is to be made of. May sleep.
    fn info_of(&self, request: &dyn ConnRequest) -> Result<Info, Errno> {
        // SAFETY: The passive endpoint's own copy, which nobody changes.
        let from = unsafe { self.info.as_ptr().as_ref() }.ok_or(Errno::EINVAL)?;
        // SAFETY: A copy is valid with all that it points to.
        let mut info = unsafe { Info::duplicate(from) }?;
        let fields = info.fields_mut().ok_or(Errno::ENOMEM)?;
        fields.addr_format = format_of(&request.peer());
        set_address(
            &mut fields.src_addr,
            &mut fields.src_addrlen,
            request.local(),
        )?;
        set_address(
            &mut fields.dest_addr,
            &mut fields.dest_addrlen,
            request.peer(),
        )?;
        set_domain(fields, request)?;
        Ok(info)
    }
}

/// Puts an address in the place of another.
fn set_address(to: &mut *mut c_void, len: &mut usize, address: SocketAddr) -> Result<(), Errno> {
    let (raw, new) = RawAddress::new(address);
    // SAFETY: The address has so many bytes. What was there is the info's own.
    unsafe {
        let copy = bytes((&raw const raw).cast(), new)?;
        crate::object::info::memory::free(core::mem::replace(to, copy));
    }
    *len = new;
    Ok(())
}

/// Names the domain that the endpoint is to be opened in.
fn set_domain(fields: &mut kfi_info, request: &dyn ConnRequest) -> Result<(), Errno> {
    let Some(name) = request.domain() else {
        return Ok(());
    };
    if fields.domain_attr.is_null() {
        fields.domain_attr = zeroed()?;
    }
    // SAFETY: The info's own, and not null.
    unsafe {
        let domain = &mut *fields.domain_attr;
        let name = string(name.as_char_ptr())?;
        crate::object::info::memory::free(core::mem::replace(&mut domain.name, name));
        domain.domain = core::ptr::null_mut();
    }
    Ok(())
}

impl Asked for Arrivals {
    fn asked(&self, request: KBox<dyn ConnRequest>) -> Result<(), KBox<dyn ConnRequest>> {
        let Ok(mut info) = self.info_of(&*request) else {
            return Err(request);
        };
        let mut data = [0; 256];
        let sent = request.data();
        let len = sent.len().min(data.len());
        if let (Some(to), Some(from)) = (data.get_mut(..len), sent.get(..len)) {
            to.copy_from_slice(from);
        }
        let handle = requests::add(self.pep, self.backlog, request)?;
        if let Some(fields) = info.fields_mut() {
            fields.handle = handle;
        }
        let told = self
            .writer
            .try_connection(KFI_CONNREQ, info, data.get(..len).unwrap_or(&[]));
        match told {
            true => Ok(()),
            // Nobody is told of it, so nobody can answer it.
            false => requests::forget(handle).map_or(Ok(()), Err),
        }
    }
}
