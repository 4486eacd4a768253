/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The services that a REQ can ask for: its transport type, with the extended one where the two bits are not enough (annex A14), and the
 * types of the QPs that it joins.
 */
#include "cm/internal.h"

static const struct ur_cm_transport transports[] = {
	{UR_CM_TRANSPORT_RC, 0, UR_CM_QPT_RC, UR_CM_QPT_RC},
	{UR_CM_TRANSPORT_UC, 0, UR_CM_QPT_UC, UR_CM_QPT_UC},
	{UR_CM_TRANSPORT_EXT, UR_CM_EXT_XRC, UR_CM_QPT_XRC_SEND, UR_CM_QPT_XRC_RECV},
};

const struct ur_cm_transport *ur_cm_transport_of_qp(uint8_t active_qp_type)
{
	for (unsigned i = 0; i < ur_array_size(transports); i++)
		if (transports[i].active == active_qp_type)
			return &transports[i];
	return NULL;
}

const struct ur_cm_transport *ur_cm_transport_of_req(const struct ur_cm_req *r)
{
	for (unsigned i = 0; i < ur_array_size(transports); i++)
		if (transports[i].type == r->transport_type && transports[i].ext == r->ext_transport)
			return &transports[i];
	return NULL;
}
