/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lib/doctor: what is wrong with a host, or with the path to a peer, for `uroce doctor`. Facts come in as one struct, findings go out as a
 * table; nothing is read here, so each judgement can be tested by itself. apps/uroce/doctor reads the facts.
 */
#ifndef UR_DOCTOR_H
#define UR_DOCTOR_H

#include <sys/types.h>

#include "base/base.h"
#include "doctor/firewall.h"

/*
 * OK: checked, and fine. NOTE: it works, and could be better or is good to know. UNKNOWN: it cannot be determined, and the sentence says
 * why. A WARNING costs time or data; an ERROR keeps programs from working. Only these two count as wrong.
 */
enum ur_doctor_severity { UR_DOCTOR_OK, UR_DOCTOR_NOTE, UR_DOCTOR_UNKNOWN, UR_DOCTOR_WARNING, UR_DOCTOR_ERROR };

/* The one table of findings: name, severity, what it is about. doc/doctor.md has a row for each that is not OK. */
/* clang-format off */
#define UR_DOCTOR_FINDINGS(X) \
	X(DEVICE_OK, "device-ok", OK, "device") \
	X(DEVICE_NONE, "device-none", ERROR, "device") \
	X(DEVICE_DOWN, "device-down", ERROR, "device") \
	X(DEVICE_NO_CARRIER, "device-no-carrier", ERROR, "device") \
	X(DEVICE_NO_ADDRESS, "device-no-address", ERROR, "device") \
	X(PORT_OK, "port-ok", OK, "port") \
	X(PORT_REFUSED, "port-refused", NOTE, "port") \
	X(PORT_CHOSEN, "port-chosen", ERROR, "port") \
	X(PORT_NONE, "port-none", ERROR, "port") \
	X(HOLDER_OK, "holder-ok", OK, "holder") \
	X(HOLDER_RXE, "holder-rxe", ERROR, "holder") \
	X(HOLDER_OTHER, "holder-other", ERROR, "holder") \
	X(HOLDER_UNKNOWN, "holder-unknown", UNKNOWN, "holder") \
	X(MTU_OK, "mtu-ok", OK, "mtu") \
	X(MTU_1024, "mtu-1024", NOTE, "mtu") \
	X(MTU_SMALL, "mtu-small", WARNING, "mtu") \
	X(KERNEL_OK, "kernel-ok", OK, "kernel") \
	X(KERNEL_SEGMENT, "kernel-segment", NOTE, "kernel") \
	X(KERNEL_GRO, "kernel-gro", NOTE, "kernel") \
	X(BUFFER_OK, "buffer-ok", OK, "buffer") \
	X(BUFFER_SMALL, "buffer-small", NOTE, "buffer") \
	X(BUFFER_TINY, "buffer-tiny", WARNING, "buffer") \
	X(BUFFER_UNKNOWN, "buffer-unknown", UNKNOWN, "buffer") \
	X(MERGE_OK, "merge-ok", OK, "merge") \
	X(MERGE_ON, "merge-on", WARNING, "merge") \
	X(FIREWALL_OK, "firewall-ok", OK, "firewall") \
	X(FIREWALL_BYPASSED, "firewall-bypassed", NOTE, "firewall") \
	X(FIREWALL_DROPS, "firewall-drops", ERROR, "firewall") \
	X(FIREWALL_MAY_DROP, "firewall-may-drop", WARNING, "firewall") \
	X(FIREWALL_UNKNOWN, "firewall-unknown", UNKNOWN, "firewall") \
	X(PROCESSES_OK, "processes-ok", OK, "processes") \
	X(PROCESSES_SILENT, "processes-silent", WARNING, "processes") \
	X(PROCESSES_UNKNOWN, "processes-unknown", UNKNOWN, "processes") \
	X(MEMLOCK_OK, "memlock-ok", OK, "memlock") \
	X(CPU_OK, "cpu-ok", OK, "cpu") \
	X(CPU_FEW, "cpu-few", NOTE, "cpu") \
	X(CPU_QUOTA, "cpu-quota", WARNING, "cpu") \
	X(CLOCK_OK, "clock-ok", OK, "clock") \
	X(CLOCK_SLOW, "clock-slow", WARNING, "clock") \
	X(COPY_OK, "copy-ok", OK, "copy") \
	X(COPY_LIMITED, "copy-limited", NOTE, "copy") \
	X(COPY_FORBIDDEN, "copy-forbidden", NOTE, "copy") \
	X(SETTINGS_OK, "settings-ok", OK, "settings") \
	X(SETTINGS_FAULT, "settings-fault", WARNING, "settings") \
	X(SETTINGS_WATCHED, "settings-watched", NOTE, "settings") \
	X(PEER_NAME, "peer-name", ERROR, "peer") \
	X(PEER_SELF, "peer-self", NOTE, "peer") \
	X(PEER_ROUTE, "peer-route", ERROR, "peer") \
	X(PEER_OTHER_DEV, "peer-other-dev", ERROR, "peer") \
	X(PING_OK, "ping-ok", OK, "peer") \
	X(PING_SILENT, "ping-silent", NOTE, "peer") \
	X(PING_UNREACHABLE, "ping-unreachable", ERROR, "peer") \
	X(PING_UNKNOWN, "ping-unknown", UNKNOWN, "peer") \
	X(PEER_MTU_OK, "peer-mtu-ok", OK, "peer-mtu") \
	X(PEER_MTU, "peer-mtu", WARNING, "peer-mtu") \
	X(PEER_MTU_UNKNOWN, "peer-mtu-unknown", UNKNOWN, "peer-mtu") \
	X(CM_OK, "cm-ok", OK, "cm") \
	X(CM_REFUSED, "cm-refused", ERROR, "cm") \
	X(CM_PROHIBITED, "cm-prohibited", ERROR, "cm") \
	X(CM_SILENT, "cm-silent", ERROR, "cm") \
	X(CM_UNTESTED, "cm-untested", UNKNOWN, "cm") \
	X(LOSS_OK, "loss-ok", OK, "loss") \
	X(LOSS, "loss", WARNING, "loss") \
	X(GIDS_OK, "gids-ok", OK, "gids") \
	X(GIDS_SILENT, "gids-silent", NOTE, "gids")
