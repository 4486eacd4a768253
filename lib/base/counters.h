/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every counter of the NIC, one table: the enum, the names and the descriptions all come from UR_COUNTERS. Names that mlx5
 * has are used as mlx5 uses them; a dropped packet raises exactly one counter whose name begins with drop_ (or the mlx5 name).
 */
#ifndef UR_COUNTERS_H
#define UR_COUNTERS_H

#include "base/base.h"

#define UR_COUNTERS(X)                                                                                                                     \
	X(RX_PACKETS, "rx_packets", "frames received")                                                                                     \
	X(RX_BYTES, "rx_bytes", "bytes of frames received")                                                                                \
	X(TX_PACKETS, "tx_packets", "frames sent")                                                                                         \
	X(TX_BYTES, "tx_bytes", "bytes of frames sent")                                                                                    \
	X(TX_LOCAL_PACKETS, "tx_local_packets", "packets sent to processes of this host or to itself, past the port")                      \
	X(TX_LOCAL_BYTES, "tx_local_bytes", "bytes of these packets")                                                                      \
	X(RX_LOCAL_PACKETS, "rx_local_packets", "packets received from other processes of this host")                                      \
	X(RX_LOCAL_BYTES, "rx_local_bytes", "bytes of these packets")                                                                      \
	X(TX_BULK, "tx_bulk", "runs of packets sent to processes of this host as one, for them to copy the payload")                       \
	X(BULK_MAPPED, "bulk_mapped", "such runs received whose payload lay in memory that both processes map: no call copied it")         \
	X(BULK_UNREAD, "bulk_unread", "such runs received whose payload could not be copied: they come again as packets")                  \
	X(TX_BACKLOG, "tx_backlog", "bursts that the port, or another process of this host, did not accept entirely")                      \
	X(TX_DROPPED, "tx_dropped",                                                                                                        \
	  "frames dropped: the port accepted none for 2 ms, or another process of this host read none for 200 ms")                         \
	X(RX_MISSED, "rx_missed", "frames that the kernel or the device dropped because nobody fetched them in time")                      \
	X(TX_REFUSED, "tx_refused", "packets that the kernel did not send: no route, a firewall, or longer than the path allows")          \
	X(TX_CHAINED, "tx_chained", "frames that a DPDK port sent with payload in place, after the headers")                               \
	X(TX_GATHERED, "tx_gathered", "frames whose payload was copied after the headers for a DPDK port")                                 \
	X(TX_UNMAPPED, "tx_unmapped", "frames of tx_gathered that were copied because their memory could not be mapped for the NIC")       \
	X(MR_UNMAPPED, "mr_unmapped", "memory regions that could not be mapped for the NIC, so what is sent from there is copied")         \
	X(CAPTURE_LOST, "capture_lost", "frames missing from the capture: its file could not be written as fast, or at all")               \
	X(LOCK_WAITS, "lock_waits", "times that a thread found the NIC taken by another one, and waited or left it its work")              \
	X(TX_NO_BUFFER, "tx_no_buffer", "times no packet buffer was free for sending")                                                     \
	X(TX_STALLED, "tx_stalled", "times that a QP had something to send, and neither sent nor did anything: an error of uroce")         \
	X(RX_ROCE, "rx_roce_packets", "RoCEv2 packets accepted")                                                                           \
	X(TX_ROCE, "tx_roce_packets", "RoCEv2 packets sent")                                                                               \
	X(RX_OTHER_HOST, "rx_not_for_us", "frames for another host, address or protocol, ignored")                                         \
	X(RX_OTHER_SLOT, "rx_other_process", "packets for another process of this host, ignored or handed on to it")                       \
	X(DROP_ROCE_V1, "drop_roce_v1", "RoCEv1 frames: the peer is in the wrong RoCE mode")                                               \
	X(DROP_MARTIAN, "drop_martian_source", "RoCEv2 packets from the wire whose source is our own address, or not a host's")            \
	X(DROP_VLAN, "drop_vlan", "RoCEv2 packets with a VLAN tag that their destination address does not belong to")                      \
	X(DROP_TRUNCATED, "drop_truncated", "frames shorter than their headers say")                                                       \
	X(DROP_BAD_IP, "drop_bad_ip", "IP headers with a wrong version, length or checksum, or fragments")                                 \
	X(DROP_BAD_UDP, "drop_bad_udp", "UDP length that contradicts the IP header")                                                       \
	X(ICRC, "rx_icrc_encapsulated", "RoCEv2 packets with a wrong ICRC")                                                                \
	X(DROP_OPCODE, "drop_opcode", "unknown opcode, or one that the QP's service does not have")                                        \
	X(DROP_TVER, "drop_tver", "BTH transport version other than 0")                                                                    \
	X(DROP_PAD, "drop_pad", "pad count larger than the payload")                                                                       \
	X(DROP_PKEY, "drop_pkey", "P_Key other than the default partition's")                                                              \
	X(DROP_QPN, "drop_qpn", "no such destination QP")                                                                                  \
	X(DROP_QP_STATE, "drop_qp_state", "destination QP in a state that receives nothing")                                               \
	X(DROP_SOURCE, "drop_source", "addresses are not those of the connection, or not those that a connection request names")           \
	X(DROP_QKEY, "drop_qkey", "Q_Key mismatch")                                                                                        \
	X(DROP_MAD, "drop_mad", "malformed or unknown management datagram")                                                                \
	X(DROP_NO_RECV, "drop_no_receive", "UC and UD messages dropped because no receive WQE was posted")                                 \
	X(DROP_RECV_SHORT, "drop_receive_short", "UC and UD messages that are longer than the receive WQE or the MTU")                     \
	X(DROP_UC_MESSAGE, "drop_uc_message", "UC packets dropped because an earlier one of their message was lost or refused")            \
	X(DROP_NO_MEMORY, "drop_no_memory", "READ, atomic and FLUSH requests dropped because there was no memory for their answers")       \
	X(DROP_ARP, "drop_arp", "malformed ARP or neighbour discovery message")                                                            \
	X(DROP_ICMP, "drop_icmp", "malformed or unsupported ICMP message")                                                                 \
	X(DROP_ICMP_QUOTE, "drop_icmp_quote", "ICMP errors that quote no packet of ours that waits for an answer")                         \
	X(DROP_GMP, "drop_group_management", "malformed IGMP or MLD message")                                                              \
	X(DROP_NEIGH, "drop_neigh_unresolved", "packets dropped because the next hop's MAC address is unknown")                            \
	X(DROP_GHOST_ACK, "drop_ghost_ack", "acknowledgements of PSNs that were never sent or long since completed")                       \
	X(DROP_RESPONSE, "drop_unexpected_response", "responses that fit no outstanding request")                                          \
	X(DROP_OUT_OF_SEQ, "out_of_sequence", "request packets beyond the expected PSN that were dropped")                                 \
	X(DUPLICATE, "duplicate_request", "request packets seen before")                                                                   \
	X(RX_KEPT, "rx_kept", "request packets beyond the expected PSN that were kept until their turn")                                   \
	X(KEEP_FULL, "keep_full", "such packets that found no room to be kept, and were dropped as out of sequence")                       \
	X(KEEP_DIFFERS, "keep_differs", "such packets that differed from one with the same PSN that was kept: neither is kept then")       \
	X(KEEP_IDLE, "keep_idle", "times a QP gave up what it kept: nothing new came for 4 s, or for 0.1 s while others needed room")      \
	X(SACK_SENT, "tx_sacks", "selective acknowledgements sent")                                                                        \
	X(SACK_RCVD, "rx_sacks", "selective acknowledgements received")                                                                    \
	X(PACKET_SEQ_ERR, "packet_seq_err", "PSN sequence error NAKs received")                                                            \
	X(IMPLIED_NAK, "implied_nak_seq_err", "responses that imply a lost one")                                                           \
	X(ACK_TIMEOUT, "local_ack_timeout_err", "expiries of the local ACK timer")                                                         \
	X(RNR_NAK_SENT, "out_of_buffer", "RNR NAKs sent: no receive WQE was posted")                                                       \
	X(RNR_NAK_RCVD, "rnr_nak_retry_err", "RNR NAKs received")                                                                          \
	X(RETRY_EXC, "req_transport_retries_exceeded", "requests failed because the retry counter was exhausted")                          \
	X(RNR_RETRY_EXC, "req_rnr_retries_exceeded", "requests failed because the RNR retry counter was exhausted")                        \
	X(NARROW_HOP, "narrow_hop", "ICMP errors about packets outstanding that are too long for a hop: their connections end")            \
	X(ONLY_SHORT, "only_short_acknowledged", "requests of several packets that failed so, where none had ever been acknowledged")      \
	X(RX_WRITE, "rx_write_requests", "RDMA WRITE requests executed")                                                                   \
	X(RX_READ, "rx_read_requests", "RDMA READ requests executed")                                                                      \
	X(RX_ATOMIC, "rx_atomic_requests", "atomic requests executed")                                                                     \
	X(RX_FLUSH, "rx_flush_requests", "FLUSH requests executed")                                                                        \
	X(RX_SEND, "rx_send_requests", "SEND requests executed")                                                                           \
	X(REMOTE_ACCESS, "resp_remote_access_errors", "requests refused for a remote access error")                                        \
	X(REMOTE_INV, "resp_remote_invalid_request", "requests refused as invalid")                                                        \
	X(REMOTE_OP, "resp_remote_operation_errors", "requests refused because the responder failed locally")                              \
	X(MEMORY_GONE, "memory_gone", "accesses to registered memory that was unmapped or had lost its access rights")                     \
	X(PROBE, "tx_probes", "times that overdue acknowledgements made the oldest and newest request go out again")                       \
	X(PROBE_HELD, "tx_probes_held", "times that overdue acknowledgements made nothing go out again: enough had, in vain")              \
	X(REMINDER, "tx_reminders", "times that READ responses went again, unasked, to a silent host of another make")                     \
	X(RETRANSMIT, "tx_retransmits", "request packets sent again")                                                                      \
	X(REQ_CQE_ERR, "req_cqe_error", "requester completions with an error")                                                             \
	X(RESP_CQE_ERR, "resp_cqe_error", "responder completions with an error")                                                           \
	X(CQE_LOST, "cqe_lost", "completions lost: their CQ was full and ignores overruns")                                                \
	X(CE_MARKED, "np_ecn_marked_roce_packets", "RoCEv2 packets received with a congestion mark")                                       \
	X(CNP_SENT, "np_cnp_sent", "congestion notifications sent, after packets with a congestion mark")                                  \
	X(CNP_HANDLED, "rp_cnp_handled", "congestion notifications received; the sending rate was reduced")                                \
	X(CNP_IGNORED, "rp_cnp_ignored", "congestion notifications received while congestion control is off")                              \
	X(CM_DUPLICATE, "cm_duplicates", "CM messages received again")                                                                     \
	X(CM_RETRIES, "cm_retries", "CM messages sent again after the time that their receiver may take to answer")                        \
	X(CM_EARLY, "cm_early_resends", "CM messages sent again early, because they may have been lost")                                   \
	X(CM_BACKLOG, "cm_backlog", "connection requests and lookups left without an answer: backlog full, or too many half-open")         \
	X(CM_HALF_OPEN, "cm_half_open", "accepted connections given up early: not confirmed by their peers, and too many")                 \
	X(CM_LEFT, "cm_left", "connection requests and lookups left without an answer: their listener was closed a moment ago")            \
	X(CM_STALE, "cm_stale", "connection requests refused as stale")                                                                    \
	X(CM_SPARED, "cm_spared", "ignored connection requests that would end a connection in use, or that arrived too soon for one")      \
	X(GMP_QUERIES, "rx_group_queries", "IGMP and MLD queries received")                                                                \
	X(GMP_REPORTS, "tx_group_reports", "IGMP and MLD reports sent: this process is a member of multicast groups")                      \
	X(GMP_LEAVES, "tx_group_leaves", "IGMP and MLD messages sent about multicast groups that were left")                               \
	X(FAULT_DROP, "fault_dropped", "packets dropped by fault injection")                                                               \
	X(FAULT_DUP, "fault_duplicated", "packets duplicated by fault injection")                                                          \
	X(FAULT_REORDER, "fault_reordered", "packets reordered by fault injection")                                                        \
	X(FAULT_CORRUPT, "fault_corrupted", "packets corrupted by fault injection")                                                        \
	X(FAULT_DELAY, "fault_delayed", "packets delayed by fault injection")                                                              \
	X(FAULT_MARK, "fault_marked", "packets marked as congested by fault injection")                                                    \
	X(FAULT_RULE1, "fault_rule_1", "packets affected by the first rule of the fault specification")                                    \
	X(FAULT_RULE2, "fault_rule_2", "packets affected by the second rule of the fault specification")                                   \
	X(FAULT_RULE3, "fault_rule_3", "packets affected by the third rule of the fault specification")                                    \
	X(FAULT_RULE4, "fault_rule_4", "packets affected by the fourth rule of the fault specification")                                   \
	X(FAULT_RULE5, "fault_rule_5", "packets affected by the fifth rule of the fault specification")                                    \
	X(FAULT_RULE6, "fault_rule_6", "packets affected by the sixth rule of the fault specification")                                    \
	X(FAULT_RULE7, "fault_rule_7", "packets affected by the seventh rule of the fault specification")                                  \
	X(FAULT_RULE8, "fault_rule_8", "packets affected by the eighth rule of the fault specification")

