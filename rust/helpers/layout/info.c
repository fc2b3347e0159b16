// SPDX-License-Identifier: GPL-2.0
/* Results of kfi_getinfo(), and providers. See layout.h. */
#include <kfabric.h>
#include <kfi_prov.h>

#include "layout.h"

#ifdef CONFIG_64BIT

/* --- kfabric.h ------------------------------------------------------------------------------ */

FIELD(kfid, fclass, 0);
FIELD(kfid, context, 8);
FIELD(kfid, ops, 16);
FIELD(kfid, comp, 24);
FIELD(kfid, ref_cnt, 24 + sizeof(struct completion));
SIZE(kfid, ALIGN(24 + sizeof(struct completion) + sizeof(atomic_t), 8));

FIELD(kfid_fabric, fid, 0);
MEMBER(kfid_fabric, ops, 0);
MEMBER(kfid_fabric, api_version, 8);
OBJECT(kfid_fabric, 16);

FIELD(kfi_tx_attr, caps, 0);
FIELD(kfi_tx_attr, mode, 8);
FIELD(kfi_tx_attr, op_flags, 16);
FIELD(kfi_tx_attr, msg_order, 24);
FIELD(kfi_tx_attr, comp_order, 32);
FIELD(kfi_tx_attr, inject_size, 40);
FIELD(kfi_tx_attr, size, 48);
FIELD(kfi_tx_attr, iov_limit, 56);
FIELD(kfi_tx_attr, rma_iov_limit, 64);
FIELD(kfi_tx_attr, tclass, 72);
SIZE(kfi_tx_attr, 80);

FIELD(kfi_rx_attr, caps, 0);
FIELD(kfi_rx_attr, mode, 8);
FIELD(kfi_rx_attr, op_flags, 16);
FIELD(kfi_rx_attr, msg_order, 24);
FIELD(kfi_rx_attr, comp_order, 32);
FIELD(kfi_rx_attr, total_buffered_recv, 40);
FIELD(kfi_rx_attr, size, 48);
FIELD(kfi_rx_attr, iov_limit, 56);
SIZE(kfi_rx_attr, 64);

FIELD(kfi_ep_attr, type, 0);
FIELD(kfi_ep_attr, protocol, 4);
FIELD(kfi_ep_attr, protocol_version, 8);
FIELD(kfi_ep_attr, max_msg_size, 16);
FIELD(kfi_ep_attr, msg_prefix_size, 24);
FIELD(kfi_ep_attr, max_order_raw_size, 32);
FIELD(kfi_ep_attr, max_order_war_size, 40);
FIELD(kfi_ep_attr, max_order_waw_size, 48);
FIELD(kfi_ep_attr, mem_tag_format, 56);
FIELD(kfi_ep_attr, tx_ctx_cnt, 64);
FIELD(kfi_ep_attr, rx_ctx_cnt, 72);
FIELD(kfi_ep_attr, auth_key_size, 80);
FIELD(kfi_ep_attr, auth_key, 88);
SIZE(kfi_ep_attr, 96);

FIELD(kfi_domain_attr, domain, 0);
FIELD(kfi_domain_attr, name, 8);
FIELD(kfi_domain_attr, threading, 16);
FIELD(kfi_domain_attr, control_progress, 20);
FIELD(kfi_domain_attr, data_progress, 24);
FIELD(kfi_domain_attr, resource_mgmt, 28);
FIELD(kfi_domain_attr, av_type, 32);
FIELD(kfi_domain_attr, mr_mode, 36);
FIELD(kfi_domain_attr, mr_key_size, 40);
FIELD(kfi_domain_attr, cq_data_size, 48);
FIELD(kfi_domain_attr, cq_cnt, 56);
FIELD(kfi_domain_attr, ep_cnt, 64);
FIELD(kfi_domain_attr, tx_ctx_cnt, 72);
FIELD(kfi_domain_attr, rx_ctx_cnt, 80);
FIELD(kfi_domain_attr, max_ep_tx_ctx, 88);
FIELD(kfi_domain_attr, max_ep_rx_ctx, 96);
FIELD(kfi_domain_attr, max_ep_stx_ctx, 104);
FIELD(kfi_domain_attr, max_ep_srx_ctx, 112);
FIELD(kfi_domain_attr, cntr_cnt, 120);
FIELD(kfi_domain_attr, mr_iov_limit, 128);
FIELD(kfi_domain_attr, caps, 136);
FIELD(kfi_domain_attr, mode, 144);
FIELD(kfi_domain_attr, auth_key, 152);
FIELD(kfi_domain_attr, auth_key_size, 160);
FIELD(kfi_domain_attr, max_err_data, 168);
FIELD(kfi_domain_attr, mr_cnt, 176);
FIELD(kfi_domain_attr, tclass, 184);
SIZE(kfi_domain_attr, 192);

FIELD(kfi_fabric_attr, fabric, 0);
FIELD(kfi_fabric_attr, name, 8);
FIELD(kfi_fabric_attr, prov_name, 16);
FIELD(kfi_fabric_attr, prov_version, 24);
FIELD(kfi_fabric_attr, api_version, 28);
SIZE(kfi_fabric_attr, 32);

FIELD(kfi_info, next, 0);
FIELD(kfi_info, caps, 8);
FIELD(kfi_info, mode, 16);
FIELD(kfi_info, addr_format, 24);
FIELD(kfi_info, src_addrlen, 32);
FIELD(kfi_info, dest_addrlen, 40);
FIELD(kfi_info, src_addr, 48);
FIELD(kfi_info, dest_addr, 56);
FIELD(kfi_info, handle, 64);
FIELD(kfi_info, tx_attr, 72);
FIELD(kfi_info, rx_attr, 80);
FIELD(kfi_info, ep_attr, 88);
FIELD(kfi_info, domain_attr, 96);
FIELD(kfi_info, fabric_attr, 104);
SIZE(kfi_info, 112);

FIELD(kfi_alias, fid, 0);
FIELD(kfi_alias, flags, 8);
SIZE(kfi_alias, 16);

FIELD(kfi_mr_raw_attr, flags, 0);
FIELD(kfi_mr_raw_attr, base_addr, 8);
FIELD(kfi_mr_raw_attr, raw_key, 16);
FIELD(kfi_mr_raw_attr, key_size, 24);
SIZE(kfi_mr_raw_attr, 32);

FIELD(kfi_mr_map_raw, flags, 0);
FIELD(kfi_mr_map_raw, base_addr, 8);
FIELD(kfi_mr_map_raw, raw_key, 16);
FIELD(kfi_mr_map_raw, key_size, 24);
FIELD(kfi_mr_map_raw, key, 32);
SIZE(kfi_mr_map_raw, 40);

FIELD(kfi_param, name, 0);
FIELD(kfi_param, type, 8);
FIELD(kfi_param, help_string, 16);
FIELD(kfi_param, value, 24);
SIZE(kfi_param, 32);

SIZE(kfi_context, 32);
SIZE(kfi_context2, 64);

/* --- kfi_prov.h ----------------------------------------------------------------------------- */

FIELD(kfi_provider, version, 0);
FIELD(kfi_provider, kfi_version, 4);
FIELD(kfi_provider, context, 8);
FIELD(kfi_provider, name, 40);
FIELD(kfi_provider, kgetinfo, 48);
FIELD(kfi_provider, kfabric, 56);
FIELD(kfi_provider, cleanup, 64);
FIELD(kfi_provider, comp, 72);
FIELD(kfi_provider, ref_cnt, 72 + sizeof(struct completion));

#endif /* CONFIG_64BIT */