/* clang-format on */

#define UR_DOCTOR_ENUM(id, name, severity, topic) UR_DOC_##id,
enum ur_doctor_id { UR_DOCTOR_FINDINGS(UR_DOCTOR_ENUM) UR_DOC_COUNT };

struct ur_doctor_kind {
	const char *name;
	enum ur_doctor_severity severity;
	const char *topic;
};

extern const struct ur_doctor_kind ur_doctor_kinds[UR_DOC_COUNT];
const char *ur_doctor_severity_name(enum ur_doctor_severity s);

/* --- facts --- */

#define UR_DOCTOR_TEXT 400
#define UR_DOCTOR_HOLDERS 8
#define UR_DOCTOR_PROCESSES 64
#define UR_DOCTOR_GIDS 8

enum ur_doctor_port_index { UR_DOCTOR_UDP, UR_DOCTOR_PACKET, UR_DOCTOR_DPDK, UR_DOCTOR_PORTS };
extern const char *const ur_doctor_port_names[UR_DOCTOR_PORTS];

/* What came of opening such a port as a program does. */
struct ur_doctor_port {
	bool works;
	char why[UR_DOCTOR_TEXT]; /* the sentence when it does not */
};

/* A socket that is bound to UDP port 4791 on the interface, or on all. */
struct ur_doctor_holder {
	uid_t uid;
	pid_t pid; /* 0: not to be seen */
	char name[32];
	bool kernel; /* of no process: rdma_rxe's, or one that is not to be seen from here */
	bool uroce;
};

/* Other processes of uroce on the interface. */
struct ur_doctor_process {
	pid_t pid; /* 0: it cannot be seen from this PID namespace */
	uid_t uid;
	bool silent; /* of this user, and does not answer: it is stopped */
};

enum ur_doctor_ping {
	UR_DOCTOR_PING_ANSWERS,
	UR_DOCTOR_PING_SILENT,
	UR_DOCTOR_PING_UNREACHABLE, /* neighbour or router say so */
	UR_DOCTOR_PING_DENIED,      /* we may not open such a socket */
	UR_DOCTOR_PING_UNSENT,      /* this host does not send it, which says nothing of the peer */
};

enum ur_doctor_cm {
	UR_DOCTOR_CM_UNTESTED, /* no port is available */
	UR_DOCTOR_CM_ANSWERS,
	UR_DOCTOR_CM_REFUSED,    /* ICMP: nobody has the port */
	UR_DOCTOR_CM_PROHIBITED, /* ICMP: a firewall forbids it */
	UR_DOCTOR_CM_SILENT,
};