/* The counters of packets that are not accepted, and of requests that a QP refuses for good. */
#define UR_C_REFUSED(c) (((c) >= UR_C_DROP_ROCE_V1 && (c) <= UR_C_DUPLICATE) || ((c) >= UR_C_REMOTE_ACCESS && (c) <= UR_C_REMOTE_OP))

enum ur_counter {
#define UR_COUNTER_ENUM(id, name, help) UR_C_##id,
	UR_COUNTERS(UR_COUNTER_ENUM)
#undef UR_COUNTER_ENUM
		UR_C_COUNT
};

struct ur_counters {
	uint64_t v[UR_C_COUNT];
};

/* NULL for a number outside the table. */
const char *ur_counter_name(enum ur_counter c);
const char *ur_counter_help(enum ur_counter c);

static inline void ur_count(struct ur_counters *c, enum ur_counter id)
{
	c->v[id]++;
}

/* Adds those of another, which somebody may be counting meanwhile. */
static inline void ur_counters_add_to(struct ur_counters *sum, const struct ur_counters *c)
{
	for (unsigned i = 0; i < UR_C_COUNT; i++)
		sum->v[i] += __atomic_load_n(&c->v[i], __ATOMIC_RELAXED);
}

/*
 * What one QP counts: packets and bytes of payload, and those of enum ur_counter that show the state of its connection. One table: the
 * members, their names, and the corresponding counters of the device.
 */
