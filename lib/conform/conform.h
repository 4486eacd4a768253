/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lib/conform: whether a peer obeys the rules of the transport and of the connection manager. Each rule is a small script that a table
 * holds: packets to send, which no program of verbs could have sent, and what the peer has to answer. A run plays the scripts one by one,
 * each over a connection of its own, compares and keeps the results.
 *
 * Sans I/O: packets and time come in and packets go out by the functions below; the caller numbers the packets, so that results can name
 * them.
 */
#ifndef UR_CONFORM_H
#define UR_CONFORM_H

#include "conform/offer.h"
#include "wire/frame.h"

#define UR_CF_TEXT 200
#define UR_CF_PACKETS 48

enum ur_cf_setup {
	UR_CF_RC,
	UR_CF_UC,
	UR_CF_UD,
	UR_CF_BARE, /* no connection: the script speaks to the CM itself */
};

enum ur_cf_verdict { UR_CF_UNTESTED, UR_CF_OBEYED, UR_CF_BROKEN };

struct ur_cf_step;

struct ur_cf_rule {
	const char *name;   /* "psn-gap-nak" */
	const char *clause; /* of the IBTA's specification, volume 1 */
	const char *what;   /* the rule, one sentence */
	const struct ur_cf_step *steps;
	uint8_t setup;       /* enum ur_cf_setup */
	uint8_t serve;       /* enum ur_cf_serve */
	bool offered;        /* needs `uroce conform --serve` at the peer */
	bool fixed_psn;      /* the peer's requests begin at `their_psn` */
	bool keeps_quiet;    /* the script answers a DREQ itself */
	bool lengthy;        /* it takes a minute or more, and is for who asks for it */
	uint8_t ack_timeout; /* of the peer's QP; 0: so long that only what it is told makes it repeat */
	uint32_t their_psn;
	uint32_t our_psn; /* of UR_CF_SERVE_PSN: that of our first request, which is otherwise the peer's choice */
};

unsigned ur_cf_rule_count(void);
/* NULL after the last. */
const struct ur_cf_rule *ur_cf_rule(unsigned i);

struct ur_cf_result {
	const struct ur_cf_rule *rule;
	uint8_t verdict;  /* enum ur_cf_verdict */
	uint8_t attempts; /* a rule that seems to be broken is tried again: a packet may have been lost */
	/* What the step that decided expected, and what was seen in its place; of an untested rule `seen` says why. */
	char expected[UR_CF_TEXT], seen[UR_CF_TEXT];
	uint32_t decisive;               /* the packet that was compared, 0 when none came */
	uint32_t packets[UR_CF_PACKETS]; /* of the last attempt, except for its connection's making and end; 0 after the last */
};

struct ur_cf_config {
	struct ur_gid local, peer;
	struct ur_mac local_mac, peer_mac; /* zero where the kernel writes these headers */
	uint16_t port;                     /* of the peer's service */
	uint16_t sport;                    /* of all packets' UDP header */
	uint64_t seed;
	uint8_t attempts;  /* of a rule that seems to be broken; 0: three */
	uint32_t wait_ms;  /* for an answer; 0: 1000 */
	uint32_t quiet_ms; /* silence that is long enough; 0: 100 */
	uint32_t bulk;     /* number of messages of a step that sends millions, for tests; 0: all */
	/* Which rules; NULL: all. */
	bool (*chosen)(void *ctx, const struct ur_cf_rule *r);
	void *ctx;
};

struct ur_cf_run;

/* NULL when there is no memory. */
struct ur_cf_run *ur_cf_create(const struct ur_cf_config *cfg);
void ur_cf_destroy(struct ur_cf_run *r);
/* Builds the packet that is to be sent now, which gets this number, in an empty packet of UR_PKT_ROOM bytes. False: there is none. */
bool ur_cf_tx(struct ur_cf_run *r, struct ur_pkt *p, uint32_t number, ur_time now);
/* A received packet that ur_frame_parse has taken for RoCEv2. Call ur_cf_tx after it. */
void ur_cf_rx(struct ur_cf_run *r, const struct ur_pkt *p, uint32_t number, ur_time now);
/* One from the peer's address that ur_frame_parse refused. */
void ur_cf_rx_bad(struct ur_cf_run *r, uint32_t number);
/* Whether the packet of the last ur_cf_tx or ur_cf_rx is to be kept. False: it is one of millions, all alike, and its number is free. */
bool ur_cf_keeps(const struct ur_cf_run *r);
/* When ur_cf_tx is to be called if nothing comes before. */
ur_time ur_cf_next(const struct ur_cf_run *r);
bool ur_cf_done(const struct ur_cf_run *r);
/* The results so far, in the order of the rules. */
const struct ur_cf_result *ur_cf_results(const struct ur_cf_run *r, unsigned *n);
const char *ur_cf_service(const struct ur_cf_rule *r);

#endif
