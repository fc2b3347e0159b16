// SPDX-License-Identifier: GPL-2.0
//! The verbs provider.
use kernel::prelude::*;
module! {
    type: KfiVerbs,
    name: "kfi_verbs",
    authors: ["kfabric developers"],
    description: "kfabric provider over the RDMA core",
    license: "GPL",
}
struct KfiVerbs;
impl kernel::Module for KfiVerbs {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        pr_info!("hello\n");
        Ok(KfiVerbs)
    }
}
