// SPDX-License-Identifier: GPL-2.0
//! RDMA core abstractions.
