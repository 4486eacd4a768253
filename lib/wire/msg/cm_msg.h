/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Communication management datagrams (IBTA volume 1, chapter 12) in host order, and the RDMA CM header that IP based port spaces put in
 * front of a request's private data (annex A11). A MAD is 256 bytes: 24 of header (13.4.2), 232 of message.
 */
#ifndef UR_CM_MSG_H
#define UR_CM_MSG_H

#include "base/base.h"

#define UR_MAD_LEN 256
#define UR_MAD_HDR_LEN 24
#define UR_GSI_QKEY 0x80010000u

enum ur_cm_attr {
	UR_CM_REQ = 0x10,
	UR_CM_MRA = 0x11,
	UR_CM_REJ = 0x12,
	UR_CM_REP = 0x13,
	UR_CM_RTU = 0x14,
	UR_CM_DREQ = 0x15,
	UR_CM_DREP = 0x16,
	UR_CM_SIDR_REQ = 0x17,
	UR_CM_SIDR_REP = 0x18,
	UR_CM_LAP = 0x19,
	UR_CM_APR = 0x1a,
};

enum ur_cm_rej_reason {
	UR_CM_REJ_NO_QP = 1,
	UR_CM_REJ_NO_RESOURCES = 3,
	UR_CM_REJ_TIMEOUT = 4,
	UR_CM_REJ_UNSUPPORTED = 5,
	UR_CM_REJ_INVALID_COMM_ID = 6,
	UR_CM_REJ_INVALID_COMM_INSTANCE = 7,
	UR_CM_REJ_INVALID_SERVICE_ID = 8,
	UR_CM_REJ_INVALID_TRANSPORT_TYPE = 9,
	UR_CM_REJ_STALE_CONN = 10,
	UR_CM_REJ_INVALID_GID = 12,
	UR_CM_REJ_INVALID_LID = 13,
	UR_CM_REJ_INVALID_MTU = 26,
	UR_CM_REJ_INSUFFICIENT_RESP_RESOURCES = 27,
	UR_CM_REJ_CONSUMER_DEFINED = 28,
	UR_CM_REJ_INVALID_RNR_RETRY = 29,
	UR_CM_REJ_DUPLICATE_LOCAL_COMM_ID = 30,
	UR_CM_REJ_INVALID_CLASS_VERSION = 31,
};

enum ur_cm_sidr_status { /* IBTA volume 1, 12.11 */
	UR_CM_SIDR_OK = 0,
	UR_CM_SIDR_UNSUPPORTED = 1, /* no such service, or none to be looked up */
	UR_CM_SIDR_REJECT = 2,
	UR_CM_SIDR_NO_QP = 3,
};

enum { UR_CM_REQ_PDATA = 92, UR_CM_REP_PDATA = 196, UR_CM_RTU_PDATA = 224, UR_CM_REJ_PDATA = 148, UR_CM_REJ_ARI = 72, UR_CM_MRA_PDATA = 222,
       UR_CM_DREQ_PDATA = 220, UR_CM_DREP_PDATA = 224, UR_CM_SIDR_REQ_PDATA = 216, UR_CM_SIDR_REP_PDATA = 136, UR_CM_LAP_PDATA = 168,
       UR_CM_APR_PDATA = 148, UR_CM_PDATA_MAX = 224, UR_CM_SIDR_REP_INFO = 72, UR_CM_APR_INFO = 72 };

struct ur_cm_path_rec { /* one path of a REQ or LAP */
	uint16_t local_lid, remote_lid;
	struct ur_gid local_gid, remote_gid;
	uint32_t flow_label; /* 20 bits */
	uint8_t packet_rate; /* 6 bits */
	uint8_t traffic_class, hop_limit;
	uint8_t sl;           /* 4 bits */
	uint8_t subnet_local; /* 1 bit */
	uint8_t ack_timeout;  /* 5 bits, 4.096 us * 2^n */
};

struct ur_cm_req {
	uint32_t local_comm_id;
	uint32_t vendor_id; /* 24 bits */
	uint64_t service_id;
	uint64_t local_ca_guid;
	uint32_t local_qkey;
	uint32_t local_qpn; /* 24 */
	uint8_t responder_resources, initiator_depth;
	uint32_t local_eecn, remote_eecn;      /* 24 */
	uint8_t remote_response_timeout;       /* 5: remote CM response timeout, 4.096 us * 2^n */
	uint8_t transport_type;                /* 2: 0 RC, 1 UC, 3 see ext_transport */
	uint8_t end_to_end_flow_control;       /* 1 */
	uint32_t starting_psn;                 /* 24: the first PSN that the receiver of the message should send */
	uint8_t local_response_timeout;        /* 5 */
	uint8_t retry_count;                   /* 3 */
	uint16_t pkey;
	uint8_t path_mtu;        /* 4: enum ibv_mtu */
	uint8_t rdc_exists;      /* 1 */
	uint8_t rnr_retry_count; /* 3 */
	uint8_t max_cm_retries;  /* 4 */
	uint8_t srq;             /* 1 */
	uint8_t ext_transport;   /* 3: 1 XRC */
	struct ur_cm_path_rec primary, alternate;
};

