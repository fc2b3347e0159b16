// SPDX-License-Identifier: GPL-2.0

//! The items that most files of objects import.
//!
//! The items of this directory are the common parts of all objects. Files that define these parts
//! can't import this prelude.

pub(super) use super::{
    binding::{
        bind,
        keep,
        Bindable,
        Binds,
        Other,
        TWICE, //
    },
    children::{
        Child,
        Children,
        Parent,
        Place,
        Share, //
    },
    closing::{
        slots,
        Claim,
        Close, //
    },
    obj::{
        Class,
        ClassTable,
        Obj,
        Object, //
    },
    opening,
    ops_slot::{
        nosys,
        unserved, //
    }, //
};
pub(super) use crate::{
    post::{
        local::{
            Buffers,
            DescMr, //
        },
        AtomicForm,
        Op,
        PostFlags, //
    },
    prelude::*,
    provider::{
        cm::{
            ConnEvents,
            ConnRequest, //
        },
        cntr::CntrCore,
        cq::{
            Context,
            CqEntry, //
        },
        ep::EpCore,
        msg_ep::MsgLimits,
        BatchEntry,
        Bindings,
        DomainOps,
        FabricOps,
        Keys,
        ProviderMr, //
    },
    region::{
        cpu_memory::{
            AtomicOp,
            WORD, //
        },
        limits::MrLimits,
        rawkey::{
            self,
            map::KeyMap,
            RemotePiece, //
        },
        request::{
            Arguments,
            AuthKey,
            MrRequest, //
        },
        segment_list::{
            SegmentList,
            Source, //
        }, //
    },
    support::{
        c_ref::{
            c_ref,
            parse_attr, //
        },
        cache::{
            ListVec,
            MrExtBox,
            ObjectBox, //
        },
        child_list::ChildList,
        irqlock::{
            self,
            IrqGuard, //
        },
        num::{
            signed,
            signed_size, //
        },
        refusal::no_flags,
        sockaddr,
        strings,
        table::{
            Table,
            NO_SUCH_CALL, //
        },
        task,
        vec::PushReserved,
        workqueue, //
    }, //
};
pub(super) use core::ptr::null_mut;
pub(super) use kernel::{
    alloc::AllocError,
    impl_has_work,
    new_work,
    str::CString,
    sync::atomic::Full,
    time::Jiffies,
    workqueue::{
        Work,
        WorkItem, //
    }, //
};
pub(super) use kfi_bindings as c;
