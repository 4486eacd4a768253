/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers of the pcapng format. */
#ifndef UR_PCAP_NG_H
#define UR_PCAP_NG_H

#define UR_NG_SECTION 0x0a0d0d0au
#define UR_NG_ORDER 0x1a2b3c4du

enum ur_ng_block { UR_NG_INTERFACE = 1, UR_NG_OLD_PACKET = 2, UR_NG_SIMPLE_PACKET = 3, UR_NG_PACKET = 6 };

/* Options: of any block, and of an interface. */
enum ur_ng_option { UR_NG_COMMENT = 1, UR_NG_IF_NAME = 2, UR_NG_IF_TSRESOL = 9, UR_NG_IF_TSOFFSET = 14 };

#endif