struct ur_doctor_gid {
	char text[40];    /* in full */
	char address[48]; /* as an address */
	bool answers;
};

struct ur_doctor_peer {
	char name[256];
	char address[48]; /* "" when the name says nothing */
	bool v6, self;
	bool routed;           /* the kernel has a route */
	char dev[16], via[48]; /* of the route; via is "" without a router */
	enum ur_doctor_ping ping;
	unsigned ping_us;
	int ping_error; /* PING_UNSENT: an errno */
	bool sized;     /* the largest packet that it answers has been looked for */
	unsigned bytes; /* the longest IP packet that came back, of those that RoCE's path MTUs need; 0: none */
	enum ur_doctor_cm cm;
	char cm_why[UR_DOCTOR_TEXT]; /* UNTESTED: why */
	unsigned rtt_min_us, rtt_median_us, rtt_max_us;
	unsigned sent, answered; /* questions of the exchange that measures loss */
	unsigned gid_count;
	struct ur_doctor_gid gids[UR_DOCTOR_GIDS];
};

struct ur_doctor_facts {
	bool net_raw, net_admin; /* CAP_NET_RAW, CAP_NET_ADMIN */
	uid_t uid;

	char dev[64]; /* "" when there is none */
	char dev_why[UR_DOCTOR_TEXT];
	bool up, carrier;
	unsigned mtu;
	unsigned addresses;
	bool v4, v6;      /* it has an address of that kind */
	char address[48]; /* the first, which is GID 0 */
	bool gro, lro;

	char port_setting[16];
	struct ur_doctor_port ports[UR_DOCTOR_PORTS];

	bool holders_known; /* the sockets on UDP port 4791 could be listed */
	unsigned holder_count;
	struct ur_doctor_holder holders[UR_DOCTOR_HOLDERS];
	char rxe[64]; /* the RDMA device of rdma_rxe on the interface; "" for none */

	char release[64]; /* of the kernel */
	bool udp_segment, udp_gro;
	uint64_t rmem_max; /* 0: not to be read */

	struct ur_firewall firewall;

	bool processes_known;
	unsigned process_count; /* may be more than are listed */
	struct ur_doctor_process processes[UR_DOCTOR_PROCESSES];

	uint64_t memlock; /* UINT64_MAX: no limit */

	unsigned cpus;          /* that we may run on */
	unsigned quota_percent; /* of one CPU, by the control group; 0: no quota */
	uint64_t spin_us;

	char clock[32];
	unsigned clock_ns; /* that reading it takes */

	unsigned ptrace_scope; /* of Yama; 0 where it is not, too */
	int copy_error;        /* 0, or the errno with which copying from a process's memory is refused whatever the process */

	bool settings_unknown; /* they could not be read */
	char fault[128];       /* the setting, perhaps not all of it; "" for none */
	bool capture, trace;   /* settings that are set */

	bool with_peer;
	struct ur_doctor_peer peer;
};

/* The port that a program would get with the setting; UR_DOCTOR_PORTS for none. */
enum ur_doctor_port_index ur_doctor_port_of(const struct ur_doctor_facts *f);
/* RoCE path MTU that fits into IP packets of this many bytes; 0 when not even 256 does. */
unsigned ur_doctor_path_mtu(unsigned ip_bytes);
/* The IP bytes that a path MTU needs. */
unsigned ur_doctor_ip_bytes(unsigned path_mtu);

/* --- findings --- */

struct ur_doctor_finding {
	enum ur_doctor_id id;
	char sentence[2 * UR_DOCTOR_TEXT];
	char remedy[UR_DOCTOR_TEXT]; /* the command that repairs it; "" when nothing has to be repaired */
};

#define UR_DOCTOR_MAX 64

struct ur_doctor_report {
	unsigned count;
	struct ur_doctor_finding findings[UR_DOCTOR_MAX];
};

/* Names go into commands, and all texts to a terminal: takes out of them what has no business there. Before judging. */
void ur_doctor_clean(struct ur_doctor_facts *f);
/* Every topic has at least one finding, in a fixed order. */
void ur_doctor_judge(const struct ur_doctor_facts *f, struct ur_doctor_report *r);
/* How many of the findings are wrong. */
unsigned ur_doctor_wrong(const struct ur_doctor_report *r);

#endif