#define UR_QP_COUNTERS(X)                                                                                                                  \
	X(retransmits, RETRANSMIT)                                                                                                         \
	X(out_of_sequence, DROP_OUT_OF_SEQ)                                                                                                \
	X(duplicates, DUPLICATE)                                                                                                           \
	X(seq_errors, PACKET_SEQ_ERR)                                                                                                      \
	X(implied_naks, IMPLIED_NAK)                                                                                                       \
	X(rnr_sent, RNR_NAK_SENT)                                                                                                          \
	X(rnr_received, RNR_NAK_RCVD)                                                                                                      \
	X(timeouts, ACK_TIMEOUT)                                                                                                           \
	X(probes, PROBE)                                                                                                                   \
	X(cnp_sent, CNP_SENT)                                                                                                              \
	X(cnp_handled, CNP_HANDLED)

struct ur_qp_counters {
	uint64_t tx_packets, tx_bytes, rx_packets, rx_bytes;
#define UR_QP_COUNTER_MEMBER(member, counter) uint64_t member;
	UR_QP_COUNTERS(UR_QP_COUNTER_MEMBER)
#undef UR_QP_COUNTER_MEMBER
};

#define UR_QP_COUNTER_COUNT (sizeof(struct ur_qp_counters) / sizeof(uint64_t))

/* "tx_packets" and so on, in the order of the struct; NULL past the last. */
const char *ur_qp_counter_name(unsigned i);

#endif
