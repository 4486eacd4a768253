/* SPDX-License-Identifier: BSD-3-Clause */
/* The connection manager: what it answers and repeats, and messages that must not confuse it. */
#include "conform/rules.h"

#define REQ CM(REQ)
#define REP EXPECT_CM(REP, .flags = UR_CF_RESEND | UR_CF_PREPARES)
#define RTU CM(RTU)
#define CONNECT REQ, REP, RTU
#define ALIVE SEND(RC(SEND_ONLY), 0, SMALL), EXPECT_ACK(0, 1)
#define CM_RULE(name_, clause_, what_, ...)                                                                                                \
	{                                                                                                                                  \
		.name = name_, .clause = clause_, .what = what_, .steps = STEPS(__VA_ARGS__), .setup = UR_CF_BARE                          \
	}
#define BREAK SEND(RC(SEND_LAST), 0, .len = 16, .flags = UR_CF_ACKREQ), EXPECT_NAK(INV_REQ, 0, 0)

const struct ur_cf_rule ur_cf_rules_cm[] = {
	CM_RULE("cm-unknown-service", "12.6.7", "A REQ for a service that is not offered is refused: REJ with reason 8",
		CM(REQ, .flags = UR_CF_NO_SERVICE), EXPECT_CM(REJ, .code = UR_CM_REJ_INVALID_SERVICE_ID, .flags = UR_CF_RESEND)),
	CM_RULE("cm-no-transport", "12.6.7", "A REQ for a service type that the peer does not have is refused, for any reason",
		CM(REQ, .flags = UR_CF_NO_TRANSPORT),
		EXPECT_CM(REJ, .code = UR_CM_REJ_INVALID_TRANSPORT_TYPE, .code2 = UR_CF_ANY, .flags = UR_CF_RESEND)),
	CM_RULE("cm-wrong-version", "12.6.7, 13.4", "A REQ of another version of the class is refused (REJ with reason 31) or dropped",
		CM(REQ, .flags = UR_CF_BAD_CLASS), EXPECT_CM(REJ, .code = UR_CM_REJ_INVALID_CLASS_VERSION, .flags = UR_CF_OR_SILENCE)),
	CM_RULE("cm-duplicate-req", "12.9", "A REQ that is repeated makes no second connection", REQ, REP, CM(REQ, .flags = UR_CF_AGAIN),
		EXPECT_CM(REP, .flags = UR_CF_SAME_ID), RTU, ALIVE),
	CM_RULE("cm-rep-repeated", "12.9", "A REP that is not answered is repeated", REQ, REP, EXPECT_CM(REP, .flags = UR_CF_SAME_ID), RTU,
		ALIVE),
	CM_RULE("cm-rep-ends-with-rtu", "12.9", "A REP that is answered with an RTU is not repeated", CONNECT, NO_CM(REP, 1500), ALIVE),
	{.name = "cm-rep-rejected",
	 .clause = "12.9",
	 .what = "A REP that is answered with a REJ is not repeated",
	 .steps = STEPS(REQ, REP, CM(REJ, .code = UR_CM_REJ_CONSUMER_DEFINED), NO_CM(REP, 1500)),
	 .setup = UR_CF_BARE,
	 .offered = true}, /* rping ends with such a REJ */
	CM_RULE("cm-rep-mra", "12.9", "A REP that is answered with an MRA is not repeated before the time in the MRA has passed", REQ, REP,
		CM(MRA, .code = 20), NO_CM(REP, 1500), RTU, ALIVE),
	CM_RULE("cm-message-for-rtu", "12.9.7, 9.7", "A message is accepted when it overtakes the RTU", REQ, REP, ALIVE, RTU),
	CM_RULE("cm-duplicate-rtu", "12.9", "An RTU that is repeated changes nothing", CONNECT, CM(RTU, .flags = UR_CF_AGAIN), ALIVE),
	CM_RULE("cm-rtu-of-other", "12.9", "An RTU with an unknown communication id changes nothing", REQ, REP,
		CM(RTU, .flags = UR_CF_BAD_ID), EXPECT_CM(REP, .flags = UR_CF_SAME_ID), RTU, ALIVE),
	CM_RULE("cm-dreq", "12.9.9", "A DREQ is answered with a DREP", CONNECT, CM(DREQ), EXPECT_CM(DREP)),
	CM_RULE("cm-duplicate-dreq", "12.9.9", "A DREQ that is repeated is answered again", CONNECT, CM(DREQ), EXPECT_CM(DREP),
		CM(DREQ, .flags = UR_CF_AGAIN), EXPECT_CM(DREP)),
	CM_RULE("cm-message-after-dreq", "12.9.9, 10.3.1", "After its DREP the peer's QP accepts nothing more", CONNECT, CM(DREQ),
		EXPECT_CM(DREP), SEND(RC(SEND_ONLY), 0, SMALL), QUIET),
	CM_RULE("cm-dreq-unknown-id", "12.9.9", "A DREQ with an unknown communication id ends nothing", CONNECT,
		CM(DREQ, .flags = UR_CF_BAD_ID), EXPECT_CM(DREP, .flags = UR_CF_OR_SILENCE), ALIVE),
	CM_RULE("cm-dreq-wrong-qpn", "12.9.9", "A DREQ with the QPN of another connection ends nothing", CONNECT,
		CM(DREQ, .flags = UR_CF_BAD_QPN), PAUSE(100), ALIVE),
	CM_RULE("cm-stale", "12.9.8.3.1",
		"A REQ with the QPN of an existing connection makes no second one: REJ with reason 10, or no answer", CONNECT,
		CM(REQ, .flags = UR_CF_FRESH_ID), EXPECT_CM(REJ, .code = UR_CM_REJ_STALE_CONN, .flags = UR_CF_OR_SILENCE)),
	RULE("cm-dreq-crossing", "12.9.9", "DREQs that cross are both answered with a DREP",
	     STEPS(BREAK, EXPECT_CM(DREQ), CM(DREQ), EXPECT_CM(DREP)), .keeps_quiet = true, .offered = true),
	RULE("cm-dreq-repeated", "12.9.9", "A DREQ that is not answered is repeated, but not after the DREP",
	     STEPS(BREAK, EXPECT_CM(DREQ), EXPECT_CM(DREQ), CM(DREP), NO_CM(DREQ, 1500)), .keeps_quiet = true, .offered = true),
	CM_RULE("sidr-unknown-service", "12.11", "A lookup of a service that is not offered is answered: SIDR_REP with status 1",
		CM(SIDR_REQ, .flags = UR_CF_NO_SERVICE), EXPECT_CM(SIDR_REP, .code = UR_CM_SIDR_UNSUPPORTED, .flags = UR_CF_RESEND)),
	{.name = NULL},
};

static const struct ur_cf_rule *const tables[] = {ur_cf_rules_psn,        ur_cf_rules_wrap,  ur_cf_rules_window, ur_cf_rules_xrc,
						  ur_cf_rules_persist,    ur_cf_rules_order, ur_cf_rules_access, ur_cf_rules_requester,
						  ur_cf_rules_unreliable, ur_cf_rules_cm};

const struct ur_cf_rule *ur_cf_rule(unsigned i)
{
	for (unsigned t = 0; t < ur_array_size(tables); t++)
		for (const struct ur_cf_rule *r = tables[t]; r->name; r++)
			if (!i--)
				return r;
	return NULL;
}

unsigned ur_cf_rule_count(void)
{
	unsigned n = 0;

	for (unsigned t = 0; t < ur_array_size(tables); t++)
		for (const struct ur_cf_rule *r = tables[t]; r->name; r++)
			n++;
	return n;
}

const char *ur_cf_service(const struct ur_cf_rule *r)
{
	static const char *const names[] = {[UR_CF_RC] = "RC", [UR_CF_UC] = "UC", [UR_CF_UD] = "UD", [UR_CF_BARE] = "CM"};

	return r->serve == UR_CF_SERVE_XRC ? "XRC" : names[r->setup];
}
