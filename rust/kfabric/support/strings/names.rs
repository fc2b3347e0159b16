// SPDX-License-Identifier: GPL-2.0

//! The names of the API's flags and choices.

/// A number and its name in C.
pub(super) struct Name {
    pub(super) value: u64,
    pub(super) name: &'static str,
}

/// Makes a table of constants: plain ones, those of an enum, or of one that counts up from 0.
macro_rules! names {
    ($table:ident: $($name:ident),* $(,)?) => {
        pub(super) const $table: &[Name] = &[$(Name {
            value: kfi_bindings::$name as u64,
            name: stringify!($name),
        }),*];
    };
    ($table:ident of $enum:ident: $($name:ident),* $(,)?) => {
        kernel::macros::paste! {
            pub(super) const $table: &[Name] = &[$(Name {
                value: kfi_bindings::[<$enum _ $name>] as u64,
                name: stringify!($name),
            }),*];
        }
    };
    ($table:ident in order: $($name:ident),* $(,)?) => {
        pub(super) const $table: &[Name] = {
            #[allow(non_camel_case_types)]
            enum Order { $($name),* }
            &[$(Name {
                value: Order::$name as u64,
                name: stringify!($name),
            }),*]
        };
    };
}

names!(CAPS:
    KFI_MSG, KFI_RMA, KFI_TAGGED, KFI_ATOMIC, KFI_MULTICAST, KFI_TAGGED_RMA, KFI_READ, KFI_WRITE,
    KFI_RECV, KFI_SEND, KFI_REMOTE_READ, KFI_REMOTE_WRITE, KFI_MULTI_RECV, KFI_TRIGGER, KFI_FENCE,
    KFI_TAGGED_MULTI_RECV, KFI_RMA_PMEM, KFI_SOURCE_ERR, KFI_LOCAL_COMM, KFI_REMOTE_COMM,
    KFI_SHARED_AV, KFI_RMA_EVENT, KFI_SOURCE, KFI_NAMED_RX_CTX, KFI_DIRECTED_RECV,
);

names!(OP_FLAGS:
    KFI_MULTI_RECV, KFI_REMOTE_CQ_DATA, KFI_MORE, KFI_PEEK, KFI_TRIGGER, KFI_FENCE,
    KFI_COMPLETION, KFI_INJECT, KFI_INJECT_COMPLETE, KFI_TRANSMIT_COMPLETE,
    KFI_DELIVERY_COMPLETE, KFI_AFFINITY, KFI_COMMIT_COMPLETE, KFI_TAGGED_MULTI_RECV,
    KFI_DISCARD, KFI_CLAIM,
);

names!(CQ_FLAGS:
    KFI_MSG, KFI_RMA, KFI_TAGGED, KFI_ATOMIC, KFI_MULTICAST, KFI_READ, KFI_WRITE, KFI_RECV,
    KFI_SEND, KFI_REMOTE_READ, KFI_REMOTE_WRITE, KFI_MULTI_RECV, KFI_REMOTE_CQ_DATA, KFI_MORE,
);

names!(MODE:
    KFI_CONTEXT2, KFI_RESTRICTED_COMP, KFI_NOTIFY_FLAGS_ONLY, KFI_LOCAL_MR, KFI_RX_CQ_DATA,
    KFI_ASYNC_IOV, KFI_MSG_PREFIX, KFI_CONTEXT,
);

names!(MR_MODE:
    KFI_MR_LOCAL, KFI_MR_RAW, KFI_MR_VIRT_ADDR, KFI_MR_PROV_KEY, KFI_MR_RMA_EVENT,
    KFI_MR_ENDPOINT,
);

names!(ORDER:
    KFI_ORDER_RAR, KFI_ORDER_RAW, KFI_ORDER_RAS, KFI_ORDER_WAR, KFI_ORDER_WAW, KFI_ORDER_WAS,
    KFI_ORDER_SAR, KFI_ORDER_SAW, KFI_ORDER_SAS, KFI_ORDER_DATA,
);