struct ur_cm_rep {
	uint32_t local_comm_id, remote_comm_id;
	uint32_t local_qkey, local_qpn, local_eecn, starting_psn; /* the last three 24 bits */
	uint8_t responder_resources, initiator_depth;
	uint8_t target_ack_delay;        /* 5 */
	uint8_t failover_accepted;       /* 2 */
	uint8_t end_to_end_flow_control; /* 1 */
	uint8_t rnr_retry_count;         /* 3 */
	uint8_t srq;                     /* 1 */
	uint64_t local_ca_guid;
	uint32_t vendor_id; /* 24, scattered over three bytes of the message */
};

struct ur_cm_rtu { /* DREP has the same form */
	uint32_t local_comm_id, remote_comm_id;
};

struct ur_cm_dreq {
	uint32_t local_comm_id, remote_comm_id;
	uint32_t remote_qpn; /* 24 */
};

struct ur_cm_mra {
	uint32_t local_comm_id, remote_comm_id;
	uint8_t message;         /* 2: 0 REQ, 1 REP, 2 LAP */
	uint8_t service_timeout; /* 5 */
};

struct ur_cm_rej {
	uint32_t local_comm_id, remote_comm_id;
	uint8_t message; /* 2: 0 REQ, 1 REP, 2 none of them */
	uint8_t ari_len; /* 7 bits, at most 72 */
	uint16_t reason; /* enum ur_cm_rej_reason */
	uint8_t ari[UR_CM_REJ_ARI];
};

struct ur_cm_sidr_req {
	uint32_t request_id;
	uint16_t pkey;
	uint64_t service_id;
};

struct ur_cm_sidr_rep {
	uint32_t request_id;
	uint8_t status; /* enum ur_cm_sidr_status, or what else the peer says */
	uint8_t info_len;
	uint32_t qpn; /* 24 */
	uint64_t service_id;
	uint32_t qkey;
	uint32_t vendor_id; /* 24, scattered over three bytes of the message */
	uint8_t info[UR_CM_SIDR_REP_INFO];
};

struct ur_cm_lap {
	uint32_t local_comm_id, remote_comm_id;
	uint32_t remote_qpn;             /* 24 */
	uint8_t remote_response_timeout; /* 5 */
	struct ur_cm_path_rec alternate;
};

struct ur_cm_apr {
	uint32_t local_comm_id, remote_comm_id;
	uint8_t info_len, status;
	uint8_t info[UR_CM_APR_INFO];
};

struct ur_mad_hdr {
	uint8_t base_version, mgmt_class, class_version, method;
	uint16_t status, class_specific;
	uint64_t tid;
	uint16_t attr_id;
	uint32_t attr_mod;
};

/* A whole CM MAD. `pdata` points to the private data inside the MAD (parse) or to what is to be copied there (build). */
struct ur_cm_msg {
	struct ur_mad_hdr mad;
	enum ur_cm_attr attr;
	union {
		struct ur_cm_req req;
		struct ur_cm_rep rep;
		struct ur_cm_rtu rtu; /* RTU and DREP */
		struct ur_cm_dreq dreq;
		struct ur_cm_mra mra;
		struct ur_cm_rej rej;
		struct ur_cm_sidr_req sidr_req;
		struct ur_cm_sidr_rep sidr_rep;
		struct ur_cm_lap lap;
		struct ur_cm_apr apr;
	};
	const uint8_t *pdata;
	unsigned pdata_len; /* parse: the field's maximum; build: at most that, the rest is zero */
};

/*
 * False unless it is a CM MAD (base version 1, class 7, class version 2, method Send) of a known attribute. Lengths of additional
 * information that exceed their field are cut to it.
 */
bool ur_cm_msg_parse(const uint8_t mad[UR_MAD_LEN], struct ur_cm_msg *m);
/*
 * Writes all 256 bytes; `attr`, `mad.tid`, `mad.attr_mod`, `mad.status` and the message's fields are taken from *m; bits of a field
 * beyond its width are left out. False when the attribute is unknown or pdata is too long.
 */
bool ur_cm_msg_build(uint8_t mad[UR_MAD_LEN], const struct ur_cm_msg *m);
/* "REQ"; NULL for an unknown attribute. */
const char *ur_cm_attr_name(unsigned attr_id);
unsigned ur_cm_pdata_max(enum ur_cm_attr attr);
/* What the reason of a REJ means, in the words of whoever sends it. */
const char *ur_cm_rej_text(uint16_t reason);

/* The RDMA CM header: 36 bytes at the start of a REQ's or SIDR_REQ's private data. */
#define UR_RDMA_CM_HDR_LEN 36

struct ur_rdma_cm_hdr {
	uint8_t ip_version; /* 4 or 6 */
	uint16_t sport;
	struct ur_gid src, dst;
};

/* False when shorter than 36 bytes, of a CMA version other than 0 or an IP version other than 4 and 6. */
bool ur_rdma_cm_hdr_get(const uint8_t *p, unsigned len, struct ur_rdma_cm_hdr *h);
void ur_rdma_cm_hdr_put(uint8_t p[UR_RDMA_CM_HDR_LEN], const struct ur_rdma_cm_hdr *h);

#endif