names!(ADDR_FORMAT:
    KFI_FORMAT_UNSPEC, KFI_SOCKADDR, KFI_SOCKADDR_IN, KFI_SOCKADDR_IN6, KFI_SOCKADDR_IB,
    KFI_ADDR_GNI, KFI_ADDR_CXI,
);

names!(PROTOCOL:
    KFI_PROTO_UNSPEC, KFI_PROTO_RDMA_CM_IB_RC, KFI_PROTO_IWARP, KFI_PROTO_IB_UD, KFI_PROTO_UDP,
    KFI_PROTO_SOCK_TCP, KFI_PROTO_IWARP_RDM, KFI_PROTO_IB_RDM, KFI_PROTO_GNI, KFI_PROTO_CXI,
);

names!(TCLASS:
    KFI_TC_UNSPEC, KFI_TC_BEST_EFFORT, KFI_TC_LOW_LATENCY, KFI_TC_DEDICATED_ACCESS,
    KFI_TC_BULK_DATA, KFI_TC_SCAVENGER, KFI_TC_NETWORK_CTRL,
);

names!(EQ_EVENT:
    KFI_NOTIFY, KFI_CONNREQ, KFI_CONNECTED, KFI_SHUTDOWN, KFI_MR_COMPLETE, KFI_AV_COMPLETE,
    KFI_JOIN_COMPLETE,
);

names!(EP_TYPE of kfi_ep_type:
    KFI_EP_UNSPEC, KFI_EP_MSG, KFI_EP_DGRAM, KFI_EP_RDM, KFI_EP_SOCK_STREAM, KFI_EP_SOCK_DGRAM,
);

names!(THREADING of kfi_threading:
    KFI_THREAD_UNSPEC, KFI_THREAD_SAFE, KFI_THREAD_FID, KFI_THREAD_DOMAIN, KFI_THREAD_COMPLETION,
    KFI_THREAD_ENDPOINT,
);

names!(PROGRESS of kfi_progress:
    KFI_PROGRESS_UNSPEC, KFI_PROGRESS_AUTO, KFI_PROGRESS_MANUAL,
);

names!(RESOURCE_MGMT of kfi_resource_mgmt:
    KFI_RM_UNSPEC, KFI_RM_DISABLED, KFI_RM_ENABLED,
);

names!(AV_TYPE of kfi_av_type:
    KFI_AV_UNSPEC, KFI_AV_MAP, KFI_AV_TABLE,
);

names!(ATOMIC_TYPE of kfi_datatype:
    KFI_INT8, KFI_UINT8, KFI_INT16, KFI_UINT16, KFI_INT32, KFI_UINT32, KFI_INT64, KFI_UINT64,
    KFI_FLOAT, KFI_DOUBLE, KFI_FLOAT_COMPLEX, KFI_DOUBLE_COMPLEX, KFI_LONG_DOUBLE,
    KFI_LONG_DOUBLE_COMPLEX,
);

names!(ATOMIC_OP of kfi_op:
    KFI_MIN, KFI_MAX, KFI_SUM, KFI_PROD, KFI_LOR, KFI_LAND, KFI_BOR, KFI_BAND, KFI_LXOR,
    KFI_BXOR, KFI_ATOMIC_READ, KFI_ATOMIC_WRITE, KFI_CSWAP, KFI_CSWAP_NE, KFI_CSWAP_LE,
    KFI_CSWAP_LT, KFI_CSWAP_GE, KFI_CSWAP_GT, KFI_MSWAP,
);

// Not in the bindings, which don't have kfi_trigger.h.
names!(OP_TYPE in order:
    KFI_OP_RECV, KFI_OP_SEND, KFI_OP_TRECV, KFI_OP_TSEND, KFI_OP_READ, KFI_OP_WRITE,
    KFI_OP_ATOMIC, KFI_OP_FETCH_ATOMIC, KFI_OP_COMPARE_ATOMIC, KFI_OP_CNTR_SET, KFI_OP_CNTR_ADD,
);
